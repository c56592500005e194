"""The RPCs about batches (``web-rpcs.rst``, "The RPCs"): making, listing, aborting, retiring."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from boinc_gahp.localproject.accounts import authenticate, find_app
from boinc_gahp.localproject.backend import batch_collect, batches
from boinc_gahp.localproject.server.replies import RpcFailed, php_number
from boinc_gahp.localproject.states import ERROR_WORDS, BatchState, Outcome, ServerState

if TYPE_CHECKING:
    import sqlite3

    from boinc_gahp.localproject.core import Core
    from boinc_gahp.localproject.server.replies import RpcReply
    from boinc_gahp.localproject.server.request import RpcRequest


def ping(_core: Core, _request: RpcRequest, reply: RpcReply) -> None:
    """Answer; needs no authenticator."""
    reply.success()


def create_batch(core: Core, request: RpcRequest, reply: RpcReply) -> None:
    """Make a batch in state INIT."""
    with core.db.write() as connection:
        app = find_app(connection, request.text("app_name"))
        user = authenticate(connection, request.text("authenticator"), app)
        batch_id = batches.insert(
            connection,
            user,
            app,
            name=request.text("batch_name"),
            expire_time=request.real("expire_time"),
        )
    reply.add(f"<batch_id>{batch_id}</batch_id>\n")


def query_batches(core: Core, request: RpcRequest, reply: RpcReply) -> None:
    """List the user's batches that are not retired."""
    with core.db.write() as connection:
        user = authenticate(connection, request.text("authenticator"))
        for batch in connection.execute(
            "SELECT * FROM batch WHERE user_id = ? AND state != ? ORDER BY id",
            (user.id, BatchState.RETIRED),
        ).fetchall():
            batches.deprecated(reply)
            now = batches.with_progress(connection, batch)
            reply.add("    <batch>\n")
            batches.describe(connection, reply, now, cpu_time=bool(request.integer("get_cpu_time")))
            reply.add("   </batch>\n")


def query_batch(core: Core, request: RpcRequest, reply: RpcReply) -> None:
    """Describe a batch and its jobs."""
    with core.db.write() as connection:
        user = authenticate(connection, request.text("authenticator"))
        batch = batches.owned(connection, request, user)
        batches.deprecated(reply)
        now = batches.with_progress(connection, batch)
    with core.db.read() as connection:
        batches.describe(connection, reply, now, cpu_time=bool(request.integer("get_cpu_time")))
        details = bool(request.integer("get_job_details"))
        known = _details(connection, batch["id"]) if details else None
        for job in connection.execute(
            "SELECT id, name, canonical_resultid, error_mask FROM workunit "
            "WHERE batch = ? ORDER BY id",
            (batch["id"],),
        ):
            reply.add(
                f"        <job>\n        <id>{job['id']}</id>\n"
                f"        <name>{job['name']}</name>\n"
                f"        <canonical_instance_id>{job['canonical_resultid']}"
                "</canonical_instance_id>\n"
            )
            if known is not None:
                reply.add(_job_details(job, known.get(job["id"], [])))
            reply.add("        </job>\n")


def _details(connection: sqlite3.Connection, batch_id: int) -> dict[int, list[sqlite3.Row]]:
    """Return the results of a batch's workunits that were ever sent."""
    found: dict[int, list[sqlite3.Row]] = {}
    for row in connection.execute(
        "SELECT r.id, r.workunitid, r.server_state, r.outcome, r.exit_status, r.cpu_time "
        "FROM workunit w JOIN result r ON r.workunitid = w.id "
        "WHERE w.batch = ? AND r.server_state > ? ORDER BY r.id",
        (batch_id, ServerState.UNSENT),
    ):
        found.setdefault(row["workunitid"], []).append(row)
    return found


def _job_details(job: sqlite3.Row, results: list[sqlite3.Row]) -> str:
    lines = []
    if job["error_mask"]:
        lines += [
            f"   <error>{word}</error>\n"
            for bit, word in ERROR_WORDS.items()
            if job["error_mask"] & bit
        ]
        lines += [
            f"            <exit_status>{result['exit_status']}</exit_status>\n"
            for result in results
            if result["outcome"] == Outcome.CLIENT_ERROR
        ]
        status = "error"
    elif job["canonical_resultid"]:
        cpu_time = next(r["cpu_time"] for r in results if r["id"] == job["canonical_resultid"])
        lines.append(f"            <cpu_time>{php_number(cpu_time)}</cpu_time>\n")
        status = "done"
    else:
        status = "in_progress" if results else "queued"
    return "".join(lines) + f"            <status>{status}</status>\n"


def query_batch2(core: Core, request: RpcRequest, reply: RpcReply) -> None:
    """Give the statuses of the jobs of batches, in the order of the request."""
    server_time = time.time()
    since = request.real("min_mod_time")
    with core.db.read() as connection:
        user = authenticate(connection, request.text("authenticator"))
        found = []
        for name in request.texts("batch_name"):
            batch = batches.by_name(connection, name)
            if batch is None:
                raise RpcFailed(f"no batch named {_addslashes(name)}")
            if batch["user_id"] != user.id:
                raise RpcFailed(f"not owner of {name}")
            found.append(batch["id"])
        reply.add(f"<server_time>{_server_time(server_time)}</server_time>\n")
        for batch_id in found:
            jobs = connection.execute(
                "SELECT w.name, w.canonical_resultid, w.error_mask, EXISTS (SELECT 1 FROM result r "  # noqa: S608
                f"WHERE r.workunitid = w.id AND r.server_state > {ServerState.UNSENT:d}) AS sent "
                "FROM workunit w WHERE w.batch = ? AND cast(w.mod_time AS INTEGER) > ? "
                "ORDER BY w.id",
                (batch_id, since),
            ).fetchall()
            reply.add(f"   <batch_size>{len(jobs)}</batch_size>\n")
            for job in jobs:
                reply.add(
                    f"    <job>\n        <job_name>{job['name']}</job_name>\n"
                    f"        <status>{_status(job)}</status>\n    </job>\n"
                )


def _status(job: sqlite3.Row) -> str:
    if job["canonical_resultid"]:
        return "DONE"
    if job["error_mask"]:
        return "ERROR"
    return "IN_PROGRESS" if job["sent"] else "UNSENT"


def _server_time(now: float) -> str:
    """Write a time of the server, cut off (not rounded up) to PHP's 14 digits."""
    return f"{int(now * 10_000) / 10_000:.4f}".rstrip("0").rstrip(".")


def _addslashes(name: str) -> str:
    return "".join(f"\\{char}" if char in "'\"\\" else char for char in name)


def abort_batch(core: Core, request: RpcRequest, reply: RpcReply) -> None:
    """Abort a batch, in whatever state it is."""
    with core.db.write() as connection:
        user = authenticate(connection, request.text("authenticator"))
        batch = batches.owned(connection, request, user, refusal="not owner")
        batches.abort(connection, batch["id"])
    core.wake.ring()
    reply.success()


def retire_batch(core: Core, request: RpcRequest, reply: RpcReply) -> None:
    """Abort the rest of a batch and retire it; doing it twice does no harm."""
    with core.db.write() as connection:
        user = authenticate(connection, request.text("authenticator"))
        batch = batches.owned(connection, request, user)
        batches.deprecated(reply)
        if batch["state"] != BatchState.RETIRED:
            batches.retire(connection, batch)
            batch_collect.retire(core, batch["id"])
    core.wake.ring()
    reply.success()


def set_expire_time(core: Core, request: RpcRequest, reply: RpcReply) -> None:
    """Set the time at which a batch is aborted and retired; 0 means never."""
    with core.db.write() as connection:
        user = authenticate(connection, request.text("authenticator"))
        batch = batches.owned(connection, request, user)
        connection.execute(
            "UPDATE batch SET expire_time = ? WHERE id = ?",
            (request.real("expire_time"), batch["id"]),
        )
    reply.success()
