"""The validator: decides which results agree, which is canonical (``back-end.rst``, "Validator").

Each app decides what agreement means (``app.validator``, see :mod:`.plugins`) with a function
``compare(first, second) -> bool`` of two :class:`~.views.Result`: whether they agree. The canonical
result is one that agrees with a strict majority of the successful results, itself included, and
with at least min_quorum; the relation need not be transitive. It is assumed to be symmetric, and is
never called for an instance and itself. An app with a rule of its own names ``module:check_set``:
``check_set(results)`` returns the canonical one of at least min_quorum results, or None if too few
agree, and ``check_pair(result, canonical)`` of the same module is the comparison.

It only gets instances whose output files are there and are as their hosts reported; others are
VALIDATE_ERROR. It runs outside any transaction, and may be called again for the same instances: the
decision counts only if nothing has happened to the workunit meanwhile. If it raises, the workunit
is tried again later (:mod:`.programs`).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from itertools import combinations
from statistics import median_low
from typing import TYPE_CHECKING

from boinc_gahp.localproject.backend import plugins, views
from boinc_gahp.localproject.backend.programs import PASS, VALIDATOR, handle_each
from boinc_gahp.localproject.errors import LocalProjectTrouble
from boinc_gahp.localproject.states import (
    AssimilateState,
    ErrorMask,
    FileDeleteState,
    Outcome,
    ServerState,
    ValidateState,
)

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Sequence

    from boinc_gahp.localproject.backend.views import Result, Workunit
    from boinc_gahp.localproject.core import Core

    #: Whether two results agree; this and the next raise LocalProjectTrouble.
    Agree = Callable[[Result, Result], bool]
    #: The canonical result among at least ``min_quorum``; None: too few agree.
    Choose = Callable[[Sequence[Result], int, Agree], Result | None]

log = logging.getLogger("boinc_gahp.localproject")

#: A day on a host of 1e9 operations a second gives 200 credits.
_CREDIT_PER_OPERATION = 200 / (86400 * 1e9)


def validate_pass(core: Core, now: float) -> int:
    """Handle the workunits that need validation; return their number."""
    connection = core.db.connection()
    due = connection.execute(
        "SELECT w.id, w.name, a.name AS app, a.validator FROM workunit w "
        "JOIN app a ON a.id = w.appid WHERE w.need_validate = 1 AND w.retry_time <= ? "
        "ORDER BY w.id LIMIT ?",
        (now, PASS),
    ).fetchall()
    validators: dict[str, tuple[Choose, Agree]] = {}

    def handle(row: sqlite3.Row) -> None:
        spec = row["validator"]
        if spec not in validators:
            validators[spec] = _validator(core, spec)
        _validate(core, row, *validators[spec], now)

    return handle_each(core, VALIDATOR, due, handle, now)


def _validator(core: Core, spec: str) -> tuple[Choose, Agree]:
    function = plugins.load(core, spec, plugins.VALIDATORS)
    what = f"the validator {spec!r}"
    module, _, name = spec.rpartition(":")
    is_own = name == "check_set"
    pair = f"{module}:check_pair"
    compare = plugins.load(core, pair, plugins.VALIDATORS) if is_own else function

    def agree(first: Result, second: Result) -> bool:
        answer = plugins.call(what, compare, first, second)
        # numpy's are as good.
        if isinstance(answer, bool) or type(answer).__name__ in ("bool_", "bool"):
            return bool(answer)
        raise LocalProjectTrouble(f"{what} returned {answer!r}: expected True or False")

    def choose(instances: Sequence[Result], _quorum: int, _agree: Agree) -> Result | None:
        chosen = plugins.call(what, function, list(instances))
        if chosen is None or chosen in instances:
            return chosen  # type: ignore[no-any-return]
        raise LocalProjectTrouble(f"{what} chose {chosen!r}: expected one of the results, or None")

    return choose if is_own else _majority, agree


def _majority(instances: Sequence[Result], quorum: int, agree: Agree) -> Result | None:
    votes = dict.fromkeys(range(len(instances)), 1)
    for i, j in combinations(votes, 2):
        if agree(instances[i], instances[j]):
            votes[i] += 1
            votes[j] += 1
    best = max(votes, key=votes.__getitem__)
    enough = votes[best] >= quorum and votes[best] * 2 > len(instances)
    return instances[best] if enough else None


@dataclass(slots=True)
class _Decision:
    """The decision on a workunit's results; ``credit`` None: calculated from their times."""

    states: dict[int, ValidateState] = field(default_factory=dict)
    errors: dict[int, str] = field(default_factory=dict)
    canonical: int = 0
    credit: float | None = None
    workunit: dict[str, object] = field(default_factory=dict)


def _validate(core: Core, due: sqlite3.Row, choose: Choose, agree: Agree, now: float) -> None:
    with core.db.read() as connection:
        seen = _read(connection, due["id"])
    workunit, results = seen
    if workunit is None or not workunit["need_validate"]:
        return
    # A result that came back after an abort is NO_CHECK; the real validator accepts it anyway, so
    # an aborted job can turn DONE (web-rpcs.rst, "Aborting and retiring").
    successes = [
        row
        for row in results
        if row["outcome"] == Outcome.SUCCESS and row["validate_state"] != ValidateState.INVALID
    ]
    canonical = next((row for row in results if row["id"] == workunit["canonical_resultid"]), None)
    if canonical is not None:
        decision = _check_pairs(core, workunit, successes, canonical, agree)
    else:
        decision = _check_set(core, views.job(workunit, due["app"]), successes, choose, agree)
    with core.db.write() as connection:
        if _read(connection, due["id"]) == seen:
            _apply(connection, workunit, results, decision, now)


def _read(
    connection: sqlite3.Connection, workunit_id: int
) -> tuple[sqlite3.Row | None, list[sqlite3.Row]]:
    workunit = connection.execute("SELECT * FROM workunit WHERE id = ?", (workunit_id,)).fetchone()
    results = connection.execute(
        "SELECT * FROM result WHERE workunitid = ? ORDER BY id", (workunit_id,)
    )
    return workunit, results.fetchall()


def _check_pairs(
    core: Core,
    workunit: sqlite3.Row,
    successes: Sequence[sqlite3.Row],
    canonical: sqlite3.Row,
    agree: Agree,
) -> _Decision:
    decision = _Decision(credit=workunit["canonical_credit"])
    reference = views.instance(core, canonical)
    for row in successes:
        if row["validate_state"] not in (ValidateState.INIT, ValidateState.INCONCLUSIVE):
            continue
        instance = views.instance(core, row)
        if canonical["file_delete_state"] == FileDeleteState.DONE:
            decision.states[row["id"]] = ValidateState.INVALID
        elif instance.problem:
            decision.errors[row["id"]] = instance.problem
        elif reference.problem:
            # Somebody has removed the files: treat it as if the file deleter had.
            decision.states[row["id"]] = ValidateState.TOO_LATE
        else:
            valid = agree(instance, reference)
            decision.states[row["id"]] = ValidateState.VALID if valid else ValidateState.INVALID
    return decision


def _check_set(
    core: Core, job: Workunit, successes: Sequence[sqlite3.Row], choose: Choose, agree: Agree
) -> _Decision:
    decision = _Decision()
    viable = []
    for row in successes:
        instance = views.instance(core, row)
        if not instance.problem:
            viable.append(instance)
        elif row["file_delete_state"] == FileDeleteState.INIT:
            decision.errors[row["id"]] = instance.problem
        # Otherwise it is not the host's fault: the job had failed, and its outputs were deleted
        # (READY: by a file deleter that was killed before it could record it).
    if len(viable) < max(job.min_quorum, 1):
        return decision
    chosen = choose(viable, job.min_quorum, agree)
    if chosen is not None:
        decision.canonical = chosen.id
        for instance in viable:
            valid = instance is chosen or agree(instance, chosen)
            decision.states[instance.id] = ValidateState.VALID if valid else ValidateState.INVALID
    elif len(viable) > job.max_success_results:
        decision.workunit["error_mask"] = job.error_mask | ErrorMask.TOO_MANY_SUCCESS_RESULTS
    else:
        decision.states = {instance.id: ValidateState.INCONCLUSIVE for instance in viable}
        decision.workunit["target_nresults"] = max(job.target_nresults, len(viable) + 1)
    return decision


def _apply(
    connection: sqlite3.Connection,
    workunit: sqlite3.Row,
    results: Sequence[sqlite3.Row],
    decision: _Decision,
    now: float,
) -> None:
    rows = {row["id"]: row for row in results}
    claims = {key: _claim(connection, rows[key]) for key in decision.states}
    valid = [key for key, state in decision.states.items() if state is ValidateState.VALID]
    credit = decision.credit
    if credit is None:
        # A host that claims too much does not get it, unless most hosts do.
        credit = median_low([claims[key] for key in valid]) if valid else 0.0
    for key, state in decision.states.items():
        granted = credit if state is ValidateState.VALID else 0.0
        connection.execute(
            "UPDATE result SET validate_state = ?, claimed_credit = ?, granted_credit = ? "
            "WHERE id = ?",
            (state, claims[key], granted, key),
        )
        if granted:
            _grant(connection, rows[key], granted)
    for key, problem in decision.errors.items():
        log.warning("%s has a validate error: %s", rows[key]["name"], problem)
        connection.execute(
            "UPDATE result SET outcome = ?, validate_state = ? WHERE id = ?",
            (Outcome.VALIDATE_ERROR, ValidateState.INVALID, key),
        )
    new: dict[str, object] = {
        "need_validate": 0,
        "retry_time": 0,
        "transition_time": now,
        **decision.workunit,
    }
    if decision.canonical:
        new |= {
            "canonical_resultid": decision.canonical,
            "canonical_credit": credit,
            "assimilate_state": AssimilateState.READY,
        }
        connection.execute(
            "UPDATE result SET server_state = ?, outcome = ? "
            "WHERE workunitid = ? AND server_state <= ?",
            (ServerState.OVER, Outcome.DIDNT_NEED, workunit["id"], ServerState.UNSENT),
        )
    assignments = ", ".join(f"{column} = ?" for column in new)
    connection.execute(
        f"UPDATE workunit SET {assignments}, mod_time = clock() WHERE id = ?",  # noqa: S608
        (*new.values(), workunit["id"]),
    )


def _grant(connection: sqlite3.Connection, result: sqlite3.Row, granted: float) -> None:
    for table, owner in (("user", result["userid"]), ("host", result["hostid"])):
        connection.execute(
            f"UPDATE {table} SET total_credit = total_credit + ? WHERE id = ?",  # noqa: S608
            (granted, owner),
        )


def _claim(connection: sqlite3.Connection, result: sqlite3.Row) -> float:
    """Return the credit for a result: its time on the host's speed."""
    host = connection.execute(
        "SELECT p_fpops FROM host WHERE id = ?", (result["hostid"],)
    ).fetchone()
    speed = float(host["p_fpops"]) if host is not None else 0.0
    return float(result["elapsed_time"]) * speed * _CREDIT_PER_OPERATION
