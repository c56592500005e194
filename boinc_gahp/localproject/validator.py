"""The validator: which results agree, and which of them is canonical (``back-end.md``).

What agreement means is the ``signature`` of a result: results with equal signatures agree.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from .states import (
    AssimilateState,
    ErrorMask,
    FileDeleteState,
    Outcome,
    ServerState,
    ValidateState,
)

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Hashable

    from .core import Core

    Signature = Callable[[sqlite3.Row], Hashable]

_PASS = 1000
#: A day on a host of 1e9 operations a second gives 200 credits.
_CREDIT_PER_OPERATION = 200 / (86400 * 1e9)


def trivial(_result: sqlite3.Row) -> Hashable:
    """Every result that exited with 0 is as good as any other."""
    return True


def validate_pass(core: Core, now: float, signature: Signature = trivial) -> int:
    """Handle the workunits that need validation; return how many there were."""
    due = core.db.connection().execute(
        "SELECT id FROM workunit WHERE need_validate = 1 LIMIT ?", (_PASS,)
    )
    ids = [row["id"] for row in due]
    for workunit_id in ids:
        with core.db.write() as connection:
            workunit = connection.execute(
                "SELECT * FROM workunit WHERE id = ? AND need_validate = 1", (workunit_id,)
            ).fetchone()
            if workunit is not None:
                _validate(connection, workunit, now, signature)
    return len(ids)


def _validate(
    connection: sqlite3.Connection, workunit: sqlite3.Row, now: float, signature: Signature
) -> None:
    # A result that came back after an abort is NO_CHECK; the real validator takes it all the same,
    # so that an aborted job can turn DONE (web-rpcs.md, "Queries").
    results = connection.execute(
        "SELECT * FROM result WHERE workunitid = ? AND server_state = ? AND outcome = ? "
        "AND validate_state != ? ORDER BY id",
        (workunit["id"], ServerState.OVER, Outcome.SUCCESS, ValidateState.INVALID),
    ).fetchall()
    new: dict[str, object] = {"need_validate": 0, "transition_time": now}
    canonical = next((r for r in results if r["id"] == workunit["canonical_resultid"]), None)
    if canonical is not None:
        _check_pairs(connection, results, canonical, signature)
    else:
        new |= _check_set(connection, workunit, results, signature)
    assignments = ", ".join(f"{column} = ?" for column in new)
    connection.execute(
        f"UPDATE workunit SET {assignments}, mod_time = ? WHERE id = ?",  # noqa: S608
        (*new.values(), now, workunit["id"]),
    )


def _check_pairs(
    connection: sqlite3.Connection,
    results: list[sqlite3.Row],
    canonical: sqlite3.Row,
    signature: Signature,
) -> None:
    for result in results:
        if result["validate_state"] not in (ValidateState.INIT, ValidateState.INCONCLUSIVE):
            continue
        if canonical["file_delete_state"] == FileDeleteState.DONE:
            _decide(connection, result, ValidateState.INVALID)
        elif signature(result) == signature(canonical):
            _decide(connection, result, ValidateState.VALID)
        else:
            _decide(connection, result, ValidateState.INVALID)


def _check_set(
    connection: sqlite3.Connection,
    workunit: sqlite3.Row,
    results: list[sqlite3.Row],
    signature: Signature,
) -> dict[str, object]:
    """Look for a strict majority of at least min_quorum; return what changes in the workunit."""
    signatures = [signature(result) for result in results]
    (winner, votes) = Counter(signatures).most_common(1)[0] if signatures else (None, 0)
    if votes >= workunit["min_quorum"] and votes * 2 > len(results):
        for result, own in zip(results, signatures, strict=True):
            _decide(
                connection, result, ValidateState.VALID if own == winner else ValidateState.INVALID
            )
        canonical = results[signatures.index(winner)]
        connection.execute(
            "UPDATE result SET server_state = ?, outcome = ? "
            "WHERE workunitid = ? AND server_state <= ?",
            (ServerState.OVER, Outcome.DIDNT_NEED, workunit["id"], ServerState.UNSENT),
        )
        return {
            "canonical_resultid": canonical["id"],
            "canonical_credit": credit(connection, canonical),
            "assimilate_state": AssimilateState.READY,
        }
    if len(results) > workunit["max_success_results"]:
        return {"error_mask": workunit["error_mask"] | ErrorMask.TOO_MANY_SUCCESS_RESULTS}
    for result in results:
        _decide(connection, result, ValidateState.INCONCLUSIVE)
    if len(results) >= workunit["min_quorum"]:
        return {"target_nresults": max(workunit["target_nresults"], len(results) + 1)}
    return {}


def _decide(connection: sqlite3.Connection, result: sqlite3.Row, decision: ValidateState) -> None:
    granted = credit(connection, result) if decision is ValidateState.VALID else 0.0
    connection.execute(
        "UPDATE result SET validate_state = ?, granted_credit = ? WHERE id = ?",
        (decision, granted, result["id"]),
    )
    for table, owner in (("user", result["userid"]), ("host", result["hostid"])):
        connection.execute(
            f"UPDATE {table} SET total_credit = total_credit + ? WHERE id = ?",  # noqa: S608
            (granted, owner),
        )


def credit(connection: sqlite3.Connection, result: sqlite3.Row) -> float:
    """Return the credit for a result: its time on the host's speed."""
    host = connection.execute(
        "SELECT p_fpops FROM host WHERE id = ?", (result["hostid"],)
    ).fetchone()
    speed = float(host["p_fpops"]) if host is not None else 0.0
    return float(result["elapsed_time"]) * speed * _CREDIT_PER_OPERATION
