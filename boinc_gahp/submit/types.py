"""What a submit gets and gives: plain values without protocol or network."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Literal, NamedTuple

from boinc_gahp.quantities import JOB_SIZES, SIZES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from boinc_gahp.errors import GahpError
    from boinc_gahp.quantities import Duration
    from boinc_gahp.rpc.types import JobStatus


@dataclass(frozen=True, slots=True, init=False)
class LocalFile:
    """A file on this machine; equal contents are sent once, under any names.

    Attributes:
        path: its path; bytes that are not UTF-8 as surrogates (PEP 383).
        expected: the size in bytes and the time of the last change in ns that it has to have;
            otherwise it is not sent. None: it is sent as it is.
    """

    path: str
    expected: tuple[int, int] | None

    def __init__(
        self, path: str | os.PathLike[str], expected: tuple[int, int] | None = None
    ) -> None:
        """Name a file; the file itself is not looked at."""
        is_path = not isinstance(path, str) and isinstance(path, os.PathLike)
        object.__setattr__(self, "path", os.fsdecode(path) if is_path else path)
        object.__setattr__(self, "expected", expected)


@dataclass(frozen=True, slots=True)
class StagedFile:
    """A file that is on the project already, by its physical name there."""

    physical_name: str


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file on another web server, which volunteers fetch from there.

    Attributes:
        url: its http(s) address.
        nbytes: its size. Volunteers refuse a file of another size or MD5.
        md5: its MD5 in hex.
    """

    url: str
    nbytes: int
    md5: str


@dataclass(frozen=True, slots=True)
class InlineFile:
    """A file whose contents, only text and not empty, are in the request itself."""

    text: str


#: An input file of a job.
Input = LocalFile | StagedFile | RemoteFile | InlineFile
_INPUTS = (LocalFile, StagedFile, RemoteFile, InlineFile)
#: What callers may pass for one; a plain path stands for a :class:`LocalFile`.
File = Input | str | os.PathLike[str]


def by_open_name(files: Iterable[tuple[str, Input]]) -> dict[str, Input]:
    """Return files by their open names, in order; a repeated name gets a number."""
    found: dict[str, Input] = {}
    for name, file in files:
        key, number = name, 1
        while key in found:
            number += 1
            key = f"{name} ({number})"
        found[key] = file
    return found


#: What a submit is doing: computing MD5s, asking for files and sending them, sending jobs.
Step = Literal["reading", "staging", "submitting", "waiting", "fetching"]


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a long operation; steps come in the order of :data:`Step`.

    Attributes:
        step: what is being done.
        done: how much of ``total`` is done.
        total: may grow as more becomes known; 0 if there is nothing to do.
        unit: what ``done`` and ``total`` count.
    """

    step: Step
    done: int
    total: int
    unit: Literal["bytes", "files", "jobs"]


#: Called now and then, by one thread at a time. It has to return quickly; an exception ends the
#: work.
OnProgress = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class Parameters:
    """What a batch's jobs need, and may use; None leaves the choice to the app's template.

    Values given here override the template: if it differs, they are filled into a copy of it that
    goes with the jobs. They cannot be combined with ``input_template_filename``, because such a
    template cannot be read from here.

    Each is a number, or a text with a unit (:mod:`boinc_gahp.quantities`): ``"2T"``, ``"2GB"``,
    ``"12h"``. The Python API turns texts into numbers; a :class:`SubmitRequest` only has numbers.

    Attributes:
        fpops_est: floating-point operations that a job takes, about.
        fpops_bound: the number of them at which a volunteer's client aborts the job.
        memory_bound: bytes of memory.
        disk_bound: bytes of disk.
        delay_bound: seconds that a volunteer has for a job.
    """

    fpops_est: float | str | None = None
    fpops_bound: float | str | None = None
    memory_bound: float | str | None = None
    disk_bound: float | str | None = None
    delay_bound: Duration | None = None

    @property
    def by_element(self) -> dict[str, float | None]:
        """The numbers by the names of their elements in ``job_params`` and in templates."""
        return {size.element: getattr(self, size.parameter) for size in SIZES}


class CommandRecord(NamedTuple):
    """What a person wrote for a job that runs a program in a container.

    Attributes:
        command: the words of the command line, the program first.
        shared: a JSON object with what the jobs of a batch have in common: the image and so on.
        inputs: its files and directories: their names in its directory, and their paths here if
            these are different. Only known while it is submitted.
    """

    command: tuple[str, ...]
    shared: str
    inputs: tuple[str, ...] = ()


#: Returns the sizes that a job asks for, in the order of :data:`JOB_SIZES`; None is not asked for.
sizes_of = attrgetter(*JOB_SIZES)
_ELEMENTS = [size.element for size in JOB_SIZES.values()]

#: A value of a table of parameters.
Parameter = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Job:
    """One job to be submitted.

    Attributes:
        args: a list of words; or one string, which is split as a shell would split it.
        inputs: files by the open names of the input template, all of which are needed. If the
            template is a file on the project (``input_template_filename``), its names cannot be
            looked up, and the files go in the order given.
        name: unique over the whole project, for ever; None: made of the batch's name and the job's
            number in it.
        priority: None: the batch's.
        fpops: floating-point operations that the job takes, about, as a number or a text like
            ``"2T"``; None: the batch's. It overrides the template as :class:`Parameters` do.
        input_template: XML text of the job's own template; None: the app's.
        output_template: likewise.
        memory: bytes of memory that the job may use, as a number or a text like ``"2GB"``; None:
            the batch's.
        disk: likewise, bytes of disk.
        delay: seconds that a volunteer has for the job, or a text like ``"12h"``; None: the
            batch's.
        parameters: what the job computes, by name: the values of its row in a table of parameters.
            They stay on this machine.
        program: of a job that runs a program in a container: what it was made from; None: an app's
            job. It stays on this machine, too.
        outputs: open names of outputs that the job has to have; None: whatever the app makes. Only
            for a BUDA app do they have to be given, as a project does not tell them.
    """

    args: Sequence[str] | str = ()
    inputs: Mapping[str, File] = field(default_factory=dict)
    name: str | None = None
    priority: int | None = None
    fpops: float | str | None = None
    input_template: str | None = None
    output_template: str | None = None
    memory: float | str | None = None
    disk: float | str | None = None
    delay: Duration | None = None
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    program: CommandRecord | None = None
    outputs: Sequence[str] | None = None

    @property
    def sizes(self) -> dict[str, float]:
        """The job's own values by the names of :attr:`Parameters.by_element`, as numbers."""
        values = zip(_ELEMENTS, sizes_of(self), strict=True)
        return {element: value for element, value in values if value is not None}

    @property
    def files(self) -> dict[str, Input]:
        """The inputs, with plain paths as :class:`LocalFile`."""
        return {
            # An os.PathLike is looked for last: that takes long.
            name: file
            if isinstance(file, _INPUTS) or not isinstance(file, (str, os.PathLike))
            else LocalFile(file)
            for name, file in self.inputs.items()
        }


@dataclass(frozen=True, slots=True)
class SubmitRequest:
    """A batch to be submitted.

    Attributes:
        batch_name: unique over the whole project.
        app_name: the app that the jobs run.
        jobs: pairs of the job's name on the project, which replaces its own, and the job, whose
            arguments are words.
        parameters: what the jobs need and may use, where they do not say so themselves
            (:mod:`boinc_gahp.submit._parameters`).
        app_version_num: the only version of the app that may run them; None: any.
        priority: of jobs without their own.
        input_template_filename: a file in the project's own directory of templates, for jobs
            without their own template; None: the app's. Likewise for outputs.
        by_name: whether input files are only matched by their open names. Otherwise, if none of a
            job's names fits and the number of files is right, they go in the order given: a
            gridmanager knows files by their paths.
        outputs: the outputs that will be asked for, by jobs' names, where they are known: each has
            to be one of the template's.
        lease: seconds that a new batch is kept without a renewal; None: as long as the jobs may
            take by their deadlines and retries, ``[jobs] batch_lease`` at least.
        progress: called with the progress of the submit.
        answer_by: ``time.monotonic()`` at which a gridmanager needs the result: the submit ends
            with an error early enough to undo it. Its batch has this name even if another account
            has a batch of that name, because it cannot choose another. None: the submit may take as
            long as it needs.
        ask_first: whether what the project may refuse is tried before the batch is created: files
            are sent first, and some of the names that the jobs brought are asked for.
    """

    batch_name: str
    app_name: str
    jobs: Sequence[tuple[str, Job]]
    parameters: Parameters = Parameters()
    app_version_num: int | None = None
    priority: int | None = None
    input_template_filename: str | None = None
    output_template_filename: str | None = None
    by_name: bool = False
    outputs: Mapping[str, Sequence[str]] = field(default_factory=dict)
    lease: float | None = None
    progress: OnProgress | None = None
    answer_by: float | None = None
    ask_first: bool = False


@dataclass(frozen=True, slots=True)
class Validation:
    """What is known about a :class:`SubmitRequest` before anything is created.

    Attributes:
        refusal: why the batch as a whole is refused (its name, its size, ...); None: it is not.
        refusals: why jobs are refused, by their names.
        inputs: the input files of each job that is not refused, in the order in which they go.
        files: the local files of these jobs: size in bytes by path.
        staged: physical names of these jobs' files that the request takes for staged.
        request_bytes: size of the request that would hold these jobs; 0 if it cannot be written.
        max_post_bytes: the largest request that the project's settings allow.
        lease: seconds that the batch would be kept without a renewal, if the request has none.
        filled: what becomes of the sizes that each of these jobs asks for; without jobs whose
            template is a file on the project, which cannot be read.
    """

    refusal: GahpError | None
    refusals: Mapping[str, GahpError]
    inputs: Mapping[str, tuple[Input, ...]]
    files: Mapping[str, int]
    staged: frozenset[str]
    request_bytes: int
    max_post_bytes: int
    lease: float
    filled: Mapping[str, FilledSizes]


@dataclass(frozen=True, slots=True)
class BatchJobs:
    """A batch and all of its jobs, looked up by the project's id.

    Attributes:
        complete: whether all its jobs have been made, so that none is still to appear.
        jobs: with their status words.
    """

    complete: bool
    jobs: tuple[JobStatus, ...]


@dataclass(frozen=True, slots=True)
class FilledSizes:
    """What becomes of the sizes that a job asks for.

    Attributes:
        template: the input template that the job takes with it; None: the app's, or the one that
            the batch names.
        elements: the elements that were filled in.
        stored: the values that the project stores for the job, by their elements in templates.
    """

    template: str | None
    elements: tuple[str, ...]
    stored: Mapping[str, float]

    @property
    def nbytes(self) -> int:
        """The bytes of a template that is only sent because of these sizes."""
        return len((self.template or "").encode("utf-8", "surrogatepass")) if self.elements else 0
