"""A slot: the directory in which a volunteer runs one job, and in which the job may do anything."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from boinc_gahp.templates.types import safe_open_name

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
        path = self.directory / _checked(open_name)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def link_file(self, open_name: str, target: str) -> None:
        """Replace a file by BOINC's kind of link, a text that only BOINC's programs follow.

        Raises:
            ValueError: the open name leads out of the slot.
        """
        path = self.inside(open_name)
        path.unlink(missing_ok=True)
        path.write_text(f"<soft_link>{target}</soft_link>\n", "utf-8", "surrogateescape")

    def output(self, open_name: str) -> Path | None:
        """Return the path of what a job has made: a file, a directory, a pipe; None: nothing.

        A link does not count, nor does its target: that may be a file of this machine. A real
        client uploads the target.

        Raises:
            ValueError: the open name leads out of the slot.
        """
        path = self.directory
        parts = PurePosixPath(_checked(open_name)).parts
        try:
            for part in parts:
                path /= part
                if stat.S_ISLNK(path.lstat().st_mode):
                    return None
        except OSError:
            return None
        return path

    def put_aside(self, path: Path, name: str) -> None:
        """Move what a job has made out of the slot; it stays until the project starts again."""
        aside = self.directory.with_name(f"{self.directory.name}.uploads")
        aside.mkdir(exist_ok=True)
        path.rename(aside / name)

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


def _checked(open_name: str) -> str:
    if not safe_open_name(open_name):
        raise ValueError(f"the file name {open_name!r} leads out of the slot (the job's directory)")
    return open_name
