"""The RPCs as data: where each is sent, and what may be done when it fails."""

from __future__ import annotations

from dataclasses import dataclass

SUBMIT_HANDLER = "submit_rpc_handler.php"
FILE_HANDLER = "job_file.php"
OUTPUT_HANDLER = "get_output.php"


@dataclass(frozen=True, slots=True)
class Rpc:
    """One RPC.

    Attributes:
        name: the request's root element, or the ``cmd`` of ``get_output.php``.
        handler: the script under the project's URL.
        repeatable: whether sending it twice does no more than sending it once.
        fresh: sent on a connection of its own: the server closes an idle one after 5 s, and then
            nobody knows whether the request arrived.
        partial: how error messages begin that may come after a part of it was done.
        dies: PHP dies of requests that are quite in order, and will again (``web-rpcs.md``, "Files"
            and "query_completed_job is broken ...").
    """

    name: str
    handler: str = SUBMIT_HANDLER
    repeatable: bool = True
    fresh: bool = False
    partial: tuple[str, ...] = ()
    dies: bool = False


PING = Rpc("ping")
CREATE_BATCH = Rpc("create_batch", repeatable=False, fresh=True)
SUBMIT_BATCH = Rpc("submit_batch", repeatable=False, fresh=True, partial=("create_work failed",))
ESTIMATE_BATCH = Rpc("estimate_batch")
QUERY_BATCHES = Rpc("query_batches")
QUERY_BATCH = Rpc("query_batch")
QUERY_BATCH2 = Rpc("query_batch2")
QUERY_JOB = Rpc("query_job")
QUERY_COMPLETED_JOB = Rpc("query_completed_job", dies=True)
ABORT_JOBS = Rpc("abort_jobs", partial=("no job ", "not owner"))
ABORT_BATCH = Rpc("abort_batch")
RETIRE_BATCH = Rpc("retire_batch")
SET_EXPIRE_TIME = Rpc("set_expire_time")
GET_TEMPLATES = Rpc("get_templates")
QUERY_FILES = Rpc("query_files", FILE_HANDLER, dies=True)
UPLOAD_FILES = Rpc("upload_files", FILE_HANDLER, repeatable=False, partial=("",))
RESULT_FILE = Rpc("result_file", OUTPUT_HANDLER)
WORKUNIT_FILE = Rpc("workunit_file", OUTPUT_HANDLER)
WORKUNIT_FILES = Rpc("workunit_files", OUTPUT_HANDLER)
BATCH_FILES = Rpc("batch_files", OUTPUT_HANDLER)
