"""A gate that an event closes ends a fetch at its next step, and nothing half-done stays."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from boinc_gahp.bridge import EventGate, Stopped
from boinc_gahp.bridge.temporary import registry
from tests.bridge.farm import contents

if TYPE_CHECKING:
    from pathlib import Path


def test_everything_passes_until_the_event_is_set() -> None:
    closed = threading.Event()
    gate = EventGate(closed)
    gate.check()
    with gate:
        closed.set()  # whoever is inside comes out
    for enter in (gate.check, gate.__enter__):
        with pytest.raises(Stopped, match="fetch again"):
            enter()


def test_a_file_that_is_being_written_vanishes(tmp_path: Path) -> None:
    closed = threading.Event()

    def write() -> None:
        with registry.file(tmp_path / "out", EventGate(closed)) as file:
            file.write(b"a part")
            closed.set()
            file.write(b"the rest")

    with pytest.raises(Stopped):
        write()
    assert contents(tmp_path) == {}
