"""Folders that hold a job's outputs each: where its files go, and the note that says what is there.

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
from boinc_gahp.bridge.fetching.names import new_file, shown
from boinc_gahp.bridge.fetching.sinks import Delivery, Sink
from boinc_gahp.bridge.leftovers import sweep
from boinc_gahp.bridge.temporary import registry
from boinc_gahp.bridge.types import OWN
from boinc_gahp.errors import OutputError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from boinc_gahp.bridge import Gate
    from boinc_gahp.bridge.fetching.engine import Brought
    from boinc_gahp.remote.fetching_batch import Finished

__all__ = ["NOTE", "Folder", "Note", "folder_name", "read_note", "write_note"]

#: The note's name.
NOTE = f"{OWN}.json"

#: What stderr is called, and what where an output has that name.
_STDERR = ("stderr.txt", "stderr.boinc.txt")

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


class Folder(Sink):
    """A folder for one job's files alone, under their own names.

    Outputs have their open names without directories; two with the same last part keep their
    directories. Nobody can name an output here, so ``%2E`` stands for a dot at the beginning of a
    part. An app's zip archive stays one.

    Args:
        path: the folder's, in a directory that is there; absolute.
        job: the job.
        stderr: whether stderr is wanted, too.
        again: whether to fetch also what is there.

    Attributes:
        job: the job.
        have: size in bytes of the files that are known to be in place, by their paths in it.
    """

    def __init__(self, path: Path, job: Finished, *, stderr: bool, again: bool) -> None:
        super().__init__(job.name, path)
        self.again = again
        self.have: dict[str, int] = {}
        self.job = job
        self._wants_stderr = stderr

    def select(self, outputs: Mapping[str, str]) -> tuple[Delivery, ...]:
        """Return all outputs."""
        return self.distinct(
            self._delivery(name, new_file(shown(plain), self.whose(name)))
            for name, plain in outputs.items()
        )

    def stderr(self, outputs: Mapping[str, str]) -> Delivery | None:
        """Return where stderr goes, under a name that no output has."""
        if not self._wants_stderr:
            return None
        taken = {self._name(item.destination) for item in self.select(outputs)}
        free = (name for name in _STDERR if name not in taken)
        return self._delivery("stderr", next(free, f"{OWN}.stderr"))

    def has(self, item: Delivery) -> bool:
        """Return whether the note says that it is there, and it is."""
        return self._name(item.destination) in self.have

    def _delivery(self, output: str, name: str) -> Delivery:
        # The folder's own name comes from the network, too.
        return Delivery(output, self.directory / name, self.directory.parent)

    def _name(self, path: Path) -> str:
        return str(path.relative_to(self.directory))

    def make(self, gate: Gate) -> None:
        """Make the folder if it is missing.

        Raises:
            OutputError: it cannot be made, or something else has its name, be it a link.
            Exception: what the gate raises when it is closed.
        """
        try:
            os.close(open_parent(self.directory / NOTE, gate, inside=self.directory.parent))
        except NotADirectoryError as error:
            raise OutputError(
                f"{str(self.directory)!r} is no directory: move it away, or fetch into another "
                "directory"
            ) from error
        except OSError as error:
            raise OutputError(
                f"the directory {str(self.directory)!r} cannot be made: {error.strerror or error}"
            ) from error

    def fill(self, project: str, bring: Callable[[Folder], Brought], gate: Gate) -> int:
        """Bring what it lacks; return the bytes that are new in it, -1 for none.

        Args:
            project: the project's address.
            bring: has the engine fetch into it.
            gate: stands before it.

        Raises:
            OutputError: it is another job's, or cannot be made or written.
            Exception: what ``bring`` raises, or the gate when it is closed.
        """
        _clear(self.directory)
        note = read_note(self.directory)
        if note is not None and (note.project, note.job_id) != (project, self.job.id):
            raise OutputError(
                f"{str(self.directory)!r} holds the outputs of another job (id {note.job_id} on "
                f"{note.project}): fetch into another directory, or delete it"
            )
        stderr: str | None = None
        if note is not None and note.instance_id == self.job.instance_id and not self.again:
            self.have = note.there(self.directory)
            stderr = note.stderr if note.stderr in self.have else None
            outputs = note.files.keys() - {note.stderr}
            if outputs <= self.have.keys() and (stderr or not self._wants_stderr):
                return -1
        self.make(gate)
        brought = bring(self)
        new = {self._name(path): _size(path) for path in brought.outputs}
        if brought.stderr is not None:
            stderr = self._name(brought.stderr)
            new[stderr] = _size(brought.stderr)
        files = {**self.have, **new}
        written = Note(project, self.job.id, self.job.instance_id, files, stderr)
        write_note(self.directory, written, self.job_name, gate)
        return sum(new.values())


def _clear(folder: Path) -> None:
    """Remove what a fetch that was killed has left in a folder; never fails."""
    try:
        with os.scandir(folder) as entries:
            dirty = any(each.name.startswith(f"{OWN}-") for each in entries)
    except OSError:
        return
    if dirty:
        sweep(folder)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError as error:
        raise OutputError(
            f"{str(path)!r} was taken away while it was fetched: {error.strerror or error}"
        ) from error
