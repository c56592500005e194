"""A project that answers from a script, for what a real one does only at its own time.

Replies have the form of the recordings in ``tests/contract/wire``.
"""

import re
import threading
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, urlsplit
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

from boinc_gahp.config.settings import ProjectSettings, Settings
from boinc_gahp.config.urls import ProjectUrl
from boinc_gahp.fetch._placed import PlacedFiles
from boinc_gahp.fetch.context import FetchContext
from boinc_gahp.rpc.client import WebRpcs
from boinc_gahp.rpc.options import ClientOptions
from boinc_gahp.submit.association import Association
from boinc_gahp.submit.context import ProjectCache
from boinc_gahp.submit.generated_files import GeneratedFiles
from tests.contract.replay import Reply

URL = "http://boinc.example.edu/test/"
SECRET = "a11ce000000000000000000000000001"

#: What a script gets: the request's elements, or the arguments of get_output.php.
Arguments = dict[str, list[str]]


@dataclass
class Script:
    """Replies by RPC; each is the root's contents, or a function that makes them."""

    replies: object = field(default_factory=dict)
    files: dict[tuple[str, int], tuple[str, bytes]] = field(default_factory=dict)
    page: bytes | None = None
    #: What get_output3.php answers.
    moved: Reply = field(default_factory=lambda: Reply(b"", {}, status=404))
    asked: list[tuple[str, Arguments]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, rpc):
        return sum(name == rpc for name, _ in self.asked)

    def arguments(self, rpc):
        return [arguments for name, arguments in self.asked if name == rpc]

    def send(self, request):
        if request.body is None:
            return self.file(parse_qs(urlsplit(request.url).query))
        found = re.search(rb"<(\w+)>.*</\1>", b"".join(request.body()), re.DOTALL)
        root = ET.fromstring(found[0])
        arguments = defaultdict(list)
        for element in root:
            arguments[element.tag].append(element.text or "")
        with self.lock:
            self.asked.append((root.tag, arguments))
        reply = self.replies[root.tag]
        text = reply(arguments) if callable(reply) else reply
        if isinstance(text, Reply):
            return text
        document = f'<?xml version="1.0" encoding="ISO-8859-1" ?>\n<{root.tag}>{text}</{root.tag}>'
        return Reply(document.encode(), {"Content-Type": "text/xml;charset=UTF-8"})

    def file(self, arguments):
        if "action" in arguments:
            with self.lock:
                self.asked.append(("get_output3", arguments))
            return self.moved
        [cmd], [number] = arguments["cmd"], arguments["file_num"]
        name = (arguments.get("result_name") or arguments["wu_name"])[0]
        with self.lock:
            self.asked.append((cmd, arguments))
        found = self.files.get((name, int(number)))
        if self.page is not None:
            return Reply(self.page, {"Content-Type": "text/html; charset=UTF-8"})
        if found is None:
            page = f"ERROR: bad file num: {number} > {len(self.files)}".encode()
            return Reply(page, {"Content-Type": "text/html; charset=UTF-8"})
        filename, data = found
        return Reply(
            data,
            {
                "Content-Type": "application/octet-stream",
                "Content-Disposition": f"attachment; filename={filename}",
                "Content-Length": str(len(data)),
            },
        )

    def project(self):
        return WebRpcs(
            URL, SECRET, options=ClientOptions(retry_total=0, read_timeout=1), transport=self
        )

    def context(
        self,
        ledger=None,
        cache_dir=None,
        settings=Settings(),  # noqa: B008  (frozen)
    ):
        project = self.project()
        return FetchContext(
            project=project,
            settings=settings,
            project_settings=ProjectSettings(ProjectUrl(URL)),
            ledger=ledger,
            cache=ProjectCache(project),
            made=GeneratedFiles(Path("nowhere")),
            placed=PlacedFiles(cache_dir),
        )


def error(words, number=-1):
    return f"<error><error_num>{number}</error_num><error_msg>{words}</error_msg></error>"


def batch(batch_id, name, state, *jobs):
    """Return the contents of query_batch, or of one batch of query_batches."""
    return f"""
        <id>{batch_id}</id>
        <create_time>1795261751</create_time>
        <expire_time>0</expire_time>
        <est_completion_time>0</est_completion_time>
        <njobs>{len(jobs)}</njobs>
        <fraction_done>0</fraction_done>
        <nerror_jobs>0</nerror_jobs>
        <state>{state}</state>
        <completion_time>0</completion_time>
        <credit_estimate>0</credit_estimate>
        <credit_canonical>0</credit_canonical>
        <name>{escape(name)}</name>
        <app_name>uppercase</app_name>
        {"".join(jobs)}"""


def job(workunit_id, name, canonical=0, details=""):
    return (
        f"<job><id>{workunit_id}</id><name>{escape(name)}</name>"
        f"<canonical_instance_id>{canonical}</canonical_instance_id>{details}</job>"
    )


def statuses(server_time, *batches):
    """Return the contents of query_batch2."""
    text = f"<server_time>{server_time}</server_time>"
    for jobs in batches:
        text += f"<batch_size>{len(jobs)}</batch_size>"
        for name, status in jobs:
            text += f"<job><job_name>{escape(name)}</job_name><status>{status}</status></job>"
    return text


class Batch:
    """A batch that can be looked at, aborted and retired."""

    def __init__(self, state, *, undone=0):
        self.state = state
        self.undone = undone
        self.jobs = 1
        self.script = Script(
            {
                "query_batch": lambda _: batch(
                    7, "b", self.state, *(job(n, f"b#1.{n}") for n in range(1, self.jobs + 1))
                ),
                "abort_batch": self.abort,
                "retire_batch": self.retire,
            }
        )

    def abort(self, arguments):
        assert arguments["batch_id"] == ["7"]
        if self.undone:
            self.undone -= 1
        else:
            self.state = 3
        return "<success/>"

    def retire(self, arguments):
        assert arguments["batch_id"] == ["7"]
        self.state = 4
        return "<success/>"


def long_ago(ledger):
    """Let the last submit_batch have been sent hours ago."""
    ledger.store.write(lambda connection: connection.execute("UPDATE batch SET sent = 1"))


FATAL = "<br />\n<b>Fatal error</b>:  Uncaught mysqli_sql_exception in <b>/f</b> on line <b>1</b>"


@dataclass
class FileList:
    """job_file.php on PHP 8.1 and later (``web-rpcs.rst``, "Files")."""

    present: set[str]
    associated: set[str] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)
    dies: object = FATAL

    def __post_init__(self):
        self.script = Script({"query_files": self.query_files})

    def query_files(self, arguments):
        absent = ""
        with self.lock:
            for place, name in enumerate(arguments["phys_name"]):
                if name not in self.present:
                    absent += f"<file>{place}</file>"
                elif arguments["batch_id"]:
                    if name in self.associated:
                        return self.dies
                    self.associated.add(name)
        return f"<absent_files>{absent}</absent_files>"

    def associate(self, names):
        return Association(self.script.project(), 7, 4).associate(names)

    @property
    def requests(self):
        return self.script.count("query_files")
