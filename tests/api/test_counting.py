"""Counts of a watched batch's jobs: right, cheap for the project, and of this batch only."""

import time
from types import SimpleNamespace

import pytest
from hypothesis import given, strategies as st

from boinc_gahp.api.known_batch import Counts
from boinc_gahp.api.watching import FEW, JobTracker
from boinc_gahp.errors import RpcError
from boinc_gahp.states import JobState
from tests import faultproxy
from tests.api.conftest import QUICK


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """The clock by which what takes long is asked for seldom; it stands still."""
    clock = SimpleNamespace(now=time.monotonic(), time=time.time)
    clock.monotonic = lambda: clock.now
    monkeypatch.setattr("boinc_gahp.api.watching.time", clock)
    return clock


def send(site, batch, count):
    """Send ``count`` of a batch's jobs to a host, as the scheduler does."""
    jobs = "SELECT id FROM workunit WHERE batch = ? ORDER BY id LIMIT ?"
    sent = f"UPDATE result SET server_state = 4, sent_time = 1 WHERE workunitid IN ({jobs})"
    site.change(sent, batch.id, count)
    site.change(f"UPDATE workunit SET mod_time = clock() WHERE id IN ({jobs})", batch.id, count)


def counted(batch):
    counts = batch.latest_counts
    return counts.queued, counts.in_progress, counts.done, counts.failed


@pytest.mark.parametrize("is_small", [True, False], ids=["small", "large"])
def test_a_watched_batch_knows_how_many_jobs_wait_and_run(site, is_small, monkeypatch):
    monkeypatch.setattr("boinc_gahp.api.watching.FEW", FEW if is_small else 0)
    batch = site.batch(4)
    assert batch.latest_counts is None
    watch = site.project.watch([batch], poll=QUICK)
    next(watch)
    assert counted(batch) == (4, 0, 0, 0)
    send(site, batch, 3)
    next(watch)
    assert counted(batch) == (1, 3, 0, 0)
    names = [job.name for job in site.project.rpc.iter_jobs(batch.id)]
    site.project.rpc.abort_jobs(names[:2])
    next(watch)
    assert counted(batch) == (1, 1, 0, 2)
    site.project.rpc.abort_batch(batch_id=batch.id)
    next(watch)
    assert batch.is_over
    assert counted(batch)[:2] == (0, 0)


def test_changes_that_take_the_project_long_are_asked_for_seldom(site, monkeypatch, clock):
    monkeypatch.setattr("boinc_gahp.api.watching.FEW", 0)
    batch = site.batch(3)

    def slow(exchange):
        clock.now += 2.0
        return faultproxy.delay(0.0)(exchange)

    # The first answer only tells the time.
    site.proxy.fail("query_batch2", slow, skip=1)
    watch = site.project.watch([batch], poll=QUICK)
    for _ in range(3):
        next(watch)
    assert site.proxy.count("query_batch2") == 2
    assert counted(batch) == (3, 0, 0, 0)


def test_a_batch_that_is_too_large_is_not_counted(site, monkeypatch):
    monkeypatch.setattr("boinc_gahp.api.watching.FEW", 0)
    monkeypatch.setattr("boinc_gahp.api.watching.MOST", 2)
    batch = site.batch(3)
    before = len(site.proxy.seen)
    next(site.project.watch([batch], poll=QUICK))
    assert site.proxy.seen[before:] == ["query_batches"]
    assert batch.latest_counts is None


@pytest.mark.parametrize("whose", ["ours", "somebody else's"])
def test_jobs_of_an_older_batch_of_the_name_are_not_counted(site, monkeypatch, clock, whose):
    monkeypatch.setattr("boinc_gahp.api.watching.FEW", 0)
    project = site.project if whose == "ours" else site.somebody_else()
    name = f"twice {whose[:4]}"
    older = site.batch(2, name=name, project=project)
    send(site, older, 2)
    batch = site.batch(3, name=name)
    watch = site.project.watch([batch], poll=QUICK)
    next(watch)
    assert counted(batch) == (3, 0, 0, 0)
    send(site, batch, 3)
    next(watch)
    # It is listed again, but not at each poll.
    clock.now += 3600.0
    next(watch)
    assert counted(batch) == (0, 3, 0, 0)


def test_changes_that_the_name_does_not_tell_are_missed_and_the_batch_is_listed_again(
    site, monkeypatch, clock
):
    monkeypatch.setattr("boinc_gahp.api.watching.FEW", 0)
    older = site.batch(2, name="long ago")
    site.change("UPDATE workunit SET mod_time = 2 WHERE batch = ?", older.id)
    batch = site.batch(3, name="long ago")
    watch = site.project.watch([batch], poll=QUICK)
    next(watch)
    site.project.rpc.abort_jobs([job.name for job in batch.jobs()][:1])
    send(site, batch, 3)
    next(watch)
    assert counted(batch) == (2, 0, 0, 1)
    clock.now += 3600.0
    next(watch)
    assert counted(batch) == (0, 2, 0, 1)


def test_a_batch_is_watched_even_if_its_jobs_cannot_be_counted(site, monkeypatch):
    monkeypatch.setattr("boinc_gahp.api.watching.FEW", 0)
    batch = site.open(retry=0).batch(site.batch(3).id)
    site.proxy.fail("query_batch2", faultproxy.status(500), times=100)
    watch = batch.project.watch([batch], poll=QUICK)
    next(watch)
    assert (batch.trouble, batch.latest_counts) == (None, None)
    with pytest.raises(RpcError):
        batch.project.rpc.query_batch2([batch.name])


def test_a_batch_that_is_asked_for_alone_has_no_counts(site):
    batch = site.batch(2)
    next(site.project.watch([batch], poll=QUICK))
    assert batch.latest_counts == Counts(queued=2)
    assert batch.refresh().latest_counts is None


_STATES = st.sampled_from([state for state in JobState if state is not JobState.UNKNOWN])


@given(
    st.integers(1, 5).flatmap(
        lambda count: st.lists(st.lists(_STATES, min_size=count, max_size=count), min_size=1)
    )
)
def test_a_tracker_that_sees_changes_knows_what_one_that_sees_everything_knows(looks):
    everything, changes = JobTracker(), JobTracker()
    before = [None] * len(looks[0])
    for at, look in enumerate(looks, 1):
        jobs = [(f"j{n}", state) for n, state in enumerate(look)]
        everything.see(jobs, at)
        assert changes.see(
            [job for job, old in zip(jobs, before, strict=True) if job[1] is not old], at
        )
        before = list(look)
        assert everything.longest == changes.longest
        assert changes.running == look.count(JobState.IN_PROGRESS)
        assert changes.over == sum(state.is_over for state in look)


def test_the_longest_job_is_the_one_that_was_first_seen_running():
    tracker = JobTracker()
    longest = []
    for at, jobs in (
        (10.0, {"a": JobState.QUEUED, "b": JobState.QUEUED}),
        (12.0, {"a": JobState.IN_PROGRESS}),
        (20.0, {"b": JobState.IN_PROGRESS}),
        (30.0, {"a": JobState.QUEUED}),  # to be sent again
        (40.0, {"a": JobState.DONE, "b": JobState.DONE}),
    ):
        tracker.see(jobs.items(), at)
        longest.append(tracker.longest)
    assert longest == [None, 0.0, 8.0, 10.0, None]
