"""What the bridge is asked, and what it answers: values without protocol or network in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class LocalInput:
    """An input file of a job: a path on this machine, and the app's logical (open) name for it."""

    path: str
    logical_name: str


@dataclass(frozen=True, slots=True)
class JobRequest:
    """One job of a BOINC_SUBMIT: arguments are separate words, as the Request Line had them."""

    name: str
    args: tuple[str, ...] = ()
    inputs: tuple[LocalInput, ...] = ()


@dataclass(frozen=True, slots=True)
class SubmitRequest:
    """A BOINC_SUBMIT. The six last fields are None where the line had NULL or nothing."""

    batch_name: str
    app_name: str
    jobs: Sequence[JobRequest]
    rsc_fpops_est: float | None = None
    rsc_fpops_bound: float | None = None
    rsc_memory_bound: float | None = None
    rsc_disk_bound: float | None = None
    delay_bound: float | None = None
    app_version_num: int | None = None


@dataclass(frozen=True, slots=True)
class BatchStatuses:
    """Answer to BOINC_QUERY_BATCHES: for each batch asked for, (job name, status word) pairs."""

    server_time: str
    batches: tuple[tuple[tuple[str, str], ...], ...]


@dataclass(frozen=True, slots=True)
class FetchRequest:
    """A BOINC_FETCH_OUTPUT.

    Attributes:
        directory: the job's directory; absolute.
        stderr: where stderr goes, absolute or relative to ``directory``; None to drop it.
        specs: (source, destination) pairs as they stood in the line.
    """

    job_name: str
    directory: str
    stderr: str | None
    mode: Literal["ALL", "SOME"]
    specs: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class FetchResult:
    """Answer to BOINC_FETCH_OUTPUT; times in seconds."""

    exit_status: int
    elapsed_time: float
    cpu_time: float


@dataclass(frozen=True, slots=True)
class Client:
    """Who asks, and until when.

    Attributes:
        gridmanager: whether a response prefix was set when the Request Line was read: then an
            error answered to a BOINC_SUBMIT is a promise (``gahp.md``, "BOINC_* commands").
        answer_by: for a submit, ``time.monotonic()`` at which its result has to be there, or None.
    """

    gridmanager: bool = False
    answer_by: float | None = None
