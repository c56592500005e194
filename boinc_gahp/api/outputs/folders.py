"""Folders with one job's outputs each: where files go, and the note that lists what was fetched.

The note is a hidden file and is written last. It belongs to the folder: in a copy on another
machine it still says that everything was fetched, and it is deleted with the folder.

For the project, each job that ran a program in a container has ended well. Its own files tell how
the program ended, and hold what it wrote to its standard streams
(:mod:`boinc_gahp.containers.job_files`). Its folder looks like the program's working directory:
outputs keep their directories.
"""

from __future__ import annotations

import hashlib
import json
import os
import posixpath
import stat
from dataclasses import asdict, dataclass, field, replace
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from boinc_gahp.containers.ending import LARGEST, Ending, read_ending
from boinc_gahp.containers.job_files import ENDING, PACKED, STDERR, STDOUT, WORK
from boinc_gahp.errors import OutputError
from boinc_gahp.fetch.destinations import CancelScope, Directories
from boinc_gahp.fetch.leftovers import sweep
from boinc_gahp.fetch.placements import JobPlace, Placement, Placements, new_file, shown
from boinc_gahp.fetch.temporary import registry
from boinc_gahp.fetch.types import OWN, FetchResult

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from pathlib import Path

    from boinc_gahp.fetch.engine import FetchedFiles
    from boinc_gahp.fetch.placements import Read
    from boinc_gahp.templates.types import OutputTemplate

#: The note's file name.
NOTE = f"{OWN}.json"

#: The file names of the standard streams, and those that are used if an output has them.
_STREAMS = {STDOUT: ("stdout.txt", "stdout.boinc.txt"), STDERR: ("stderr.txt", "stderr.boinc.txt")}

_FORMAT = 1
#: How many bytes a folder's name may have, and the digest that replaces the rest.
_LONGEST = 200
_DIGEST = 16


def folder_name(name: str) -> str:
    """Return a name for a folder: the job's or batch's own name, if a folder can have it.

    Different names give different folders. Slashes, percent signs, a leading dot and unprintable
    characters become ``%`` and two hex digits for each byte; a name that is too long ends in a
    digest.
    """
    safe = "".join(
        each if each.isprintable() and each not in "/%" else _escaped(each) for each in name
    )
    if safe.startswith("."):
        safe = _escaped(".") + safe[1:]
    if len(safe.encode()) > _LONGEST:
        digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]
        cut = safe.encode()[: _LONGEST - _DIGEST - 2].decode("utf-8", "ignore")
        # In every other name a percent sign is followed by two hex digits.
        return f"{cut}%~{digest}"
    return safe or "%"


def _escaped(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode("utf-8", "surrogatepass"))


class FinishedJob(NamedTuple):
    """A job that is done; small, since there may be 100,000 of them.

    Of a job that failed and is done in a retry, the first three are the retry's.

    Attributes:
        name: the job's name.
        id: its number on the project.
        instance_id: its canonical instance.
        batch_id: its batch, if it is a retry; None: the batch that is fetched.
        repeats: the name of the job that it repeats; "": none.
        attempts: the ids of that job and all of its retries.
    """

    name: str
    id: int
    instance_id: int
    batch_id: int | None = None
    repeats: str = ""
    attempts: frozenset[int] = frozenset()

    @property
    def called(self) -> str:
        """The name of the job in the batch that is fetched; that of its folder."""
        return self.repeats or self.name


@dataclass(frozen=True, slots=True)
class FetchRecord:
    """Says which job's outputs a folder holds.

    Attributes:
        project: the project's address.
        job_id: the job's id on the project.
        instance_id: the canonical instance that made the outputs.
        files: the size of each file in bytes, by its path in the folder; includes stderr.
        stderr: the path of stderr; None if it was not fetched.
        outputs: the path of each output, by its open name.
        result: the exit status, and the elapsed and CPU time; None if stderr was not fetched, for
            the project tells them together.
        attempts: if the job is a retry, the ids of the job that it repeats and of all its retries.
        stdout: the path of stdout, of a job that ran a program in a container; None: another job.
        exit_status: of the program; negative if a signal ended it. None: another job, or a program
            that was not run.
        failure: why the program counts as failed, on one line; empty: it does not.
    """

    project: str
    job_id: int
    instance_id: int
    files: dict[str, int]
    stderr: str | None
    outputs: dict[str, str] = field(default_factory=dict)
    result: FetchResult | None = None
    attempts: tuple[int, ...] = ()
    stdout: str | None = None
    exit_status: int | None = None
    failure: str = ""

    def there(self, folder: Path) -> dict[str, int]:
        """Return the files that are still in place with the same size."""
        found = {}
        for name, size in self.files.items():
            try:
                status = os.stat(folder / name, follow_symlinks=False)  # noqa: PTH116
            except (OSError, ValueError):
                continue
            if stat.S_ISREG(status.st_mode) and status.st_size == size:
                found[name] = size
        return found


def read_note(folder: Path) -> FetchRecord | None:
    """Return the note in a folder; None if there is none, or it cannot be read."""
    try:
        note: Any = json.loads((folder / NOTE).read_bytes())
        if note["format"] != _FORMAT:
            return None
        result = note["result"]
        return FetchRecord(
            str(note["project"]),
            int(note["job_id"]),
            int(note["instance_id"]),
            {str(name): int(size) for name, size in note["files"].items()},
            _path(note["stderr"]),
            {str(name): str(path) for name, path in note["outputs"].items()},
            result
            and FetchResult(
                int(result["exit_status"]),
                float(result["elapsed_time"]),
                float(result["cpu_time"]),
            ),
            tuple(map(int, note["attempts"])),
            _path(note["stdout"]),
            None if note["exit_status"] is None else int(note["exit_status"]),
            str(note["failure"]),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _path(told: Any) -> str | None:
    return None if told is None else str(told)


def write_note(
    folder: Path,
    note: FetchRecord,
    job_name: str,
    directories: Directories | None = None,
) -> None:
    """Write a folder's note; its name is on the disk once ``directories`` are closed.

    Raises:
        OutputError: the note cannot be written.
        Exception: whatever a closed scope raises.
    """
    text = json.dumps({"format": _FORMAT, "job": job_name, **asdict(note)})
    with registry.file(folder / NOTE, directories, folder.parent) as file:
        file.write(text.encode() + b"\n")
        file.commit()


class Folder(JobPlace):
    """A folder for the files of one job, under the outputs' own names.

    Outputs have their open names without directories; if two have the same last part, they keep
    their directories. The user cannot choose names here, so a dot at the beginning of a part
    becomes ``%2E``. An app's zip archive is not unpacked.

    Args:
        path: the folder's absolute path, in an existing directory.
        job: the job.
        stderr: whether to fetch stderr, too.
        again: whether to fetch also what is already there.

    Attributes:
        job: the job.
        is_program: whether the job ran a program in a container.
        note: what the folder holds, once :meth:`fill` has returned.
        wants_stderr: as given by ``stderr``.
        own_template: the job's own output template; None: the app's.
    """

    is_program = False

    def __init__(self, path: Path, job: FinishedJob, *, stderr: bool, again: bool) -> None:
        super().__init__(job.name, path)
        self.again = again
        self.note: FetchRecord | None = None
        self.own_template: OutputTemplate | None = None
        self.job = job
        #: The paths of outputs in the folder, by their names; and that of stderr.
        self._outputs: dict[str, str] = {}
        self._stderr: str | None = None
        self.wants_stderr = stderr

    def outputs(self, outputs: Mapping[str, str], read: Read) -> Placements:  # noqa: ARG002
        """Return all outputs; none of them has the name of stderr."""
        found = self.distinct(
            self._placement(name, new_file(shown(plain), self.describe(name)))
            for name, plain in outputs.items()
        )
        self._outputs = {item.output: self._name(item.destination) for item in found}
        if not self.wants_stderr:
            return Placements(found)
        free = (name for name in _STREAMS[STDERR] if name not in self._outputs.values())
        self._stderr = next(free, f"{OWN}.stderr")
        return Placements(found, stderr=self._placement("stderr", self._stderr))

    def _placement(self, output: str, name: str) -> Placement:
        # The folder's name comes from the network, too.
        return Placement(output, self.directory / name, self.directory.parent)

    def _name(self, path: Path) -> str:
        return str(path.relative_to(self.directory))

    def make(self, directories: Directories) -> None:
        """Create the folder if it is missing; its name is on the disk once they are closed.

        Raises:
            OutputError: it cannot be created, or something else has its name, even a link.
            Exception: whatever a closed scope raises.
        """
        try:
            directories.open(self.directory / NOTE, self.directory.parent).close()
        except NotADirectoryError as error:
            raise OutputError(
                f"{str(self.directory)!r} is not a directory: move it away, or fetch into another "
                "directory"
            ) from error
        except OSError as error:
            raise OutputError(
                f"the directory {str(self.directory)!r} cannot be made: {error.strerror or error}"
            ) from error

    def fill(
        self,
        project: str,
        bring: Callable[[Folder, Directories, Mapping[Path, int]], FetchedFiles],
        scope: CancelScope,
        parent: os.stat_result,
    ) -> int:
        """Fetch what the folder lacks; return the number of new bytes, -1 if nothing was fetched.

        Args:
            project: the project's address.
            bring: fetches into the folder with the engine, besides the files that it has.
            scope: is entered before anything is written.
            parent: status of the directory with the folder, which the caller syncs afterwards.

        Raises:
            OutputError: the folder is another job's, or cannot be created or written.
            Exception: whatever ``bring`` or a closed scope raises.
        """
        _clear(self.directory)
        note = read_note(self.directory)
        if note is not None and note.project == project and self._is_of_another_attempt(note):
            is_whole = note.there(self.directory).keys() == note.files.keys()
            if not self.again and is_whole and not note.failure:
                # Another attempt was done when the folder was filled: its outputs are as good.
                self.note = note
                return -1
            note = None
        if note is not None and (note.project, note.job_id) != (project, self.job.id):
            raise OutputError(
                f"{str(self.directory)!r} holds the outputs of another job (id {note.job_id} on "
                f"{note.project}): fetch into another directory, or delete that one"
            )
        if note is not None and note.instance_id != self.job.instance_id:
            note = None
        stderr: str | None = None
        have: dict[str, int] = {}
        # It does not change, even if stderr is not fetched again.
        result = None if note is None else note.result
        if note is not None and not self.again:
            have = note.there(self.directory)
            stderr = note.stderr if note.stderr in have else None
            wanted = note.files.keys() - {note.stderr}
            if wanted <= have.keys() and (stderr or not self.wants_stderr):
                self.note = note
                return -1
        with Directories(scope, synced_later=parent) as directories:
            self.make(directories)
            there = {self.directory / name: size for name, size in have.items()}
            brought = bring(self, directories, there)
            files = {self._name(path): size for path, size in brought.files.items()}
            stderr = self._stderr if self._stderr in files else stderr
            outputs = {name: path for name, path in self._outputs.items() if path in files}
            if brought.completed is not None:
                result = FetchResult.of(brought.completed)
            job = self.job
            ids = (project, job.id, job.instance_id)
            attempts = tuple(sorted(job.attempts))
            written = self.told(FetchRecord(*ids, files, stderr, outputs, result, attempts))
            # Its name may be on the disk before theirs: a note's files are looked for again.
            write_note(self.directory, written, self.job_name, directories)
            self.note = written
        return brought.nbytes - sum(have.values())

    def told(self, note: FetchRecord) -> FetchRecord:
        """Return a note with what only this kind of folder knows."""
        return note

    def _is_of_another_attempt(self, note: FetchRecord) -> bool:
        job = self.job
        return note.job_id != job.id and (note.job_id in job.attempts or job.id in note.attempts)


def _clear(folder: Path) -> None:
    """Remove what a killed fetch has left in a folder; never fails."""
    try:
        with os.scandir(folder) as entries:
            dirty = any(each.name.startswith(f"{OWN}-") for each in entries)
    except OSError:
        return
    if dirty:
        sweep(folder)


#: More outputs than this a job has only in archives, for a machine that did not submit it.
_MOST_UNKNOWN = 100
#: Bytes; [jobs] max_output_bytes applies all the same.
_NO_LIMIT = 1e15


class ProgramFolder(Folder):
    """A folder for the files of one job that ran a program.

    Args:
        path, job, stderr, again: see :class:`~boinc_gahp.api.outputs.folders.Folder`.
        streams_only: whether only stdout and stderr are wanted; without ``stderr``, only how the
            program ended.
        named: the outputs that the job names; None: it names none, or they are only known from its
            template.

    Attributes:
        ending: how the program ended; known when the outputs are selected.
    """

    is_program = True

    def __init__(
        self,
        path: Path,
        job: FinishedJob,
        *,
        stderr: bool,
        again: bool,
        named: tuple[str, ...] | None = None,
        streams_only: bool = False,
    ) -> None:
        super().__init__(path, job, stderr=stderr, again=again)
        self.ending = Ending()
        self.named = named
        self._streams_only = streams_only
        #: The paths of files that are outputs by themselves, by their names in the job's directory.
        self._alone: dict[str, str] = {}
        #: Files and directories of the archive.
        self._unpacked: set[str] = set()
        self._streams: dict[str, Placement] = {}
        self._archive: str | None = PACKED

    def outputs(self, outputs: Mapping[str, str], read: Read) -> Placements:
        """Return what is wanted beside the archive's files; only the streams, if it was not run."""
        self.ending = read_ending(read(ENDING, LARGEST))
        files = []
        for output, name in self._names(outputs).items():
            files.append(self._file(output, name))
            self._alone[name] = self._name(files[-1].destination)
        taken = set(self._alone.values())
        self._streams = {
            stream: self._placement(stream, next((n for n in names if n not in taken), names[-1]))
            for stream, names in _STREAMS.items()
            if stream in outputs
            and (self.wants_stderr or (stream == STDOUT and not self._streams_only))
        }
        if self.ending.problem is not None or self._streams_only:
            self._archive = None
            self._alone.clear()
            files = []
        self._outputs = dict(self._alone)
        streams = tuple(self._streams.values())
        return Placements(self.distinct((*streams, *files)), streams, archive=self._archive)

    def lacks(self, places: Collection[Path]) -> bool:
        """Return whether the archive is needed: a named output is not in place, or none is named.

        Names that cannot be those of files on the project are only in the archive, and the template
        does not tell them; so such a job has no others in its template.
        """
        return not self._alone or not set(self._alone.values()) <= set(map(self._name, places))

    def members(self, what: str, files: Sequence[str], directories: Sequence[str]) -> Placements:
        """Return what is wanted of the archive: all that is not there by itself."""
        taken = {item.destination for item in self._streams.values()}
        items = []
        self._unpacked = {*files, *directories}
        for member in files:
            item = self._file(member, member)
            if item.destination in taken:  # a stream has this name
                stem, dot, end = posixpath.basename(member).partition(".")
                item = self._file(
                    member, posixpath.join(posixpath.dirname(member), f"{stem}.program{dot}{end}")
                )
            items.append(item)
            self._outputs[member] = self._name(item.destination)
        made = [
            (self.directory / new_file(shown(each), what), self.directory) for each in directories
        ]
        streams = tuple(self._streams.values())
        return Placements(self.distinct(items), streams, directories=tuple(made))

    def told(self, note: FetchRecord) -> FetchRecord:
        """Return a note with how the program ended, and its streams."""
        names = {stream: self._name(item.destination) for stream, item in self._streams.items()}
        paths = {stream: name for stream, name in names.items() if name in note.files}
        ending = self.ending
        result = note.result
        return replace(
            note,
            stderr=paths.get(STDERR, note.stderr),
            stdout=paths.get(STDOUT),
            exit_status=ending.exit_status if ending.problem is None else None,
            failure=ending.failure_without(self._missing(note.files)),
            result=None if result is None else replace(result, exit_status=ending.exit_status),
        )

    def _names(self, outputs: Mapping[str, str]) -> dict[str, str]:
        """Return the names in the program's directory, by those in the template."""
        if self.own_template is not unknown_template():
            return {each: each.removeprefix(WORK) for each in outputs if each.startswith(WORK)}
        # They are at the same places as in the job's own template.
        told = self.ending.outputs
        if self.ending.problem is not None:
            return {}
        if told is None:
            raise OutputError(
                f"the names of the outputs of job {self.job_name!r} are only known on the machine "
                "that submitted it: fetch there"
            )
        self._archive = f"{WORK}{len(told)}"
        return {f"{WORK}{number}": name for number, name in enumerate(told[:_MOST_UNKNOWN])}

    def _missing(self, there: Mapping[str, int]) -> list[str]:
        """Return the named outputs that the program did not make."""
        made = {*self._unpacked, *there}
        return [
            name
            for name in (self._alone if self.named is None else self.named)
            if name not in made and not any(each.startswith(f"{name}/") for each in made)
        ]

    def _file(self, output: str, name: str) -> Placement:
        return self._placement(output, new_file(shown(name), self.describe(output)))


@cache
def unknown_template() -> OutputTemplate:
    """Return the output template of a program whose outputs have to be looked up.

    ``work/3`` is the fourth.
    """
    from boinc_gahp.containers.image import Image  # noqa: PLC0415  (not for lists of batches)
    from boinc_gahp.submit.container_jobs import ContainerJob, output_template  # noqa: PLC0415

    names = tuple(map(str, range(_MOST_UNKNOWN + 1)))
    job = ContainerJob(Image("registry", "unknown"), "", outputs=names, output_bytes=_NO_LIMIT)
    return output_template(job)


@lru_cache(64)  # most jobs of a batch have the same
def own_template(text: str) -> OutputTemplate:
    """Return what the text of a job's own output template says; raises TemplateError."""
    from boinc_gahp.templates.reading import read_output_template  # noqa: PLC0415  (as above)

    return read_output_template(text)
