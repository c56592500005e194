"""A slot: the directory in which a volunteer runs one job, and in which the job may do anything."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from boinc_gahp.localproject.names import safe_open_name

if TYPE_CHECKING:
    from pathlib import Path


class Slot:
    """A directory that is empty before and after each job."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def renew(self) -> None:
        """Make it, empty.

        Raises:
            OSError: something that another job has left cannot be removed.
        """
        self.remove()
        self.directory.mkdir(parents=True)

    def remove(self) -> None:
        """Remove it, whatever rights a job has taken from its directories."""
        if not self.directory.exists():
            return
        for directory, _, _ in os.walk(self.directory):
            # The walk is top-down: rights to a directory are restored before the walk enters it.
            for entry in os.scandir(directory):
                if entry.is_dir(follow_symlinks=False):
                    os.chmod(entry.path, stat.S_IRWXU)  # noqa: PTH101
        shutil.rmtree(self.directory)

    def inside(self, open_name: str) -> Path:
        """Return the path for an open name; directories on the way are made.

        Raises:
            ValueError: it leads out of the slot.
        """
        if not safe_open_name(open_name):
            raise ValueError(f"the open name {open_name!r} leads out of the slot")
        path = self.directory / open_name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def output(self, open_name: str) -> Path | None:
        """Return the path of a file that a job has made; None if there is none.

        A link does not count as the job's file, nor does its target.

        Raises:
            ValueError: the open name leads out of the slot.
        """
        if not safe_open_name(open_name):
            raise ValueError(f"the open name {open_name!r} leads out of the slot")
        path = self.directory
        try:
            for part in PurePosixPath(open_name).parts:
                path /= part
                mode = path.lstat().st_mode
                if stat.S_ISLNK(mode):
                    return None
        except OSError:
            return None
        return path if stat.S_ISREG(mode) else None

    def usage(self) -> int:
        """Return the bytes of all files in it; a link counts 0."""
        total = 0
        for directory, _, names in os.walk(self.directory):
            for name in names:
                try:
                    status = os.lstat(os.path.join(directory, name))  # noqa: PTH118
                except OSError:
                    continue
                total += status.st_size if stat.S_ISREG(status.st_mode) else 0
        return total
