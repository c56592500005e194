"""What the bridge is asked, and what it answers: values without protocol or network in them."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from boinc_gahp.bridge.asking import Filled
    from boinc_gahp.errors import GahpError, RpcError


#: Names of files that boinc_gahp keeps for itself beside outputs begin so.
OWN = ".boinc_gahp"


@dataclass(frozen=True, slots=True, init=False)
class LocalFile:
    """A file on this machine: sent once, by content, whatever it is called.

    Attributes:
        path: where it is; bytes that are no UTF-8 as surrogates (PEP 383).
        expected: size in bytes and time of the last change in ns with which it was meant: with
            others it is not sent. None: as it is.
    """

    path: str
    expected: tuple[int, int] | None

    def __init__(
        self, path: str | os.PathLike[str], expected: tuple[int, int] | None = None
    ) -> None:
        """Name a file; nothing is looked at."""
        is_path = isinstance(path, os.PathLike)
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
        nbytes: its size; None: it is fetched once, when jobs are submitted, and measured.
        md5: in hex; None: likewise.
    """

    url: str
    nbytes: int | None = None
    md5: str | None = None


@dataclass(frozen=True, slots=True)
class InlineFile:
    """A file whose contents, text only and not empty, travel in the request itself."""

    text: str


#: An input file of a job.
Input = LocalFile | StagedFile | RemoteFile | InlineFile
#: What may be given for one; a plain path stands for a :class:`LocalFile`.
File = Input | str | os.PathLike[str]


def by_open_name(files: Iterable[tuple[str, Input]]) -> dict[str, Input]:
    """Return files by their open names, in order; a name that comes again gets a number."""
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
    """How far something is that takes long; steps come in the order of :data:`Step`.

    Attributes:
        step: what is being done.
        done: how much of ``total`` is through.
        total: may grow while more becomes known; 0 where there is nothing to do.
        unit: what the two count.
    """

    step: Step
    done: int
    total: int
    unit: Literal["bytes", "files", "jobs"]


#: Called now and then, by one thread at a time; returns quickly. What it raises ends the work.
OnProgress = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class Parameters:
    """What a batch's jobs need, and may use; None leaves the choice to the app's template.

    What is asked for counts, whatever a template says: it is filled into a copy of the template
    that goes with the jobs, if that says otherwise. It cannot be asked for together with
    ``input_template_filename``, a template that nobody can read from here.

    Attributes:
        fpops_est: floating-point operations that a job takes, about.
        fpops_bound: the number of them at which a volunteer gives it up.
        memory_bound: bytes of memory.
        disk_bound: bytes of disk.
        delay_bound: seconds that a volunteer has for it.
    """

    fpops_est: float | None = None
    fpops_bound: float | None = None
    memory_bound: float | None = None
    disk_bound: float | None = None
    delay_bound: float | None = None

    @property
    def by_element(self) -> dict[str, float | None]:
        """The same by the names of the elements of ``job_params`` and of templates."""
        return {
            "rsc_fpops_est": self.fpops_est,
            "rsc_fpops_bound": self.fpops_bound,
            "rsc_memory_bound": self.memory_bound,
            "rsc_disk_bound": self.disk_bound,
            "delay_bound": self.delay_bound,
        }


@dataclass(frozen=True, slots=True)
class Job:
    """One job to be submitted.

    Attributes:
        args: words, as they are; or one string, which is split as a shell would.
        inputs: files by the open names of the input template, which are all to be there. Only
            with a template that the project keeps (``input_template_filename``), whose names
            nobody can look up, they go in the order given.
        name: unique over the whole project, for ever; None: made of the batch's name and the job's
            number in it.
        priority: None: the batch's.
        fpops: floating-point operations that it takes, about; None: the batch's. Counts as
            :class:`Parameters` do.
        input_template: XML text of its own; None: the app's.
        output_template: likewise.
    """

    args: Sequence[str] | str = ()
    inputs: Mapping[str, File] = field(default_factory=dict)
    name: str | None = None
    priority: int | None = None
    fpops: float | None = None
    input_template: str | None = None
    output_template: str | None = None

    @property
    def files(self) -> dict[str, Input]:
        """The inputs, with a :class:`LocalFile` for each plain path."""
        plain = (str, os.PathLike)
        return {
            name: LocalFile(file) if isinstance(file, plain) else file
            for name, file in self.inputs.items()
        }


@dataclass(frozen=True, slots=True)
class SubmitRequest:
    """A batch to be submitted.

    Attributes:
        batch_name: unique over the whole project.
        app_name: the app that the jobs run.
        jobs: each with the name that it has on the project, whatever its own; arguments are words.
        parameters: what the jobs need and may use, where they do not say so themselves
            (:mod:`boinc_gahp.bridge.asking`).
        app_version_num: run by this version of the app only; None: by any.
        priority: of jobs without one of their own.
        input_template_filename: a file in the project's own directory of templates, for jobs
            without a template of their own; None: the app's. Likewise for outputs.
        by_name: whether input files fit by their open names only. Otherwise those of a job, if
            none of its names fits and there are as many as are wanted, go in the order given: a
            gridmanager knows files by their paths.
        outputs: those that will be asked for, by jobs' names, where they are known: each has to be
            one of the template's.
        lease: seconds that a new batch is kept without a renewal; None: as long as the jobs may
            take by their deadlines and retries, ``[jobs] batch_lease`` at least.
        progress: told how far the submit is.
        answer_by: ``time.monotonic()`` at which the result has to be there: the submit ends in an
            error in time to undo it. None: it may take as long as it needs.
        name_is_given: whether the batch has to have this name though another account has a batch
            of that name: whoever submits it cannot choose another.
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
    name_is_given: bool = False


@dataclass(frozen=True, slots=True)
class Judgement:
    """What can be said of a :class:`SubmitRequest` before anything is created.

    Attributes:
        refusal: what stands against the batch as a whole (its name, its size, ...); None: nothing.
        refusals: what stands against jobs, by their names.
        inputs: the files of each job against which nothing stands, in the order in which they go.
        files: the local files of these jobs: size in bytes by path.
        staged: physical names of these jobs' files that are said to be on the project.
        request_bytes: of the request that would hold these jobs; 0 if it cannot be written.
        max_post_bytes: the largest request that the project's settings allow.
        lease: seconds that the batch would be kept without a renewal, if the request says nothing.
        filled: what becomes of the sizes that each of these jobs asks for; not of one whose
            template is a file of the project's, which cannot be read.
    """

    refusal: GahpError | None
    refusals: Mapping[str, GahpError]
    inputs: Mapping[str, tuple[Input, ...]]
    files: Mapping[str, int]
    staged: frozenset[str]
    request_bytes: int
    max_post_bytes: int
    lease: float
    filled: Mapping[str, Filled]


@dataclass(frozen=True, slots=True)
class JobIds:
    """A job's workunit id, and its canonical instance's id (0: it has none)."""

    workunit_id: int
    canonical_instance_id: int


@dataclass(frozen=True, slots=True)
class BatchStatuses:
    """Answer to BOINC_QUERY_BATCHES: for each batch asked for, (job name, status word) pairs."""

    server_time: str
    batches: tuple[tuple[tuple[str, str], ...], ...]


@dataclass(frozen=True, slots=True)
class BatchLook:
    """A batch and all of its jobs, looked at by the project's id.

    Attributes:
        name: as the project has it.
        complete: whether no job can be missing that is yet to be made.
        jobs: (job name, status word) pairs; words as in :class:`BatchStatuses`.
    """

    name: str
    complete: bool
    jobs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class AdFiles:
    """What a fetch for a job ad has beyond a BOINC_FETCH_OUTPUT; rules of its own come with it.

    The directories of stdout and stderr are made where they are missing. ALL passes over specs that
    name no output: remaps may speak of more than there is.

    Attributes:
        stdout: where stdout goes, absolute or relative to the request's ``directory``; None to
            drop it. It gets the output of the same base name; else one called ``stdout`` or
            ``stdout.txt`` that nothing else asks for; else nothing, and is an empty file.
        batch_id: the project's id of the job's batch, where it is known.
        output_template: the job's own (XML text); None: the app's.
    """

    stdout: str | None = None
    batch_id: int | None = None
    output_template: str | None = None


@dataclass(frozen=True, slots=True)
class FetchRequest:
    """A BOINC_FETCH_OUTPUT, or what a job ad asks for.

    Attributes:
        directory: the job's directory; absolute.
        stderr: where stderr goes, absolute or relative to ``directory``; None to drop it.
        specs: (source, destination) pairs as they stood in the line.
        ad: None for a line.
    """

    job_name: str
    directory: str
    stderr: str | None
    mode: Literal["ALL", "SOME"]
    specs: tuple[tuple[str, str], ...] = ()
    ad: AdFiles | None = None


@dataclass(frozen=True, slots=True)
class FetchResult:
    """Answer to BOINC_FETCH_OUTPUT; times in seconds."""

    exit_status: int
    elapsed_time: float
    cpu_time: float


@dataclass(frozen=True, slots=True)
class Failure:
    """What a project tells of a job that is in error.

    Attributes:
        words: the project's own, for the bits of its error_mask.
        why: the same, explained, on one line.
        exit_statuses: one for each instance that failed, in their order.
        report: lines for people: all of the above, and the state of each instance.
        stderr: an instance's; empty where the project cannot tell, as most cannot.
        result: exit status (never 0) and times; None if no exit status is known.
        trouble: why the instances are not known; None: they are, or there is nothing to ask.
        states: of all instances, in their order, in the project's words; empty: not known.
    """

    words: tuple[str, ...]
    why: str
    exit_statuses: tuple[int, ...]
    report: str
    stderr: str
    result: FetchResult | None
    trouble: RpcError | None = None
    states: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The report and, after an empty line, stderr."""
        return self.report + (f"\n{self.stderr}" if self.stderr else "")


@dataclass(frozen=True, slots=True)
class Client:
    """Who asks, and until when.

    Attributes:
        gridmanager: whether a response prefix was set when the Request Line was read.
        answer_by: of a gridmanager's submit, ``time.monotonic()`` at which its result has to be
            there; otherwise None.
    """

    gridmanager: bool = False
    answer_by: float | None = None
