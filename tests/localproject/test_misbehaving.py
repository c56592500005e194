"""What a host does that was told to misbehave, and how it stops and goes on."""

import hashlib
import json
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from boinc_gahp.localproject.hosts.hosts import Behaviour, set_behaviours
from boinc_gahp.localproject.hosts.volunteer import clean_up
from boinc_gahp.localproject.states import Outcome, ServerState
from tests.helpers import wait_for
from tests.localproject.on_host import OnHost, message, out, stderr_text

WRITE = "open('a', 'w').write('short'); open('out', 'w').write('contents' * 10)"
OUTPUTS = (out("a", 1), out("out", 0))


@pytest.mark.processes
@pytest.mark.parametrize(
    ("wrong", "bounds", "status", "words"),
    [
        ({"fail": 3.0}, {}, 3, "process exited with code 3 (0x3, -253)"),
        ({"crash": 0.0}, {}, 11, "process got signal 11"),
        ({"slow": 1e6}, {"time_limit": 0.5}, 197, "exceeded elapsed time limit"),
    ],
    ids=["fail", "crash", "slow"],
)
def test_a_host_that_is_told_to_fail_does(host, wrong, bounds, status, words):
    report = host.run(WRITE, outputs=OUTPUTS, wrong=wrong, **bounds)
    assert (report.outcome, report.exit_status) == (Outcome.CLIENT_ERROR, status)
    assert words in message(report)
    assert not host.has_sent()


@pytest.mark.processes
def test_a_crash_comes_in_the_middle_of_an_output(host):
    report = host.run(
        "import time; f = open('out', 'w'); f.write('half'); f.flush(); time.sleep(100);"
        "f.write('more')",
        outputs=[out("out")],
        wrong={"crash": 0},
        time_limit=1000,
    )
    assert report.exit_status == 11
    assert (host.slot / "out").read_bytes() == b"half"


@pytest.mark.processes
@pytest.mark.parametrize("most", [None, 80], ids=["longer", "as long as it may be"])
def test_a_host_that_differs_differs_from_every_other(host, most):
    sent = {b"contents" * 10}
    outputs = [out("a", 1), out("out", 0, **({"max_nbytes": most} if most else {}))]
    for _ in range(2):
        report = host.run(WRITE, outputs=outputs, wrong={"differ": 0})
        assert report.outcome is Outcome.SUCCESS
        assert len(host.sent(0)) == most or host.sent(0).startswith(b"contents" * 10)
        assert hashlib.md5(host.sent(1)).hexdigest() in report.xml_doc_out
        sent.add(host.sent(0))
    assert len(sent) == 3


@pytest.mark.processes
def test_a_host_that_truncates_sends_half_and_says_the_whole(host):
    report = host.run(WRITE, outputs=OUTPUTS, wrong={"truncate": 0})
    assert report.outcome is Outcome.SUCCESS
    assert (host.sent(0), host.sent(1)) == (b"contents" * 5, b"short")
    assert hashlib.md5(b"contents" * 10).hexdigest() in report.xml_doc_out
    stored = host.core.upload.find("job1_0_r_0")
    assert (stored.nbytes, stored.md5) == (40, hashlib.md5(b"contents" * 5).hexdigest())


@pytest.mark.processes
def test_a_host_can_report_a_job_that_went_well_with_another_exit_status(host):
    report = host.run(WRITE, outputs=OUTPUTS, wrong={"exit": 3})
    assert (report.outcome, report.exit_status) == (Outcome.SUCCESS, 3)
    assert (host.sent(0), host.sent(1)) == (b"contents" * 10, b"short")
    failed = host.run("raise SystemExit(5)", outputs=OUTPUTS, wrong={"exit": 3})
    assert (failed.outcome, failed.exit_status) == (Outcome.CLIENT_ERROR, 5)


@pytest.mark.processes
def test_behaviours_go_together_and_are_told_in_stderr(host):
    program = "import sys, time; print('app', file=sys.stderr); time.sleep(0.05)"
    report = host.run(program, wrong={"fail": 7, "slow": 6, "late": 60})
    assert report.exit_status == 7
    assert report.elapsed_time >= 0.3
    assert stderr_text(report) == "app\n\nthis host was told: fail=7, slow=6, late=60\n"


# A host at work: it asks, computes and reports by itself.


@pytest.fixture
def working(bench):
    working = Working(bench)
    yield working
    working.stop()


class Working:
    """Workunits of one program, and a host that works on them."""

    def __init__(self, bench):
        self.bench = bench
        self.host = OnHost(bench.core)
        self._threads = []

    def jobs(self, program, *names, **columns):
        command = json.dumps(["{python}", "-I", "-S", "-c", program])
        self.bench.set("app_version", "appid = 1", command=command)
        for name in names:
            self.bench.workunit(
                name,
                xml_doc=self.host.task("").xml_doc,
                rsc_memory_bound=5e8,
                rsc_disk_bound=5e8,
                **columns,
            )
        self.bench.now = time.time()
        self.bench.set("workunit", transition_time=0)
        self.bench.transition()

    def start(self, first=bool):
        def work():
            first()
            self.host.volunteer.run()

        self._threads.append(threading.Thread(target=work))
        self._threads[-1].start()

    def stop(self):
        """Stop the host, and have another one like it in its place."""
        self.host.volunteer.stop()
        self.bench.core.wake.ring()
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive()
        self.host = OnHost(self.bench.core)

    def wait_for(self, name, *outcomes):
        """Wait for these outcomes of a job's results; INIT is one that is not over."""
        connection = self.bench.core.db.connection()
        query = "SELECT outcome FROM result WHERE name LIKE ? ORDER BY id"
        wait_for(
            lambda: [row[0] for row in connection.execute(query, (f"{name}_%",))] == [*outcomes],
            f"the outcomes of {name}: {outcomes}",
        )


WORK = "import time; open('out', 'w').write('x')"


def test_a_host_vanishes_with_one_job_and_does_the_next(working):
    working.jobs(WORK, "a", "b")
    set_behaviours(working.bench.core.db, [Behaviour("vanish", 0, 1)], host="h1")
    working.start()
    working.wait_for("b", Outcome.SUCCESS)
    working.wait_for("a", Outcome.INIT)
    working.stop()
    working.start()
    working.stop()
    assert working.bench.results("server_state")[0] == ServerState.IN_PROGRESS


def test_a_host_with_three_uploads_that_hang_asks_for_no_work(working):
    working.jobs("import os; os.mkdir('out')", *"abcd")
    working.start()
    slot = working.host.slot
    hanging = slot.with_name("0.uploads")
    wait_for(
        lambda: hanging.exists() and len([*hanging.iterdir()]) == 3 and not slot.exists(),
        "three uploads that hang, and an idle host",
    )
    states = [ServerState.IN_PROGRESS] * 3 + [ServerState.UNSENT]
    assert working.bench.results("server_state") == states


@pytest.mark.long
def test_a_host_reports_late_and_does_other_jobs_meanwhile(working):
    bench = working.bench
    # The host reports 1 s after the deadline; until then this test must have seen the job there.
    working.jobs(WORK, "a", "b", delay_bound=1.5, rsc_fpops_est=1e6)
    set_behaviours(bench.core.db, [Behaviour("late")], job="a")
    working.start()
    wait_for(lambda: bench.results("hostid")[0], "the host has the job")
    bench.now = bench.results("report_deadline")[0] + 0.1
    bench.transition()
    assert bench.results("outcome")[0] == Outcome.NO_REPLY
    working.wait_for("a", Outcome.SUCCESS, Outcome.INIT)
    late, other = bench.results("received_time")[:2]
    assert late > bench.results("report_deadline")[0]
    assert late > other


def test_a_host_that_is_told_how_late_computes_again_if_it_is_stopped_before(working):
    working.jobs(f"{WORK}; open('../../ran', 'a').write('x')", "a")
    set_behaviours(working.bench.core.db, [Behaviour("late", 3600, 1)])
    working.start()
    ran = working.bench.core.directory / "ran"
    wait_for(lambda: ran.exists() and ran.read_text(), "the job has run")
    working.stop()
    assert not (working.bench.core.directory / "slots" / "0").exists()
    working.bench.set("result", behaviour="late=0.3")
    begin = time.time()
    working.start()
    working.wait_for("a", Outcome.SUCCESS)
    assert ran.read_text() == "xx"
    assert working.bench.results("received_time")[0] >= begin + 0.3


def test_a_paused_host_takes_nothing_new(working):
    working.jobs(WORK, "a")
    working.host.volunteer.pause(True)
    working.start()
    working.bench.core.wake.ring()
    working.stop()
    assert working.bench.results("server_state") == [ServerState.UNSENT]


def test_a_host_waits_for_space_in_the_database(working, monkeypatch, caplog):
    monkeypatch.setattr("boinc_gahp.localproject.hosts.volunteer._RETRY", 0.01)
    working.jobs("import sys; open('out', 'w'); sys.stderr.write('x' * 60000)", "a")
    database = working.bench.core.db
    with database.write() as connection:
        connection.execute("CREATE TABLE filler (bytes)")
        connection.execute("INSERT INTO filler VALUES (zeroblob(500000))")

    def fill():
        (pages,) = database.connection().execute("PRAGMA page_count").fetchone()
        database.connection().execute(f"PRAGMA max_page_count = {pages}")

    working.start(fill)
    wait_for(lambda: "tries again: database or disk is full" in caplog.text, "the disk is full")
    with database.write() as connection:
        connection.execute("DELETE FROM filler")
    working.wait_for("a", Outcome.SUCCESS)


@pytest.mark.processes
def test_what_a_killed_project_left_running_is_ended(bench):
    host = OnHost(bench.core)
    host.slot.mkdir()
    (host.slot / "locked").mkdir(mode=0)
    left = subprocess.Popen(
        ["sleep", "60"],
        start_new_session=True,
        env={**os.environ, "BOINC_LOCAL_PROJECT_SLOT": str(host.slot)},
    )
    try:
        # For a moment after Popen the program has begun, but has no environment yet.
        environment = Path(f"/proc/{left.pid}/environ")
        wait_for(lambda: str(host.slot).encode() in environment.read_bytes(), "its environment")
        clean_up(host.slot.parent)
        assert left.wait(60) == -signal.SIGKILL
    finally:
        left.kill()
        left.wait()
    assert list(host.slot.parent.iterdir()) == []
