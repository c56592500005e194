"""Makes jobs of an app whose program is ``docker_wrapper`` from what they run (``containers``).

Files that jobs share are there once: a Dockerfile, a ``job.toml``, a script for many jobs, and each
of their inputs. So a further job only costs its templates and its number in the script.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from boinc_gahp.containers.job_files import (
    DOCKERFILE,
    JOB_TOML,
    MOST_FILES,
    SCRIPT,
    WORK,
    archive_name,
    dockerfile,
    image_name,
    is_open_name,
    job_toml,
)
from boinc_gahp.containers.rules import MAX_ERRORS, JobOptions
from boinc_gahp.containers.script import Layout, Program, by_script, write_script
from boinc_gahp.submit.checks import extension
from boinc_gahp.submit.digests import stat_input
from boinc_gahp.submit.generated_files import Member
from boinc_gahp.submit.types import InlineFile, Job, LocalFile
from boinc_gahp.submit.validate import check_unchanged
from boinc_gahp.templates.types import (
    InputFileInfo,
    InputTemplate,
    OutputFileInfo,
    OutputTemplate,
)
from boinc_gahp.templates.writing import write_input_template, write_output_template

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from boinc_gahp.containers.image import Image
    from boinc_gahp.submit.generated_files import GeneratedFiles
    from boinc_gahp.submit.types import Input

_NOTHING = Program()
#: The speed in operations per second that goes with a number of processors: clients ignore one
#: without the other (``containers.rst``, "What the wrapper does").
_FLOPS = 1e9
#: More directories than these are in one archive: the files of a job's workunit are limited.
_MOST_TREES = 5
#: So many templates are remembered: jobs with inputs of their own often have the same names.
_REMEMBERED = 64
#: Results beside those that have to agree, in case some differ.
_MORE_RESULTS = 5


@dataclass(frozen=True, slots=True)
class ContainerJob(JobOptions):
    """A job that runs a program in a container, with what is asked for it.

    Attributes:
        image: the image.
        image_file: the file that it is in, unless it is in a registry.
        command: the program; see :class:`~boinc_gahp.containers.script.Layout`.
        is_input: whether it is one of ``files``.
        program: its arguments, environment and standard input.
        files: names in the job's directory, and files.
        trees: directories.
        outputs: files and directories, relative to the job's directory; None: what is new or
            changed there.
        stdout, stderr, merged: see :class:`~boinc_gahp.containers.script.Layout`.
        output_bytes: the largest size of each output.
        priority: None: the batch's.
        is_persons: whether a person fetches it, perhaps on another machine. Then its outputs tell
            their names; and all of them are in the archive if one has to be, so that there is
            something to look for in it only if not all others are there.
    """

    image: Image
    command: str
    image_file: LocalFile | None = None
    is_input: bool = False
    program: Program = _NOTHING
    files: tuple[tuple[str, Input], ...] = ()
    trees: tuple[Member, ...] = ()
    outputs: tuple[str, ...] | None = None
    stdout: bool = True
    stderr: bool = True
    merged: bool = False
    output_bytes: float = 1e9
    priority: int | None = None
    is_persons: bool = False

    @property
    def layout(self) -> Layout:
        """What it has in common with other jobs of its script."""
        outputs = self.outputs
        packed = frozenset(name for name in outputs or () if not is_open_name(name))
        return Layout(
            self.command,
            is_input=self.is_input,
            archives=tuple(map(archive_name, range(len(self.archives)))),
            inputs=()
            if self.is_persons or outputs is not None
            else tuple(name for name, _ in self.files),
            outputs=outputs,
            packed=frozenset(outputs or ()) if packed and self.is_persons else packed,
            stdout=self.stdout,
            stderr=self.stderr,
            merged=self.merged,
            tells=self.is_persons,
        )

    @property
    def packed(self) -> tuple[tuple[str, LocalFile], ...]:
        """Files that travel in an archive: by their names, or because there are many."""
        alone = {name for name, _ in self.alone}
        return tuple(
            (name, file)
            for name, file in self.files
            if name not in alone and isinstance(file, LocalFile)
        )

    @property
    def archives(self) -> list[list[Member]]:
        """What each archive of inputs has: one directory if possible, so that others share it."""
        few = len(self.trees) <= _MOST_TREES
        archives = [[each] for each in self.trees] if few else [list(self.trees)]
        files = [Member(name, file.path) for name, file in self.packed]
        return [*archives, files] if files else archives

    @property
    def alone(self) -> tuple[tuple[str, Input], ...]:
        """Files that are files of the workunit by themselves."""
        plain = [item for item in self.files if is_open_name(item[0])]
        # What is not on this machine cannot go in an archive.
        remote = [item for item in plain if not isinstance(item[1], LocalFile)]
        local = [item for item in plain if isinstance(item[1], LocalFile)]
        return (*local[: max(MOST_FILES - len(remote), 0)], *remote)


def make_container_jobs(
    jobs: Sequence[tuple[str, ContainerJob]],
    made: GeneratedFiles,
    md5_of: Callable[[str], str],
    keep_going: Callable[[], None] = lambda: None,
) -> list[tuple[str, Job]]:
    """Return the jobs for a request, in the same order.

    Args:
        jobs: names on the project, and jobs.
        made: gets the files that have to be made.
        md5_of: returns the MD5 of a file in hex, by its path.
        keep_going: as for :meth:`~boinc_gahp.submit.generated_files.GeneratedFiles.pack`.

    Raises:
        StagingError: an input cannot be read, or changed since the job was accepted; or a file
            cannot be made.
    """
    makers: dict[ContainerJob, _Maker] = {}
    by_layout: dict[Layout, list[tuple[str, ContainerJob]]] = {}
    of_job: dict[str, _Maker] = {}
    for name, job in jobs:
        key = replace(job, program=_NOTHING, priority=None)
        maker = makers.get(key)
        if maker is None:
            maker = makers[key] = _Maker(key, made, md5_of, keep_going)
        of_job[name] = maker
        by_layout.setdefault(maker.layout, []).append((name, job))
    found: dict[str, Job] = {}
    for layout, alike in by_layout.items():
        for part in by_script(alike, lambda each: each[1].program):
            text = made.write(SCRIPT, write_script(layout, [job.program for _, job in part]))
            for number, (name, job) in enumerate(part, 1):
                found[name] = of_job[name].job(text, number, job.priority)
    return [(name, found[name]) for name, _ in jobs]


def output_template(job: ContainerJob) -> OutputTemplate:
    """Return a job's output template."""
    return _output_template(job.layout, job.output_bytes)


class _Maker:
    """Makes jobs that only differ in their priorities and programs (but not their commands)."""

    def __init__(
        self,
        like: ContainerJob,
        made: GeneratedFiles,
        md5_of: Callable[[str], str],
        keep_going: Callable[[], None],
    ) -> None:
        self.layout = like.layout
        self._inputs = dict(_shared_inputs(like, made, md5_of, keep_going))
        self._by_script: dict[LocalFile, dict[str, Input]] = {}
        names = (SCRIPT, *self._inputs)
        self._input_template = _input_template(names, like.cpus, like.quorum, like.max_errors)
        self._output_template = _output_text(self.layout, like.output_bytes)

    def job(self, script: LocalFile, number: int, priority: int | None) -> Job:
        inputs = self._by_script.get(script)
        if inputs is None:
            # Jobs that share this very object are checked together.
            inputs = self._by_script[script] = {SCRIPT: script, **self._inputs}
        return Job(
            [str(number)],
            inputs,
            priority=priority,
            input_template=self._input_template,
            output_template=self._output_template,
        )


def _shared_inputs(
    job: ContainerJob,
    made: GeneratedFiles,
    md5_of: Callable[[str], str],
    keep_going: Callable[[], None],
) -> Iterator[tuple[str, Input]]:
    """Yield the inputs of a job but its script, by their open names."""
    its_name = ""
    if job.image_file is not None:
        path = job.image_file.path
        # A host knows an image by the Dockerfile; so this has to change with the file.
        its_name = image_name(md5_of(path), extension(path))
        yield its_name, job.image_file
    text = dockerfile(job.image, its_name)
    yield DOCKERFILE, made.write(DOCKERFILE, text)
    yield JOB_TOML, made.write(JOB_TOML, job_toml(text, network=job.network))
    for name, file in job.alone:
        if isinstance(file, InlineFile):
            # A request that has the text itself would have it once for each job.
            yield WORK + name, made.write(name, file.text.encode("utf-8", "surrogateescape"))
        else:
            yield WORK + name, file
    for _, packed in job.packed:
        status = stat_input(packed.path)
        check_unchanged(packed, status.st_size, status.st_mtime_ns)
    for number, members in enumerate(job.archives):
        yield archive_name(number), made.pack(members, keep_going)


@lru_cache(_REMEMBERED)
def _input_template(open_names: tuple[str, ...], cpus: int, quorum: int, max_errors: int) -> str:
    """Return an input template; sizes are in the request's ``job_params``, once for all jobs."""
    template = InputTemplate(
        files=copied_inputs(open_names),
        avg_ncpus=None if cpus == 1 else cpus,
        flops=None if cpus == 1 else _FLOPS,
        min_quorum=None if quorum == 1 else quorum,
        target_nresults=None if quorum == 1 else quorum,
        **counts(quorum, max_errors),
    )
    return write_input_template(template, terse=True)


@lru_cache(_REMEMBERED)
def _output_template(layout: Layout, output_bytes: float) -> OutputTemplate:
    return OutputTemplate(copied_outputs(layout.output_files, output_bytes))


@lru_cache(_REMEMBERED)
def _output_text(layout: Layout, output_bytes: float) -> str:
    return write_output_template(_output_template(layout, output_bytes), terse=True)


def counts(quorum: int = 1, max_errors: int = MAX_ERRORS) -> dict[str, Any]:
    """Return how many results a job may have; without these, create_work makes one.

    Args:
        quorum: results that have to agree.
        max_errors: how many errors are followed by another attempt; 0: there is one attempt.
    """
    more = _MORE_RESULTS if max_errors else 0
    return {
        # create_work refuses 0 (``containers.rst``, "On the server").
        "max_error_results": max(max_errors, 1),
        "max_success_results": quorum + more,
        "max_total_results": quorum + more + (max_errors + 1 if max_errors else 0),
    }


def copied_inputs(open_names: Iterable[str]) -> tuple[InputFileInfo, ...]:
    """Return inputs that the container sees, and that nobody deletes."""
    return tuple(InputFileInfo(name, copy_file=True, no_delete=True) for name in open_names)


def copied_outputs(
    files: Iterable[tuple[str, bool]], max_nbytes: float
) -> tuple[OutputFileInfo, ...]:
    """Return outputs without what only clients before 8.2 read.

    They run no containers (``client/client_types.cpp``, ``FILE_INFO::parse``).

    Args:
        files: open names, and whether each is optional.
        max_nbytes: the largest size of each, in bytes.
    """
    return tuple(
        OutputFileInfo(
            open_name,
            f"<OUTFILE_{number}/>",
            generated_locally=False,
            upload_when_present=False,
            max_nbytes=max_nbytes,
            copy_file=True,
            optional=optional,
            no_delete=True,
        )
        for number, (open_name, optional) in enumerate(files)
    )
