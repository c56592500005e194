"""Vanilla jobs that the Job Router sends, from their submitter's view."""

import re

import pytest

from tests.helpers import wait_for
from tests.real_htcondor.node import command_lines
from tests.real_htcondor.pool import COMPLETED, HELD, IDLE, REMOVED, ROOT, RUNNING
from tests.real_htcondor.submit import vanilla

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def sent(node):
    """Jobs by bob, all at once."""
    pool = node.pool
    return {
        "plain": pool.room("bob", "plain", {"in": "plain\n"}).submit(
            vanilla(
                "uppercase",
                "arguments = --routed 1",
                "transfer_input_files = in",
                "transfer_output_files = out",
                "output = job.out",
                "error = logs/job.err",
            )
        ),
        "remaps": pool.room(
            "bob", "mapped", {"in0": "a\n", "in1": "b\n", "results/.keep": ""}
        ).submit(
            vanilla(
                "multi",
                'arguments = "--optional new=syntax"',
                "transfer_input_files = in0, in1",
                "transfer_output_files = out0, out1, out2",
                'transfer_output_remaps = "out0 = results/joined; out1 = /home/bob/mapped/sizes"',
            )
        ),
        "spooled": pool.room("bob", "spooled", {"in": "spooled\n", "results/.keep": ""}).submit(
            vanilla(
                "uppercase",
                "transfer_input_files = in",
                'transfer_output_remaps = "out = results/mine"',
            ),
            "-spool",
        ),
        "gated": pool.room("bob", "gated").submit(vanilla("gated", "arguments = routed")),
        "again": pool.room("bob", "again").submit(vanilla("gated", "arguments = again")),
        "removed": pool.room("bob", "removed").submit(vanilla("gated", "arguments = never")),
        "late": pool.room("bob", "late").submit(
            vanilla("uppercase", "transfer_input_files = in", "transfer_output_files = out")
        ),
        "crashy": pool.room("bob", "crashy").submit(vanilla("crashy", '+BoincFailedJobs = "hold"')),
    }


def test_an_ordinary_job_has_its_outputs_in_the_submit_directory(sent):
    [job] = sent["plain"].wait()
    room = sent["plain"].room
    assert (job["JobUniverse"], job["ExitCode"]) == (5, 0)
    assert room.read("out") == "PLAIN\n"
    assert "args: --routed 1" in room.read("logs/job.err")
    assert room.files() == {"in", "out", "job.sub", "job.log", "job.out", "logs/job.err"}
    shown = room.ask("condor_history", str(sent["plain"].number), "-af", "JobStatus", "ExitCode")
    assert shown.split() == [str(COMPLETED), "0"]


def test_its_user_log_tells_of_submission_execution_and_end(sent):
    sent["plain"].wait()
    assert sent["plain"].events("job.log") == ["000", "001", "005"]


def test_remaps_are_kept_on_the_way_through_the_router(sent):
    sent["remaps"].wait()
    room = sent["remaps"].room
    assert room.read("results/joined") == "a\nb\n"
    assert room.read("sizes") == "sizes 2 2\nargs --optional new=syntax\n"
    assert room.files().isdisjoint({"out0", "out1"})
    assert room.read("out2") == "optional output\n"


def test_a_spooled_job_is_fetched_by_its_user(sent):
    sent["spooled"].wait()
    room = sent["spooled"].room
    room.ask("condor_transfer_data", str(sent["spooled"].number))
    assert room.read("results/mine") == "SPOOLED\n"


def test_condor_q_shows_the_job_running_and_done(sent, node):
    cluster = sent["gated"]
    cluster.wait_until(lambda job: job["JobStatus"] == RUNNING, "the job runs")
    assert f"{cluster.number}.0 R" in node.pool.queue("bob")
    node.open("routed")
    cluster.wait()
    assert cluster.room.read("out") == "routed is open\n"


def test_condor_hold_stops_the_job_and_condor_release_sends_it_anew(sent, node):
    cluster = sent["again"]
    cluster.wait_until(lambda job: job["JobStatus"] == RUNNING, "the job runs")
    cluster.room.ask("condor_hold", f"{cluster.number}.0")
    cluster.wait_until(lambda job: job["JobStatus"] == HELD, "the job is held")
    wait_for(lambda: node.aborted("again") == 1, "the volunteer's copy is aborted", pause=0.5)
    cluster.room.ask("condor_release", f"{cluster.number}.0")
    cluster.wait_until(lambda job: job["JobStatus"] in {IDLE, RUNNING}, "the job is back")
    cluster.wait_until(lambda job: job["JobStatus"] == RUNNING, "the job runs again")
    node.open("again")
    cluster.wait()
    assert cluster.room.read("out") == "again is open\n"
    assert command_lines(node.project).count("again") == 2


def test_a_job_that_was_held_before_it_ran_and_whose_copy_was_released_is_logged_as_executed(sent):
    cluster = sent["late"]
    [job] = cluster.wait(HELD)
    cluster.room.write("in", "late\n")
    cluster.room.ask("condor_release", job["RoutedToJobId"])
    cluster.wait_until(lambda job: job["JobStatus"] != HELD, "the job is back")
    cluster.wait()
    assert cluster.room.read("out") == "LATE\n"
    assert cluster.events("job.log") == ["000", "001", "005"]


def test_condor_rm_aborts_the_job_on_the_project(sent, node):
    cluster = sent["removed"]
    cluster.wait_until(lambda job: job["JobStatus"] == RUNNING, "the job runs")
    cluster.room.ask("condor_rm", str(cluster.number))
    cluster.wait_until(lambda job: job["JobStatus"] == REMOVED, "the job is removed")
    wait_for(lambda: node.aborted("never") == 1, "the volunteer's copy is aborted", pause=0.5)
    assert cluster.room.files() == {"job.sub", "job.log"}


def test_why_the_project_failed_a_job_stands_in_the_users_own_job(sent):
    [job] = sent["crashy"].wait(HELD)
    assert "exit statuses on the volunteers' computers: 11, 11" in job["HoldReason"]
    # Its copy is what is released, and only this one, with the command of the documentation.
    guide = (ROOT / "docs" / "scientists.rst").read_text("utf-8")
    [command] = re.findall(r"``(condor_release \$\(.*?\))``", guide)
    printed = sent["crashy"].room.ask(
        "sh", "-c", command.replace("JOB", f"{sent['crashy'].number}.0")
    )
    assert printed.split() == ["Job", job["RoutedToJobId"], "released"]
    sent["crashy"].wait_until(lambda job: job["JobStatus"] == IDLE, "the job is back")
    sent["crashy"].room.ask("condor_rm", str(sent["crashy"].number))


def test_no_machine_of_the_pool_is_offered_the_job(sent, node):
    cluster = node.pool.room("bob", "offered").submit(vanilla("gated", "arguments = offered"))
    shown = cluster.room.ask("condor_q", str(cluster.number), "-af", "Requirements")
    cluster.room.ask("condor_rm", str(cluster.number))
    assert re.fullmatch(r"\s*false\s*", shown)
