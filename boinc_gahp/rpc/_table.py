"""The RPCs as data: where each is sent, and what may be done if it fails."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from boinc_gahp.rpc.types import BatchInfo

_FILES = "job_file.php"
_OUTPUTS = "get_output.php"


#: The most bytes of any reply, decompressed. The longest are error messages that echo a request.
REPLY_BYTES = 64 * 2**20
#: A list may have so many more bytes for each of its items. A job has about 100.
ITEM_BYTES = 1024
#: The most items of a list of unknown length. PHP by default takes 35,000 jobs in a request.
MOST_JOBS = 500_000
MOST_BATCHES = 100_000
MOST_INSTANCES = 10_000
MOST_FILES = 100_000
MOST_APPS = 10_000

_SUCCESS = ("success",)
_BATCH_ID = ("batch_id",)


@dataclass(frozen=True, slots=True)
class Rpc:
    """One RPC.

    Attributes:
        name: the request's root element, or the ``cmd`` of ``get_output.php``.
        asked: what the project is asked to do, in words for people.
        answers: the children of the reply's root that are read, each once; all others, except those
            that a list repeats, are dropped on arrival.
        handler: the script under the project's URL.
        repeatable: whether sending it twice has the same effect as sending it once.
        fresh: sent on a new connection: the server closes an idle one after 5 s, and then it would
            be unknown whether the request arrived.
        dies: PHP crashes on some correct requests, and will again (``web-rpcs.rst``, "Files" and
            "query_completed_job"). A reply without an end is taken for that, and final.
        reply: the root element of the reply; "": it is called like the RPC.
        cookie: only for users who have logged in, so the authenticator is sent as their cookie.
    """

    name: str
    asked: str
    answers: tuple[str, ...] = ()
    handler: str = "submit_rpc_handler.php"
    repeatable: bool = True
    fresh: bool = False
    dies: bool = False
    reply: str = ""
    cookie: bool = False

    @property
    def root(self) -> str:
        """The name of the reply's root element."""
        return self.reply or self.name


PING = Rpc("ping", "answer", _SUCCESS)
CREATE_BATCH = Rpc("create_batch", "make a batch", _BATCH_ID, repeatable=False, fresh=True)
SUBMIT_BATCH = Rpc("submit_batch", "take the jobs", _BATCH_ID, repeatable=False, fresh=True)
ESTIMATE_BATCH = Rpc("estimate_batch", "estimate a batch", ("seconds",))
QUERY_BATCHES = Rpc("query_batches", "list the batches")
QUERY_BATCH = Rpc("query_batch", "show a batch", tuple(each.name for each in fields(BatchInfo)))
QUERY_BATCH2 = Rpc("query_batch2", "list jobs", ("server_time",))
QUERY_JOB = Rpc("query_job", "show a job")
QUERY_COMPLETED_JOB = Rpc("query_completed_job", "show an ended job", ("completed_job",), dies=True)
ABORT_JOBS = Rpc("abort_jobs", "abort jobs", _SUCCESS)
ABORT_BATCH = Rpc("abort_batch", "abort a batch", _SUCCESS)
RETIRE_BATCH = Rpc("retire_batch", "retire a batch", _SUCCESS)
SET_EXPIRE_TIME = Rpc("set_expire_time", "keep a batch longer", _SUCCESS)
GET_TEMPLATES = Rpc("get_templates", "show templates", ("templates",))
QUERY_FILES = Rpc("query_files", "tell which files it has", ("absent_files",), _FILES)
#: With a batch, whose associations may exist already.
ASSOCIATE_FILES = replace(QUERY_FILES, dies=True)
UPLOAD_FILES = Rpc("upload_files", "take input files", _SUCCESS, _FILES, repeatable=False)
RESULT_FILE = Rpc("result_file", "hand out an output", handler=_OUTPUTS)
WORKUNIT_FILE = Rpc("workunit_file", "hand out an output", handler=_OUTPUTS)
#: Outputs that BOINC's batch_collect_assimilator has moved (``web-rpcs.rst``, "get_output3").
MOVED_FILE = Rpc("get_output3", "hand out an output", handler="get_output3.php", cookie=True)
#: A file that volunteers fetch, at any path.
FILE = Rpc("file", "hand out a file")
# Pages of the web site, which are no RPCs (``web-rpcs.rst``, "Pages for programs").
LOOKUP_ACCOUNT = Rpc(
    "lookup_account",
    "look up the account",
    ("authenticator",),
    "lookup_account.php",
    reply="account_out",
)
PROJECT_CONFIG = Rpc(
    "get_project_config",
    "describe itself",
    ("name", "master_url", "web_rpc_url_base"),
    "get_project_config.php",
    reply="project_config",
)
APPS = Rpc("apps", "list its apps", handler="apps.php", reply="app_versions", cookie=True)
#: The form with which people submit jobs of a BUDA app.
BUDA_FORM = Rpc("buda_submit", "show a BUDA app", handler="buda_submit.php", cookie=True)
