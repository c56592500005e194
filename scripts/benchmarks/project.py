"""The memory of a stand-in project: batches, jobs and files, and its replies to web RPCs.

It has only what affects a client's speed: every job is done as soon as it is submitted (unless
another status is set, or its app is ``endless``), every authenticator is accepted, and nothing is
refused. The replies have the form of a real project's.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from urllib.parse import parse_qs, unquote_plus, urlsplit
from xml.sax.saxutils import unescape

PROLOG = '<?xml version="1.0" encoding="ISO-8859-1" ?>\n'
#: Outputs of a job of the app ``multi``.
OUTPUTS = 3
#: The app whose jobs are never done.
ENDLESS = "endless"
#: The app whose jobs bring their own program, and have templates of their own.
CONTAINERS = "docker"

_ROOT = re.compile(r"<([A-Za-z_]\w*)[\s/>]")


@dataclass
class Batch:
    """A batch; jobs have consecutive workunit ids from ``first_id`` on."""

    id: int
    name: str
    app: str
    state: int = 0
    jobs: list[str] = field(default_factory=list)
    first_id: int = 0
    submitted: float = 0.0


@dataclass
class Answer:
    """An HTTP reply's body, the headers that go with it, and the RPC that was asked for."""

    body: bytes
    content_type: str = "text/xml;charset=UTF-8"
    headers: tuple[str, ...] = ()
    rpc: str = ""


def _values(document: str, tag: str) -> list[str]:
    found: list[str] = re.findall(f"<{tag}>([^<]*)</{tag}>", document)
    return [unescape(value).strip() for value in found]


def _value(document: str, tag: str) -> str:
    return next(iter(_values(document, tag)), "")


class Project:
    """The state of the stand-in."""

    def __init__(self, output: bytes) -> None:
        self._status = "DONE"
        self._status_since = 0.0
        self._output = output
        self._batches: dict[int, Batch] = {}
        self._by_name: dict[str, Batch] = {}
        self._jobs: dict[str, int] = {}
        self._names: dict[int, str] = {}
        self._files: set[str] = set()
        self._statuses: dict[tuple[str, ...], str] = {}
        self._jobs_of: dict[str, Batch] = {}
        self.counts: dict[str, int] = {}

    def seed(self, name: str, jobs: int, app: str) -> None:
        """Make a batch of that many jobs, as if it had been submitted."""
        batch = self._create(name, app)
        self._submit(batch, [f"{name}#1.{number}" for number in range(jobs)])

    def set_status(self, word: str) -> None:
        """Give all jobs this status, from now on."""
        self._status, self._status_since = word, time.time()
        self._statuses.clear()

    def job_count(self, name: str) -> int:
        """Return the number of jobs of a batch; 0 if there is no batch with that name."""
        return len(self._by_name[name].jobs) if name in self._by_name else 0

    def app_count(self, app: str) -> int:
        """Return the number of jobs of an app."""
        return sum(len(batch.jobs) for batch in self._batches.values() if batch.app == app)

    def rpc(self, document: str) -> Answer:
        """Answer a request document."""
        found = _ROOT.search(re.sub(r"<\?.*?\?>|<!--.*?-->", "", document, flags=re.DOTALL))
        name = found[1] if found else "nothing"
        self.counts[name] = self.counts.get(name, 0) + 1
        handler = getattr(self, f"_rpc_{name}", None)
        inner = handler(document) if handler else _error("bad command")
        return Answer(f"{PROLOG}<{name}>\n{inner}\n        </{name}>\n    ".encode(), rpc=name)

    # -- batches

    def _create(self, name: str, app: str) -> Batch:
        batch = Batch(len(self._batches) + 1, name, app)
        self._batches[batch.id] = batch
        self._by_name.setdefault(name, batch)
        return batch

    def _submit(self, batch: Batch, names: list[str]) -> None:
        batch.first_id = len(self._jobs) + 1
        batch.jobs = names
        batch.state = 1
        batch.submitted = time.time()
        for number, name in enumerate(names, batch.first_id):
            self._jobs[name] = number
            self._names[number] = name
            self._jobs_of[name] = batch

    def _find(self, document: str) -> Batch | None:
        if number := _value(document, "batch_id"):
            return self._batches.get(int(number))
        return self._by_name.get(_value(document, "batch_name"))

    def _rpc_ping(self, _document: str) -> str:
        return "<success/>"

    def _rpc_create_batch(self, document: str) -> str:
        batch = self._create(_value(document, "batch_name"), _value(document, "app_name"))
        return f"<batch_id>{batch.id}</batch_id>"

    def _rpc_submit_batch(self, document: str) -> str:
        head, _, jobs = document.partition("<job>")
        batch = self._find(head) or self._create(_value(head, "batch_name"), "uppercase")
        if batch.state:
            return _error("batch not in init state")
        self._submit(batch, _values(jobs, "name"))
        return f"<batch_id>{batch.id}</batch_id>"

    def _rpc_query_batch(self, document: str) -> str:
        batch = self._find(document)
        if batch is None:
            name = _value(document, "batch_name")
            return _error(f"no batch named {name}" if name else "no such batch")
        jobs = "".join(
            f"        <job>\n        <id>{number}</id>\n        <name>{name}</name>\n"
            f"        <canonical_instance_id>{number + 10**6}</canonical_instance_id>\n"
            "        </job>\n"
            for number, name in enumerate(batch.jobs, batch.first_id)
        )
        return _describe(batch) + jobs

    def _rpc_query_batches(self, _document: str) -> str:
        return "".join(f"<batch>{_describe(batch)}</batch>\n" for batch in self._batches.values())

    def _rpc_query_batch2(self, document: str) -> str:
        names = tuple(_values(document, "batch_name"))
        since = float(_value(document, "min_mod_time") or 0)
        if since > self._status_since:
            return self._changes(names, since)
        if names not in self._statuses:
            parts = [f"<server_time>{time.time():.4f}</server_time>\n"]
            for name in names:
                if name not in self._by_name:
                    return _error(f"no batch named {name}")
                batch = self._by_name[name]
                word = self._status_of(batch)
                parts.append(f"   <batch_size>{len(batch.jobs)}</batch_size>\n")
                parts += [
                    f"    <job>\n        <job_name>{job}</job_name>\n"
                    f"        <status>{word}</status>\n    </job>\n"
                    for job in batch.jobs
                ]
            # The time to make it is the project's, not the client's, so make it once.
            self._statuses[names] = "".join(parts)
        return self._statuses[names]

    def _changes(self, names: tuple[str, ...], since: float) -> str:
        """Tell of the batches that were submitted after ``since``, and of others only the size."""
        parts = [f"<server_time>{time.time():.4f}</server_time>\n"]
        for name in names:
            if name not in self._by_name:
                return _error(f"no batch named {name}")
            batch = self._by_name[name]
            word = self._status_of(batch)
            parts.append(f"   <batch_size>{len(batch.jobs)}</batch_size>\n")
            parts += [
                f"    <job>\n        <job_name>{job}</job_name>\n"
                f"        <status>{word}</status>\n    </job>\n"
                for job in (batch.jobs if batch.submitted >= since else ())
            ]
        return "".join(parts)

    def _status_of(self, batch: Batch) -> str:
        return "IN_PROGRESS" if batch.app == ENDLESS else self._status

    def _rpc_retire_batch(self, _document: str) -> str:
        return "<success/>"

    _rpc_abort_batch = _rpc_set_expire_time = _rpc_abort_jobs = _rpc_retire_batch

    # -- apps and files

    def _rpc_get_templates(self, document: str) -> str:
        if (job := _value(document, "job_name")) and job not in self._jobs:
            return _error("no such job")
        if _value(document, "app_name") == CONTAINERS:
            return _error("template file missing")
        multi = "multi" in document
        return f"<templates>\n{_templates(OUTPUTS if multi else 1)}\n</templates>"

    def _rpc_query_files(self, document: str) -> str:
        absent = [
            number
            for number, name in enumerate(_values(document, "phys_name"))
            if name not in self._files
        ]
        files = "".join(f"<file>{number}</file>\n" for number in absent)
        return f"<absent_files>\n{files}</absent_files>"

    def _rpc_upload_files(self, document: str) -> str:
        self._files.update(_values(document, "phys_name"))
        return "<success/>"

    # -- jobs and outputs

    def _rpc_query_job(self, document: str) -> str:
        number = int(_value(document, "job_id"))
        name = self._names[number]
        outputs = OUTPUTS if self._jobs_of[name].app == "multi" else 1
        size = f"        <outfile>\n<size>{len(self._output)}</size>\n        </outfile>\n"
        return (
            f"    <instance>\n        <name>{name}_0</name>\n"
            f"        <id>{number + 10**6}</id>\n        <state>Completed and validated</state>\n"
            f"{size * outputs}</instance>"
        )

    def _rpc_query_completed_job(self, document: str) -> str:
        number = self._jobs[_value(document, "job_name")]
        return (
            "<completed_job>\n   <error_mask>0</error_mask>\n"
            f"   <canonical_resultid>{number + 10**6}</canonical_resultid>\n"
            "   <exit_status>0</exit_status>\n   <elapsed_time>2</elapsed_time>\n"
            "   <cpu_time>1.5</cpu_time>\n   <stderr_out><![CDATA[\n"
            "&lt;core_client_version&gt;7.20.5&lt;/core_client_version&gt;\n&lt;![CDATA[\n"
            "&lt;stderr_txt&gt;\ncalled boinc_finish(0)\n\n&lt;/stderr_txt&gt;\n]]&gt;\n"
            "   ]]></stderr_out>\n</completed_job>"
        )

    def output(self, target: str) -> Answer:
        """Answer a GET of get_output.php."""
        query = {key: values[0] for key, values in parse_qs(urlsplit(target).query).items()}
        command, number = query.get("cmd", ""), int(query.get("file_num", 0))
        self.counts[command] = self.counts.get(command, 0) + 1
        name = query.get("result_name") or f"{query.get('wu_name')}_0"
        if number >= OUTPUTS:
            return Answer(f"ERROR: bad file num: {number}\n".encode(), "text/html", rpc=command)
        disposition = f"Content-Disposition: attachment; filename={name}_r42_{number}"
        return Answer(self._output, "application/octet-stream", (disposition,), command)


def request_document(content_type: str, body: bytes) -> str:
    """Return the form field ``request`` of a POST body (or of its beginning)."""
    if "urlencoded" in content_type:
        _, _, value = (b"&" + body).partition(b"&request=")
        return unquote_plus(value.partition(b"&")[0].decode())
    _, _, part = body.partition(b'name="request"')
    _, _, value = part.partition(b"\r\n\r\n")
    return value.partition(b"\r\n--")[0].decode()


def _error(message: str) -> str:
    return f"<error>\n    <error_num>-1</error_num>\n    <error_msg>{message}</error_msg>\n</error>"


def _describe(batch: Batch) -> str:
    return (
        f"        <id>{batch.id}</id>\n        <create_time>1795261751</create_time>\n"
        "        <expire_time>0</expire_time>\n"
        "        <est_completion_time>0</est_completion_time>\n"
        f"        <njobs>{len(batch.jobs)}</njobs>\n"
        f"        <fraction_done>{int(batch.state > 0)}</fraction_done>\n"
        f"        <nerror_jobs>0</nerror_jobs>\n        <state>{batch.state}</state>\n"
        "        <completion_time>0</completion_time>\n"
        "        <credit_estimate>0</credit_estimate>\n"
        "        <credit_canonical>0</credit_canonical>\n"
        f"        <name>{batch.name}</name>\n        <app_name>{batch.app}</app_name>\n"
    )


def _templates(outputs: int) -> str:
    infos = "".join(
        f"    <file_info>\n        <name><OUTFILE_{number}/></name>\n"
        "        <generated_locally/>\n        <upload_when_present/>\n"
        "        <max_nbytes>5000000</max_nbytes>\n        <url><UPLOAD_URL/></url>\n"
        "    </file_info>\n"
        for number in range(outputs)
    )
    references = "".join(
        f"        <file_ref>\n            <file_name><OUTFILE_{number}/></file_name>\n"
        f"            <open_name>out{number}</open_name>\n            <copy_file/>\n"
        "        </file_ref>\n"
        for number in range(outputs)
    )
    return (
        "<input_template>\n    <file_info>\n        <no_delete/>\n    </file_info>\n"
        "    <workunit>\n        <file_ref>\n            <open_name>in</open_name>\n"
        "            <copy_file/>\n        </file_ref>\n"
        "        <rsc_fpops_est>1e9</rsc_fpops_est>\n    </workunit>\n</input_template>\n"
        f"<output_template>\n{infos}    <result>\n{references}    </result>\n</output_template>"
    )
