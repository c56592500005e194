"""Waiting for batches: kind to the project, patient with it, and over when it should be."""

import math
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, strategies as st

from boinc_gahp.api import watching
from boinc_gahp.api.progress import rest_words
from boinc_gahp.api.watching import Poll, PollPauses
from boinc_gahp.errors import BadRequest, PermissionDenied, ProjectDown, RpcError
from boinc_gahp.states import BatchState
from tests import faultproxy
from tests.api.conftest import QUICK
from tests.helpers import wait_for
from tests.inside import fail_attempts, fail_workunit, finish_workunit

#: For what is not to be asked again before something else ends the wait.
SLOW = Poll(shortest=60, longest=60)


# -- waiting


def test_a_wait_ends_when_the_last_job_is_done(working):
    batch = working.batch(3)
    seen = []
    assert batch.wait(timeout=60, poll=QUICK, progress=lambda b: seen.append(b.fraction_done))
    assert batch.state is BatchState.COMPLETE
    assert (batch.nover, batch.nerror_jobs) == (3, 0)
    assert seen == sorted(seen)
    assert seen[-1] == 1.0
    assert batch.completion_time is not None
    assert batch.expected_end is None


def test_before_any_job_is_done_failed_attempts_are_told(site, monkeypatch):
    monkeypatch.setattr(watching, "_FIRST_LOOK", 0.0)
    batch = site.batch(5)
    watch = site.project.watch([batch], poll=QUICK)
    next(watch)
    assert batch.attempts == ""
    fail_attempts(site.local, batch.id)
    monkeypatch.setattr(watching, "_NEXT_LOOK", 0.0)
    before = site.proxy.count("query_job")
    watch = site.project.watch([batch], poll=QUICK)
    next(watch)
    job = [job.name for job in batch][2]
    told = f"no job is done yet, and 3 attempts have failed, the last (job {job}): Error while"
    assert batch.attempts == f"{told} computing"
    assert told in rest_words(batch, None, 0.0)
    assert site.proxy.count("query_job") == before + 3
    site.project.batch(batch.id).abort()
    while not batch.is_over:
        next(watch)
    assert batch.attempts == ""


def test_failed_attempts_are_told_while_no_more_jobs_get_done_or_more_fail(site, monkeypatch):
    monkeypatch.setattr(watching, "_FIRST_LOOK", 0.0)
    monkeypatch.setattr(watching, "_NEXT_LOOK", 0.0)
    batch = site.batch(5)
    good, bad, better, best, last = [job.name for job in batch]
    fail_attempts(site.local, batch.id)
    finish_workunit(site.local, good)
    watch = site.project.watch([batch], poll=QUICK)
    next(watch)
    assert (batch.nover, batch.attempts) == (1, "")
    next(watch)
    assert batch.attempts.startswith(f"3 attempts have failed, the last (job {best}): Error while")
    finish_workunit(site.local, better)
    next(watch)
    assert batch.attempts == "", "one more is done"
    finish_workunit(site.local, best)
    fail_workunit(site.local, bad)
    next(watch)
    assert batch.attempts == f"1 attempt has failed, the last (job {last}): Error while computing"


def test_attempts_are_looked_at_seldom(site, monkeypatch):
    monkeypatch.setattr(watching, "_FIRST_LOOK", 0.0)
    batch = site.batch(2)
    watch = site.project.watch([batch], poll=QUICK)
    for _ in range(5):
        next(watch)
    assert site.proxy.count("query_job") == 2


def test_a_batch_that_is_over_is_looked_at_no_more(site):
    batch = site.batch(1)
    batch.abort()
    before = len(site.proxy.seen)
    assert batch.wait(timeout=0) is batch
    assert len(site.proxy.seen) == before


def test_a_wait_that_is_too_long_says_how_far_it_was(site):
    batch = site.batch(2)
    with pytest.raises(
        TimeoutError, match=r"not over after 0\.05 s: 0 of 2 jobs are; it continues on the project$"
    ):
        batch.wait("0.05s", poll=QUICK)
    assert not batch.is_over


def test_a_wait_without_time_looks_once(site):
    batch = site.batch(2)
    before = len(site.proxy.seen)
    with pytest.raises(TimeoutError):
        batch.wait(timeout=0)
    assert site.proxy.seen[before:] == ["query_batch"]


def test_many_batches_are_listed_once_and_then_asked_for_what_has_changed(site, monkeypatch):
    # What takes the project long is asked for seldom.
    monkeypatch.setattr("boinc_gahp.api.watching._SLOW", math.inf)
    batches = [site.batch(20) for _ in range(3)]
    watch = site.project.watch(batches, poll=QUICK)
    before = len(site.proxy.seen)
    for _ in range(4):
        assert next(watch) == tuple(batches)
    once = ["query_batches", "query_batch2", *["query_batch"] * 3, "query_batch2"]
    assert site.proxy.seen[before:] == once + ["query_batches", "query_batch2"] * 3


def test_a_small_batch_is_asked_for_with_its_jobs(site):
    watch = site.project.watch([site.batch(1)], poll=QUICK)
    before = len(site.proxy.seen)
    for _ in range(3):
        next(watch)
    assert site.proxy.seen[before:] == ["query_batch"] * 3


def test_one_batch_can_be_watched_as_such(site):
    batch = site.batch(1)
    assert next(site.project.watch(batch, poll=QUICK)) == (batch,)


def test_a_watch_ends_when_all_are_over(site):
    batches = [site.batch(1) for _ in range(3)]
    looks = 0
    for now in site.project.watch(batches, poll=QUICK):
        looks += 1
        if looks <= 3:
            site.project.rpc.abort_batch(batch_id=now[looks - 1].id)
    assert looks == 4
    assert {batch.state for batch in batches} == {BatchState.ABORTED}


def test_a_batch_that_vanishes_ends_the_wait(site):
    batch = site.batch(2)
    site.change("DELETE FROM batch WHERE id = ?", batch.id)
    batch.wait(timeout=60, poll=QUICK)
    assert batch.gone
    assert batch.is_over
    assert repr(batch).endswith("gone>")


def test_a_batch_without_jobs_is_not_waited_for_for_ever(site):
    batch = site.batch(0)
    site.change("UPDATE batch SET state = 1 WHERE id = ?", batch.id)
    assert batch.wait(timeout=60, poll=QUICK).state is BatchState.IN_PROGRESS


# -- trouble


def test_a_project_that_is_down_is_waited_out_and_reported(site):
    batch = site.open(retry=0).batch(site.batch(2).id)
    said = []

    def progress(now):
        if len(said) == 2:
            site.local.core.web_stopped = False
            site.project.rpc.abort_batch(batch_id=now.id)
        said.append(f"{type(now.trouble).__name__} {now.trouble}")

    with site.down():
        batch.wait(timeout=60, poll=QUICK, progress=progress)
    assert "ProjectDown" in said[0]
    assert "the project is down" in said[0]
    assert said[-1] == "NoneType None"
    assert batch.state is BatchState.ABORTED
    assert batch.trouble is None


def test_the_trouble_stands_in_the_timeout(site):
    batch = site.open(retry=0).batch(site.batch(2).id)
    site.local.core.database_down = True
    try:
        with pytest.raises(TimeoutError, match=r"; the last query failed: .*project is down"):
            batch.wait(timeout=0.1, poll=QUICK)
    finally:
        site.local.core.database_down = False
    assert isinstance(batch.trouble, ProjectDown)


# What else a network does: tests/rpc/test_faults.py.
@pytest.mark.parametrize(
    "fault", [faultproxy.lose_reply(), faultproxy.status(404)], ids=["lost reply", "404"]
)
def test_one_bad_answer_is_no_end(site, fault):
    batch = site.open(retry=0).batch(site.batch(2).id)
    watch = batch.project.watch([batch], poll=QUICK)
    site.proxy.fail("query_batch", fault, times=2)
    next(watch)  # a connection that was dropped is tried once more at once
    next(watch)
    assert next(watch) == (batch,)
    assert batch.trouble is None
    assert (batch.state, batch.njobs) == (BatchState.IN_PROGRESS, 2)


def test_an_account_that_may_not_look_any_more_ends_the_wait(site):
    batch = site.batch(1)
    site.change("UPDATE user SET authenticator = 'new' WHERE authenticator = ?", site.authenticator)
    with pytest.raises(PermissionDenied, match="account key is wrong"):
        batch.wait(timeout=60, poll=QUICK)


@pytest.mark.parametrize("during", ["pause", "question", "abort"])
def test_closing_the_project_ends_a_wait_at_once(site, during):
    # An empty batch that was aborted is looked at again.
    batch = site.batch(0 if during == "abort" else 1)
    looked = threading.Event()
    hang = faultproxy.hang()
    if during == "question":
        site.proxy.fail("query_batch", hang)
    reached = {
        "pause": looked.is_set,
        "question": hang.reached.is_set,
        "abort": lambda: site.proxy.count("abort_batch"),
    }

    with ThreadPoolExecutor(1) as pool:
        waiting = (
            pool.submit(batch.abort)
            if during == "abort"
            else pool.submit(batch.wait, poll=SLOW, progress=lambda _: looked.set())
        )
        wait_for(reached[during], "the first look")
        site.project.close()
        hang.release()
        assert isinstance(waiting.exception(60), RpcError)


# -- the rhythm


@pytest.mark.parametrize(
    "pauses", [(0, 1), (-1, 1), (2, 1), (math.nan, 1), (1, math.nan), (1, math.inf), (1, 86401)]
)
def test_a_poll_of_nonsense_is_refused(pauses):
    with pytest.raises(BadRequest, match=r"a poll's pauses are|is not a time span"):
        Poll(*pauses)


@given(
    st.lists(
        st.tuples(st.floats(0, 1e6), st.floats(0, 100), st.booleans()), min_size=1, max_size=50
    )
)
def test_a_pause_is_never_outside_its_bounds(looks):
    pauses = PollPauses(Poll(2, "20s"))
    for elapsed, cost, changed in looks:
        pause = pauses.pause(elapsed, cost, changed=changed)
        assert 2 <= pause <= 20
        assert pause >= min(10 * cost, 20)


def test_pauses_grow_while_nothing_changes_and_shrink_when_something_does():
    pauses = PollPauses(Poll())
    assert pauses.pause(0, 0, changed=True) == 1.0
    quiet = [pauses.pause(0, 0, changed=False) for _ in range(12)]
    assert quiet == sorted(quiet)
    assert quiet[-1] == 30.0
    assert pauses.pause(0, 0, changed=True) == 15.0
    assert pauses.pause(0, 0, changed=True) == 7.5


def test_a_watch_of_an_hour_looks_rarely_though_jobs_end_all_the_time():
    pauses, elapsed, looks = PollPauses(Poll()), 0.0, 0
    while elapsed < 3600:
        elapsed += pauses.pause(elapsed, 0.01, changed=True)
        looks += 1
    assert looks < 360
