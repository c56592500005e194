"""BOINC_QUERY_BATCHES, and what else a project is asked about batches and names of jobs."""

from __future__ import annotations

import logging
import math
import time
from typing import TYPE_CHECKING

from boinc_gahp.errors import (
    NO_BATCH_NAMED,
    BadRequest,
    BatchConflict,
    BatchNotFound,
    JobNotFound,
    LedgerError,
    NameInUse,
    NotFound,
    NotOwner,
    PermissionDenied,
    ProjectError,
    RpcError,
    TemplatesMissing,
)
from boinc_gahp.rpc.types import OVERLAP, JobStatus, JobStatuses
from boinc_gahp.states import STATUS_WORDS, BatchState
from boinc_gahp.submit import checks
from boinc_gahp.submit.checks import fold
from boinc_gahp.submit.types import BatchJobs
from boinc_gahp.text import count

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from boinc_gahp.ledger.rows import BatchRow
    from boinc_gahp.rpc.client import WebRpcs
    from boinc_gahp.rpc.types import BatchDetails, BatchInfo
    from boinc_gahp.submit.context import Context
    from boinc_gahp.submit.types import SubmitRequest

log = logging.getLogger("boinc_gahp.submit")

#: Up to this many names of unknown state are looked up one by one. One query_batch costs a list
#: of its jobs (10,000: 0.02 s and 1 MB); one query_batches always costs a count of the jobs of
#: every batch of the account (``web-rpcs.rst``, "Timings").
_SINGLE_QUERIES = 2

_SUBMITTED = (BatchState.IN_PROGRESS, BatchState.COMPLETE)


def oldest_named(batches: Iterable[BatchInfo], name: str) -> BatchInfo | None:
    """Return the batch of this name with the lowest id, names compared as the project does."""
    wanted = fold(name)
    found = (batch for batch in batches if fold(batch.name) == wanted)
    return min(found, key=lambda batch: batch.id, default=None)


def find_batch(project: WebRpcs, name: str) -> BatchDetails:
    """Return the account's batch of this name.

    HTCondor 9 names a batch after schedd, app and second, so batches of two users can have the same
    name. The project accepts that, and then only finds the oldest batch of the name, of any account
    (``web-rpcs.rst``, "create_batch"). The other is in its own account's list, unless it was
    retired.

    Raises:
        NotFound: nobody has a batch of this name.
        NotOwner: another account has one, and this account has none that is not retired.
        RpcError: the project could not be reached.
    """
    try:
        return project.query_batch(batch_name=name)
    except NotOwner:
        own = oldest_named(project.query_batches(), name)
        if own is None:
            raise
        return project.query_batch(batch_id=own.id)


def query_batches(
    context: Context,
    names: Sequence[str],
    min_mod_time: str | float,
    *,
    gridmanager: bool = False,
) -> JobStatuses:
    """Return the jobs of each batch that changed since ``min_mod_time``, in the order of names.

    Args:
        context: the project.
        names: batch names; a name may come twice.
        min_mod_time: 0 for all jobs, or the ``server_time`` of an earlier answer.
        gridmanager: whether one asks: then the jobs that boinc_gahp aborted are left out.

    Raises:
        BadRequest: ``min_mod_time`` is not a number.
        NotFound: a batch is unknown; its message ends in ``no batch named `` and the name.
        RpcError: see :meth:`WebRpcs.query_batch2`.
    """
    for name in names:
        context.cache.mentioned.set(name, True)
    since = _mod_time(min_mod_time)
    pending_aborts = _pending_aborts(context)
    submitting = frozenset(batch.name for batch in pending_aborts if batch.state == "sent")
    if gridmanager:
        for name in submitting.intersection(names):
            _put_off(context, name)
    being_aborted = {
        batch.name for batch in pending_aborts if batch.state == "giving_up" and gridmanager
    }
    states = _states(context, names, submitting, everything=since == 0)
    answer = _without_strangers(
        context, names, _statuses(context, names, since, gridmanager), gridmanager
    )
    batches: list[tuple[JobStatus, ...]] = []
    for name, told in zip(names, answer.batches, strict=True):
        # A gridmanager that recovers takes 0 jobs to mean that the batch has to be submitted, and
        # any job to mean that it was (gahp.rst, "BOINC_QUERY_BATCHES"). One that asks for a batch
        # that is being aborted has not seen the error yet: the submit returns it.
        is_unmade = states.get(name) is BatchState.INIT or name in being_aborted
        pairs = () if since == 0 and is_unmade else told
        batches.append(pairs)
        if name in submitting and pairs and states[name] in _SUBMITTED:
            _end_submit(context, name)
    return JobStatuses(answer.server_time, _without_aborted(context, names, batches, gridmanager))


def _statuses(context: Context, names: Sequence[str], since: int, gridmanager: bool) -> JobStatuses:
    """Return what the project says about the batches; some can only be asked for by their ids."""
    cache = context.cache
    by_id = {name: number for name in names if (number := cache.shadowed.get(name)) is not None}
    while True:
        by_name_only = [name for name in names if name not in by_id]
        try:
            answer = context.project.query_batch2(by_name_only, min_mod_time=since)
            break
        except NotFound as error:
            raise _no_batch(error, names) from error
        except NotOwner as error:
            name = _matching_name(error.named, by_name_only)
            own = None if name is None else cache.own_batch(name)
            if name is None or (own is None and not gridmanager):
                raise
            if own is None:
                # With this answer a gridmanager that recovers submits it.
                raise _named_last(error, name) from error
            by_id[name] = own
    by_name = iter(answer.batches)
    batches: list[tuple[JobStatus, ...]] = []
    for name in names:
        if name in by_id:
            batches.append(_statuses_by_id(context, name, by_id[name]))
        else:
            batches.append(next(by_name))
    return JobStatuses(answer.server_time, tuple(batches))


def _statuses_by_id(context: Context, name: str, batch_id: int) -> tuple[JobStatus, ...]:
    try:
        return query_jobs(context, batch_id).jobs
    except NotFound as error:
        context.cache.forget_batch(name)
        raise _named_last(error, name) from error


def _without_strangers(
    context: Context, names: Sequence[str], answer: JobStatuses, gridmanager: bool
) -> JobStatuses:
    """Leave out jobs whose names say that they are in another batch, and warn once.

    A gridmanager's job is ``batch#cluster.proc`` (``gahp.rst``, "BOINC_* commands"), and it only
    looks at the last part: it would take another batch's job for one of this batch. Names without a
    batch were chosen by people.
    """
    others = set(names)

    def is_strange(named: str, batch_name: str) -> bool:
        return named != batch_name and (named in others or bool(named and gridmanager))

    batches = []
    for name, jobs in zip(names, answer.batches, strict=True):
        own = jobs
        strange = {named for named in _batches_named(jobs) if is_strange(named, name)}
        if strange:
            own = tuple(
                pair
                for pair, named in zip(jobs, _batches_named(jobs), strict=True)
                if named not in strange
            )
            context.cache.warn_once(
                ("strangers", name),
                "%s lists %d jobs in batch %s whose names do not belong to that batch, for example "
                "%s: they are ignored",
                context.project.host,
                len(jobs) - len(own),
                name,
                next(job for job, _ in jobs if job.rpartition("#")[0] in strange),
            )
        batches.append(own)
    return JobStatuses(answer.server_time, tuple(batches))


def _batches_named(jobs: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield for each job what its name says about its batch; "" for nothing."""
    return (job.rpartition("#")[0] for job, _ in jobs)


def _mod_time(value: str | float) -> int:
    """Return the time to ask for, so that no event is lost: minutes earlier (:data:`OVERLAP`).

    Even with exact clocks, the project compares whole seconds with ``>``: asked with the second of
    an answer, it leaves out later changes in that same second (``web-rpcs.rst``, "Changes
    since").
    """
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise BadRequest(
            f"min_mod_time {value!r} is not a number: expected 0, or the time of an earlier query"
        )
    # Only 0 asks for everything.
    return max(math.floor(number) - OVERLAP, 1) if number > 0 else 0


def _states(
    context: Context, names: Sequence[str], submitting: frozenset[str], *, everything: bool
) -> dict[str, BatchState | None]:
    """Return the states of those batches whose state matters and is not known.

    They are asked for before query_batch2: a batch that is submitted in between is then reported
    with 0 jobs, and its repeated BOINC_SUBMIT finds it done; in the other order a half-made batch
    would pass for a complete one.
    """
    unknown = [
        name
        for name in dict.fromkeys(names)
        if name in submitting or (everything and not context.cache.submitted.get(name))
    ]
    if len(unknown) <= _SINGLE_QUERIES:
        states = {name: _state_of(context, name) for name in unknown}
    else:
        states = _states_of_all(context, unknown)
    for name, state in states.items():
        if state not in (None, BatchState.INIT, BatchState.UNKNOWN):
            context.cache.submitted.set(name, True)
    return states


def _state_of(context: Context, name: str) -> BatchState | None:
    try:
        # An old view does not do: a batch that was in INIT may have left it since.
        view = context.cache.view(name, lambda view: view.final)
    except (NotFound, PermissionDenied):
        return None  # query_batch2 says so in the words that a gridmanager looks for
    return view.batch.state


def _states_of_all(context: Context, names: Sequence[str]) -> dict[str, BatchState | None]:
    """Return states from one query_batches.

    A name that is not in the answer belongs to a retired batch, or to no batch of this account: it
    is not in INIT, and query_batch2 tells the rest. If two batches have a name, it means the older
    one, which may be retired and so missing from the answer: an INIT is checked again by name.
    """
    oldest: dict[str, BatchInfo] = {}
    for batch in sorted(context.cache.batches(), key=lambda batch: batch.id):
        oldest.setdefault(checks.fold(batch.name), batch)
    states: dict[str, BatchState | None] = {}
    for name in names:
        found = oldest.get(checks.fold(name))
        if found is None:
            states[name] = None
        elif found.state is BatchState.INIT:
            states[name] = _state_of(context, name)
        else:
            states[name] = found.state
    return states


def _no_batch(error: NotFound, names: Sequence[str]) -> NotFound:
    """Return the error so that it ends with the wording and the name as it was asked for.

    In the project's own words the name has backslashes before its quotes.
    """
    if not isinstance(error, BatchNotFound) or not error.named:
        return error
    return _named_last(error, _matching_name(error.named, names) or error.named)


def _named_last(error: ProjectError, name: str) -> BatchNotFound:
    words = f"{NO_BATCH_NAMED}{name}"
    text = f"{error.host} has no such batch: {words}"
    return BatchNotFound.of(error, text, words=words, named=name)


def _matching_name(named: str, names: Sequence[str]) -> str | None:
    """Return which of ``names`` the project means by ``named``; None if that is unclear."""
    if named in names:
        return named
    folded = checks.fold(_unslash(named))
    found = next((name for name in names if checks.fold(name) == folded), None)
    return names[0] if found is None and len(names) == 1 else found


def _unslash(text: str) -> str:
    return text.replace("\\'", "'").replace('\\"', '"').replace("\\\\", "\\")


def _pending_aborts(context: Context) -> tuple[BatchRow, ...]:
    """Return the ledger's submissions, by any process, that are under way or being aborted."""
    if context.ledger is None:
        return ()
    try:
        return context.ledger.pending_aborts(*context.owner, time.time())
    except LedgerError as error:
        log.warning("Cannot find out which submissions are in progress: %s", error)
        return ()


def _put_off(context: Context, name: str) -> None:
    """Keep all processes from giving up a submission that a gridmanager asks about."""
    context.note(
        lambda ledger: ledger.put_off(*context.owner, name, time.time()),
        f"it is not noted that HTCondor asked about {name}",
    )


def _end_submit(context: Context, name: str) -> None:
    """Delete the note of a submission that succeeded: the client now asks for the batch's jobs."""
    context.note(
        lambda ledger: ledger.end_submit(*context.owner, name),
        f"the finished submission of {name} stays there",
    )


def _without_aborted(
    context: Context,
    names: Sequence[str],
    batches: list[tuple[JobStatus, ...]],
    gridmanager: bool,
) -> tuple[tuple[JobStatus, ...], ...]:
    """Leave out, for a gridmanager, the jobs that boinc_gahp aborted.

    It takes an old batch's aborted job for the same job in its new batch, and holds that
    (``gridmanager-boinc.rst``, "Hold of one job").
    """
    if context.ledger is None:
        return tuple(batches)
    try:
        aborted = context.ledger.aborted_jobs(*context.owner)
        if aborted:
            for name, jobs in zip(names, batches, strict=True):
                found = aborted.intersection(job for job, _ in jobs)
                if found:
                    context.ledger.learn_batch(*context.owner, name, found)
    except LedgerError as error:
        log.warning("The answer to a query may have aborted jobs: %s", error)
        return tuple(batches)
    if not (gridmanager and aborted):
        return tuple(batches)
    return tuple(tuple(pair for pair in jobs if pair[0] not in aborted) for jobs in batches)


def query_jobs(context: Context, batch_id: int) -> BatchJobs:
    """Return all jobs of a batch with their statuses.

    query_batch2 only takes names, fails for all of them if it refuses one, and takes the oldest
    batch of a name, of any account (``web-rpcs.rst``, "create_batch"). This function does not have
    these faults, but costs more.

    Raises:
        NotFound: the project has no such batch.
        RpcError: the project could not be reached, or the batch is another account's.
    """
    details = context.project.query_batch(batch_id=batch_id, get_job_details=True)
    pairs = tuple(
        JobStatus(job.name, STATUS_WORDS.get(job.state, job.status.upper())) for job in details.jobs
    )
    state = details.batch.state
    complete = state not in (BatchState.INIT, BatchState.UNKNOWN)
    return BatchJobs(complete, pairs)


def jobs_there(context: Context, request: SubmitRequest) -> tuple[int | None, int]:
    """Return the project's id of the batch of this name, and how many of the jobs it has.

    None and 0 if there is none; nothing is changed.

    Raises:
        BatchConflict: a submit would be refused.
        RpcError: the project could not be reached.
    """
    details = look_up(context.project, request)
    if details is None:
        return None, 0
    left = missing(context.project, request, details)
    return details.batch.id, len(request.jobs) - len(left)


def look_up(project: WebRpcs, request: SubmitRequest) -> BatchDetails | None:
    """Return the batch that the project finds under the request's name, or None.

    Raises:
        BatchConflict: by its name it is another batch.
        RpcError: the project could not be reached.
    """
    name = request.batch_name
    try:
        details = find_batch(project, name)
    except NotFound:
        return None
    except NotOwner as error:
        if request.answer_by is not None:  # a gridmanager cannot choose another name
            return None
        raise BatchConflict(
            f"{project.host} has a batch named {name!r} that belongs to another account: choose "
            "another name"
        ) from error
    if details.batch.name != name:
        raise BatchConflict(
            f"{project.host} finds the batch {details.batch.name!r} under the name {name!r}, since "
            "it ignores case, accents and trailing spaces: choose another name"
        )
    return details


def missing(project: WebRpcs, request: SubmitRequest, details: BatchDetails) -> set[str]:
    """Return the names of the jobs that still have to be sent into a batch.

    Raises:
        BatchConflict: the batch holds other jobs, or takes no more.
    """
    batch = details.batch
    there = {job.name for job in details.jobs}
    wanted = {name for name, _ in request.jobs}
    strangers, left = there - wanted, wanted - there
    what = f"batch {batch.name!r} (id {batch.id}) of {project.host}"
    if strangers:
        raise BatchConflict(
            f"{what} holds {count(len(strangers), 'job')} not in this request, for example "
            f"{min(strangers)!r}: choose another batch name"
        )
    if batch.state is BatchState.UNKNOWN:
        raise BatchConflict(
            f"{what} is in a state that this program does not know: look at it on the project's "
            "web site"
        )
    is_closed = left and batch.state is not BatchState.INIT
    if is_closed or batch.state in (BatchState.ABORTED, BatchState.RETIRED):
        raise BatchConflict(
            f"{what} is {batch.state.name} with {len(there)} of these {len(wanted)} jobs, and a "
            "batch accepts jobs only once: choose another batch name"
        )
    return left


def check_names(project: WebRpcs, request: SubmitRequest) -> None:
    """Raise NameInUse if the first or the last name that the jobs brought is in use.

    That costs two RPCs, and finds names of a table that was submitted before. No RPC asks for
    several. A name in between is noticed when the project refuses the jobs.
    """
    brought = [name for name, job in request.jobs if job.name is not None]
    for name in dict.fromkeys((*brought[:1], *brought[-1:])):
        if _is_in_use(project, name):
            raise name_in_use(project, name)


def _is_in_use(project: WebRpcs, name: str) -> bool:
    # query_completed_job fails in several ways for jobs that are there (``web-rpcs.rst``,
    # "query_completed_job"). This RPC answers for jobs of all accounts, whatever their state.
    try:
        project.get_templates(job_name=name)
    except (PermissionDenied, TemplatesMissing):
        return True
    except JobNotFound:
        return False
    except RpcError as trouble:
        log.info("The project did not say whether it has a job %s: %s", name, trouble)
        return False
    return True


def name_in_use(project: WebRpcs, name: str) -> NameInUse:
    """Return the error for a job's name that is in use."""
    return NameInUse(
        f"job name {name!r} is in use on {project.host}, in another batch: job names are unique "
        "over the whole project (case and accents are ignored), also after a batch is retired; "
        "choose another",
        job_name=name,
    )
