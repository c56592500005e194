"""``boinc_gahp ledger status --jobs``, ``show`` and ``forget``, at the command line."""

import os
import re
import time

import pytest

from boinc_gahp.ledger.rows import Hold
from boinc_gahp.terminal.words import at
from boinc_gahp.text import span
from tests.cli.conftest import InProcess, ended
from tests.cli.watching import (
    ACCOUNT,
    NAME,
    OTHER,
    SECRET,
    URL,
    accept,
    directory,
    on_project,
    silent,
)
from tests.ledger.jobs import alive


@pytest.fixture
def jobs(desk):
    """The jobs of somebody whose settings have both projects."""
    with desk.settings.open("a") as file:
        file.write(f"[projects.alpha]\nurl = '{OTHER}'\nauthenticator = '{SECRET}'\n")
    return desk.jobs


class Ledger(InProcess):
    """``boinc_gahp ledger``, which never prints what moves a cursor."""

    def __call__(self, *words):
        said = super().__call__(*words)
        assert "\x1b" not in said[1] + said[2]
        return said


@pytest.fixture
def ledger(home, capsys):
    return Ledger(capsys, "ledger")


# -- status --jobs


def test_jobs_batches_problems_and_pending_aborts_are_listed(ledger, desk, jobs):
    batch_id, ids = on_project(jobs, 11, 12, 13)
    waiting = accept(jobs, 14)
    jobs.statuses(batch_id, {f"{NAME}-1": "running"})
    jobs.cancel(ids[1])
    silent(jobs, ids[0], 15.5)
    jobs.project_trouble(URL, ACCOUNT, "no answer from boinc.example.edu")
    desk.ledger.record_abort(OTHER, ACCOUNT, "b_123", 12, 0.0)
    out = ledger.prints("status", "--jobs", status=1)
    lines = out.splitlines()
    assert f"{URL}: trouble since" in out
    assert "no answer from boinc.example.edu" in out
    assert [line.split()[-2:] for line in lines[2:4]] == [["1", "abort"]] * 2
    assert f"{NAME}  on the project  2 of 3 jobs unfinished" in out
    (running,) = (n for n, line in enumerate(lines) if f"boinc/{jobs.token}.{ids[0]} " in line)
    assert " 11.0 " in lines[running]
    assert " running on the project " in lines[running]
    assert "orphan: HTCondor has not asked for 15 days" in lines[running + 1]
    assert f"boinc/{jobs.token}.{waiting} " in out
    assert "it is still to be aborted on the project" in out
    assert "unfinished" not in ledger("status")[1]


def test_a_job_that_waits_for_htcondor_to_ask_says_so(ledger, jobs):
    batch_id, [job_id] = on_project(jobs, 11)
    jobs.statuses(batch_id, {f"{NAME}-1": "finished"})
    assert "goes on when HTCondor asks" not in ledger.prints("show", job_id)
    silent(jobs, job_id, 0.1)
    assert "it goes on when HTCondor asks about it, which" in ledger.prints("show", job_id)


def details(ledger, status=0):
    (project,) = ledger.json("status", "--jobs", status=status)["projects"]
    return project["details"]


def test_what_is_over_and_known_to_be_is_not_listed(ledger, jobs):
    on_hold, told, gone = (accept(jobs, cluster) for cluster in (1, 2, 3))
    jobs.hold([on_hold, told], Hold("exit status 11", 2304, 11))
    jobs.end_reported([told])
    jobs.cancel(gone)
    accept(jobs, 4)
    assert [job["id"] for job in details(ledger)["jobs"]] == [on_hold, 4]
    assert "exit status 11 (code 2304, subcode 11)" in ledger.prints("status", "--jobs")
    # HTCondor cancels it next.
    jobs.cancel(on_hold)
    shown = ledger.prints("show", on_hold)
    assert "on hold" in shown
    assert "cancelled" not in shown


def test_json_has_everything_that_is_listed(ledger, jobs):
    batch_id, ids = on_project(jobs, 11, 12)
    jobs.cancel(ids[0])
    silent(jobs, ids[1], 15)
    found = details(ledger, status=1)
    (batch,) = found["batches"]
    assert (batch["id"], batch["jobs"]) == (batch_id, {"queued": 1, "cancelled": 1})
    cancelled, orphan = found["jobs"]
    assert cancelled["htcondor_id"] == f"boinc/{jobs.token}.1"
    assert (cancelled["abort_pending"], len(cancelled["notes"])) == (True, 1)
    assert (orphan["cluster_proc"], orphan["orphan"]) == ("12.0", True)
    assert orphan["state_words"] == "waiting on the project"


def test_what_others_wrote_can_do_nothing_to_a_terminal(ledger, jobs):
    job_id = accept(jobs, 1)
    jobs.hold([job_id], Hold("red \x1b[31m and\na new line", 2302, 0))
    for words in (["status", "--jobs"], ["show", "1"]):
        assert r"red \x1b[31m and a new line" in ledger.prints(*words)


def test_without_a_ledger_there_is_nothing_and_none_is_made(ledger, desk):
    for action in ("show", "forget"):
        assert "There is no ledger" in ledger.refuses(action, "1")
    assert not desk.path.parent.exists()


def test_an_empty_ledger_says_so(ledger, jobs):
    assert "is empty" in ledger.prints("status", "--jobs")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read anything")
def test_a_directory_of_somebody_else_is_reported(ledger, jobs, desk):
    desk.path.parent.chmod(0o000)
    try:
        err = ledger.refuses("show", "1")
    finally:
        desk.path.parent.chmod(0o700)
    assert "Permission denied" in err


# -- show


@pytest.mark.parametrize(
    "name",
    ["2", "boinc/{token}.2", "{token}.2", "12.0", directory(12), NAME + "-2", "submit1_12"],
    ids=["number", "id", "short id", "cluster.proc", "JobDirectory", "job name", "part"],
)
def test_a_job_is_found_by_any_of_its_names(ledger, jobs, name):
    on_project(jobs, 11, 12)
    out = ledger.prints("show", name.format(token=jobs.token))
    assert out.startswith(f"Job boinc/{jobs.token}.2\n")
    assert "waiting on the project" in out


@pytest.mark.parametrize("name", ["3", "boinc/00000000.2", "1.0", "nothing", "2" * 30, "bg-x"])
def test_what_there_is_not_is_not_found(ledger, jobs, name):
    on_project(jobs, 11, 12)
    assert "has no job or batch" in ledger.refuses("show", name)


def test_all_that_is_known_of_a_job_is_shown(ledger, jobs):
    _, ids = on_project(jobs, 11, 12)
    jobs.hold([ids[0]], Hold("exit status 11", 2304, 11, exit_code=11, cpu_time=2.5))
    out = ledger.prints("show", "1")
    for part in (
        "on hold (failed)",
        "11.0",
        directory(11),
        URL,
        f"{NAME}-1",
        "exit status 11 (code 2304, subcode 11)",
        "exit code:",
        "2.5 s",
        "iwd: /home/alice/my run",
        'args: ["a b", "c"]',
        f"Batch {NAME}",
        "1 waiting on the project, 1 on hold",
    ):
        assert part in out
    (job,) = ledger.json("show", "1")["jobs"]
    assert (job["hold_code"], job["description"]["iwd"]) == (2304, "/home/alice/my run")


def test_a_signal_that_ended_a_program_is_shown_as_one(ledger, jobs):
    batch_id, ids = on_project(jobs, 11, 12)
    jobs.statuses(batch_id, {f"{NAME}-1": "finished"})
    jobs.fetched(ids[0], -9, 2.5)
    shown = ledger.prints("show", "1")
    assert re.search(r"ended by signal: +9\n", shown)
    assert "exit code" not in shown


def test_a_batch_is_found_by_the_beginning_of_its_name(ledger, jobs):
    batch_id, _ = on_project(jobs, 11, 12)
    jobs.postpone(batch_id, time.time() + 500, "the project is down")
    out = ledger.prints("show", "bg-0a")
    assert out.startswith(f"Batch {NAME}\n")
    assert "2 waiting on the project" in out
    assert "the project is down; tried again at" in out
    assert ledger.json("show", NAME)["batches"][0]["id"] == batch_id


def test_a_name_that_may_mean_too_many_is_not_guessed(ledger, jobs):
    for number, said in ((2, "name one of them"), (30, "may mean 30 jobs or batches")):
        for cluster in range(alive(jobs), number):
            accept(jobs, cluster)
        assert said in ledger.refuses("forget", "submit1", "--alive")
    assert said in ledger.refuses("show", "submit1")
    assert alive(jobs) == 30


# -- forget


def test_what_is_over_is_forgotten_by_name(ledger, jobs):
    job_id, other = accept(jobs, 1), accept(jobs, 2)
    jobs.cancel(job_id)
    assert ledger.prints("forget", "1.0") == "Forgotten: 1 job.\n"
    assert jobs.job(job_id) is None
    assert jobs.job(other) is not None


def test_what_is_not_over_is_kept_unless_asked_twice(ledger, jobs):
    batch_id, ids = on_project(jobs, 11, 12)
    jobs.cancel(ids[1])
    err = ledger.refuses("forget", "11.0")
    assert "nothing was forgotten" in err
    assert "condor_rm" in err
    assert "boinc_gahp ledger reconcile" in ledger.refuses("forget", "12.0")
    assert len(jobs.jobs_of(batch_id)) == 2
    told = "Forgetting a job does not abort it"
    assert told in ledger.prints("forget", "11.0", "12.0", "--alive")
    assert jobs.owners() == ()
    assert jobs.batch(batch_id) is None


def test_a_batch_is_forgotten_with_all_its_jobs(ledger, jobs):
    batch_id, _ = on_project(jobs, 11, 12)
    ledger.refuses("forget", NAME)
    ledger.prints("forget", NAME, "--alive")
    assert jobs.batch(batch_id) is None
    assert alive(jobs) == 0


def test_a_batch_that_is_to_be_retired_stays_until_it_is(ledger, jobs):
    batch_id, ids = on_project(jobs, 11)
    jobs.hold([ids[0]], Hold("x", 2304, 0))
    assert "stays until it is retired" in ledger.prints("forget", NAME)
    assert jobs.job(ids[0]) is None
    assert jobs.batch(batch_id).state == "ended"


def test_a_batch_keeps_the_jobs_that_are_not_forgotten(ledger, jobs):
    batch_id, ids = on_project(jobs, 11, 12)
    ledger.prints("forget", "11.0", "--alive")
    assert [job.id for job in jobs.jobs_of(batch_id)] == [ids[1]]
    assert jobs.on_project(URL, ACCOUNT) == {batch_id: 1}


@pytest.mark.processes
@pytest.mark.parametrize(("answer", "is_dropped"), [("y", True), ("", False)])
def test_on_a_terminal_it_asks_first(home, jobs, on_terminal, answer, is_dropped):
    job_id = accept(jobs, 1)
    jobs.cancel(job_id)
    terminal = on_terminal("ledger", "forget", "1")
    terminal.expect_exact("Forget 1 job? [y/N] ")
    terminal.sendline(answer)
    ended(terminal)
    assert (jobs.job(job_id) is None) == is_dropped


def test_a_span_is_told_in_a_unit_that_it_has_enough_of():
    spans = [0.0, 119.0, 120.0, 7199.0, 7200.0, 172799.0, 172800.0]
    shown = ["0 s", "119 s", "2 min", "119 min", "2 h", "47 h", "2 days"]
    assert [span(seconds) for seconds in spans] == shown
    assert at(1e300).endswith("after the epoch")
