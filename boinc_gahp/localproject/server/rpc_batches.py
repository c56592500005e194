"""The RPCs about batches and jobs."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

from boinc_gahp.localproject.accounts import authenticate, find_app
from boinc_gahp.localproject.backend import batches, plugins
from boinc_gahp.localproject.backend.views import uploaded_files
from boinc_gahp.localproject.core import name_key
from boinc_gahp.localproject.errors import PhpFatal, RpcFailed
from boinc_gahp.localproject.server.messages import htmlspecialchars, php_number
from boinc_gahp.localproject.states import (
    ERROR_WORDS,
    BatchState,
    Outcome,
    ServerState,
    ValidateState,
)

if TYPE_CHECKING:
    import sqlite3

    from boinc_gahp.localproject.core import Core
    from boinc_gahp.localproject.server.messages import RpcReply, RpcRequest


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
            (user["id"], BatchState.RETIRED),
        ).fetchall():
            batches.deprecated(reply)
            now = batches.with_progress(connection, batch)
            reply.add("    <batch>\n")
            batches.describe(connection, reply, now, cpu_time=bool(request.integer("get_cpu_time")))
            reply.add("   </batch>\n")


def query_batch(core: Core, request: RpcRequest, reply: RpcReply) -> None:
    """Describe a batch and its jobs."""
    with core.db.write() as connection:
        batch = batches.owned(connection, request)
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
                escaped = re.sub(r"(['\"\\])", r"\\\1", name)
                raise RpcFailed(f"no batch named {escaped}")
            if batch["user_id"] != user["id"]:
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


def abort_batch(core: Core, request: RpcRequest, reply: RpcReply) -> None:
    """Abort a batch, in whatever state it is."""
    with core.db.write() as connection:
        batch = batches.owned(connection, request, refusal="not owner")
        batches.abort(connection, batch["id"])
    core.wake.ring()
    reply.success()


def retire_batch(core: Core, request: RpcRequest, reply: RpcReply) -> None:
    """Abort the rest of a batch and retire it; doing it twice does no harm."""
    with core.db.write() as connection:
        batch = batches.owned(connection, request)
        batches.deprecated(reply)
        if batch["state"] != BatchState.RETIRED:
            batches.retire(connection, batch)
            plugins.remove_collected(core, batch["id"])
    core.wake.ring()
    reply.success()


def set_expire_time(core: Core, request: RpcRequest, reply: RpcReply) -> None:
    """Set the time at which a batch is aborted and retired; 0 means never."""
    with core.db.write() as connection:
        batch = batches.owned(connection, request)
        connection.execute(
            "UPDATE batch SET expire_time = ? WHERE id = ?",
            (request.real("expire_time"), batch["id"]),
        )
    reply.success()


#: A client's state of a result whose outputs could not be sent (``lib/result_state.h``).
_UPLOAD_FAILED = 7


def find_job(connection: sqlite3.Connection, name: str) -> sqlite3.Row | None:
    """Return a workunit by its name."""
    row: sqlite3.Row | None = connection.execute(
        "SELECT * FROM workunit WHERE name_key = ?", (name_key(name),)
    ).fetchone()
    return row


def _owned(
    connection: sqlite3.Connection,
    user: sqlite3.Row,
    job: sqlite3.Row | None,
    missing: str = "no such job",
    refusal: str = "not owner",
) -> sqlite3.Row:
    if job is None:
        raise RpcFailed(missing)
    batch = batches.by_id(connection, job["batch"])
    if batch is None or batch["user_id"] != user["id"]:
        raise RpcFailed(refusal)
    return job


def query_job(core: Core, request: RpcRequest, reply: RpcReply) -> None:
    """List a job's instances."""
    with core.db.read() as connection:
        user = authenticate(connection, request.text("authenticator"))
        job = connection.execute(
            "SELECT * FROM workunit WHERE id = ?", (request.integer("job_id"),)
        ).fetchone()
        job = _owned(connection, user, job)
        for result in connection.execute(
            "SELECT * FROM result WHERE workunitid = ? ORDER BY id", (job["id"],)
        ):
            reply.add(
                f"    <instance>\n        <name>{result['name']}</name>\n"
                f"        <id>{result['id']}</id>\n"
                f"        <state>{state_words(result)}</state>\n"
            )
            if result["server_state"] == ServerState.OVER:
                for file in uploaded_files(result):
                    reply.add(
                        f"        <outfile>\n            <size>{file.nbytes}</size>\n"
                        "        </outfile>\n"
                    )
            reply.add("</instance>\n")


def state_words(result: sqlite3.Row) -> str:
    """Return the words for a result's state on BOINC's pages."""
    server_state = ServerState(result["server_state"])
    if server_state is not ServerState.OVER:
        return {ServerState.UNSENT: "Unsent", ServerState.IN_PROGRESS: "In progress"}[server_state]
    outcome = Outcome(result["outcome"])
    if outcome is Outcome.SUCCESS:
        return {
            ValidateState.INIT: "Completed, waiting for validation",
            ValidateState.VALID: "Completed and validated",
            ValidateState.INVALID: "Completed, marked as invalid",
            ValidateState.NO_CHECK: "Completed, can't validate",
            ValidateState.INCONCLUSIVE: "Completed, validation inconclusive",
            ValidateState.TOO_LATE: "Completed, too late to validate",
        }[ValidateState(result["validate_state"])]
    if outcome is Outcome.CLIENT_ERROR and result["client_state"] == _UPLOAD_FAILED:
        return "Upload failed"
    return {
        Outcome.INIT: "Unknown",
        Outcome.COULDNT_SEND: "Couldn't send",
        Outcome.CLIENT_ERROR: "Error while computing",
        Outcome.NO_REPLY: "Timed out - no response",
        Outcome.DIDNT_NEED: "Didn't need",
        Outcome.VALIDATE_ERROR: "Validate error",
        Outcome.CLIENT_DETACHED: "Abandoned",
    }[outcome]


def query_completed_job(core: Core, request: RpcRequest, reply: RpcReply) -> None:
    """Describe a job's canonical instance."""
    with core.db.read() as connection:
        user = authenticate(connection, request.text("authenticator"))
        job = _owned(connection, user, find_job(connection, request.text("job_name")))
        reply.add(f"<completed_job>\n   <error_mask>{job['error_mask']}</error_mask>\n")
        number = job["canonical_resultid"]
        if not number:
            reply.warn("Undefined variable $job_id", "user/submit_rpc_handler.php", 890)
            raise PhpFatal(
                "Uncaught mysqli_sql_exception: You have an error in your SQL syntax; check the "
                "manual that corresponds to your MariaDB server version for the right syntax to "
                "use near '' at line 1"
            )
        reply.add(f"   <canonical_resultid>{number}</canonical_resultid>\n")
        result = connection.execute("SELECT * FROM result WHERE id = ?", (number,)).fetchone()
        stderr = htmlspecialchars(result["stderr_out"])
        reply.add(
            f"   <exit_status>{result['exit_status']}</exit_status>\n"
            f"   <elapsed_time>{php_number(result['elapsed_time'])}</elapsed_time>\n"
            f"   <cpu_time>{php_number(result['cpu_time'])}</cpu_time>\n"
            f"   <stderr_out><![CDATA[\n{stderr}   ]]></stderr_out>\n</completed_job>\n"
        )


def abort_jobs(core: Core, request: RpcRequest, reply: RpcReply) -> None:
    """Abort jobs; at an unknown one it ends with an error, and those before it are aborted."""
    user = authenticate(core.db.connection(), request.text("authenticator"))
    try:
        for name in request.texts("job_name"):
            with core.db.write() as connection:
                job = find_job(connection, name)
                job = _owned(connection, user, job, f"no job {name}", "not owner of batch")
                batches.cancel_jobs(connection, "id = ?", (job["id"],))
            reply.add(f"<aborted {name}>\n")
    finally:
        core.wake.ring()
    reply.success()


def get_templates(core: Core, request: RpcRequest, reply: RpcReply) -> None:
    """Return an app's two template files unchanged; also for a job that had its own."""
    with core.db.read() as connection:
        name = request.text("app_name")
        if name:
            app = find_app(connection, name)
        else:
            job = find_job(connection, request.text("job_name"))
            if job is None:
                raise RpcFailed(f"job not found: {request.text('job_name')}")
            row = connection.execute(
                "SELECT name FROM app WHERE id = ?", (job["appid"],)
            ).fetchone()
            app = find_app(connection, row["name"])
        authenticate(connection, request.text("authenticator"), app)
    texts = []
    for kind in ("in", "out"):
        path = core.templates / f"{app['name']}_{kind}"
        try:
            texts.append(path.read_text("utf-8", "replace"))
        except OSError as error:
            reply.warn(
                f"file_get_contents({path}): Failed to open stream: {error.strerror}",
                "user/submit_rpc_handler.php",
                1008,
            )
            raise RpcFailed("template file missing") from error
    reply.add(f"<templates>\n{texts[0]}\n{texts[1]}\n</templates>\n")
