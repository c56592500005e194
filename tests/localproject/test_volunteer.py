"""What a host does with a job: its outputs, its end, and what cannot be helped."""

import errno
import gzip
import hashlib
import threading
from dataclasses import replace

import psutil
import pytest

from boinc_gahp.localproject.states import Outcome
from tests.helpers import wait_for
from tests.localproject.on_host import message, out, stderr_text

pytestmark = pytest.mark.processes


def test_an_optional_output_may_be_absent(host):
    report = host.run(
        "open('b', 'w').write('b')", outputs=[out("a", 0, optional=True), out("b", 1)]
    )
    assert report.outcome is Outcome.SUCCESS
    assert (host.has_sent(0), host.sent(1)) == (False, b"b")
    assert report.xml_doc_out.count("<file_info>") == 1


def test_what_is_said_about_outputs_fits_what_is_sent(host):
    report = host.run(
        "open('a', 'w').write('a' * 1000); open('b', 'w')",
        outputs=[out("a", 0, gzip_when_done=True), out("b", 1)],
    )
    assert gzip.decompress(host.sent(0)) == b"a" * 1000
    for number in (0, 1):
        data = host.sent(number)
        assert (
            f"_r_{number}</name>\n    <nbytes>{len(data)}</nbytes>\n"
            f"    <md5_cksum>{hashlib.md5(data).hexdigest()}</md5_cksum>"
        ) in report.xml_doc_out


IN_SUB = "import os, socket; os.mkdir('sub'); "
TOO_BIG = "open('a', 'w').write('a'); open('b', 'w').write('x' * 11)"


@pytest.mark.parametrize(
    ("program", "outputs", "status", "words"),
    [
        (TOO_BIG, [out("a", 0), out("b", 1, max_nbytes=10)], -131,
         "b: file size too big: 11 > 10 bytes"),
        (f"{IN_SUB}os.symlink('/etc/hostname', 'sub/out')", [out("sub/out")], -161,
         "output file is missing"),
        (f"{IN_SUB}os.rmdir('sub'); os.symlink('/etc', 'sub')", [out("sub/hostname")], -161,
         "output file is missing"),
        (f"{IN_SUB}socket.socket(socket.AF_UNIX).bind('sub/out')", [out("sub/out")], -108,
         "cannot be read"),
        (f"{IN_SUB}open('sub/out', 'w').close(); os.chmod('sub/out', 0)", [out("sub/out")], -108,
         "cannot be read"),
        ("pass", [out("../../project.sqlite")], -161, "leads out of the slot"),
        # A directory hangs (see below), but not where the job has failed anyway.
        ("import os; os.mkdir('out')", [out("out"), out("absent", 1)], -161, "file is missing"),
        ("import os; os.mkdir('out'); raise SystemExit(3)", [out("out")], 3, "exited with code 3"),
    ],
    ids=["size", "link", "link on the way", "socket", "rights", "outside", "one absent", "failed"],
)  # fmt: skip
def test_when_one_output_is_wrong_none_is_sent(host, program, outputs, status, words):
    report = host.run(program, outputs=outputs)
    assert (report.outcome, report.exit_status) == (Outcome.CLIENT_ERROR, status)
    assert words in message(report)
    assert not host.has_sent(0)
    assert report.xml_doc_out == ""


@pytest.mark.parametrize("optional", [True, False])
@pytest.mark.parametrize("make", ["mkdir", "mkfifo"])
def test_a_directory_or_a_pipe_at_an_outputs_name_is_taken_away_and_never_reported(
    host, make, optional
):
    outputs = [out("a", 0), out("out", 1, optional=optional)]
    task = host.task(f"import os; open('a', 'w'); os.{make}('out')", outputs=outputs)
    assert host.volunteer.compute(task) is None
    assert (host.slot.with_name("0.uploads") / "job1_0_r_1").exists()
    assert host.run("open('out', 'w').write('x')", outputs=[out("out")]).xml_doc_out


def test_a_job_that_runs_again_sends_its_outputs_again(host):
    host.core.upload.add_bytes("job1_0_r_0", b"half")
    report = host.run("open('out', 'w').write('whole')", outputs=[out("out")])
    assert (report.outcome, host.sent()) == (Outcome.SUCCESS, b"whole")


def test_a_jobs_stderr_is_read_even_if_it_puts_a_link_there(host):
    report = host.run(
        "import os, sys; print('mine', file=sys.stderr); os.remove('stderr.txt');"
        "os.symlink('/etc/passwd', 'stderr.txt')"
    )
    assert stderr_text(report) == "mine\n"


def test_what_a_job_locks_is_removed_for_the_next(host):
    host.run("import os; os.makedirs('a/b'); os.chmod('a/b', 0); os.chmod('a', 0)")
    report = host.run("import os, sys; print(sorted(os.listdir()), file=sys.stderr)")
    assert stderr_text(report) == "['stderr.txt', 'stdout.txt']\n"


def test_no_shell_sees_the_command_line_and_it_is_unescaped_once(host):
    program = "import sys; print(sys.argv[1:], file=sys.stderr)"
    report = host.run(program, arguments="$HOME ; 'a b' > x a&lt;b &amp;amp; a&b ]]>")
    words = ["$HOME", ";", "a b", ">", "x", "a<b", "&amp;", "a&b", "]]>"]
    assert stderr_text(report) == f"{words}\n"
    assert not (host.slot / "x").exists()
    report = host.run(program, arguments="a<b")
    assert (report.exit_status, "contains a <" in message(report)) == (-185, True)


def test_a_job_knows_nothing_of_the_projects_environment(host, monkeypatch):
    monkeypatch.setenv("SECRET", "x")
    report = host.run("import os, sys; print(sorted(os.environ), file=sys.stderr)")
    names = ["BOINC_LOCAL_PROJECT_SLOT", "HOME", "LANG", "PATH", "TMPDIR"]
    assert stderr_text(report) == f"{names}\n"


def test_no_process_outlives_a_job_that_cannot_be_watched(host, monkeypatch):
    def check(*_):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("boinc_gahp.localproject.hosts.execution.LimitWatch.check", check)
    report = host.run("import time; time.sleep(60)")
    assert (report.exit_status, "Permission denied" in message(report)) == (-185, True)
    assert psutil.Process().children() == []


# Stopping, and what cannot be helped.


@pytest.mark.parametrize(
    ("program", "wrong"),
    [("import time; open('on', 'w'); time.sleep(60)", {}), ("open('on', 'w')", {"slow": 1e6})],
    ids=["running", "slow"],
)
def test_a_host_that_is_stopped_reports_nothing(host, program, wrong):
    task = host.task(program, wrong=wrong, time_limit=1e9)
    reports = []
    thread = threading.Thread(target=lambda: reports.append(host.volunteer.compute(task)))
    thread.start()
    wait_for((host.slot / "on").exists, "the job is running")
    host.volunteer.stop()
    thread.join(60)
    assert reports == [None]


def test_a_full_disk_is_not_the_jobs_fault(host, monkeypatch, caplog):
    """No disk is full here: the store says so, twice."""
    monkeypatch.setattr("boinc_gahp.localproject.hosts.volunteer._RETRY", 0.01)
    refusals = [OSError(errno.ENOSPC, "No space left on device")] * 2
    incoming = host.core.upload.incoming

    def full():
        if refusals:
            raise refusals.pop()
        return incoming()

    monkeypatch.setattr(host.core.upload, "incoming", full)
    report = host.run("open('out', 'w').write('x')", outputs=[out("out")])
    assert (report.outcome, host.sent(), refusals) == (Outcome.SUCCESS, b"x", [])
    assert caplog.text.count("job1_0 is tried again: [Errno 28] No space left on device") == 2


@pytest.mark.parametrize(
    ("document", "change", "status", "words"),
    [
        ("xml_doc_in", ("job1_0_r_0", ".."), -187, "bad file name '..'"),
        ("xml_doc", ("<workunit>", "none"), -185, "couldn't start app"),
    ],
)
def test_a_document_that_cannot_be_used_is_an_error(host, document, change, status, words):
    task = host.task("open('out', 'w').write('x')", outputs=[out("out")])
    changed = getattr(task, document).replace(*change)
    report = host.volunteer.compute(replace(task, **{document: changed}))
    assert (report.exit_status, words in message(report)) == (status, True)
