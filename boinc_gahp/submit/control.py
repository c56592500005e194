"""BOINC_ABORT_JOBS, BOINC_RETIRE_BATCH, BOINC_SET_LEASE, and the end of batches."""

from __future__ import annotations

import logging
import time
from functools import partial
from typing import TYPE_CHECKING

from boinc_gahp.errors import (
    OF_ALL,
    JobNotFound,
    LedgerError,
    NotOwner,
    ProjectError,
    RpcError,
)
from boinc_gahp.submit import abort
from boinc_gahp.text import listed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from boinc_gahp.ledger.ledger import Ledger
    from boinc_gahp.ledger.rows import BatchRow
    from boinc_gahp.submit.context import Context

log = logging.getLogger("boinc_gahp.submit")

#: Jobs in one abort_jobs; 1,000 take 0.5 s (``web-rpcs.rst``, "Timings").
_JOBS_PER_ABORT = 500
#: How many jobs an error names one by one.
_NAMED = 10

#: Seconds past its time, and after a gridmanager could first ask about it, before an unanswered
#: submission that nobody asks about is aborted.
_GRACE = 120.0
#: Seconds past its time, or after a gridmanager last asked, before this is done if no gridmanager
#: can ask this process: one may be about to start.
FORGOTTEN = 3600.0


def abort_jobs(context: Context, names: Sequence[str], *, remember: bool = True) -> None:
    """Abort jobs; a job that cannot be aborted does not stop the others.

    The project aborts a list's jobs in turn, and stops at the first that it refuses
    (``web-rpcs.rst``, "Aborting and retiring"). The jobs are written into the ledger before
    anything is asked: in any case a gridmanager does not want to hear of them any more. What it
    cannot have now is owed to the project, for it does not ask again. Callers with their own record
    do without (``remember``).

    Raises:
        ProjectError: (or a subclass) jobs were not aborted; the message names them and says why.
            All the others were aborted.
        RpcError: the project could not be reached.
    """
    names = list(dict.fromkeys(names))
    if remember:
        _record_aborted(context, names)
    try:
        refused = abort_each(context, names)
    except RpcError:
        if remember:
            _owe(context, "abort", names)
        raise
    if refused:
        raise _not_aborted(refused, len(names))


def abort_each(context: Context, names: Sequence[str]) -> dict[str, ProjectError]:
    """Abort jobs like :func:`abort_jobs`; return those that were not aborted, and why.

    Nothing is written into the ledger.

    Raises:
        RpcError: the project could not be reached.
    """
    refused: dict[str, ProjectError] = {}
    for start in range(0, len(names), _JOBS_PER_ABORT):
        _abort(context, names[start : start + _JOBS_PER_ABORT], refused)
    return refused


def _abort(context: Context, names: Sequence[str], refused: dict[str, ProjectError]) -> None:
    todo = [list(names)]
    while todo:
        jobs = todo.pop()
        if not jobs:
            continue
        try:
            context.project.abort_jobs(jobs)
        except ProjectError as error:
            if error.concerns in OF_ALL:
                raise
            if isinstance(error, JobNotFound) and error.named in jobs:
                # The jobs before it are aborted by now. To ask for them again costs little, and is
                # right for a project that does all of a request or nothing.
                refused[error.named] = error
                todo.append([job for job in jobs if job != error.named])
            elif len(jobs) == 1:
                refused[jobs[0]] = error
            else:
                # The error does not say which job it means. An abort can be repeated.
                half = len(jobs) // 2
                todo += [jobs[half:], jobs[:half]]


def _not_aborted(refused: dict[str, ProjectError], total: int) -> ProjectError:
    """Return one error for all, of the class of the first."""
    first = next(iter(refused.values()))
    named = listed([f"{name} ({error.words})" for name, error in refused.items()], _NAMED)
    message = f"{len(refused)} of {total} jobs were not aborted on {first.host}: "
    return type(first).of(first, message + named)


def _record_aborted(context: Context, names: Sequence[str]) -> None:
    batches: dict[str | None, list[str]] = {}
    for name in names:
        # A gridmanager's job name begins with its batch's (gahp.rst, "BOINC_* commands"); if that
        # is wrong, a query corrects it.
        batches.setdefault(name.rpartition("#")[0] or None, []).append(name)

    def record(ledger: Ledger) -> None:
        for batch_name, jobs in batches.items():
            ledger.record_aborted(*context.owner, jobs, batch_name)

    context.note(record, "later queries may show the aborted jobs")


def retire_batch(context: Context, name: str) -> None:
    """Retire a batch: its files and records may be deleted; if that fails now, it is owed.

    Raises:
        RpcError: see :meth:`WebRpcs.retire_batch`.
    """
    try:
        _on_batch(context, name, context.project.retire_batch)
    except RpcError as error:
        if not isinstance(error, ProjectError) or error.concerns in OF_ALL:
            _owe(context, "retire", [name])
        raise
    context.forget_batch(name)

    def forget(ledger: Ledger) -> None:
        ledger.forget_aborted(*context.owner, name)
        ledger.end_submit(*context.owner, name)

    context.note(forget, f"its entries about batch {name} remain")


def set_lease(context: Context, name: str, unix_time: float) -> None:
    """Keep a batch until ``unix_time``, in seconds since the epoch.

    Raises:
        RpcError: see :meth:`WebRpcs.set_expire_time`.
    """
    _on_batch(context, name, partial(context.project.set_expire_time, unix_time))


def _on_batch(context: Context, name: str, change: Callable[..., None]) -> None:
    """Change the account's batch of this name; ``change`` is an RPC's method.

    An id that was learned before may be another batch's by now, if the project began anew with an
    empty database.
    """
    try:
        change(batch_name=name)
    except NotOwner:
        batch_id = context.cache.own_batch(name)
        if batch_id is None:
            raise
        change(batch_id=batch_id)


def _owe(context: Context, command: str, names: Sequence[str]) -> None:
    context.note(
        lambda ledger: ledger.record_owed(*context.owner, command, names),
        f"nobody will {command} {listed(names, _NAMED)}",
    )


def reconcile(context: Context, *, alone: bool = False) -> None:
    """Do what is owed to the project, and abort BOINC_SUBMIT's batches that are due.

    What fails now stays pending.

    Raises nothing: errors are logged. One thread does this at a time; for others it does nothing.

    Args:
        context: the project.
        alone: whether no gridmanager can ask this process about its batches.
    """
    if context.ledger is None or not context.reconciling.acquire(blocking=False):
        return
    try:
        _reconcile(context, context.ledger, alone=alone)
    except LedgerError as error:
        log.warning(
            "Cannot check now what is still to be sent to %s: %s",
            context.project.host,
            error,
        )
    finally:
        context.reconciling.release()


def _reconcile(context: Context, ledger: Ledger, *, alone: bool) -> None:
    _send_owed(context, ledger)
    now = time.time()
    for batch in ledger.pending_aborts(*context.owner, now):
        if batch.state == "giving_up":
            is_due = batch.not_before <= now
        else:
            is_due = _is_abandoned(context, batch, now, alone=alone)
            is_due = is_due and ledger.begin_abort(batch, now)
            if is_due:
                log.warning(
                    "A daemon died while it submitted batch %s (id %d), and nobody has asked "
                    "about the batch since: boinc_gahp aborts it",
                    batch.name,
                    batch.project_batch_id,
                )
        if is_due:
            _abort_batch(context, ledger, batch)


def _send_owed(context: Context, ledger: Ledger) -> None:
    """Send the aborts and retirements that failed; what the project refuses is not owed."""
    host = context.project.host
    try:
        jobs = ledger.owed(*context.owner, "abort")
        for name, error in abort_each(context, jobs).items():
            log.warning("Job %s is not aborted on %s: %s", name, host, error)
        ledger.owed_done(*context.owner, "abort", jobs)
        for name in ledger.owed(*context.owner, "retire"):
            try:
                retire_batch(context, name)
            except ProjectError as refusal:
                if refusal.concerns in OF_ALL:
                    raise
                log.warning("Batch %s is not retired: %s", name, refusal)
            ledger.owed_done(*context.owner, "retire", [name])
    except RpcError as error:
        log.warning("Aborts and retirements are still to be sent to %s: %s", host, error)


def _is_abandoned(context: Context, batch: BatchRow, now: float, *, alone: bool) -> bool:
    """Return whether a submission is over and nobody waits for it.

    A gridmanager that recovers asks for its batches at once; :data:`_GRACE` gives it time for that,
    even long after the submission: the submit node may have been down for days.
    """
    if alone:
        return now > batch.not_before + FORGOTTEN
    return (
        now > batch.not_before + _GRACE
        and context.cache.age > _GRACE
        and not context.cache.mentioned.get(batch.name)
    )


def _abort_batch(context: Context, ledger: Ledger, batch: BatchRow) -> None:
    try:
        is_certain = abort.abort_until_certain(context, batch, ledger)
    except RpcError as error:
        log.warning("Batch %s is still to be aborted: %s", batch.name, error)
        ledger.postpone(batch.id, time.time() + abort.ABORT_AGAIN, str(error))
        return
    if is_certain:
        ledger.abort_done(*context.owner, batch.project_batch_id)
        log.info("Batch %s (id %d) is aborted", batch.name, batch.project_batch_id)
