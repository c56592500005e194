"""A job's input files on a host: where they come from, what is checked, what stays."""

import gzip
import hashlib
import http.server
import threading
from dataclasses import replace
from functools import partial

import pytest

from boinc_gahp.localproject.states import Outcome
from boinc_gahp.templates.filling import JobFile
from boinc_gahp.templates.types import InputFileInfo
from tests.localproject.on_host import message, out, stderr_text

COPY = "import shutil; shutil.copyfile('in', 'out')"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Another server than the project's: its address and its directory."""
    directory = tmp_path_factory.mktemp("server")

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format, *args):  # noqa: A002
            pass

    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(Handler, directory=str(directory))
    ) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}/", directory
        running.shutdown()
        thread.join()


def _stage(host, contents, packed):
    """Put a file and its compressed copy where the project's inputs are."""
    host.stage("x.dat.gz", packed)
    return replace(host.stage("x.dat", contents), gzipped_nbytes=len(packed))


@pytest.mark.processes
@pytest.mark.parametrize("copy", [True, False], ids=["copied", "linked"])
def test_an_input_lies_under_its_open_name_as_copy_file_says(host, copy):
    report = host.run(
        "import os, sys; print(open('data/in').read(), os.path.islink('data/in'), file=sys.stderr)",
        inputs=[InputFileInfo("data/in", copy_file=copy)],
        files=[host.stage("x.dat", b"text")],
    )
    assert stderr_text(report) == f"text {not copy}\n"


@pytest.mark.processes
@pytest.mark.parametrize("copy", [True, False], ids=["copied", "linked"])
def test_a_copied_input_is_the_jobs_own_and_a_linked_one_is_not(host, copy):
    staged = host.stage("x.dat", b"text")
    info = InputFileInfo("in", copy_file=copy)
    host.run("import os; os.remove('in')", inputs=[info], files=[staged])
    report = host.run(COPY, inputs=[info], files=[staged], outputs=[out("out")])
    assert report.outcome is Outcome.SUCCESS
    assert host.sent() == b"text"


@pytest.mark.parametrize(
    ("nbytes", "contents", "words"),
    [
        (4, b"TEXT", "MD5 check failed"),
        (5, b"text", "file has the wrong size: expected 5 bytes, got 4"),
    ],
    ids=["MD5", "size"],
)
@pytest.mark.parametrize("copy", [True, False], ids=["copied", "linked"])
def test_an_input_that_is_not_what_the_job_says_is_a_download_error(
    host, copy, nbytes, contents, words
):
    host.stage("x.dat", contents)
    wanted = JobFile("x.dat", nbytes, hashlib.md5(b"text").hexdigest(), ())
    report = host.run("pass", inputs=[InputFileInfo("in", copy_file=copy)], files=[wanted])
    assert (report.outcome, report.exit_status) == (Outcome.CLIENT_ERROR, -186)
    assert words in message(report)


@pytest.mark.processes
def test_an_input_that_changes_on_disk_is_noticed(host):
    staged = host.stage("x.dat", b"text")
    inputs = [InputFileInfo("in")]
    assert host.run("pass", inputs=inputs, files=[staged]).outcome is Outcome.SUCCESS
    path = host.core.download.path("x.dat")
    path.chmod(0o644)
    path.write_bytes(b"TEXT")
    assert "MD5" in message(host.run("pass", inputs=inputs, files=[staged]))


def test_a_missing_input_is_a_download_error(host):
    file = JobFile("gone.dat", 1, "0" * 32, ())
    report = host.run("pass", inputs=[InputFileInfo("in")], files=[file])
    assert message(report) == "WU download error: couldn't get gone.dat: no such file"


def test_an_open_name_outside_the_slot_is_an_error(host):
    report = host.run("pass", inputs=[InputFileInfo("../in")], files=[host.stage("x.dat", b"")])
    assert (report.exit_status, "leads out of the slot" in message(report)) == (-185, True)
    assert not (host.slot.parent / "in").exists()


@pytest.mark.processes
def test_a_compressed_input_is_unpacked(host):
    staged = _stage(host, b"text" * 100, gzip.compress(b"text" * 100))
    host.core.download.remove("x.dat")
    info = InputFileInfo("in", gzip=True)
    report = host.run(COPY, inputs=[info], files=[staged], outputs=[out("out")])
    assert (report.outcome, host.sent()) == (Outcome.SUCCESS, b"text" * 100)


@pytest.mark.processes
def test_a_compressed_input_that_is_not_staged_so_travels_as_it_is(host):
    info = InputFileInfo("in", gzip=True)
    staged = replace(host.stage("x.dat", b"text"), gzipped_nbytes=24)
    host.run(COPY, inputs=[info], files=[staged], outputs=[out("out")])
    assert host.sent() == b"text"


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


def test_a_remote_file_that_is_another_is_a_download_error(host, server):
    url, directory = server
    (directory / "other.dat").write_bytes(b"other")
    file = JobFile("js_0", 6, "0" * 32, (f"{url}other.dat", f"{url}nowhere"))
    report = host.run("pass", inputs=[InputFileInfo("in")], files=[file])
    assert report.exit_status == -186
    assert "HTTP 404" in message(report)


@pytest.mark.processes
def test_a_sticky_input_stays_on_the_host(host):
    staged = host.stage("x.dat", b"text")
    info = InputFileInfo("in", sticky=True)
    host.run("pass", inputs=[info], files=[staged])
    host.core.download.remove("x.dat")
    report = host.run(COPY, inputs=[info], files=[staged], outputs=[out("out")])
    assert (report.outcome, host.sent()) == (Outcome.SUCCESS, b"text")
    assert [path.name for path in host.files.iterdir()] == ["x.dat"]


@pytest.mark.processes
def test_a_sticky_input_that_was_damaged_is_brought_again(host):
    staged = host.stage("x.dat", b"text")
    info = InputFileInfo("in", sticky=True, copy_file=True)
    host.files.mkdir(parents=True)
    (host.files / "x.dat").write_bytes(b"damaged")
    host.run(COPY, inputs=[info], files=[staged], outputs=[out("out")])
    assert host.sent() == b"text"
    assert (host.files / "x.dat").read_bytes() == b"text"


@pytest.mark.processes
def test_an_unpacked_sticky_input_is_unpacked_once(host):
    staged = _stage(host, b"text", gzip.compress(b"text"))
    info = InputFileInfo("in", sticky=True, gzip=True)
    host.run("pass", inputs=[info], files=[staged])
    host.core.download.remove("x.dat.gz")
    host.core.download.remove("x.dat")
    host.run(COPY, inputs=[info], files=[staged], outputs=[out("out")])
    assert host.sent() == b"text"


COUNT = (
    "import os; n = int(open('state').read()) if os.path.exists('state') else 0;"
    "open('state', 'w').write(str(n + 1)); open('out', 'w').write(str(n))"
)


@pytest.mark.processes
@pytest.mark.parametrize("copy", [True, False], ids=["copied", "linked"])
@pytest.mark.parametrize("sticky", [True, False], ids=["sticky", "not sticky"])
def test_a_file_that_a_job_generates_is_there_for_the_next_if_it_is_sticky(host, sticky, copy):
    info = InputFileInfo("state", generate_locally=True, sticky=sticky, copy_file=copy)
    seen = []
    for _ in range(3):
        host.run(COUNT, inputs=[info], outputs=[out("out")])
        seen.append(host.sent())
    assert seen == ([b"0", b"1", b"2"] if sticky else [b"0", b"0", b"0"])


@pytest.mark.processes
def test_what_a_failing_job_generates_is_not_kept(host):
    info = InputFileInfo("state", generate_locally=True, sticky=True)
    host.run("open('state', 'w').write('7'); raise SystemExit(1)", inputs=[info])
    host.run(COUNT, inputs=[info], outputs=[out("out")])
    assert host.sent() == b"0"
