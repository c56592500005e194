"""Requests as values: a frozen dataclass for each command.

Text is as :func:`boinc_gahp.gahp.words.split` returns it. The requests that a gridmanager waits for
asynchronously begin with ``request_id``, kept as it was written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

if TYPE_CHECKING:
    from boinc_gahp.secret import Authenticator


@dataclass(frozen=True, slots=True)
class Request:
    """The base of all requests: the name of their command."""

    command: ClassVar[str] = ""


@dataclass(frozen=True, slots=True)
class Commands(Request):
    """COMMANDS."""

    command = "COMMANDS"


@dataclass(frozen=True, slots=True)
class Version(Request):
    """VERSION."""

    command = "VERSION"


@dataclass(frozen=True, slots=True)
class Quit(Request):
    """QUIT."""

    command = "QUIT"


@dataclass(frozen=True, slots=True)
class Results(Request):
    """RESULTS."""

    command = "RESULTS"


@dataclass(frozen=True, slots=True)
class AsyncModeOn(Request):
    """ASYNC_MODE_ON."""

    command = "ASYNC_MODE_ON"


@dataclass(frozen=True, slots=True)
class AsyncModeOff(Request):
    """ASYNC_MODE_OFF."""

    command = "ASYNC_MODE_OFF"


@dataclass(frozen=True, slots=True)
class ResponsePrefix(Request):
    """RESPONSE_PREFIX; an empty prefix means none."""

    command = "RESPONSE_PREFIX"
    prefix: str


@dataclass(frozen=True, slots=True)
class SelectProject(Request):
    """BOINC_SELECT_PROJECT: the project of the requests that come after it."""

    command = "BOINC_SELECT_PROJECT"
    url: str
    authenticator: Authenticator


@dataclass(frozen=True, slots=True)
class AsyncRequest(Request):
    """A request that is answered twice: with a Return Line, and later with a Result Line."""

    request_id: str


@dataclass(frozen=True, slots=True)
class Ping(AsyncRequest):
    """BOINC_PING."""

    command = "BOINC_PING"


class SubmitInput(NamedTuple):
    """An input file of a job: its path on this machine, and the app's name for it.

    This and :class:`SubmitJob` are named tuples: one line can make hundreds of thousands of them.
    """

    source: str
    logical_name: str


class SubmitJob(NamedTuple):
    """A job of a BOINC_SUBMIT."""

    name: str
    args: tuple[str, ...]
    inputs: tuple[SubmitInput, ...]


@dataclass(frozen=True, slots=True)
class Estimates:
    """The six trailing arguments of BOINC_SUBMIT as they were written; None: NULL or left out.

    They are the user's own words (``+rsc_fpops_est = "..."`` in a submit file), so one that is not
    a number must not be a syntax error (``gahp.rst``, "Aborts", 1).
    """

    rsc_fpops_est: str | None = None
    rsc_fpops_bound: str | None = None
    rsc_memory_bound: str | None = None
    rsc_disk_bound: str | None = None
    delay_bound: str | None = None
    app_version_num: str | None = None


@dataclass(frozen=True, slots=True)
class Submit(AsyncRequest):
    """BOINC_SUBMIT."""

    command = "BOINC_SUBMIT"
    batch: str
    app: str
    jobs: tuple[SubmitJob, ...]
    estimates: Estimates = Estimates()


@dataclass(frozen=True, slots=True)
class QueryBatches(AsyncRequest):
    """BOINC_QUERY_BATCHES; ``min_mod_time`` as it was written."""

    command = "BOINC_QUERY_BATCHES"
    min_mod_time: str
    batches: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FetchOutput(AsyncRequest):
    """BOINC_FETCH_OUTPUT; ``specs`` are (source, destination) pairs."""

    command = "BOINC_FETCH_OUTPUT"
    job: str
    directory: str
    stderr: str
    mode: Literal["ALL", "SOME"]
    specs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class AbortJobs(AsyncRequest):
    """BOINC_ABORT_JOBS."""

    command = "BOINC_ABORT_JOBS"
    jobs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RetireBatch(AsyncRequest):
    """BOINC_RETIRE_BATCH."""

    command = "BOINC_RETIRE_BATCH"
    batch: str


@dataclass(frozen=True, slots=True)
class SetLease(AsyncRequest):
    """BOINC_SET_LEASE; ``unix_time`` in seconds since the epoch, as it was written."""

    command = "BOINC_SET_LEASE"
    batch: str
    unix_time: str


@dataclass(frozen=True, slots=True)
class BlahRequest(AsyncRequest):
    """A request of the gridmanagers of HTCondor 10 and later (``gridmanager-batch.rst``)."""


@dataclass(frozen=True, slots=True)
class BlahPing(BlahRequest):
    """BLAH_PING; ``batch_type`` is the word after ``batch`` in grid_resource, and ignored."""

    command = "BLAH_PING"
    batch_type: str | None = None


@dataclass(frozen=True, slots=True)
class BlahJobSubmit(BlahRequest):
    """BLAH_JOB_SUBMIT; ``ad`` is the job's ClassAd as text."""

    command = "BLAH_JOB_SUBMIT"
    ad: str


@dataclass(frozen=True, slots=True)
class BlahJobStatus(BlahRequest):
    """BLAH_JOB_STATUS; ``job_id`` is from the result of BLAH_JOB_SUBMIT."""

    command = "BLAH_JOB_STATUS"
    job_id: str


@dataclass(frozen=True, slots=True)
class BlahJobCancel(BlahRequest):
    """BLAH_JOB_CANCEL."""

    command = "BLAH_JOB_CANCEL"
    job_id: str


@dataclass(frozen=True, slots=True)
class BlahJobRefreshProxy(BlahRequest):
    """BLAH_JOB_REFRESH_PROXY; ``proxy`` is the path of an X.509 proxy."""

    command = "BLAH_JOB_REFRESH_PROXY"
    job_id: str
    proxy: str | None = None
