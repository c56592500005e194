"""Why jobs failed: grouped, with a line of stderr, and the logs of single jobs."""

import csv

import pytest

from boinc_gahp.api.outputs.logs import Reason
from boinc_gahp.fetch.job_end import JobEnd
from boinc_gahp.localproject.states import Outcome
from boinc_gahp.rpc.types import JobInfo
from boinc_gahp.states import JobState
from tests import faultproxy
from tests.api.conftest import QUICK
from tests.inside import fail_attempts, tell_of_failed_jobs


def failed(site, *outcomes):
    """Return a batch of failed jobs: how the instance of each ended, and the client's state."""
    batch = site.batch(len(outcomes))
    fail_attempts(site.local, batch.id)
    for job, told in zip(batch, outcomes, strict=True):
        statement = "UPDATE result SET outcome = ?, client_state = ? WHERE workunitid = ?"
        site.change(statement, *told, job.id)
    return site.spoil(batch)


def test_failures_without_an_exit_status_are_told_by_what_became_of_the_instances(site, tmp_path):
    no_reply = (Outcome.NO_REPLY, 0)
    invalid = (Outcome.VALIDATE_ERROR, 0)
    batch = failed(site, (Outcome.CLIENT_ERROR, 7), invalid, no_reply, no_reply)
    late = "Timed out - no response: no result came before the deadline"
    told = [
        "Upload failed: its outputs could not be uploaded",
        "Validate error: the project's validator could not check its outputs",
        late,
        late,
    ]
    assert [row["why"] for row in batch.to_records()] == told
    assert [log.why for log in batch.logs()] == told
    assert [(reason.count, reason.end.why) for reason in batch.reasons()] == [
        (2, late),
        (1, told[0]),
        (1, told[1]),
    ]
    table = batch.fetch(tmp_path / "out").table
    with table.open(newline="") as file:
        assert [row["why"] for row in csv.DictReader(file)] == told


def test_the_instances_of_a_hundred_jobs_are_asked_for_and_no_more(site, monkeypatch):
    monkeypatch.setattr("boinc_gahp.api.outputs.logs.ASKED", 2)
    batch = failed(site, *[(Outcome.NO_REPLY, 0)] * 4)
    asked = site.proxy.count("query_job")
    found = [row["why"] for row in batch.to_records()]
    assert [why.startswith("Timed out") for why in found] == [True, True, False, False]
    assert site.proxy.count("query_job") == asked + 2


def test_jobs_are_grouped_by_their_reasons_the_most_frequent_first(site):
    batch = site.batch(6)
    names = [job.name for job in batch.jobs()]
    batch.abort(names[0])
    site.spoil(batch, *names[1:4], mask=1)
    queries = site.proxy.count("query_batch")
    found = batch.reasons()
    assert [(each.end.why, each.count, each.end.name) for each in found] == [
        ("no volunteer could take it", 3, names[1]),
        ("aborted", 1, names[0]),
    ]
    assert str(found[1]) == f"1 × aborted ({names[0]})"
    # All jobs at once, and a look for a retry.
    assert site.proxy.count("query_batch") == queries + 2
    assert site.proxy.count("query_completed_job") == 1
    assert batch.reasons(jobs=names[4:]) == []


@pytest.mark.parametrize("told", ["", "failing with 3 as asked"], ids=["untold", "told"])
def test_a_reason_has_the_last_line_of_stderr_where_the_project_tells_it(
    working, told, monkeypatch
):
    if told:
        tell_of_failed_jobs(monkeypatch)
    batch = working.batch(2, args="--fail 3").wait(timeout=60, poll=QUICK)
    [reason] = batch.reasons()
    assert (reason.end.why, reason.count, reason.end.exit_status) == ("exit status 3", 2, 3)
    assert reason.stderr == told
    assert batch.reasons(stderr=False)[0].stderr == ""


def test_reasons_are_told_also_if_the_project_does_not_tell_of_single_jobs(site):
    batch = site.spoil(site.batch(2))
    quick = site.open(retry=0).batch(batch.id)
    site.proxy.fail("query_completed_job", faultproxy.status(500), times=None)
    site.proxy.fail("query_job", faultproxy.status(500), times=None)
    [reason] = quick.reasons()
    assert (reason.end.why, reason.count) == ("too many instances failed", 2)


def test_control_characters_of_a_stderr_do_not_reach_people():
    job = JobInfo(1, "j\x1b[2J", 0, "error", ("\x1b",))
    reason = Reason(1, JobEnd(job, stderr="\x1b]0;x\x07 \u202e"))
    assert str(reason).isprintable()


def test_jobs_that_are_not_over_are_not_asked_about(site):
    batch = site.batch(2)
    assert [(log.state, log.stderr) for log in batch.logs()] == [(JobState.QUEUED, None)] * 2
    assert site.proxy.count("query_completed_job") == 0
