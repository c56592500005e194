"""A gate that is closed ends a fetch at its next step, and nothing half-done stays."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from boinc_gahp.fetch.cancel import Gate, Stopped
from boinc_gahp.fetch.temporary import registry
from tests.fetch.farm import contents
from tests.helpers import wait_for

if TYPE_CHECKING:
    from pathlib import Path


def test_a_closed_gate_lets_nobody_in() -> None:
    gate = Gate()
    gate.check()
    with gate, gate:
        pass
    gate.close()
    with pytest.raises(Stopped):
        gate.check()
    with pytest.raises(Stopped), gate:
        pytest.fail("somebody came in")


def test_closing_a_gate_waits_for_those_inside_and_keeps_out_those_who_want_in_again() -> None:
    gate = Gate()
    inside, leave = threading.Event(), threading.Event()
    refused = []

    def write() -> None:
        with gate:
            inside.set()
            assert leave.wait(60)
        try:
            gate.check()
        except Stopped:
            refused.append(True)

    writer = threading.Thread(target=write)
    writer.start()
    assert inside.wait(60)
    closer = threading.Thread(target=gate.close)
    closer.start()
    wait_for(lambda: gate._closed, "the gate begins to close")
    assert closer.is_alive()
    leave.set()
    closer.join(60)
    writer.join(60)
    assert not closer.is_alive()
    assert refused


def test_everything_passes_until_the_event_is_set() -> None:
    closed = threading.Event()
    gate = Gate(closed)
    gate.check()
    with gate:
        closed.set()  # whoever is inside comes out
    for enter in (gate.check, gate.__enter__):
        with pytest.raises(Stopped, match="fetch again"):
            enter()


def test_a_file_that_is_being_written_vanishes(tmp_path: Path) -> None:
    closed = threading.Event()

    def write() -> None:
        with registry.file(tmp_path / "out", Gate(closed)) as file:
            file.write(b"a part")
            closed.set()
            file.write(b"the rest")

    with pytest.raises(Stopped):
        write()
    assert contents(tmp_path) == {}
