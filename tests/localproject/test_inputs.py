"""A job's input files on a host: where they come from, what is checked, what stays."""

import gzip
import hashlib
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import ClassVar

import pytest

from boinc_gahp.localproject.states import Outcome
from boinc_gahp.templates.filling import JobFile
from boinc_gahp.templates.types import InputFileInfo
from tests.helpers import served
from tests.localproject.on_host import message, out, stderr_text

COPY = "import shutil; shutil.copyfile('in', 'out')"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Another server than the project's: its address and its directory."""
    directory = tmp_path_factory.mktemp("server")
    with served(directory) as address:
        yield address, directory


def _stage(host, contents, packed):
    """Put a file and its compressed copy where the project's inputs are."""
    host.stage("x.dat.gz", packed)
    return replace(host.stage("x.dat", contents), gzipped_nbytes=len(packed))


@pytest.mark.processes
@pytest.mark.parametrize("copy", [True, False], ids=["copied", "linked"])
def test_an_input_lies_under_its_open_name_and_only_a_copy_is_the_jobs_own(host, copy):
    staged, info = host.stage("x.dat", b"text"), InputFileInfo("data/in", copy_file=copy)
    for _ in range(2):
        report = host.run(
            "import os, sys; print(open('data/in').read(), os.path.islink('data/in'), "
            "file=sys.stderr); os.remove('data/in')",
            inputs=[info],
            files=[staged],
        )
        assert stderr_text(report) == f"text {not copy}\n"


@pytest.mark.parametrize("copy", [True, False], ids=["copied", "linked"])
def test_an_input_that_is_not_what_the_job_says_is_a_download_error(host, copy):
    md5 = hashlib.md5(b"text").hexdigest()
    for name, nbytes, contents, words in (
        ("md5.dat", 4, b"TEXT", "MD5 check failed"),
        ("size.dat", 5, b"text", "file has the wrong size: expected 5 bytes, got 4"),
        ("gone.dat", 4, None, "WU download error: couldn't get gone.dat: no such file"),
    ):
        if contents is not None:
            host.stage(name, contents)
        infos, files = [InputFileInfo("in", copy_file=copy)], [JobFile(name, nbytes, md5, ())]
        report = host.run("pass", inputs=infos, files=files)
        assert (report.outcome, report.exit_status) == (Outcome.CLIENT_ERROR, -186)
        assert words in message(report)


def test_an_open_name_outside_the_slot_is_an_error(host):
    report = host.run("pass", inputs=[InputFileInfo("../in")], files=[host.stage("x.dat", b"")])
    assert (report.exit_status, "leads out of the slot" in message(report)) == (-185, True)
    assert not (host.slot.parent / "in").exists()


@pytest.mark.processes
@pytest.mark.parametrize("packed", [True, False], ids=["compressed", "as it is"])
def test_a_compressed_input_is_unpacked_and_one_that_is_not_staged_so_is_taken(host, packed):
    staged = _stage(host, b"text" * 100, gzip.compress(b"text" * 100))
    host.core.download.remove("x.dat" if packed else "x.dat.gz")
    info = InputFileInfo("in", gzip=True)
    report = host.run(COPY, inputs=[info], files=[staged], outputs=[out("out")])
    assert (report.outcome, host.sent()) == (Outcome.SUCCESS, b"text" * 100)


@pytest.mark.parametrize(
    ("packed", "words"),
    [
        (gzip.compress(b"TEXT"), "MD5 check failed"),
        (gzip.compress(b"0" * 10**6), "it has more than 4 bytes when unpacked"),
        (gzip.compress(b"text")[:-3], "cannot be unpacked"),
        (b"no gzip", "cannot be unpacked"),
    ],
    ids=["other contents", "a bomb", "cut off", "no gzip"],
)
def test_a_compressed_input_is_checked(host, packed, words):
    staged = _stage(host, b"text", packed)
    report = host.run("pass", inputs=[InputFileInfo("in", gzip=True)], files=[staged])
    assert report.exit_status == -186
    assert words in message(report)
    assert not list((host.core.directory / "spool").iterdir())


@pytest.mark.processes
@pytest.mark.parametrize("packed", [True, False], ids=["compressed", "plain"])
def test_a_remote_file_comes_from_its_server(host, server, packed):
    url, directory = server
    name = f"r{packed:d}.dat"
    served = gzip.compress(b"remote") if packed else b"remote"
    (directory / (f"{name}.gz" if packed else name)).write_bytes(served)
    info = InputFileInfo(
        "in",
        gzip=packed,
        gzipped_nbytes=len(served) if packed else None,
        physical_name=name,
        urls=("http://127.0.0.1:1/", url),
        md5_cksum=hashlib.md5(b"remote").hexdigest(),
        nbytes=6,
    )
    report = host.run(COPY, inputs=[info], outputs=[out("out")])
    assert (report.outcome, host.sent()) == (Outcome.SUCCESS, b"remote")


CONTENTS = b"0123456789" * 1000


class Trouble(BaseHTTPRequestHandler):
    """Breaks off, answers 503, and then sends what is asked for; other paths are not there."""

    asked: ClassVar = []

    def do_GET(self):
        self.asked.append((self.path, self.headers["Range"]))
        if self.path != "/big":
            self.send_error(404)
        elif len(self.asked) == 3:
            self.send_error(503)
        else:
            begin = int((self.headers["Range"] or "bytes=0-")[6:-1])
            self.send_response(206 if begin else 200)
            self.send_header("Content-Length", str(len(CONTENTS) - begin))
            self.end_headers()
            self.wfile.write(CONTENTS[begin:6000] if not begin else CONTENTS[begin:])

    def log_message(self, *_):
        """Say nothing."""


@pytest.mark.processes
def test_a_remote_file_is_resumed_where_it_broke_off_and_a_404_is_final(host):
    Trouble.asked.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Trouble) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/"
        md5 = hashlib.md5(CONTENTS).hexdigest()
        gone, came = (
            host.run(
                COPY,
                inputs=[InputFileInfo("in", physical_name=name, urls=(url,), md5_cksum=md5)],
                outputs=[out("out")],
            )
            for name in ("gone", "big")
        )
        server.shutdown()
    assert (came.outcome, host.sent()) == (Outcome.SUCCESS, CONTENTS)
    assert (gone.exit_status, "HTTP 404" in message(gone)) == (-186, True)
    again = ("/big", "bytes=6000-")
    assert Trouble.asked == [("/gone", None), ("/big", None), again, again]
