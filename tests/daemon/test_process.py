import signal
import subprocess
import sys

import psutil
import pytest

from boinc_gahp.gahp.banner import BANNER
from tests.daemon.process import STAND_IN, TIMEOUT, Daemon
from tests.helpers import wait_for

pytestmark = pytest.mark.long

CLEAN = (0, b"", b"")


@pytest.fixture
def daemon():
    with Daemon() as daemon:
        assert daemon.line() + b"\n" == BANNER
        yield daemon


def test_lines_after_quit_are_not_read(daemon):
    daemon.send(b"QUIT\nVERSION\n")
    assert daemon.end() == (0, b"S\n", b"")


def test_answers_that_are_due_are_written_after_end_of_input(daemon):
    daemon.send(b"COMMANDS\nVERSION\nCOMM")
    daemon.end_input()
    status, output, errors = daemon.end()
    assert (status, errors) == (0, b"")
    assert output.count(b"\n") == 2
    assert output.endswith(b"S " + BANNER)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it_in_the_middle_of_a_request(daemon, number):
    assert daemon.ask(b"BOINC_SUBMIT 2 hang app 1 j 0 0") == b"S"
    assert daemon.ask(b"BOINC_FETCH_OUTPUT 3 hang /d e ALL 0") == b"S"
    daemon.process.send_signal(number)
    assert daemon.end() == CLEAN


@pytest.mark.parametrize("moment", range(4))
def test_sigterm_at_any_moment_of_the_start_leaves_nothing_on_stderr(moment):
    with Daemon() as daemon:
        if moment:
            daemon.line()
        if moment > 1:
            daemon.send(b"BOINC_PING 2\n" * moment)
        daemon.process.send_signal(signal.SIGTERM)
        status, _output, errors = daemon.end()
        assert errors == b""
        # Before the banner, the interpreter itself may still be starting.
        assert status in ({0, -signal.SIGTERM} if moment == 0 else {0})


def test_a_signal_that_was_ignored_at_the_start_stays_so():
    with Daemon(["nohup", *STAND_IN]) as daemon:
        daemon.line()
        daemon.process.send_signal(signal.SIGHUP)
        assert daemon.ask(b"RESULTS") == b"S 0"


def test_stopping_leaves_no_temporary_file(tmp_path, daemon):
    output = tmp_path / "out"
    assert daemon.ask(f"BOINC_FETCH_OUTPUT 2 temporary\\ {output} /d e ALL 0".encode()) == b"S"
    wait_for(lambda: list(tmp_path.iterdir()), "a temporary file is there")
    daemon.process.send_signal(signal.SIGTERM)
    assert daemon.end() == CLEAN
    assert list(tmp_path.iterdir()) == []


def test_it_leaves_though_an_executor_is_busy(daemon):
    assert daemon.ask(b"BOINC_RETIRE_BATCH 2 executor") == b"S"
    daemon.end_input()
    assert daemon.end() == CLEAN


def test_a_line_of_30_mb_is_answered(daemon):
    job = b"condor#vm#uppercase#1795261016#%d.%d 2 -n two\\ words 2 /home/alice/a/%d/%s in /b/c t "
    jobs = b"".join(job % (i // 100, i % 100, i, b"x" * 1500) for i in range(20_000))
    line = b"BOINC_SUBMIT 2 b app 20000 " + jobs + b"NULL NULL NULL NULL NULL NULL"
    assert len(line) > 30_000_000
    assert daemon.ask(line) == b"S"
    assert daemon.await_results(1) == [b"2 NULL"]


def test_a_line_that_is_too_long_is_one_e():
    with Daemon([*STAND_IN, "line_bytes=100000"]) as daemon:
        daemon.line()
        # The limit is known once the settings are loaded; a result proves that they are.
        assert daemon.ask(b"BOINC_PING 2") == b"S"
        assert daemon.await_results(1) == [b"2 NULL"]
        assert daemon.ask(b"BOINC_RETIRE_BATCH 2 " + b"x" * 1_000_000) == b"E"
        assert daemon.ask(b"BOINC_RETIRE_BATCH 3 " + b"x" * 90_000) == b"S"
        assert daemon.await_results(1) == [b"3 NULL"]


def test_requests_leave_no_descriptor_open_and_waiting_takes_no_time_of_the_processor(daemon):
    process = psutil.Process(daemon.process.pid)
    daemon.ask(b"BOINC_PING 2")
    daemon.await_results(1)
    before = process.num_fds()
    for i in range(3, 60):
        daemon.ask(b"BOINC_PING %d" % i)
    daemon.await_results(57)
    assert process.num_fds() == before
    wait_for(lambda: process.cpu_percent(0.3) < 5, "the daemon is idle")


@pytest.mark.parametrize(
    ("redirection", "status", "error"),
    [
        ("<&-", 0, b""),
        ("</dev/null", 0, b""),
        (">&- </dev/null", 0, b""),
        ("2>&- </dev/null", 0, b""),
        (">/dev/full", 1, b"No space left"),
        ("| true", 0, b""),
    ],
)
def test_descriptors_that_are_of_no_use_end_it_at_once(redirection, status, error):
    command = " ".join(STAND_IN)
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", f"{command} {redirection}"],
        stdin=subprocess.PIPE,
        capture_output=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert done.returncode == status
    assert error in done.stderr
    assert done.stderr.count(b"\n") == bool(error)


@pytest.mark.parametrize(
    "first",
    [
        'threading.Thread.start = lambda self: exec("raise RuntimeError")',
        'sys.modules["boinc_gahp.fetch.temporary"] = types.ModuleType("as far as it has come")',
    ],
    ids=["not even one thread can be started", "a thread imports"],
)
def test_it_leaves_also_where(first):
    program = f"import sys, threading, types; from boinc_gahp.daemon.main import leave; {first}"
    done = subprocess.run(
        [sys.executable, "-c", f"{program}; leave(3)"],
        capture_output=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (3, b"", b"")
