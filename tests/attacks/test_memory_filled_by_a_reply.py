"""The project wants the daemon to fill the submit node's memory, with an answer that never ends.

Compressed it costs the project a thousandth of that. Each answer here is read by a process of its
own, over HTTP, whose memory is looked at when it has ended.
"""

import json
import sys
import zlib

import pytest

from boinc_gahp.errors import ProtocolError, RpcError
from boinc_gahp.rpc._repair import MAX_TEXT_PART, Repair
from tests.helpers import ran
from tests.rpc.canned import inside, project
from tests.rpc.scripted import AUTHENTICATOR, http, ok, raw, status

MB = 2**20
#: What Python, requests and lxml take by themselves is about 45 MB.
MOST = 200 * MB

READER = """
import json, logging, re, sys
from pathlib import Path
from boinc_gahp.errors import GahpError
from boinc_gahp.rpc.client import WebRpcs
from boinc_gahp.rpc.options import ClientOptions
logging.disable()
url, authenticator, ask = sys.argv[1:]
options = ClientOptions(retry_total=0)
with WebRpcs(url, authenticator, options=options) as project:
    try:
        said = repr(eval(ask))[:200]
    except GahpError as error:
        said = f"{type(error).__name__}: {error}"
# Not ru_maxrss, which has that of the process that started this one, too.
status = Path("/proc/self/status").read_text()
peak = int(re.search(r"VmHWM:\\s+(\\d+) kB", status)[1]) * 1024
print(json.dumps({"said": said, "peak": peak}))
"""


def read(server, ask):
    """Return what a process said of the answer, and the most memory it had (bytes)."""
    words = (sys.executable, "-c", READER, server.url, AUTHENTICATOR, ask)
    return json.loads(ran(*words, timeout=110).stdout)


def gzipped(pieces):
    """Answer with ``pieces``, compressed as they go out; they may be without end."""

    def play(answer):
        packer = zlib.compressobj(1, wbits=31)
        head = http(200, b"", Content_Length="", Content_Encoding="gzip")
        answer.connection.sendall(head)
        for piece in pieces:
            answer.connection.sendall(packer.compress(piece))
            if answer.stop.is_set():
                return False
        answer.connection.sendall(packer.flush())
        return False

    return play


def around(rpc, before, repeated, megabytes, after):
    yield f"<{rpc}>{before}".encode()
    block = repeated.encode() * (65536 // len(repeated))
    for _ in range(megabytes * MB // len(block)):
        yield block
    yield f"{after}</{rpc}>".encode()


SUCCESS = "<success>1</success>"
STDERR = (
    "<completed_job><error_mask>0</error_mask><canonical_resultid>1</canonical_resultid>"
    "<exit_status>0</exit_status><elapsed_time>1</elapsed_time><cpu_time>1</cpu_time><stderr_out>"
)
END = "</stderr_out></completed_job>"
PING, JOB = "project.ping()", "project.query_completed_job('j')"
JOBS = "len(project.query_batch(batch_id=1).jobs)"
BATCH = "<id>1</id><name>b</name><app_name>a</app_name><state>1</state><njobs>1</njobs>"

TOO_LONG, TOO_DEEP = "more than 67,108,864 bytes", "more than 10,000 elements"
WARNING = "<br />\n<b>Warning</b>:  x in <b>/f</b>"
COMPLETED = "query_completed_job"

#: The answer (what is in it before, again and again, how many MB, and after), what is asked, what
#: comes of it.
ANSWERS = {
    "what is no XML": (("ping", "", "<", 60, SUCCESS), PING, "2,000,000 places that are no"),
    "small elements": (("ping", "", "<x/>", 30, SUCCESS), PING, "None"),
    "the same element": (("ping", SUCCESS, SUCCESS, 30, ""), PING, "None"),
    "elements inside": (("ping", "<success>", "<x/>", 30, "</success>"), PING, TOO_DEEP),
    "in a record": (("query_batch", BATCH + "<job><id>1</id>", "<error/>", 30, ""), JOBS, TOO_DEEP),
    "deep elements": (("ping", "", "<x>", 30, ""), PING, "ProtocolError"),
    "text": (("ping", "", "a b ", 60, SUCCESS), PING, "None"),
    "too many bytes": (("ping", "", "a b ", 2000, SUCCESS), PING, TOO_LONG),
    "stderr": ((COMPLETED, STDERR, "x", 60, END), JOB, "CompletedJob("),
    "stderr without end": ((COMPLETED, STDERR, "&lt;", 2000, END), JOB, TOO_LONG),
    "an unclosed name": (("ping", "<name>", "<name>", 60, ""), PING, "cut off"),
    "a page": (("html", "<title>Gone", "<p>", 2000, ""), PING, "a web page"),
    "warnings": (("ping", "", WARNING, 10, SUCCESS), PING, "None"),
}
#: Lists of more than a project can have.
BATCHES = (("query_batches", "", f"<batch>{BATCH}</batch>", 12, ""), "project.query_batches()")
LISTS = {
    "batches": (*BATCHES, "more than 100,000"),
    "jobs": (("query_batch", BATCH, "<job><id>1</id></job>", 12, ""), JOBS, "more than 500,000"),
}


@pytest.mark.long
@pytest.mark.parametrize("case", [*ANSWERS, *LISTS])
def test_a_reply_that_is_too_long_does_not_fill_the_memory(server, case):
    answer, ask, says = (ANSWERS | LISTS)[case]
    server.answers.append(gzipped(around(*answer)))
    found = read(server, ask)
    assert says in found["said"]
    assert found["peak"] < MOST or case in LISTS


@pytest.mark.parametrize("code", [200, 500])
def test_an_error_page_without_end_is_read_at_its_beginning_only(server, code):
    def endless(answer):
        answer.connection.sendall(
            http(code, b"", Content_Length="", Content_Type="text/html")
            + b"<html><title>Busy</title>"
        )
        while not answer.stop.is_set():
            answer.connection.sendall(b"<p>wait</p>" * 1000)
        return False

    server.answers.append(endless)
    with server.client() as project:
        for ask in (project.ping, lambda: project.result_file("r", 0)):
            with pytest.raises(RpcError, match="'Busy'"):
                ask()


def test_a_length_of_a_chunk_without_end_is_not_read_on(server):
    def endless(answer):
        head = http(200, b"", Content_Length="", Transfer_Encoding="chunked")
        answer.connection.sendall(head)
        while not answer.stop.is_set():
            answer.connection.sendall(b"0" * 65536)
        return False

    server.answers.append(endless)
    with server.client() as project, pytest.raises(RpcError, match=r"is damaged|connection failed"):
        project.ping()


def test_files_that_were_not_asked_for_are_no_answer():
    body = inside("query_files", f"<absent_files>{'<file>0</file>' * 3}</absent_files>")
    with pytest.raises(ProtocolError, match="numbers of files that were not asked for"):
        project(body).query_files(["a", "b"])


# -- a text of megabytes


@pytest.mark.parametrize("letter", ["x", "é", "&lt;", "<", "]]>"])
@pytest.mark.parametrize("chunk", [4099, 65536, 10 * MB])
def test_of_a_long_stderr_both_ends_are_kept_and_a_line_says_so(letter, chunk):
    size = 3 * MB
    text = f"the beginning\n{letter * (size // len(letter.encode()))}\nthe end\n"
    body = inside("query_completed_job", STDERR + f"<![CDATA[{text}]]>" + END)
    stderr = project(body, chunk=chunk).query_completed_job("j").stderr_out
    assert stderr.startswith("the beginning\n")
    assert stderr.endswith("\nthe end\n")
    head, left_out, tail = stderr.partition(" bytes left out here ...")
    assert head.rpartition("\n... ")[2].replace(",", "").isdigit()
    assert left_out
    for part in (head, tail):
        assert len(part.encode()) <= MAX_TEXT_PART + 200
    assert set(tail.strip().removesuffix("the end").strip()) <= set("xé<]>&lt;")


@pytest.mark.parametrize("more", [-1, 0, 1])
@pytest.mark.parametrize("chunk", [997, 65536, 10 * MB])
def test_a_text_is_cut_by_its_length_alone(more, chunk):
    text = b"y" * (2 * MAX_TEXT_PART + more)
    body = b"<error_msg>" + text + b"</error_msg><a>"
    repair = Repair()
    parts = [repair.feed(body[at : at + chunk]) for at in range(0, len(body), chunk)]
    found = b"".join(parts) + repair.close()
    if more <= 0:
        assert found == body
    else:
        assert b"... 1 bytes left out here ..." in found
        assert found.endswith(b"y</error_msg><a>")


# -- encodings


@pytest.mark.parametrize("encoding", ["br", "deflate", "gzip, gzip", "zstd", "x"])
def test_an_encoding_that_was_not_asked_for_is_refused(server, encoding):
    server.answers.append(ok(Content_Encoding=encoding))
    says = pytest.raises(ProtocolError, match=r"answer is encoded \(.*\), which was not requested")
    with server.client(retry_total=20) as project, says:
        project.ping()
    assert len(server.requests) == 1


@pytest.mark.parametrize("encoding", ["gzip", "GZIP", "deflate", "br"])
@pytest.mark.parametrize("code", [200, 404])
def test_an_output_that_is_compressed_unasked_is_refused(server, encoding, code):
    bomb = zlib.compressobj(9, wbits=31)
    data = bomb.compress(b"\0" * 30 * MB) + bomb.flush()
    disposition = "attachment; filename=job_0_r1_0"
    server.answers.append(
        raw(http(code, data, Content_Encoding=encoding, Content_Disposition=disposition))
    )
    says = pytest.raises(RpcError, match=r"which was not requested|HTTP 404")
    with server.client(retry_total=20) as project, says:
        project.result_file("job_0", 0)
    assert len(server.requests) == 1


def test_a_page_of_an_unknown_status_is_not_unpacked(server):
    server.answers.append(status(503, b"\x1f\x8b", Content_Encoding="gzip, gzip, gzip"))
    with server.client() as project, pytest.raises(RpcError, match="HTTP 503"):
        project.ping()
