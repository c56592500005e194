"""A ledger after months: what goes, what stays, and how large the file is."""

import itertools
import os
import sqlite3
import threading
import time
from contextlib import closing

import pytest

from boinc_gahp.config.settings import HTCondor
from boinc_gahp.errors import LedgerError
from boinc_gahp.ledger import upkeep
from boinc_gahp.ledger.jobs import JobLedger
from boinc_gahp.ledger.ledger import Ledger, all_pending_aborts
from boinc_gahp.ledger.store import Store
from boinc_gahp.ledger.upkeep import drop_unneeded
from tests.helpers import wait_for
from tests.ledger.crowd import committing, queued, writing
from tests.ledger.jobs import ACCOUNT, HOLD, MINE, URL, finish, new_job, submitted

DAY = 86400.0
NEVER = threading.Event()


def aged(store, days):
    """Let everything have happened so many days ago."""
    ago = days * DAY
    store.execute(
        f"UPDATE job SET changed = changed - {ago}, last_polled = last_polled - {ago}", ()
    )
    store.execute(f"UPDATE batch SET changed = changed - {ago}, sent = sent - {ago}", ())
    store.execute(f"UPDATE aborted_job SET recorded = recorded - {ago}", ())


def forget(jobs, *, untold=True):
    now = time.time()
    return upkeep.drop_old(jobs.store, now, 0.0, now - 90 * DAY, untold=untold)


def after(seconds):
    return HTCondor(history=30 * DAY, forget_after=seconds)


def ids(jobs):
    with jobs.store.read() as connection:
        return [job_id for (job_id,) in connection.execute("SELECT id FROM job ORDER BY id")]


def test_what_ended_and_was_never_told_goes_after_its_time(jobs):
    _, (done, held, gone) = submitted(jobs, "a", "b", "c")
    waiting = jobs.accept(new_job("d")).id
    finish(jobs, done)
    jobs.fetched(done, 0, 1.0)
    jobs.hold([held], HOLD)
    jobs.cancel(gone)
    aged(jobs.store, 89)
    assert forget(jobs) == 0
    aged(jobs.store, 2)
    # HTCondor may not have had the time to ask. The batch, which was never retired, goes later.
    assert forget(jobs, untold=False) == 1
    assert ids(jobs) == [done, held, waiting]
    assert forget(jobs) == 3
    assert ids(jobs) == [waiting]
    assert jobs.batches(*MINE) == []


def test_what_htcondor_asks_about_or_the_project_may_still_have_stays(jobs):
    batch, (job_id,) = submitted(jobs, "a")
    jobs.cancel(job_id)
    aged(jobs.store, 91)
    jobs.leased(batch.id, time.time() + DAY)
    assert forget(jobs) == 0
    jobs.leased(batch.id, time.time() - DAY)
    jobs.htcondor_polled({job_id: time.time()})
    assert forget(jobs) == 0
    assert [pending.id for pending in jobs.pending_aborts(*MINE)] == [job_id]


def test_old_aborted_jobs_and_pending_aborts_of_boinc_requests_go(store):
    ledger = Ledger(store.path)
    ledger.record_aborted(URL, ACCOUNT, ["b_1", "b_2"], "never retired")
    ledger.record_abort(URL, ACCOUNT, "b", 7, 0.0)
    aged(store, 91)
    ledger.record_aborted(URL, ACCOUNT, ["c_1"])
    ledger.record_abort(URL, ACCOUNT, "c", 8, 0.0)
    assert forget(JobLedger(store)) == 3
    assert ledger.aborted_jobs(URL, ACCOUNT) == {"c_1"}
    assert [batch.project_batch_id for batch in all_pending_aborts(store)] == [8]
    ledger.close()


def filled(jobs, count):
    """Have jobs with 100 KB each, all of which ended and were dropped."""
    made = [jobs.accept(new_job(f"big{n}", description="x" * 100_000)).id for n in range(count)]
    for job_id in made:
        jobs.cancel(job_id)
    aged(jobs.store, 91)
    assert forget(jobs) >= count


def size(store):
    with closing(sqlite3.connect(store.path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    return store.path.stat().st_size


def test_the_file_shrinks_in_steps_between_which_others_write(store, elsewhere, monkeypatch):
    jobs = JobLedger(store)
    filled(jobs, 100)
    before = size(store)
    steps = []
    has_many_free = upkeep._has_many_free

    def step(connection):
        steps.append(connection.execute("PRAGMA freelist_count").fetchone()[0])
        turn.release()
        return has_many_free(connection)

    monkeypatch.setattr(upkeep, "_has_many_free", step)
    monkeypatch.setattr(upkeep, "_PAUSE", 0.0)
    written = []
    # As much as there are steps, or the file grows by what others write.
    turn = threading.Semaphore(1)
    ended = threading.Event()

    def others():
        other = JobLedger(elsewhere)
        while turn.acquire() and not ended.is_set():
            written.append(other.accept(new_job(f"other{len(written)}")).id)

    thread = threading.Thread(target=others)
    thread.start()
    wait_for(lambda: written, "another's write")
    upkeep.shrink(store, NEVER)
    ended.set()
    turn.release()
    thread.join()
    assert len(steps) > 3
    assert all(first - then <= upkeep.STEP + 50 for first, then in itertools.pairwise(steps))
    assert size(store) < before / 2
    assert ids(jobs) == written


def test_one_process_an_hour_tends_it(jobs, elsewhere):
    ended = jobs.accept(new_job("a")).id
    jobs.cancel(ended)
    now = time.time()
    drop_unneeded(jobs, now, after(0.0), NEVER, untold=True)
    assert ids(jobs) == []
    jobs.cancel(jobs.accept(new_job("b")).id)
    aged(jobs.store, 1)
    drop_unneeded(JobLedger(elsewhere), now + 3000, after(0.0), NEVER, untold=True)
    assert len(ids(jobs)) == 1
    drop_unneeded(JobLedger(elsewhere), now + 3601, after(0.0), NEVER, untold=True)
    assert ids(jobs) == []
    # A clock that was set back does not keep it from being tended for ever.
    jobs.cancel(jobs.accept(new_job("c")).id)
    aged(jobs.store, 1)
    drop_unneeded(jobs, now - 50 * DAY + 1, after(-60 * DAY), NEVER, untold=True)
    assert ids(jobs) == []


def test_jobs_that_both_sides_know_to_be_over_go_after_the_history(jobs):
    _, (told, untold) = submitted(jobs, "a", "b")
    jobs.hold([told, untold], HOLD)
    jobs.end_reported([told])
    (batch,) = jobs.batches(*MINE, "ended")
    jobs.close_batch(batch.id, retired=True)
    drop_unneeded(jobs, time.time() + 29 * DAY, after(90 * DAY), NEVER, untold=True)
    assert ids(jobs) == [told, untold]
    drop_unneeded(jobs, time.time() + 31 * DAY, after(90 * DAY), NEVER, untold=True)
    assert ids(jobs) == [untold]


# -- the file's name


def gone(path):
    for end in ("", "-wal", "-shm"):
        path.with_name(path.name + end).unlink(missing_ok=True)


def test_into_a_ledger_that_was_deleted_nothing_is_written(store):
    jobs = JobLedger(store)
    first = jobs.accept(new_job("a")).id
    assert store.has_its_place()
    assert store.failing is None
    gone(store.path)
    assert not store.has_its_place()
    with pytest.raises(LedgerError, match="was deleted or replaced while it was open"):
        jobs.accept(new_job("b"))
    assert "was deleted or replaced" in str(store.failing)
    assert ids(jobs) == [first]
    with store.read(), pytest.raises(LedgerError), store.read():
        pass  # a second reader needs a new connection
    assert not store.path.exists()


def test_a_file_that_was_put_in_its_place_is_left_alone(path):
    ours = Store(path)
    JobLedger(ours).accept(new_job("a"))
    gone(path)
    theirs = Store(path)
    made = JobLedger(theirs).accept(new_job("b")).id
    with pytest.raises(LedgerError, match="was deleted or replaced while it was open"):
        JobLedger(ours).accept(new_job("c"))
    # Nor is it taken for ours.
    with ours.read(), pytest.raises(LedgerError, match="was deleted or replaced"), ours.read():
        pass  # a second reader needs a new connection
    more = JobLedger(theirs).accept(new_job("d")).id
    # The log that has the name of ours by now is theirs.
    ours.close()
    again = Store(path)
    assert ids(JobLedger(again)) == ids(JobLedger(theirs)) == [made, more]
    again.close()
    theirs.close()


def test_changes_that_wait_when_it_is_deleted_are_all_refused(store):
    with committing(store):
        crowd = writing(store, ["one", "two"])
        queued(store, 2)
        gone(store.path)
    assert [type(each) for each in crowd.join()] == [LedgerError] * 2


@pytest.mark.skipif(os.geteuid() == 0, reason="root may search any directory")
def test_a_directory_that_cannot_be_searched_for_a_while_is_no_loss(store):
    store.path.parent.chmod(0o000)
    try:
        assert store.has_its_place()
    finally:
        store.path.parent.chmod(0o700)
