"""The folder of a job that ran a program in a container: its files, and how the program ended.

For the project each such job has ended well. Its own files tell how the program ended, and hold
what it wrote to its standard streams (:mod:`boinc_gahp.containers.job_files`). The folder
looks like the program's working directory: outputs keep their directories.
"""

from __future__ import annotations

import json
import posixpath
import threading
from dataclasses import replace
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple

from boinc_gahp.api.outputs.folders import Folder
from boinc_gahp.containers.ending import LARGEST, Ending, read_ending
from boinc_gahp.containers.job_files import ENDING, PACKED, STDERR, STDOUT, WORK
from boinc_gahp.errors import OutputError, TemplatesMissing
from boinc_gahp.fetch.names import new_file, shown
from boinc_gahp.fetch.placements import Placement, Placements

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from boinc_gahp.api.known_batch import KnownBatch
    from boinc_gahp.api.outputs.folders import FetchRecord, FinishedJob
    from boinc_gahp.fetch.placements import Read
    from boinc_gahp.templates.types import OutputTemplate

__all__ = ["JobTemplates", "OwnTemplate", "ProgramFolder", "unknown_template"]

#: More outputs than this a job has only in archives, for a machine that did not submit it.
_MOST_UNKNOWN = 100
#: Bytes; [jobs] max_output_bytes applies all the same.
_NO_LIMIT = 1e15
#: The file names of the standard streams, and those that are used if an output has them.
_STREAMS = {STDOUT: ("stdout.txt", "stdout.boinc.txt"), STDERR: ("stderr.txt", "stderr.boinc.txt")}


class ProgramFolder(Folder):
    """A folder for the files of one job that ran a program.

    Args:
        path, job, stderr, again: see :class:`~boinc_gahp.api.outputs.folders.Folder`.
        streams_only: whether only stdout and stderr are wanted.
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
            if stream in outputs and (stream != STDERR or self.wants_stderr)
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
            exit_status=ending.exit_status,
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
def _read(text: str) -> OutputTemplate:
    from boinc_gahp.templates.reading import read_output_template  # noqa: PLC0415  (as above)

    return read_output_template(text)


class OwnTemplate(NamedTuple):
    """A job's own output template.

    Attributes:
        template: what it says.
        is_program: whether the job ran a program in a container.
        outputs: the outputs that its program has to make, as far as that is known; None: it is not.
    """

    template: OutputTemplate
    is_program: bool = False
    outputs: tuple[str, ...] | None = None


class JobTemplates:
    """Which of a batch's jobs have an output template of their own, and which ran programs.

    The machine that submitted the batch has the templates in its manifest. A project does not tell
    them (``web-rpcs.rst``, "Queries"); but programs' own files tell what they are. Thread-safe.

    Args:
        batch: the batch.
    """

    def __init__(self, batch: KnownBatch) -> None:
        self._batch = batch
        self._manifest = batch.manifest
        self._lock = threading.Lock()
        #: Whether all jobs ran programs, if there is no manifest; None: this was not asked yet.
        self._programs: bool | None = None

    def of(self, job: FinishedJob) -> OwnTemplate | None:
        """Return a job's own template; None: it has none, or it is not known.

        Raises:
            RpcError: the project could not be asked.
            TemplateError: it cannot be read.
        """
        manifest = self._manifest
        # A retry has the templates of the job that it repeats.
        if manifest is not None and job.called in manifest.jobs:
            sent = manifest.job(job.called)
            if sent.output_template is None:
                return None
            outputs = None if sent.program is None else json.loads(sent.program.shared)["outputs"]
            template = _read(sent.output_template)
            is_program = any(file.open_name == ENDING for file in template.files)
            return OwnTemplate(template, is_program, None if outputs is None else tuple(outputs))
        with self._lock:
            if self._programs is None:
                self._programs = self._runs_programs()
        return OwnTemplate(unknown_template(), is_program=True) if self._programs else None

    def _runs_programs(self) -> bool:
        """Tell whether the batch's app is for programs: it has no templates, and needs none."""
        app = self._batch.app_name
        if app == self._batch.session.project_settings.container_app:
            return True
        try:
            self._batch.session.rpc.get_templates(app_name=app)
        except TemplatesMissing:
            return True
        return False
