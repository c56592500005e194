"""The RPCs about single jobs, and get_templates (``web-rpcs.rst``, "The RPCs")."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boinc_gahp.localproject.accounts import User, authenticate, find_app
from boinc_gahp.localproject.backend import batches
from boinc_gahp.localproject.backend.views import uploaded_files
from boinc_gahp.localproject.names import name_key
from boinc_gahp.localproject.server.replies import PhpFatal, RpcFailed, htmlspecialchars, php_number
from boinc_gahp.localproject.states import Outcome, ServerState, ValidateState

if TYPE_CHECKING:
    import sqlite3

    from boinc_gahp.localproject.core import Core
    from boinc_gahp.localproject.server.replies import RpcReply
    from boinc_gahp.localproject.server.request import RpcRequest

#: A client's state of a result whose outputs could not be sent (``lib/result_state.h``).
_UPLOAD_FAILED = 7


def find_job(connection: sqlite3.Connection, name: str) -> sqlite3.Row | None:
    """Return a workunit by its name."""
    row: sqlite3.Row | None = connection.execute(
        "SELECT * FROM workunit WHERE name_key = ?", (name_key(name),)
    ).fetchone()
    return row


def _owner(connection: sqlite3.Connection, job: sqlite3.Row) -> int:
    batch = batches.by_id(connection, job["batch"])
    return batch["user_id"] if batch is not None else 0


def query_job(core: Core, request: RpcRequest, reply: RpcReply) -> None:
    """List a job's instances."""
    with core.db.read() as connection:
        user = authenticate(connection, request.text("authenticator"))
        job = connection.execute(
            "SELECT * FROM workunit WHERE id = ?", (request.integer("job_id"),)
        ).fetchone()
        if job is None:
            raise RpcFailed("no such job")
        if _owner(connection, job) != user.id:
            raise RpcFailed("not owner")
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
        return {
            ServerState.UNSENT: "Unsent",
            ServerState.IN_PROGRESS: "In progress",
        }[server_state]
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
        job = find_job(connection, request.text("job_name"))
        if job is None:
            raise RpcFailed("no such job")
        if _owner(connection, job) != user.id:
            raise RpcFailed("not owner")
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
        if result is not None:
            stderr = htmlspecialchars(result["stderr_out"])
            reply.add(
                f"   <exit_status>{result['exit_status']}</exit_status>\n"
                f"   <elapsed_time>{php_number(result['elapsed_time'])}</elapsed_time>\n"
                f"   <cpu_time>{php_number(result['cpu_time'])}</cpu_time>\n"
                f"   <stderr_out><![CDATA[\n{stderr}   ]]></stderr_out>\n"
            )
        reply.add("</completed_job>\n")


def abort_jobs(core: Core, request: RpcRequest, reply: RpcReply) -> None:
    """Abort jobs; at an unknown one it ends with an error, and those before it are aborted."""
    user = authenticate(core.db.connection(), request.text("authenticator"))
    try:
        for name in request.texts("job_name"):
            with core.db.write() as connection:
                _abort_job(connection, user, name)
            reply.add(f"<aborted {name}>\n")
    finally:
        core.wake.ring()
    reply.success()


def _abort_job(connection: sqlite3.Connection, user: User, name: str) -> None:
    job = find_job(connection, name)
    if job is None:
        raise RpcFailed(f"no job {name}")
    if _owner(connection, job) != user.id:
        raise RpcFailed("not owner of batch")
    batches.cancel_jobs(connection, "id = ?", (job["id"],))


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
        path = core.templates / f"{app.name}_{kind}"
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
