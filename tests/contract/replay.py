"""The recordings of ``wire/``: what was asked, what came back, and a transport that says it again.

A recording's request becomes a call of the public method with the same arguments, as far as the
method can ask so; :data:`NOT_OURS` lists the requests that it cannot make, with the reason.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from enum import IntEnum
from http.client import IncompleteRead
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from lxml import etree

from boinc_gahp.rpc.types import BatchSubmission, InputFile, JobSubmission

WIRE = Path(__file__).parent / "wire"
URL = "http://127.0.0.1:8600/test/"

#: Requests with well-formed XML that the typed methods do not make, and why. Their replies go
#: through the parser all the same, as answers to the method of the RPC that was meant.
NOT_OURS = {
    "create_batch__empty_authenticator": "the authenticator is always sent",
    "job_file__unknown_command": "there is no such method",
    "get_templates__neither": "a name is insisted on",
    "ping__empty_element_tag": "a ping holds a space",
    "ping__selfclosed_no_space": "a ping holds a space",
    "protocol__unknown_command": "there is no such method",
    "protocol__latin1_bytes_with_declaration": "requests are UTF-8",
    "query_batch2__no_min_mod_time": "min_mod_time is always sent",
    "query_batch2__no_authenticator": "the authenticator is always sent",
    "query_batch__none_specified": "an id or a name is insisted on",
    "query_completed_job__no_job_name": "a name is always sent",
    "query_files__no_names": "nothing to compare: no names",
    "query_files__delete_time_later_than_record": "no delete_time is sent",
    "set_expire_time__no_expire_time": "a time is always sent",
    "submit_batch__allocation_priority": "no such priority is sent",
    "submit_batch__cmdline_ampersand": "a < that clients refuse is refused before it is sent",
    "submit_batch__job_target_team": "jobs are for all volunteers",
    "submit_batch__mode_unsupported": "modes are the documented ones",
}


@dataclass(frozen=True)
class Recording:
    """One request and its reply."""

    name: str
    request: bytes
    body: bytes
    status: int
    headers: object
    method: str
    meta: object

    @classmethod
    def load(cls, name):
        meta = json.loads((WIRE / f"{name}.meta.json").read_text())
        body = (WIRE / f"{name}.rep.xml").read_bytes()
        headers = dict(meta["headers"])
        request = WIRE / f"{name}.req.xml"
        if str(meta["bytes"]) == headers.get("Content-Length") or "Content-Encoding" in headers:
            # Paths in the bodies were shortened after the recording.
            headers["Content-Length"] = str(len(body))
        return cls(
            name,
            request.read_bytes() if request.exists() else b"",
            body,
            meta["status"],
            headers,
            meta.get("method") or "POST",
            meta,
        )

    @property
    def rpc(self):
        return self.name.partition("__")[0]

    @property
    def case(self):
        return self.name.partition("__")[2]

    @property
    def root(self):
        """The request's XML; None where it is not well-formed."""
        try:
            return etree.fromstring(self.request)
        except etree.XMLSyntaxError:
            return None


def names():
    return sorted(path.name[: -len(".rep.xml")] for path in WIRE.glob("*.rep.xml"))


@dataclass
class Reply:
    """What a transport of tests answers, in chunks."""

    body: bytes
    headers: object
    status: int = 200
    chunk: int = 65536
    reason: str = ""
    received: int = 0

    def chunks(self):
        """Yield the body; fail as HTTP does where it is shorter than announced."""
        for start in range(0, len(self.body), self.chunk):
            chunk = self.body[start : start + self.chunk]
            self.received += len(chunk)
            yield chunk
        announced = int(self.headers.get("Content-Length") or self.received)
        if announced > self.received:
            raise IncompleteRead(self.body, announced - self.received)

    def close(self):
        pass


@dataclass
class Canned:
    """A transport that answers everything with one body."""

    body: bytes
    status: int = 200
    headers: object = field(default_factory=lambda: {"Content-Type": "text/xml"})
    chunk: int = 65536
    sent: list[bytes] = field(default_factory=list)

    def send(self, request):
        if request.body is not None:
            body = request.body()
            self.sent.append(b"".join(body))
            body.close()
        return Reply(self.body, self.headers, self.status, self.chunk)


def replay(recording, chunk=65536):
    """Return a transport that answers every request with one recording."""
    headers = {name: text for name, text in recording.headers.items() if name != "Content-Encoding"}
    return Canned(recording.body, recording.status, headers, chunk)


def call(recording):
    """Return the call of a public method that asks what the recording asked."""
    if recording.method == "GET" and recording.rpc == "get_output":
        return _output(recording)
    root = recording.root
    asked = root if root is not None else etree.Element(_meant(recording))
    name = asked.tag if asked.tag in _CALLS else _meant(recording)
    return lambda project: _CALLS[name](project, asked)


def _meant(recording):
    if recording.rpc in _CALLS:
        return recording.rpc
    return "query_files" if recording.rpc == "job_file" else "ping"


def contents(stream):
    with stream:
        return stream.filename, b"".join(stream.chunks())


def _output(recording):
    asked = urlsplit(recording.meta["url"]).query
    query = {key: values[0] for key, values in parse_qs(asked).items()}
    number = int(query["file_num"]) if query.get("file_num", "").lstrip("-").isdigit() else 0
    calls = {
        "result_file": lambda p: p.result_file(query.get("result_name", "x"), number),
        "workunit_file": lambda p: p.workunit_file(query.get("wu_name", "x"), number),
    }
    chosen = calls.get(query.get("cmd", ""), calls["result_file"])
    return lambda project: contents(chosen(project))


def _texts(asked, tag):
    return [element.text or "" for element in asked.iterfind(tag)]


def _one(asked, tag, default=""):
    return asked.findtext(tag) or default


def _batch(asked):
    found = asked.findtext("batch_id")
    if found:
        return {"batch_id": int(found)}
    return {"batch_name": _one(asked, "batch_name", "x")}


def _number(text):
    return float(text) if text else None


def _integer(text):
    return int(text) if text else None


def submission(asked):
    batch = asked.find("batch")
    if batch is None:
        return BatchSubmission("x", ())
    params = batch.find("job_params")
    return BatchSubmission(
        app_name=_one(batch, "app_name"),
        jobs=[_job(job) for job in batch.iterfind("job")],
        batch_id=_integer(batch.findtext("batch_id")) or None,
        batch_name=batch.findtext("batch_name"),
        app_version_num=_integer(batch.findtext("app_version_num")),
        priority=_integer(batch.findtext("priority")),
        input_template_filename=batch.findtext("input_template_filename"),
        output_template_filename=batch.findtext("output_template_filename"),
        job_params={}
        if params is None
        else {str(child.tag): _number(child.text) for child in params},
    )


def _job(job):
    def template(tag):
        element = job.find(tag)
        return None if element is None else etree.tostring(element, with_tail=False).decode()

    command_line = _one(job, "command_line")
    return JobSubmission(
        name=_one(job, "name"),
        command_line="" if "<" in command_line else command_line,
        input_files=tuple(_file(file) for file in job.iterfind("input_file")),
        rsc_fpops_est=_number(job.findtext("rsc_fpops_est")),
        priority=_integer(job.findtext("priority")),
        input_template=template("input_template"),
        output_template=template("output_template"),
    )


def _file(file):
    return InputFile(
        mode=_one(file, "mode"),
        source=_one(file, "source"),
        url=_one(file, "url"),
        nbytes=int(float(_one(file, "nbytes", "0"))),
        md5=_one(file, "md5"),
    )


_CALLS = {
    "ping": lambda p, _: p.ping(),
    "create_batch": lambda p, r: p.create_batch(
        _one(r, "batch_name"), _one(r, "app_name"), expire_time=float(_one(r, "expire_time", "0"))
    ),
    "submit_batch": lambda p, r: p.submit_batch(submission(r)),
    "estimate_batch": lambda p, r: p.estimate_batch(submission(r)),
    "query_batches": lambda p, r: p.query_batches(get_cpu_time=_one(r, "get_cpu_time") == "1"),
    "query_batch": lambda p, r: p.query_batch(
        **_batch(r),
        get_cpu_time=_one(r, "get_cpu_time") == "1",
        get_job_details=_one(r, "get_job_details") == "1",
    ),
    "query_batch2": lambda p, r: p.query_batch2(
        _texts(r, "batch_name"), min_mod_time=_one(r, "min_mod_time", "0")
    ),
    "query_job": lambda p, r: p.query_job(int(_one(r, "job_id", "0"))),
    "query_completed_job": lambda p, r: p.query_completed_job(_one(r, "job_name")),
    "abort_jobs": lambda p, r: p.abort_jobs(_texts(r, "job_name")),
    "abort_batch": lambda p, r: p.abort_batch(**_batch(r)),
    "retire_batch": lambda p, r: p.retire_batch(**_batch(r)),
    "set_expire_time": lambda p, r: p.set_expire_time(
        float(_one(r, "expire_time", "0")), **_batch(r)
    ),
    "get_templates": lambda p, r: p.get_templates(
        **(
            {"app_name": _one(r, "app_name")}
            if _one(r, "app_name")
            else {"job_name": _one(r, "job_name")}
        )
    ),
    "query_files": lambda p, r: p.query_files(
        _texts(r, "phys_name"), batch_id=_integer(r.findtext("batch_id"))
    ),
    "upload_files": lambda p, r: p.upload_files(
        (),
        batch_id=_integer(r.findtext("batch_id")),
        delete_time=_number(r.findtext("delete_time")),
    ),
}


def plain(value):
    """Return ``value`` as the table writes it: fields by name, what is None or empty left out."""
    names = getattr(value, "_fields", ())
    if dataclasses.is_dataclass(value):
        names = tuple(field.name for field in dataclasses.fields(value))
    if names:
        fields = {name: plain(getattr(value, name)) for name in names}
        return {name: found for name, found in fields.items() if found not in (None, "", [])}
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    if isinstance(value, IntEnum):
        return value.name
    return value
