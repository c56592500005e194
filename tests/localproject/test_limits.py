"""A job's bounds, and that nothing of a job outlives it (``back-end.rst``, "Hosts")."""

import os
import resource
import subprocess
from contextlib import ExitStack

import psutil
import pytest

from boinc_gahp.localproject.hosts.execution import MARK, ProcessFamily
from boinc_gahp.localproject.states import Outcome
from boinc_gahp.templates.types import InputFileInfo
from tests.helpers import wait_for
from tests.localproject.on_host import message, out, stderr_text

pytestmark = pytest.mark.processes


MB = 1 << 20


SLEEP = "import time; time.sleep(60)"
HOG = f"import time; x = bytearray({80 * MB}); open('big', 'w'); time.sleep(60)"
#: Runs a program in a child whose parent ends, in a session of its own: a daemon.
DAEMON = (
    "import os, sys, time\n"
    "if os.fork() == 0:\n"
    "    os.setsid()\n"
    "    if os.fork() == 0:\n"
    "        open('pid', 'w').write(str(os.getpid()))\n"
    "        os.rename('pid', 'daemon')\n"
    "        {}\n"
    "        os._exit(0)\n"
    "    os._exit(0)\n"
    "os.wait()\n"
    "while not os.path.exists('daemon'): time.sleep(0.01)\n"
)


@pytest.mark.parametrize(
    ("program", "bounds", "status", "words"),
    [
        pytest.param(HOG, {"memory_bound": 50 * MB}, 198,
            "working set size > workunit.rsc_memory_bound: ", id="memory"),
        pytest.param(f"import os\nfor _ in range(3): os.fork()\n{SLEEP}",
            {"memory_bound": 30 * MB}, 198, "MB > 30.00MB", id="memory of children"),
        pytest.param(DAEMON.format("x = bytearray(80 << 20); time.sleep(60)") + SLEEP,
            {"memory_bound": 50 * MB}, 198, "MB > 50.00MB", id="memory of a daemon"),
        pytest.param(
            "import os; os.mkdir('d')\n"
            f"for n in range(3): open(f'd/{{n}}', 'w').write('x' * {MB})\n{SLEEP}",
            {"disk_bound": 2 * MB},
            196,
            "Maximum disk usage exceeded: 3.00MB > 2.00MB",
            id="disk",
        ),
        pytest.param(f"open('out', 'w').write('x' * {2 * MB + 1})", {"disk_bound": 2 * MB}, 196,
            "Maximum disk usage exceeded: 2.00MB > 2.00MB", id="disk at the end"),
        pytest.param(f"import sys\nwhile True: sys.stderr.write('x' * {MB})",
            {"disk_bound": 4 * MB}, 196, "Maximum disk usage exceeded", id="stderr"),
        pytest.param(SLEEP, {"time_limit": 0.2}, 197, "exceeded elapsed time limit 0.20 s",
            id="time"),
    ],
)  # fmt: skip
def test_a_job_over_a_bound_is_ended_and_says_which(host, program, bounds, status, words):
    report = host.run(program, outputs=[out("out", optional=True)], **bounds)
    assert (report.outcome, report.exit_status) == (Outcome.CLIENT_ERROR, status)
    assert words in message(report)
    assert report.elapsed_time > 0
    assert not host.has_sent()


@pytest.mark.parametrize("copy", [True, False], ids=["copied", "linked"])
def test_inputs_count_as_disk_space(host, copy):
    report = host.run(
        "pass",
        inputs=[InputFileInfo("in", copy_file=copy)],
        files=[host.stage("x.dat", b"x" * 2000)],
        disk_bound=1500,
    )
    assert report.exit_status == 196


#: It is set right after the start of the app, which may be the quicker.
WAIT_FOR_LIMIT = (
    "import os, resource, sys, time; end = time.monotonic() + 20\n"
    "while resource.getrlimit(resource.{0})[1] == {1} and time.monotonic() < end: pass\n"
)


def test_no_file_grows_past_the_disk_bound(host):
    wait = WAIT_FOR_LIMIT.format("RLIMIT_FSIZE", resource.RLIM_INFINITY)
    program = f"f = open('out', 'w')\nfor n in range(10**6): f.write('x' * {MB})"
    host.run(wait + program, disk_bound=5 * MB)
    assert (host.slot / "out").stat().st_size <= 5 * MB + 1


def test_a_crash_leaves_no_core(host):
    wait = WAIT_FOR_LIMIT.format("RLIMIT_CORE", resource.getrlimit(resource.RLIMIT_CORE)[1] or 1)
    show = "print(resource.getrlimit(resource.RLIMIT_CORE), file=sys.stderr, flush=True)"
    report = host.run(f"{wait}{show}; os.abort()")
    assert (report.exit_status, stderr_text(report)) == (6, "(0, 0)\n")


def _gone(pid):
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.mark.parametrize(
    ("program", "bounds"),
    [
        pytest.param(
            DAEMON.format("time.sleep(60)") + f"x = bytearray({80 * MB}); time.sleep(60)",
            {"memory_bound": 50 * MB},
            id="at a limit",
        ),
        pytest.param(
            DAEMON.format("os.execve('/bin/sleep', ['sleep', '60'], {})").replace(
                "    os._exit(0)\nos.wait", "    time.sleep(0.5); os._exit(0)\nos.wait"
            ),
            {},
            id="with an empty environment",
        ),
    ],
)
def test_a_daemon_that_a_job_has_started_is_ended(host, program, bounds):
    host.run(program, **bounds)
    pid = int((host.slot / "daemon").read_text())
    wait_for(lambda: _gone(pid), "the daemon is gone")


@pytest.fixture
def sleeping(tmp_path):
    """Starts processes of slots, each in a session of its own, and ends them."""
    with ExitStack() as stack:

        def start(slot, *script, **pipes):
            # The family takes in all that is in a session of its processes.
            environ = {**os.environ, MARK: str(tmp_path / slot)}
            words = script or ("sleep", "60")
            process = subprocess.Popen(words, env=environ, start_new_session=True, **pipes)
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process

        yield start


def found(family, count=1):
    wait_for(lambda: len(family.look(everywhere=True)) == count, f"{count} processes are found")
    return [process.pid for process in family.look(everywhere=True)]


def test_other_slots_processes_are_not_of_the_family(tmp_path, sleeping):
    mine, other = sleeping("1"), sleeping("11")
    family = ProcessFamily(tmp_path / "1")
    assert found(family) == [mine.pid]
    family.kill()
    assert mine.wait(60) == -9
    assert other.poll() is None


def test_an_orphan_in_the_apps_session_is_found(tmp_path, sleeping):
    app = sleeping("other", "sh", "-c", "env -i sleep 60 &")
    os.waitid(os.P_PID, app.pid, os.WEXITED | os.WNOWAIT)
    family = ProcessFamily(tmp_path, app.pid)
    (orphan,) = found(family)
    family.kill()
    wait_for(lambda: _gone(orphan), "the orphan is gone")


def test_an_orphan_in_a_session_that_a_job_has_begun_is_found(tmp_path, sleeping):
    """Its parent has ended before it was seen, and it has cleared its environment."""
    script = "read go; env -i sleep 60 & echo $!"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with sleeping("1", "sh", "-c", script, **pipes) as parent:
        family = ProcessFamily(tmp_path / "1")
        found(family)
        parent.stdin.write(b"go\n")
        parent.stdin.flush()
        orphan = int(parent.stdout.readline())
        parent.wait(60)
        family._seen.clear()
        try:
            assert [each.pid for each in family.look(everywhere=True)] == [orphan]
        finally:
            family.kill()
    wait_for(lambda: _gone(orphan), "the orphan is gone")


def test_what_appears_while_a_job_is_killed_is_ended_too(tmp_path, sleeping, monkeypatch):
    processes = [sleeping("1") for _ in range(2)]
    family = ProcessFamily(tmp_path / "1")
    found(family, 2)
    look = family.look
    monkeypatch.setattr(family, "look", lambda **how: look(**how)[:1])
    family.kill()
    assert [process.wait(60) for process in processes] == [-9, -9]
