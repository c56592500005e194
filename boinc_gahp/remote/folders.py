"""Folders that hold a job's outputs, and the note in each that says when it is complete.

The note, a hidden file, is written last and goes with the folder: copied to another machine it
still says that nothing is to be fetched, and deleted with the folder it says nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from boinc_gahp.bridge.directories import open_parent
from boinc_gahp.bridge.leftovers import sweep
from boinc_gahp.bridge.temporary import registry
from boinc_gahp.bridge.types import OWN
from boinc_gahp.errors import OutputError

if TYPE_CHECKING:
    from pathlib import Path

    from boinc_gahp.bridge import Gate

__all__ = ["NOTE", "Note", "folder_name", "read_note", "write_note"]

#: The note's name.
NOTE = f"{OWN}.json"

_FORMAT = 1
#: Bytes that a folder's name may have, and those of a digest that stands for the rest.
_LONGEST = 200
_DIGEST = 16


def folder_name(name: str) -> str:
    """Return a name for a folder: the job's or batch's own, if that can be one.

    Different names give different folders. A slash, a percent sign, a leading dot and what cannot
    be shown become ``%`` and two hex digits a byte; a name that is too long ends in a digest.
    """
    safe = "".join(
        each if each.isprintable() and each not in "/%" else _escaped(each) for each in name
    )
    if safe.startswith("."):
        safe = _escaped(".") + safe[1:]
    if len(safe.encode()) > _LONGEST:
        digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]
        cut = safe.encode()[: _LONGEST - _DIGEST - 2].decode("utf-8", "ignore")
        # No other name gives a percent sign without two hex digits after it.
        return f"{cut}%~{digest}"
    return safe or "%"


def _escaped(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode("utf-8", "surrogatepass"))


@dataclass(frozen=True, slots=True)
class Note:
    """Which job's outputs a folder holds.

    Attributes:
        project: the project's address.
        job_id: the project's id of the job.
        instance_id: of the canonical instance that the outputs are of.
        files: the size in bytes of each, by its path in the folder; stderr is among them.
        stderr: the path of stderr; None if it was not fetched.
    """

    project: str
    job_id: int
    instance_id: int
    files: dict[str, int]
    stderr: str | None

    def there(self, folder: Path) -> dict[str, int]:
        """Return those of the files that are in place, as large as they were."""
        found = {}
        for name, size in self.files.items():
            try:
                status = os.stat(folder / name, follow_symlinks=False)  # noqa: PTH116
            except (OSError, ValueError):
                continue
            if stat.S_ISREG(status.st_mode) and status.st_size == size:
                found[name] = size
        return found


def read_note(folder: Path) -> Note | None:
    """Return the note in a folder; None where there is none, or none that can be read."""
    try:
        said: Any = json.loads((folder / NOTE).read_bytes())
        if said["format"] != _FORMAT:
            return None
        files = {str(name): int(size) for name, size in said["files"].items()}
        return Note(
            str(said["project"]),
            int(said["job_id"]),
            int(said["instance_id"]),
            files,
            None if said["stderr"] is None else str(said["stderr"]),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def write_note(folder: Path, note: Note, job_name: str, gate: Gate) -> None:
    """Write a folder's note.

    Raises:
        OutputError: it cannot be written.
        Exception: what the gate raises when it is closed.
    """
    text = json.dumps(
        {
            "format": _FORMAT,
            "job": job_name,
            "project": note.project,
            "job_id": note.job_id,
            "instance_id": note.instance_id,
            "stderr": note.stderr,
            "files": note.files,
        }
    )
    with registry.file(folder / NOTE, gate, inside=folder.parent) as file:
        file.write(text.encode() + b"\n")
        file.commit()


def clear(folder: Path) -> None:
    """Remove what a fetch that was killed has left in a folder; never fails."""
    try:
        with os.scandir(folder) as entries:
            dirty = any(each.name.startswith(f"{OWN}-") for each in entries)
    except OSError:
        return
    if dirty:
        sweep(folder)


def make(folder: Path, gate: Gate) -> None:
    """Make a folder, whose parent is there, if it is missing.

    Raises:
        OutputError: it cannot be made, or something else has its name, be it a link.
        Exception: what the gate raises when it is closed.
    """
    try:
        os.close(open_parent(folder / NOTE, gate, inside=folder.parent))
    except NotADirectoryError as error:
        raise OutputError(
            f"{str(folder)!r} is no directory: move it away, or fetch into another directory"
        ) from error
    except OSError as error:
        raise OutputError(
            f"the directory {str(folder)!r} cannot be made: {error.strerror or error}"
        ) from error
