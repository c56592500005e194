"""Batches: making, finding and ending them, and the values calculated for queries."""

from __future__ import annotations

import time
from datetime import datetime, timezone
from email.utils import format_datetime
from typing import TYPE_CHECKING, Any

from boinc_gahp.localproject.accounts import authenticate
from boinc_gahp.localproject.core import name_key
from boinc_gahp.localproject.errors import PhpFatal, RpcFailed
from boinc_gahp.localproject.server.messages import RpcReply, php_number
from boinc_gahp.localproject.states import BatchState, ErrorMask, Outcome, ServerState

if TYPE_CHECKING:
    import sqlite3

    from boinc_gahp.localproject.server.messages import RpcRequest


_MAX_NAME = 255
_NUMBERS = (
    "id create_time expire_time est_completion_time njobs fraction_done nerror_jobs state "
    "completion_time credit_estimate credit_canonical"
)


def by_name(connection: sqlite3.Connection, name: str) -> sqlite3.Row | None:
    """Return the oldest batch with a name, of any user and in any state.

    The name is escaped twice on its way into the query, so a name with a quote or backslash is
    never found (``web-rpcs.rst``, "create_batch").
    """
    if any(char in name for char in "'\"\\"):
        return None
    row: sqlite3.Row | None = connection.execute(
        "SELECT * FROM batch WHERE name_key = ? ORDER BY id LIMIT 1", (name_key(name),)
    ).fetchone()
    return row


def by_id(connection: sqlite3.Connection, batch_id: int) -> sqlite3.Row | None:
    """Return a batch by its id."""
    row: sqlite3.Row | None = connection.execute(
        "SELECT * FROM batch WHERE id = ?", (batch_id,)
    ).fetchone()
    return row


def insert(
    connection: sqlite3.Connection,
    user: sqlite3.Row,
    app: sqlite3.Row,
    *,
    name: str,
    expire_time: float = 0.0,
) -> int:
    """Insert a batch in state INIT and return its id; a batch without a name is given one.

    There may be another batch of that name (``web-rpcs.rst``, "create_batch").

    Raises:
        PhpFatal: the name is too long.
    """
    if not name:
        name = f"{user['name']}:{app['name']}:{format_datetime(datetime.now(timezone.utc))}"
    if len(name) > _MAX_NAME:
        raise PhpFatal("Uncaught mysqli_sql_exception: Data too long for column 'name' at row 1")
    cursor = connection.execute(
        "INSERT INTO batch (user_id, create_time, name, name_key, app_id, expire_time) "
        "VALUES (?, ?, ?, ?, ?, ?)",
        (user["id"], int(time.time()), name, name_key(name), app["id"], expire_time),
    )
    return int(cursor.lastrowid or 0)


def owned(
    connection: sqlite3.Connection, request: RpcRequest, *, refusal: str = "not owner of batch"
) -> sqlite3.Row:
    """Return the batch that a request names by id or name; it must belong to its user."""
    user = authenticate(connection, request.text("authenticator"))
    # For PHP the text "0" is empty, but others that mean 0 are not.
    if request.text("batch_id") not in ("", "0"):
        batch = by_id(connection, request.integer("batch_id"))
    elif request.text("batch_name") not in ("", "0"):
        batch = by_name(connection, request.text("batch_name"))
    else:
        raise RpcFailed("batch not specified")
    if batch is None:
        raise RpcFailed("no such batch")
    if batch["user_id"] != user["id"]:
        raise RpcFailed(refusal)
    return batch


def with_progress(connection: sqlite3.Connection, batch: sqlite3.Row) -> dict[str, Any]:
    """Count a batch's jobs, store the numbers, and return the batch with them.

    For a batch in state INIT nothing is counted. Nothing is stored if the state is another by now.
    """
    state = BatchState(batch["state"])
    now = {
        "njobs": batch["njobs"],
        "nerror_jobs": 0,
        "fraction_done": 0.0,
        "state": state,
        "completion_time": 0.0,
        "credit_canonical": 0.0,
    }
    if state is not BatchState.INIT:
        row = connection.execute(
            "SELECT count(*) AS jobs, total(canonical_resultid > 0) AS good, "
            "total(canonical_resultid = 0 AND error_mask > 0) AS bad, "
            "total(canonical_credit) AS credit FROM workunit WHERE batch = ?",
            (batch["id"],),
        ).fetchone()
        ended = int(row["good"] + row["bad"])
        now |= {
            "njobs": row["jobs"],
            "nerror_jobs": int(row["bad"]),
            "fraction_done": ended / row["jobs"] if row["jobs"] else 0.0,
            "completion_time": batch["completion_time"],
            "credit_canonical": row["credit"],
        }
        if state is BatchState.IN_PROGRESS and 0 < row["jobs"] == ended:
            now |= {"state": BatchState.COMPLETE, "completion_time": float(int(time.time()))}
    assignments = ", ".join(f"{column} = ?" for column in now)
    connection.execute(
        f"UPDATE batch SET {assignments} WHERE id = ? AND state = ?",  # noqa: S608
        (*now.values(), batch["id"], batch["state"]),
    )
    return {**dict(batch), **now}


def describe(
    connection: sqlite3.Connection, reply: RpcReply, batch: dict[str, Any], *, cpu_time: bool
) -> None:
    """Write the elements of a batch, as :func:`with_progress` returns it."""
    app = connection.execute("SELECT name FROM app WHERE id = ?", (batch["app_id"],)).fetchone()
    fields = {name: php_number(batch[name]) for name in _NUMBERS.split()}
    fields |= {"name": batch["name"], "app_name": app["name"] if app else ""}
    if cpu_time:
        (total,) = connection.execute(
            "SELECT total(cpu_time) FROM result WHERE workunitid IN "
            "(SELECT id FROM workunit WHERE batch = ?)",
            (batch["id"],),
        ).fetchone()
        fields["total_cpu_time"] = php_number(total)
    reply.add("\n" + "".join(f"        <{name}>{text}</{name}>\n" for name, text in fields.items()))


def deprecated(reply: RpcReply) -> None:
    """Write PHP 8.2's message, which appears each time a batch's progress is calculated."""
    for name, line in (("njobs_success", 187), ("njobs_in_prog", 188)):
        reply.warn(
            f"Creation of dynamic property BoincBatch::${name} is deprecated",
            "inc/submit_util.inc",
            line,
            "Deprecated",
        )


def cancel_jobs(connection: sqlite3.Connection, where: str, parameters: tuple[object, ...]) -> None:
    """Cancel workunits, as ``cancel_jobs`` of the real server does.

    Unsent results become OVER / DIDNT_NEED, the workunits get the bit CANCELLED, and the
    transitioner is to handle them at once. Results that volunteers have are left alone: if one
    comes back, it may still make its job DONE.
    """
    connection.execute(
        f"UPDATE result SET server_state = {ServerState.OVER:d}, "  # noqa: S608
        f"outcome = {Outcome.DIDNT_NEED:d} WHERE server_state <= {ServerState.UNSENT:d} "
        f"AND workunitid IN (SELECT id FROM workunit WHERE {where})",
        parameters,
    )
    connection.execute(
        f"UPDATE workunit SET error_mask = error_mask | {ErrorMask.CANCELLED:d}, "  # noqa: S608
        f"transition_time = ?, mod_time = clock() WHERE {where}",
        (time.time(), *parameters),
    )


def _cancel_unfinished(connection: sqlite3.Connection, batch_id: int) -> None:
    cancel_jobs(connection, "batch = ? AND canonical_resultid = 0 AND error_mask = 0", (batch_id,))


def abort(connection: sqlite3.Connection, batch_id: int) -> None:
    """Cancel a batch's jobs that are neither done nor failed, and set its state ABORTED."""
    _cancel_unfinished(connection, batch_id)
    connection.execute(
        "UPDATE batch SET state = ?, completion_time = ? WHERE id = ?",
        (BatchState.ABORTED, int(time.time()), batch_id),
    )


def retire(connection: sqlite3.Connection, batch: sqlite3.Row) -> None:
    """Cancel the rest of a batch and set its state RETIRED; its outputs are removed later.

    Its time of completion stays 0 unless all its jobs were over (``web-rpcs.rst``, "Batch states").
    ``logical_end_time``, which has no other use here, keeps the time.
    """
    with_progress(connection, batch)
    _cancel_unfinished(connection, batch["id"])
    connection.execute(
        "UPDATE batch SET state = ?, logical_end_time = ? WHERE id = ?",
        (BatchState.RETIRED, time.time(), batch["id"]),
    )
