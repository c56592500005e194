"""A ledger after months: what goes, what stays, and how large the file is."""

from __future__ import annotations

import itertools
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING

import pytest

from boinc_gahp.errors import LedgerError
from boinc_gahp.ledger import AccountLock, JobLedger, Ledger, Store, drop_unneeded, upkeep
from boinc_gahp.ledger.listing import all_pending_aborts
from tests.helpers import wait_for
from tests.ledger.jobs import ACCOUNT, HOLD, MINE, URL, finish, new_job, submitted
from tests.ledger.test_upgrading import path as old_path  # noqa: F401  (a fixture)

if TYPE_CHECKING:
    from pathlib import Path

DAY = 86400.0
NEVER = threading.Event()


def aged(store: Store, days: float) -> None:
    """Let everything have happened so many days ago."""

    def change(connection: sqlite3.Connection) -> None:
        connection.execute(
            "UPDATE job SET changed = changed - ?, asked = asked - ?", (days * DAY,) * 2
        )
        connection.execute(
            "UPDATE batch SET changed = changed - ?, sent = sent - ?", (days * DAY,) * 2
        )
        connection.execute("UPDATE aborted_job SET recorded = recorded - ?", (days * DAY,))

    store.write(change)


def forget(jobs: JobLedger, *, untold: bool = True) -> int:
    now = time.time()
    return upkeep.forget(jobs.store, now, now - 90 * DAY, untold=untold)


def ids(jobs: JobLedger) -> list[int]:
    with jobs.store.read() as connection:
        return [job_id for (job_id,) in connection.execute("SELECT id FROM job ORDER BY id")]


def test_what_ended_and_was_never_told_goes_after_its_time(jobs: JobLedger) -> None:
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


def test_what_htcondor_asks_about_or_the_project_may_still_have_stays(jobs: JobLedger) -> None:
    batch, (job_id,) = submitted(jobs, "a")
    jobs.cancel(job_id)
    aged(jobs.store, 91)
    jobs.leased(batch.id, time.time() + DAY)
    assert forget(jobs) == 0
    jobs.leased(batch.id, time.time() - DAY)
    jobs.htcondor_polled([job_id], time.time())
    assert forget(jobs) == 0
    assert [pending.job_id for pending in jobs.pending_aborts(*MINE)] == [job_id]


def test_old_aborted_jobs_and_pending_aborts_of_boinc_requests_go(store: Store) -> None:
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


def filled(jobs: JobLedger, count: int) -> None:
    """Have jobs with 100 KB each, all of which ended and were dropped."""
    made = [jobs.accept(new_job(f"big{n}", description="x" * 100_000)).id for n in range(count)]
    for job_id in made:
        jobs.cancel(job_id)
    aged(jobs.store, 91)
    assert forget(jobs) >= count


def size(store: Store) -> int:
    with closing(sqlite3.connect(store.path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    return store.path.stat().st_size


def test_the_file_shrinks_in_steps_between_which_others_write(
    store: Store, elsewhere: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = JobLedger(store)
    filled(jobs, 100)
    before = size(store)
    steps: list[int] = []
    give_back = upkeep._give_back

    def step(connection: sqlite3.Connection) -> None:
        give_back(connection)
        steps.append(connection.execute("PRAGMA freelist_count").fetchone()[0])
        turn.release()

    monkeypatch.setattr(upkeep, "_give_back", step)
    monkeypatch.setattr(upkeep, "_PAUSE", 0.0)
    written: list[int] = []
    # As much as there are steps, or the file grows by what others write.
    turn = threading.Semaphore(1)
    ended = threading.Event()

    def others() -> None:
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


def test_an_old_file_is_written_anew_while_others_write_it_and_shrinks(old_path: Path) -> None:  # noqa: F811
    store, other = Store(old_path), Store(old_path)
    jobs = JobLedger(store)
    filled(jobs, 100)
    kept = ids(jobs)
    with closing(sqlite3.connect(old_path)) as connection:
        assert connection.execute("PRAGMA auto_vacuum").fetchone() == (0,)
    before = size(store)
    made: list[int] = []
    ended = threading.Event()

    def others() -> None:
        while not ended.is_set():
            made.append(JobLedger(other).accept(new_job(f"other{len(made)}")).id)

    thread = threading.Thread(target=others)
    thread.start()
    wait_for(lambda: made, "another's write")
    upkeep.shrink(store, NEVER)
    count = len(made)
    wait_for(lambda: len(made) > count, "another's write after it")
    ended.set()
    thread.join()
    with closing(sqlite3.connect(old_path)) as connection:
        assert connection.execute("PRAGMA auto_vacuum").fetchone() == (2,)
    assert size(store) < before / 2
    assert ids(jobs) == kept + made
    filled(jobs, 100)
    upkeep.shrink(store, NEVER)
    assert size(store) < before / 2
    store.close()
    other.close()


REWRITER = """
import sys, threading
from pathlib import Path
from boinc_gahp.ledger import Store, upkeep
store = Store(Path(sys.argv[1]))
print("go", flush=True)
upkeep.shrink(store, threading.Event())
print("done", flush=True)
"""


@pytest.mark.processes
@pytest.mark.parametrize("after", [0.0, 0.002, 0.01, 0.03])
def test_a_kill_while_it_is_written_anew_loses_nothing(old_path: Path, after: float) -> None:  # noqa: F811
    store = Store(old_path)
    for number in range(50):
        JobLedger(store).accept(new_job(f"big{number}", description="x" * 100_000))
    kept = ids(JobLedger(store))
    store.close()
    process = subprocess.Popen(
        [sys.executable, "-c", REWRITER, str(old_path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "go\n"
    threading.Event().wait(after)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    store = Store(old_path)
    assert ids(JobLedger(store)) == kept
    assert size(store) > 5_000_000
    upkeep.shrink(store, NEVER)
    assert ids(JobLedger(store)) == kept
    size(store)
    store.close()


def test_one_process_an_hour_tends_it(jobs: JobLedger, elsewhere: Store) -> None:
    ended = jobs.accept(new_job("a")).id
    jobs.cancel(ended)
    now = time.time()
    drop_unneeded(jobs, now, 0.0, NEVER, untold=True)
    assert ids(jobs) == []
    jobs.cancel(jobs.accept(new_job("b")).id)
    aged(jobs.store, 1)
    drop_unneeded(JobLedger(elsewhere), now + 3000, 0.0, NEVER, untold=True)
    assert len(ids(jobs)) == 1
    drop_unneeded(JobLedger(elsewhere), now + 3601, 0.0, NEVER, untold=True)
    assert ids(jobs) == []
    # A clock that was set back does not keep it from being tended for ever.
    jobs.cancel(jobs.accept(new_job("c")).id)
    aged(jobs.store, 1)
    drop_unneeded(jobs, now - 50 * DAY + 1, -60 * DAY, NEVER, untold=True)
    assert ids(jobs) == []


# -- the file's name


def _longer(some: list[int], than: int) -> bool:
    return len(some) > than


def test_a_ledger_that_was_deleted_is_put_back_with_all_that_was_in_it(store: Store) -> None:
    jobs = JobLedger(store)
    first = jobs.accept(new_job("a")).id
    assert store.keep_place() == "kept"
    for end in ("", "-wal", "-shm"):
        store.path.with_name(store.path.name + end).unlink()
    second = jobs.accept(new_job("b")).id
    assert store.keep_place() == "put back"
    third = jobs.accept(new_job("c")).id
    assert store.keep_place() == "kept"
    other = Store(store.path)
    assert ids(JobLedger(other)) == ids(jobs) == [first, second, third]
    assert JobLedger(other).token == jobs.token
    assert store.path.stat().st_mode & 0o777 == 0o600
    fourth = JobLedger(other).accept(new_job("d")).id
    assert ids(jobs)[-1] == fourth
    other.close()


def test_only_its_name_may_be_gone_and_a_reader_at_work_does_not_matter(store: Store) -> None:
    jobs = JobLedger(store)
    first = jobs.accept(new_job("a")).id
    with store.read() as connection:
        store.path.unlink()
        assert store.keep_place() == "put back"
        second = jobs.accept(new_job("b")).id
        assert connection.execute("SELECT id FROM job").fetchall() == [(first,)]
    assert ids(jobs) == [first, second]
    assert size(store) > 0


def test_it_is_put_back_though_others_write_all_the_time(store: Store) -> None:
    ended = threading.Event()
    made: list[list[int]] = [[], [], []]

    jobs = JobLedger(store)

    def write(mine: list[int]) -> None:
        while not ended.is_set():
            mine.append(jobs.accept(new_job(f"{id(mine)} {len(mine)}")).id)

    threads = [threading.Thread(target=write, args=(mine,)) for mine in made]
    for thread in threads:
        thread.start()
    try:
        for _ in range(3):
            wait_for(partial(_longer, made[0], len(made[0])), "a write")
            store.path.unlink()
            assert store.keep_place() == "put back"
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    again = Store(store.path)
    assert ids(JobLedger(again)) == sorted(job for mine in made for job in mine)
    again.close()


def test_a_whole_state_directory_may_be_gone_and_its_manager_stays_the_only_one(
    store: Store,
) -> None:
    directory = store.path.parent
    manager, other = AccountLock(directory, *MINE), AccountLock(directory, *MINE)
    assert manager.try_acquire()
    for file in directory.iterdir():
        file.unlink()
    directory.rmdir()
    assert store.keep_place() == "put back"
    assert directory.stat().st_mode & 0o777 == 0o700
    assert not other.try_acquire()
    assert other.holder() == os.getpid()
    manager.release()
    assert other.try_acquire()
    other.release()


def test_a_file_that_was_put_in_its_place_is_left_alone(path: Path, new_ledger: Path) -> None:
    ours = Store(path)
    JobLedger(ours).accept(new_job("a"))
    for end in ("", "-wal", "-shm"):
        path.with_name(path.name + end).unlink(missing_ok=True)
    theirs = Store(path)
    made = JobLedger(theirs).accept(new_job("b")).id
    assert ours.keep_place() == "replaced"
    assert ours.keep_place() == "replaced"
    more = JobLedger(theirs).accept(new_job("c")).id
    # The log that has the name of ours by now is theirs.
    ours.close()
    again = Store(path)
    assert ids(JobLedger(again)) == ids(JobLedger(theirs)) == [made, more]
    again.close()
    theirs.close()


def test_where_it_cannot_be_put_back_that_is_reported(store: Store, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    store.path.parent.rename(moved)
    store.path.parent.touch()
    with pytest.raises(LedgerError, match=r"cannot be put back: (Not a directory|File exists)"):
        store.keep_place()
    store.path.parent.unlink()
    moved.rename(store.path.parent)
    assert store.keep_place() == "kept"
