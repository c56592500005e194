"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import stat
import threading
from typing import TYPE_CHECKING

import pytest

from boinc_gahp.localproject.atomic import write_atomically

if TYPE_CHECKING:
    from pathlib import Path


def test_what_is_there_is_replaced_and_is_as_private_as_it_shall_be(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o644)
    write_atomically(path, "new: é", 0o600)
    assert path.read_text("utf-8") == "new: é"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_what_cannot_be_written_leaves_what_was_there_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No disk is full here: the system says so."""
    path = tmp_path / "file"
    path.write_text("old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.replace", full)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, b"new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]  # noqa: PTH208


def test_writers_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    path = tmp_path / "file"
    texts = [str(number) * 100_000 for number in range(8)]
    start = threading.Barrier(len(texts))
    failed: list[BaseException] = []

    def write(text: str) -> None:
        start.wait(60)
        try:
            for _ in range(10):
                write_atomically(path, text)
                assert path.read_text() in texts
        except BaseException as error:  # noqa: BLE001
            failed.append(error)

    threads = [threading.Thread(target=write, args=(text,)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failed == []
    assert list(tmp_path.iterdir()) == [path]
