"""What is remembered of delivered outputs."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

from boinc_gahp.fetch.delivered import Delivered

if TYPE_CHECKING:
    from pathlib import Path


def test_it_can_be_read_by_its_owner_alone(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)  # a directory that was there before, [state] cache_dir for example
    delivered = Delivered(tmp_path)
    delivered.remember_members(("a job's archive",), ["results.txt"])
    try:
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    finally:
        delivered.close()
    assert set(modes) >= {"delivered.sqlite", "delivered.sqlite-wal"}
    assert set(modes.values()) == {0o600}
