"""What a failed submission means for its jobs: a function of the error alone."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum, auto
from typing import TYPE_CHECKING

from boinc_gahp.blah.codes import HoldCode, held_until_mended
from boinc_gahp.blah.patience import PASSING
from boinc_gahp.bridge import TemplateError
from boinc_gahp.errors import (
    AppNotFound,
    BadRequest,
    BatchConflict,
    BatchNotFound,
    BatchTooLarge,
    DatabaseTrouble,
    GahpError,
    InputGone,
    JobRefused,
    JobsNotListed,
    NotFound,
    NotOwner,
    PermissionDenied,
    ProjectDown,
    ProjectError,
    ProtocolError,
    QuotaExceeded,
    RpcError,
    StagingError,
    TransportError,
)
from boinc_gahp.ledger import Hold

if TYPE_CHECKING:
    from boinc_gahp.ledger.jobs import BatchRow

#: Seconds after which a project that answers, and refuses what no waiting helps against, is
#: believed.
BELIEVED = 86400.0


class Verdict(Enum):
    """What to do after a failed submission."""

    LATER = auto()
    """Nothing is wrong with the jobs: the same again later."""
    QUOTA = auto()
    """The account has too many jobs on the project: later, or fewer at a time."""
    JOBS = auto()
    """Some jobs are to blame, and can be told from the others without the project's help."""
    ALL = auto()
    """The app or the account: all jobs of the batch would be refused, now and by themselves."""
    SMALLER = auto()
    """The request was too large."""
    ANEW = auto()
    """The batch's name cannot be used (any more): the same jobs under other names."""
    SUSPECT = auto()
    """The project refuses the batch, and does not say which job it means."""
    DIED = auto()
    """The project's PHP died of the request: chance, or a job in it, or too many of them."""


def verdict_on(error: GahpError) -> Verdict:
    """Return what a submission's error means."""
    if isinstance(error, RpcError):
        return _on_rpc(error)
    if isinstance(error, BatchTooLarge):
        return Verdict.SMALLER
    if isinstance(error, JobRefused | BadRequest):
        return Verdict.JOBS
    if isinstance(error, StagingError):
        # Without a path it is the project that does not keep what it is sent.
        later = error.path is None or error.errno in PASSING
        return Verdict.LATER if later else Verdict.JOBS
    if isinstance(error, BatchConflict):
        return Verdict.SUSPECT if isinstance(error, JobsNotListed) else Verdict.ANEW
    return Verdict.ALL if isinstance(error, TemplateError) else Verdict.LATER


def _on_rpc(error: RpcError) -> Verdict:
    submitting = error.rpc == "submit_batch"
    if isinstance(error, ProjectError):
        return _on_refusal(error)
    if isinstance(error, TransportError) and error.status == 413 and submitting:
        return Verdict.SMALLER
    if isinstance(error, ProtocolError) and error.php_fatal and submitting:
        return Verdict.DIED
    return Verdict.LATER


def _on_refusal(error: ProjectError) -> Verdict:
    if isinstance(error, ProjectDown):
        return Verdict.LATER
    if isinstance(error, PermissionDenied):
        # NotOwner: of a batch that this account has made under this name, so by another one.
        return Verdict.ANEW if isinstance(error, NotOwner) else Verdict.ALL
    if isinstance(error, AppNotFound):
        return Verdict.ALL
    if isinstance(error, NotFound):
        return Verdict.ANEW if isinstance(error, BatchNotFound) else Verdict.LATER
    if isinstance(error, QuotaExceeded):
        return Verdict.QUOTA
    # InputGone: the project deletes files as they are being submitted, again and again.
    passing = isinstance(error, InputGone | DatabaseTrouble)
    return Verdict.LATER if error.rpc != "submit_batch" or passing else Verdict.SUSPECT


def hold_for(error: GahpError, batch: BatchRow, *, alone: bool = False) -> Hold:
    """Return the hold for jobs that ``error`` is about.

    Args:
        error: why they cannot be sent.
        batch: the batch that they were to be sent in.
        alone: whether the error was said of one job that was sent by itself.
    """
    hold = _hold_for(error, batch)
    reason = hold.reason
    if alone and hold.code == HoldCode.REFUSED:
        advice = "change the job, or ask the project's admin what this means"
        reason = f"{reason} (said of this job alone: {advice})"
    return replace(hold, reason=error.told(reason))


def _hold_for(error: GahpError, batch: BatchRow) -> Hold:
    if isinstance(error, BatchTooLarge):
        return Hold(
            f"the job takes {error.nbytes} bytes in a request to {batch.project_url}, which is "
            "more than that takes: pass long arguments in an input file, or have the project's "
            "admin raise post_max_size in php.ini (and max_post_bytes in the settings)",
            HoldCode.REFUSED,
            0,
        )
    if isinstance(error, StagingError):
        return Hold(str(error), HoldCode.INPUT, error.errno)
    if isinstance(error, PermissionDenied):
        return held_until_mended(str(error))
    if isinstance(error, AppNotFound):
        return Hold(
            f"project {batch.project_url} has no app {batch.app_name!r} ({error.words}): name "
            "another app (BoincApp, or the queue) or another project, or have the project's admin "
            "add it and release the job",
            HoldCode.REFUSED,
            0,
        )
    if isinstance(error, TemplateError):
        return Hold(
            f"app {batch.app_name!r} of {batch.project_url} cannot be used: {error}. Release the "
            "job when the project's admin has mended that",
            HoldCode.REFUSED,
            0,
        )
    return Hold(str(error), HoldCode.REFUSED, 0)


def is_about_project(error: GahpError) -> bool:
    """Tell whether other requests to the project would fail like this one."""
    if isinstance(error, ProjectError):
        return isinstance(error, ProjectDown | PermissionDenied)
    return isinstance(error, RpcError)


def ended_clearly(error: GahpError) -> bool:
    """Tell whether the project has answered the last submit_batch, so that none is running."""
    if isinstance(error, JobsNotListed):
        return True
    cause = error.__cause__ if isinstance(error, BatchTooLarge) else error
    if isinstance(cause, TransportError):
        return not cause.may_have_happened
    return (
        isinstance(cause, ProjectError)
        and not isinstance(cause, ProjectDown)
        and cause.rpc == "submit_batch"
    )
