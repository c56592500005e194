"""The values that are sent to a project and returned by it.

Field names are the project's own element names (``web-rpcs.rst``, "The RPCs"). Points in time are
seconds since the epoch, durations are in seconds, sizes in bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from boinc_gahp.states import JobState, job_state

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from boinc_gahp.states import BatchState


class InputFile(NamedTuple):
    """One ``<input_file>``; use the constructors below, one for each mode.

    ``mode`` is local_staged, inline or remote. This and :class:`JobSubmission`
    are named tuples: a batch can have hundreds of thousands of them.
    """

    mode: str
    source: str = ""
    url: str = ""
    nbytes: int = 0
    md5: str = ""

    @classmethod
    def local_staged(cls, physical_name: str) -> InputFile:
        """Return a file that was staged before, by its physical name."""
        return cls("local_staged", source=physical_name)

    @classmethod
    def inline(cls, contents: str) -> InputFile:
        """Return a file whose contents (not empty, text only) are sent in the request."""
        return cls("inline", source=contents)

    @classmethod
    def remote(cls, url: str, nbytes: int, md5: str) -> InputFile:
        """Return a file that volunteers fetch from another server."""
        return cls("remote", url=url, nbytes=nbytes, md5=md5)


class JobSubmission(NamedTuple):
    """One ``<job>`` of submit_batch and estimate_batch.

    ``command_line`` is the text that the project stores; make it from arguments with
    :func:`boinc_gahp.rpc.command_lines.command_line`, because the project mangles quotes and
    backslashes, and clients unescape it once before they split it (``web-rpcs.rst``, "What clients
    make of it").
    ``input_template`` and ``output_template`` are XML documents.
    """

    name: str = ""
    command_line: str = ""
    input_files: tuple[InputFile, ...] = ()
    rsc_fpops_est: float | None = None
    priority: int | None = None
    input_template: str | None = None
    output_template: str | None = None


@dataclass(frozen=True, slots=True)
class BatchSubmission:
    """``<batch>`` of submit_batch and estimate_batch; ``batch_id`` overrides ``batch_name``.

    ``job_params`` has the values of some elements of ``<job_params>``, by their names.
    """

    app_name: str
    jobs: Sequence[JobSubmission]
    batch_id: int | None = None
    batch_name: str | None = None
    app_version_num: int | None = None
    priority: int | None = None
    input_template_filename: str | None = None
    output_template_filename: str | None = None
    job_params: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BatchInfo:
    """One batch as query_batches and query_batch describe it.

    The project computes ``state`` and ``fraction_done`` when it is asked; for a batch in state INIT
    it counts nothing. ``total_cpu_time`` is None unless it was requested.
    """

    id: int
    name: str
    app_name: str
    state: BatchState
    create_time: float
    expire_time: float
    completion_time: float
    njobs: int
    nerror_jobs: int
    fraction_done: float
    credit_estimate: float
    credit_canonical: float
    total_cpu_time: float | None = None


class JobInfo(NamedTuple):
    """One job of query_batch; the last four fields only with get_job_details.

    ``errors`` are the project's words for the bits of error_mask ("too_many_error_results",
    "cancelled"); ``exit_statuses`` has one number for each failed instance; ``status`` is queued,
    in_progress, error or done.
    """

    id: int
    name: str
    canonical_instance_id: int
    status: str = ""
    errors: tuple[str, ...] = ()
    exit_statuses: tuple[int, ...] = ()
    cpu_time: float | None = None

    @property
    def state(self) -> JobState:
        """The job's state.

        If a job had a canonical instance when it was aborted, the project says that it is in error,
        but its outputs exist (``web-rpcs.rst``, "Queries").
        """
        return JobState.DONE if self.canonical_instance_id else job_state(self.status)


@dataclass(frozen=True, slots=True)
class BatchDetails:
    """The result of query_batch: the batch, and its jobs in the order of their submission."""

    batch: BatchInfo
    jobs: tuple[JobInfo, ...]


class JobStatus(NamedTuple):
    """One job of query_batch2: DONE, ERROR, IN_PROGRESS, UNSENT (QUEUED in older projects)."""

    name: str
    status: str


#: Seconds before the time of an answer from which changes are asked for again. A change has the
#: database's time at which its statement began, ``server_time`` is PHP's at the answer. Repeated
#: changes do no harm, and they are only those of these minutes (``web-rpcs.rst``, "Changes since").
OVERLAP = 300


@dataclass(frozen=True, slots=True)
class JobStatuses:
    """The result of query_batch2.

    Attributes:
        server_time: the project's clock as it wrote it, to be passed on unchanged.
        batches: one tuple of jobs for each requested batch, in the order of the request.
    """

    server_time: str
    batches: tuple[tuple[JobStatus, ...], ...]


@dataclass(frozen=True, slots=True)
class ResultInfo:
    """One instance (result) of a job, from query_job; with the sizes of its uploads, in order."""

    id: int
    name: str
    state: str
    outfile_sizes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class CompletedJob:
    """The result of query_completed_job; ``stderr_out`` is unescaped, with the client's wrapper."""

    error_mask: int
    canonical_resultid: int | None
    error_resultid: int | None
    exit_status: int
    elapsed_time: float
    cpu_time: float
    stderr_out: str


@dataclass(frozen=True, slots=True)
class UploadFile:
    """A local file for upload_files, with the size and MD5 (hex) that it must have."""

    physical_name: str
    path: str
    nbytes: int
    md5: str


@dataclass(frozen=True, slots=True)
class AppVersionInfo:
    """The newest version of an app for a platform and plan class; ``beta``: for testers only."""

    platform_short: str
    platform_long: str
    version_num: int
    plan_class: str
    date_unix: float
    beta: bool


@dataclass(frozen=True, slots=True)
class AppInfo:
    """An app of the project's list of apps; ``beta``: for volunteers who test apps."""

    id: int
    name: str
    user_friendly_name: str
    beta: bool
    versions: tuple[AppVersionInfo, ...] = ()


@dataclass(frozen=True, slots=True)
class ProjectInfo:
    """What a project says of itself; a text is "" if the project does not tell it.

    Attributes:
        name: its name for people.
        master_url: its address, as volunteers use it.
        web_rpc_url_base: its address for programs; https where the project has that.
        has_ldap: whether people log in through LDAP there, with no password of the project's own.
    """

    name: str
    master_url: str
    web_rpc_url_base: str
    has_ldap: bool = False
