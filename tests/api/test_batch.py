"""Batches and jobs as handles: what they tell, and what can be done to them."""

import math
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from boinc_gahp.api import control
from boinc_gahp.api.known_batch import Counts
from boinc_gahp.backoff import Backoff
from boinc_gahp.errors import BadRequest, BatchConflict, NoSuchBatch, NoSuchJob, TransportError
from boinc_gahp.rpc.types import JobInfo
from boinc_gahp.states import JobState
from tests import faultproxy
from tests.api.conftest import QUICK
from tests.helpers import wait_for

# -- what they tell


def test_a_handle_tells_what_the_project_told_last(site):
    batch = site.batch(3, "told")
    assert (batch.name, batch.app_name, batch.njobs) == ("told", "uppercase", 3)
    assert (batch.nover, batch.nerror_jobs, batch.fraction_done) == (0, 0, 0.0)
    assert batch.expire_time is None
    assert batch.completion_time is None
    assert abs(batch.create_time - time.time()) < 60
    site.project.rpc.abort_batch(batch_id=batch.id)
    assert batch.state.name == "IN_PROGRESS"
    assert batch.refresh() is batch
    assert batch.state.name == "ABORTED"
    assert batch.is_over


def test_handles_of_one_batch_are_equal_and_of_others_not(site):
    one, other = site.batch(1), site.batch(1)
    again = site.open().batch(one.id)
    assert one == again != other
    assert one in site.project.batches()
    assert {one, again, other} == {one, other}
    assert one != one.info


def test_jobs_can_be_named_by_their_handles(site):
    batch, other = site.batch(3), site.batch(1)
    first, *rest = batch.jobs()
    batch.abort(rest)
    assert [job.is_over for job in batch.jobs()] == [False, True, True]
    with pytest.raises(NoSuchJob):
        batch.abort([first, next(other.jobs())])
    assert (batch.counts().queued, other.counts().queued) == (1, 1)
    assert repr(batch) == f"<Batch {batch.id} {batch.name!r} running 2/3 jobs, 2 failed>"
    batch.abort(first)
    assert batch.counts().failed == 3
    assert [failure.id for failure in batch.logs(jobs=first)] == [first.id]


def test_a_batch_that_is_gone_cannot_be_refreshed(site):
    batch = site.batch(1)
    site.change("DELETE FROM batch WHERE id = ?", batch.id)
    with pytest.raises(NoSuchBatch):
        batch.refresh()


def test_jobs_tell_how_they_are(working):
    good = working.batch(2)
    bad = working.batch(1, args="--fail 3")
    for batch in (good, bad):
        batch.wait(timeout=60, poll=QUICK)
    assert good.counts() == Counts(done=2)
    assert bad.counts() == Counts(failed=1)
    job = next(good.jobs())
    assert job.state is JobState.DONE
    assert job.canonical_instance_id == job.instances()[0].id
    assert job.cpu_time is not None
    assert job.failure() is None
    # The project rounds neither; each of its replies has as many digits as PHP writes.
    assert good.cpu_time() == pytest.approx(sum(job.cpu_time or 0 for job in good.jobs()))
    assert repr(job) == f"<BatchJob {job.id} {job.name!r} done>"
    [log, _] = good.logs()
    assert (log.state, log.exit_statuses, log.why) == (JobState.DONE, (0,), "")
    assert log.stderr.startswith("starting uppercase args:")
    failed = bad.job(next(bad.jobs()).name)
    assert failed.state is JobState.FAILED
    assert set(failed.exit_statuses) == {3}
    assert "too_many_error_results" in failed.errors
    assert repr(failed).endswith(" failed, too_many_error_results>")
    assert failed.failure().why == "exit status 3"
    [log] = bad.logs()
    assert (log.state, log.why, log.stderr) == (JobState.FAILED, "exit status 3", None)
    assert log.exit_statuses == (3,) * len(log.instances)
    assert {each.state for each in log.instances} == {"Error while computing"}


def test_a_few_failed_jobs_are_asked_about_at_a_time_and_told_in_order(site):
    batch = site.spoil(site.batch(6))
    names = [job.name for job in batch.jobs()]
    hang = faultproxy.hang()
    site.proxy.fail("query_job", hang, times=None)
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(lambda: [log.name for log in batch.logs()])
        wait_for(lambda: site.proxy.count("query_job") == 4, "four jobs to be asked about")
        hang.release()
        assert asked.result(timeout=60) == names
    lists = site.proxy.count("query_batch")
    assert [log.name for log in batch.logs(jobs=[names[4], names[1]])] == [names[4], names[1]]
    assert site.proxy.count("query_batch") == lists + 1


def test_logs_end_with_an_error_where_the_project_goes_away(site):
    batch = site.spoil(site.batch(3))
    quick = site.open(retry=0).batch(batch.id)
    site.proxy.fail("query_job", faultproxy.status(500), times=None)
    assert len(list(quick.logs())) == 3  # of these jobs nobody knows more
    site.proxy.fail("ping", faultproxy.status(500), times=None)
    with pytest.raises(TransportError):
        list(quick.logs())


def test_a_job_that_is_called_as_another_is_numbered_is_none(site):
    batch = site.batch(2)
    first, last = batch.jobs()
    site.change("UPDATE workunit SET name = ? WHERE id = ?", str(first.id), last.id)
    said = str(first.id)
    for act in (batch.job, lambda one: batch.fetch(site.directory / "out", jobs=one)):
        with pytest.raises(NoSuchJob, match=f"write name:{said} or id:{said}"):
            act(said)
    assert batch.job(f"name:{said}").id == last.id


def test_a_job_with_a_canonical_instance_is_done_whatever_else_is_reported():
    assert JobInfo(1, "j", 7, "error", ("cancelled",)).state is JobState.DONE
    assert JobInfo(1, "j", 0, "error", ("cancelled",)).state is JobState.FAILED
    assert JobInfo(1, "j", 0, "in_progress").state is JobState.IN_PROGRESS
    assert JobInfo(1, "j", 0, "splendid").state is JobState.UNKNOWN


# -- abort


def test_a_batch_or_a_job_that_is_over_is_not_aborted(working):
    # It would look as if it had come to nothing, or be alive again (web-rpcs.rst, "Batch states").
    batch = working.batch(1).wait(timeout=60, poll=QUICK)
    batch.abort()
    batch.abort([next(batch.jobs()).name])
    assert batch.state.name == "COMPLETE"
    assert next(batch.jobs()).errors == ()
    batch.retire()
    batch.abort()
    assert batch.state.name == "RETIRED"


def test_jobs_are_aborted_by_name_and_by_id(site):
    batch = site.batch(5)
    jobs = list(batch.jobs())
    batch.abort([jobs[1].name, jobs[3].id, str(jobs[3].id)])
    failed = [job.id for job in batch.jobs() if job.state is JobState.FAILED]
    assert failed == [jobs[1].id, jobs[3].id]
    batch.abort(jobs[0].name)  # one name, not its letters
    batch.abort(jobs[4].id)
    assert batch.nerror_jobs == 4
    before = site.proxy.count("abort_jobs")
    batch.abort([])
    batch.abort([jobs[1].name])  # over already
    assert site.proxy.count("abort_jobs") == before


def test_an_abort_that_does_not_last_is_reported(site, monkeypatch):
    monkeypatch.setattr(control, "_BACKOFF", Backoff(0.01))
    # As it is while its submit_batch runs: in INIT, with jobs.
    batch = site.batch(2)
    site.change("UPDATE batch SET state = 0 WHERE id = ?", batch.id)

    def undo(exchange):
        reply = exchange.forward()
        site.change("UPDATE batch SET state = 1 WHERE id = ?", batch.id)
        # The project may make another result after each abort, and must not give the job up.
        site.change(
            "UPDATE workunit SET error_mask = 0, max_total_results = 99 WHERE batch = ?", batch.id
        )
        exchange.send(reply)
        return True

    site.proxy.fail("abort_batch", undo, times=None)
    with pytest.raises(
        BatchConflict, match="is running again: another process is still submitting"
    ):
        batch.abort()


# -- lease


def test_a_lease_is_extended_to_a_time_to_come(site):
    batch = site.batch(1)
    until = round(time.time()) + 3600
    batch.extend(until)
    assert batch.expire_time == until
    batch.extend(math.inf)
    assert batch.expire_time is None
    batch.extend("60d")
    assert batch.expire_time == pytest.approx(time.time() + 60 * 86400, abs=60)


@pytest.mark.parametrize("until", [0, -1.0, 1e9, math.nan, -math.inf, 1_900_000_000_000])
def test_a_lease_does_not_end_before_now_nor_in_milliseconds(site, until):
    batch = site.batch(0)
    before = len(site.proxy.seen)
    with pytest.raises(BadRequest, match="expected seconds since 1970, later than now"):
        batch.extend(until)
    assert len(site.proxy.seen) == before
