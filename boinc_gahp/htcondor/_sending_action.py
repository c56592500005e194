"""What to do about a batch that could not be submitted, and the holds for its jobs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING

from boinc_gahp.errors import (
    OF_ALL,
    AppNotFound,
    BadRequest,
    BatchConflict,
    BatchNotFound,
    BatchTooLarge,
    GahpError,
    InputGone,
    JobRefused,
    JobsNotListed,
    NotFound,
    NotOwner,
    PermissionDenied,
    ProjectError,
    ProtocolError,
    QuotaExceeded,
    RpcError,
    StagingError,
)
from boinc_gahp.htcondor._description import description_of
from boinc_gahp.htcondor.status_ad import UNTIL_MENDED, HoldCode
from boinc_gahp.ledger.rows import Hold
from boinc_gahp.templates.types import TemplateError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import UnionType

    from boinc_gahp.ledger.rows import BatchRow, JobRow
    from boinc_gahp.submit.journal import SubmitState

#: How often PHP may die of a batch's submit_batch before the batch's jobs are suspected.
_DEATHS = 3
#: Seconds after which a project's refusal counts as final, if it answers and waiting does not
#: help.
REFUSAL_FINAL = 86400.0


class Action(Enum):
    """What to do about a batch that could not be submitted.

    For all but ``LATER``, a batch whose jobs may be on the project is aborted first.
    """

    LATER = auto()
    """Send the same again later."""
    RENAME = auto()
    """Send the same jobs under other names."""
    HALVE = auto()
    """Divide it into two batches: it is too large."""
    BISECT = auto()
    """Divide it into two batches: one job is refused, and the project does not say which."""
    HOLD = auto()
    """Put all of its jobs on hold."""
    HOLD_SOME = auto()
    """Put the jobs that are to blame on hold."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """The state of a batch that could not be submitted.

    Attributes:
        sending: how far it is on the project.
        jobs: its number of jobs.
        is_part: whether it is a part of a batch that was refused.
        deaths: how often the project's PHP has died of its submit_batch.
        lasted: seconds for which it has been refused with errors that waiting does not help.
        is_beyond_limit: whether it has more jobs than the project allows the account, which has no
            other jobs that could end.
        is_about_generated_file: whether the error is about a file that this program makes itself.
    """

    sending: SubmitState
    jobs: int
    is_part: bool = False
    deaths: int = 0
    lasted: float = 0.0
    is_beyond_limit: bool = False
    is_about_generated_file: bool = False


#: The action for each kind of error, before the attempt is considered; the first match counts.
_ACTIONS: tuple[tuple[type[GahpError] | UnionType, Action], ...] = (
    (JobsNotListed, Action.BISECT),
    # NotOwner: this account has made a batch of this name, so it is another account's batch.
    (NotOwner | BatchNotFound | BatchConflict, Action.RENAME),
    (PermissionDenied | AppNotFound | TemplateError, Action.HOLD),
    # InputGone: the project keeps deleting files while they are being submitted.
    (NotFound | InputGone, Action.LATER),
    (QuotaExceeded | BatchTooLarge, Action.HALVE),
    (ProjectError | ProtocolError, Action.BISECT),
    (JobRefused | BadRequest | StagingError, Action.HOLD_SOME),
    (GahpError, Action.LATER),
)


def action_after(attempt: Attempt, error: GahpError) -> Action:
    """Return what to do after a submission that ended in ``error``."""
    action = next(action for kind, action in _ACTIONS if isinstance(error, kind))
    if _may_pass(attempt, error):
        action = Action.LATER
    elif action in {Action.HALVE, Action.BISECT} and attempt.jobs == 1:
        action = Action.HOLD
    if action is Action.LATER and not attempt.sending.sent and attempt.lasted > REFUSAL_FINAL:
        return Action.HOLD
    if action is Action.HOLD and error.concerns in OF_ALL and attempt.sending.unclear:
        return Action.LATER  # the jobs may exist, so they cannot be on hold
    return action


def _may_pass(attempt: Attempt, error: GahpError) -> bool:
    """Tell whether the same may be accepted later."""
    if isinstance(error, QuotaExceeded):
        return attempt.jobs == 1 or not attempt.is_beyond_limit
    # A file that this program makes is made again with the next attempt.
    if error.passes or attempt.is_about_generated_file:
        return True
    if isinstance(error, ProtocolError) and error.rpc == "submit_batch":
        # PHP died: the cause may be chance, one of its jobs, or too many of them.
        return attempt.deaths < (1 if attempt.is_part else _DEATHS)
    return isinstance(error, RpcError) and error.rpc != "submit_batch" and not error.concerns


#: The code and the reason of a hold for each kind of error; the first match counts.
_HOLDS: tuple[tuple[type[GahpError], HoldCode, str], ...] = (
    (
        BatchTooLarge,
        HoldCode.REFUSED,
        "the job takes {error.nbytes} bytes in a request to {batch.project_url}, more than the "
        "project accepts: pass long arguments in an input file, or have the project's admin raise "
        "post_max_size in php.ini (and max_post_bytes in the settings)",
    ),
    (StagingError, HoldCode.INPUT, "{error}"),
    (PermissionDenied, HoldCode.ACCOUNT, UNTIL_MENDED),
    (
        AppNotFound,
        HoldCode.REFUSED,
        "project {batch.project_url} has no app {batch.app_name!r} ({error.words}): name another "
        "app (BoincApp, or the queue; for jobs in containers container_app in the settings) or "
        "another project, or have the project's admin add it and release the job",
    ),
    (
        TemplateError,
        HoldCode.REFUSED,
        "app {batch.app_name!r} of {batch.project_url} cannot be used: {error}. Release the job "
        "when the project's admin has fixed that",
    ),
    (GahpError, HoldCode.REFUSED, "{error}"),
)


def hold_for(error: GahpError, batch: BatchRow, *, alone: bool = False) -> Hold:
    """Return the hold for jobs that ``error`` is about.

    Args:
        error: why they cannot be sent.
        batch: the batch that they were in.
        alone: whether the error is about a single job that was sent alone.
    """
    code, words = next((code, words) for kind, code, words in _HOLDS if isinstance(error, kind))
    reason = words.format(error=error, batch=batch)
    if alone and code == HoldCode.REFUSED:
        advice = "change the job, or ask the project's admin what this means"
        reason = f"{reason} (this job was sent alone: {advice})"
    subcode = error.errno if isinstance(error, StagingError) else 0
    return Hold(error.with_code(reason), code, subcode)


def blamed(jobs: Sequence[JobRow], error: GahpError) -> Sequence[JobRow]:
    """Return the jobs that an error names; all jobs if it names none."""
    found: Sequence[JobRow] = ()
    if isinstance(error, JobRefused):
        found = [job for job in jobs if job.job_name == error.job_name]
    elif isinstance(error, StagingError) and error.path is not None:
        path = error.path
        quoted = json.dumps(path)  # as it is in a description
        found = [job for job in jobs if quoted in job.description]
        found = found or [job for job in jobs if _is_in_directory(path, job)]
    return found or jobs


def _is_in_directory(path: str, job: JobRow) -> bool:
    """Tell whether a file is in an input directory of a job."""
    description = description_of(job)
    container = description and description.container
    trees = container.trees if container else ()
    return any(path.startswith(f"{tree.path.rstrip('/')}/") for tree in trees)
