"""Directories as inputs, for tests, and the archives that are made of them."""

import os
import tarfile
from pathlib import Path

from boinc_gahp.submit.generated_files import Member

LONG_AGO = 1_700_000_000


def tree(directory, files, mtime=LONG_AGO):
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


def pack(made, path, name="model"):
    return Path(made.pack([Member(name, str(path))]).path)


def contents(archive):
    """Return the files in an archive."""
    with tarfile.open(archive) as opened:
        return {
            each.name: reader.read()
            for each in opened
            if each.isreg() and (reader := opened.extractfile(each)) is not None
        }


def count_calls(monkeypatch, module, name):
    """Return a list that gets the first argument of each call of a function."""
    calls = []
    real = getattr(module, name)

    def noted(first, *more, **named):
        calls.append(first)
        return real(first, *more, **named)

    monkeypatch.setattr(module, name, noted)
    return calls
