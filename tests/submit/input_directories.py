"""Directories as inputs, for tests, and the archives that are made of them."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

from boinc_gahp.submit.made_files import MadeFiles, Member

if TYPE_CHECKING:
    import pytest

LONG_AGO = 1_700_000_000


def tree(directory: Path, files: dict[str, bytes], mtime: int = LONG_AGO) -> Path:
    """Make a directory of files by their names; those that end in a slash are directories."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("/"):
            path.mkdir()
        else:
            path.write_bytes(content)
            os.utime(path, (mtime, mtime))
    return directory


def pack(made: MadeFiles, path: Path, name: str = "model") -> Path:
    return Path(made.pack([Member(str(path), name)]).path)


def contents(archive: Path) -> dict[str, bytes]:
    """Return the files in an archive."""
    with tarfile.open(archive) as opened:
        return {
            each.name: reader.read()
            for each in opened
            if each.isreg() and (reader := opened.extractfile(each)) is not None
        }


def count_calls(monkeypatch: pytest.MonkeyPatch, module: object, name: str) -> list[object]:
    """Return a list that gets the first argument of each call of a function."""
    calls: list[object] = []
    real = getattr(module, name)

    def noted(first: object, *more: object) -> object:
        calls.append(first)
        return real(first, *more)

    monkeypatch.setattr(module, name, noted)
    return calls
