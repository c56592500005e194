"""The recorded requests: how they are sent again, and what an outcome is."""

from __future__ import annotations

import contextlib
import html
import re
from dataclasses import replace
from urllib.parse import urlsplit

import requests
from lxml import etree

from tests.contract.replay import Recording, names

#: The prefix of names in the recordings.
RUN = "p0_261751_"
#: Two files that are staged in most of them.
EA = "ea6a7ee24a8c5dc3acab7d581de843ff.txt"
CC = "cca12a532680138c371746f90541e274.txt"


def load():
    """Return all recordings."""
    # The one request that was not kept; its name tells what it was.
    large = "submit_batch__max_jobs_in_progress_9MB_over_post_max"
    jobs = b"<submit_batch>" + b"<job/>" * 1_500_000 + b"</submit_batch>"
    return [
        replace(recording, request=jobs) if recording.name == large else recording
        for recording in map(Recording.load, names())
    ]


def outcome(recording, status, content_type, body):
    """What a reply amounts to: an error with its number and words, or success with its elements."""
    text = body.decode("utf-8", "replace")
    if status == 404:
        return ("404",)
    if recording.rpc == "get_output":
        return _output_outcome(content_type, text)
    fatal = re.search(r"<b>Fatal error</b>:\s+(.*?) in (?:<b>)?/", text, re.DOTALL)
    if fatal or status == 500:
        return ("fatal", _plain(fatal[1]) if fatal else "")
    error = re.search(
        r"<error_num>(-?\d+)</error_num>\s*<error_msg>(.*?)</error_msg>", text, re.DOTALL
    )
    if error:
        return ("error", int(error[1]), _plain(html.unescape(error[2])))
    inner = re.sub(r"<!\[CDATA\[.*?\]\]>|<\?.*?\?>", "", text, flags=re.DOTALL)
    tags = set(re.findall(r"<([A-Za-z_][A-Za-z_0-9]*)", inner)) - {
        "b",
        "br",
        "aborted",
        "x",
        recording.rpc,
    }
    if recording.rpc == "get_templates":
        # What is in the templates is the admin's.
        tags &= {"templates", "input_template", "output_template"}
    return ("success", tuple(sorted(tags)))


def _output_outcome(content_type, text):
    if content_type.startswith("application/octet-stream"):
        return ("file",)
    return ("page",) if "<html" in text else ("text", _plain(text))


def php_messages(body):
    """PHP's messages in a reply, each once, in order.

    Of the parser's, which come in threes, the first line is not compared: it differs from one
    libxml2 to the next. Nor are its further complaints about the same request.
    """
    text = body.decode("utf-8", "replace")
    found = re.findall(r"<br />\n<b>(\w[\w ]*)</b>:\s+(.*?) in (?:<b>)?/", text, re.DOTALL)
    messages = [
        f"{kind}: {re.sub('parser error : .*', 'parser error', _plain(words), flags=re.DOTALL)}"
        for kind, words in found
    ]
    return list(dict.fromkeys(messages))


def is_well_formed(body):
    """Whether a strict parser takes a reply; its bytes are UTF-8, whatever its prolog says."""
    try:
        etree.fromstring(body.replace(b"ISO-8859-1", b"UTF-8", 1))
    except etree.XMLSyntaxError:
        return False
    return True


def values(recording, body):
    """What a reply says where times, ids and sizes of our own making do not come in."""
    tags = "status|job_name|error|exit_status|seconds|error_mask|canonical_instance_id"
    text = body.decode("utf-8", "replace")
    if recording.rpc == "query_files":
        tags += "|file"
    if recording.rpc in ("query_batch", "query_job"):
        tags += "|njobs|nerror_jobs|fraction_done|state|app_name|name"
    found = re.findall(rf"<({tags})>(.*)</\1>", text.replace("\b", "?"))
    return [
        (tag, html.unescape(text) if tag != "canonical_instance_id" else str(text != "0"))
        for tag, text in found
    ]


def _plain(text):
    """Leave out what differs from server to server: paths, numbers of rows, whole SQL queries."""
    text = text.strip()
    if text.startswith(("create_work failed: Database error", "Uncaught mysqli")):
        text = text.splitlines()[0].partition(" near '")[0]
        text = re.sub(r"Duplicate entry '\d+-", "Duplicate entry 'N-", text)
    text = re.sub(r"(?:/[\w.\-]+)+/((?:templates|upload|download)/)", r"\1", text)
    text = text.replace("html/inc/../../", "")
    text = re.sub(r"cd \S+", "cd DIR", text).replace("r760495882", "r799338679")
    text = re.sub(r"(upload|download)/[0-9a-f]{1,3}/", r"\1/DIR/", text)
    text = re.sub(r"sandbox/\d+", "sandbox/N", text)
    return re.sub(r"--user \d+", "--user N", text)


def received(reply):
    """Return what came of a reply: of a directory, the real server promises 4096 bytes."""
    body = bytearray()
    with contextlib.suppress(requests.exceptions.ChunkedEncodingError):
        for chunk in reply.iter_content(1):
            body += chunk
    return bytes(body)


def send(session, url, recording):
    """Send a recorded request again; the body is yet to be read."""
    if recording.rpc == "get_output":
        return session.get(_redirected(url, recording), stream=True)
    page = url + urlsplit(recording.meta["url"]).path.rpartition("/")[2]
    method = recording.meta.get("method") or recording.request.split()[0].decode()
    if method == "GET":
        return session.get(page)
    data = recording.request.replace(b"http://127.0.0.1:8600/test/languages.txt", _present(url))
    if recording.case.startswith("latin1"):
        # The recordings were kept as UTF-8, with U+FFFD for what is none.
        data = data.replace("\ufffd".encode(), "é".encode("latin-1"))
    data = data.replace(b"/srv/boinc/local_in.txt", b"local_in.txt")
    encoding = recording.meta.get("encoding")
    if encoding == "none":
        return session.post(page, data={"other": "x"})
    if encoding == "urlencoded":
        return session.post(page, data={"request": data})
    # Contents of the same length as those that were recorded.
    files = {
        file["field"]: (file["filename"], b"x" * file["nbytes"])
        for file in recording.meta.get("files", [])
    }
    return session.post(page, files={"request": (None, data), **files})


def _present(url):
    return f"{url}download/any/{EA}".encode()


def _redirected(url, recording):
    """The request's own address: the recordings of redirects name the one that came last."""
    if recording.case == "batch_files_by_name":
        return f"{url}get_output.php?cmd=batch_files&batch_name={RUN}b1&auth_str=x"
    if recording.case == "workunit_file_no_num":
        return f"{url}get_output.php?cmd=workunit_file&auth_str=x&wu_name={RUN}j1"
    if recording.case == "workunit_file_num_not_int":
        return f"{url}get_output.php?cmd=workunit_file&auth_str=x&wu_name={RUN}j1&file_num=abc"
    parts = urlsplit(recording.meta["url"])
    return f"{url}get_output.php?{parts.query}"
