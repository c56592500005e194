"""The ledger's file under many threads, several processes, and kill -9."""

import signal
import subprocess
import sys
import threading
import weakref
from functools import partial

import pytest

from boinc_gahp.errors import LedgerError
from boinc_gahp.ledger.opening import LOG_KEPT
from boinc_gahp.ledger.store import CHUNK, Store
from tests.helpers import wait_for
from tests.ledger.crowd import Crowd, committing, keys, locked, put, queued, writing
from tests.ledger.jobs import new_job


def count_commits(store):
    """Return a list that grows by the COMMITs of the store."""
    seen = []
    store._connection.set_trace_callback(
        lambda statement: seen.append(statement) if statement == "COMMIT" else None
    )
    return seen


def test_changes_that_wait_for_a_commit_share_the_next(store):
    commits = count_commits(store)
    names = [str(number) for number in range(50)]
    with committing(store):
        crowd = writing(store, names)
        queued(store, 50)
    assert crowd.join() == [None] * 50
    assert keys(store.path) == {"first", *names}
    assert len(commits) == 2


def test_what_is_committed_outlives_a_loss_of_power(path, monkeypatch):
    synced = []
    monkeypatch.setattr("boinc_gahp.ledger.opening.sync_directory", synced.append)
    store = Store(path)
    # Its name is on the disk, too; later that costs nothing.
    assert synced == [path.parent]
    Store(path).close()
    assert len(synced) == 1
    modes = ("journal_mode", "synchronous")
    found = [store._connection.execute(f"PRAGMA {mode}").fetchone()[0] for mode in modes]
    store.close()
    # 2 is FULL: in WAL, anything less lets a commit return before it is on the disk.
    assert found == ["wal", 2]


def test_a_change_that_fails_leaves_those_committed_with_it(store):
    def fail_late(connection):
        put("undone")(connection)
        raise ZeroDivisionError

    with committing(store):
        rest = Crowd(
            lambda: store.write(put("before")),
            lambda: store.write(fail_late),
            lambda: store.write(put("first")),
            lambda: store.write(put("after")),
        )
        queued(store, 4)
    _, failed, twice, _ = rest.join()
    assert isinstance(failed, ZeroDivisionError)
    assert isinstance(twice, LedgerError)
    assert "UNIQUE constraint failed" in str(twice)
    assert keys(store.path) == {"first", "before", "after"}


def test_a_commit_that_fails_is_told_to_all_that_shared_it(store):
    with committing(store):
        rest = Crowd(
            lambda: store.write(put("one")),
            # As SQLite does by itself when the disk is full.
            lambda: store.write(lambda connection: connection.execute("ROLLBACK")),
            lambda: store.write(put("two")),
        )
        queued(store, 3)
    errors = rest.join()
    assert all(isinstance(error, LedgerError) for error in errors)
    assert len({id(error) for error in errors}) == 3
    assert keys(store.path) == {"first"}
    store.write(put("later"))
    assert keys(store.path) == {"first", "later"}


def test_a_change_that_waits_for_another_is_a_mistake_and_no_deadlock(store):
    with pytest.raises(RuntimeError, match="cannot be made inside another"):
        store.write(lambda _: store.write(put("inner")))
    store.write(put("outer"))
    assert keys(store.path) == {"outer"}


@pytest.fixture
def interrupt():
    """Interrupts the main thread, once."""
    main = threading.get_ident()
    raised = []

    def handle(number, _frame):
        if not raised:
            raised.append(number)
            raise KeyboardInterrupt

    def interrupted():
        # Again and again: a signal that comes just before the thread waits does not wake it.
        signal.pthread_kill(main, signal.SIGINT)
        return bool(raised)

    before = signal.signal(signal.SIGINT, handle)
    yield lambda: wait_for(interrupted, "the interrupt")
    signal.signal(signal.SIGINT, before)


def test_a_thread_that_is_interrupted_while_its_change_waits_has_it_made(store, interrupt):
    def interrupt_when_it_waits():
        queued(store, 1)
        interrupt()

    with committing(store):
        crowd = Crowd(interrupt_when_it_waits)
        with pytest.raises(KeyboardInterrupt):
            store.write(put("mine"))
        assert crowd.join() == [None]
    store.write(put("later"))
    assert keys(store.path) == {"first", "mine", "later"}


def writers():
    return [each.name for each in threading.enumerate() if each.name == "ledger-writer"]


def test_there_is_no_writer_before_the_first_write_and_none_after_the_end(path):
    store = Store(path)
    with store.read() as connection:
        connection.execute("SELECT 1 FROM meta").fetchone()
    store.data_version()
    assert store.has_its_place()
    assert writers() == []
    store.write(put("one"))
    store.write(put("two"))
    assert writers() == ["ledger-writer"]
    store.close()
    store.close()
    assert writers() == []


ENDING = """
import sys, threading, time
from pathlib import Path
from boinc_gahp.ledger import opening
from boinc_gahp.ledger.store import Store
opening.BUSY_TIMEOUT = 3600.0
store = Store(Path(sys.argv[1]))
def write(key):
    store.write(lambda connection: connection.execute("INSERT INTO meta VALUES (?, '')", (key,)))
write("one")
print(flush=True)
sys.stdin.readline()
threading.Thread(target=write, args=["two"], daemon=True).start()
while not store._connection_lock.locked():
    time.sleep(0.01)
"""


@pytest.mark.processes
def test_a_process_ends_though_its_ledger_is_open_and_a_commit_under_way(path):
    process = subprocess.Popen(
        [sys.executable, "-c", ENDING, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    process.stdout.readline()
    with locked(path):
        process.communicate("\n", timeout=60)
    assert process.returncode == 0
    assert keys(path) == {"one"}


def test_what_a_change_holds_is_let_go_when_it_is_made(store):
    class Jobs:
        pass

    jobs = Jobs()
    held = weakref.ref(jobs)
    store.write(partial(lambda _connection, _jobs: None, _jobs=jobs))
    del jobs
    wait_for(lambda: held() is None, "the end of what was held")


@pytest.fixture
def no_thread(monkeypatch):
    def refused(work, name):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr("boinc_gahp.ledger.store.start", refused)
        yield patch


@pytest.mark.usefixtures("no_thread")
def test_where_the_system_gives_no_thread_each_commits_by_itself(store):
    def fail(connection):
        put("undone")(connection)
        raise ZeroDivisionError

    names = [str(number) for number in range(20)]
    assert writing(store, names).join() == [None] * 20
    with pytest.raises(ZeroDivisionError):
        store.write(fail)
    with pytest.raises(LedgerError, match="UNIQUE constraint failed"):
        store.write(put("1"))
    with pytest.raises(RuntimeError, match="cannot be made inside another"):
        store.write(lambda _: store.write(put("inner")))
    assert keys(store.path) == set(names)
    store.close()
    with pytest.raises(LedgerError, match="was closed"):
        store.write(put("key"))


def test_when_the_system_gives_threads_again_one_is_the_writer(store, no_thread):
    store.write(put("one"))
    assert writers() == []
    no_thread.undo()
    store.write(put("two"))
    assert writers() == ["ledger-writer"]
    assert keys(store.path) == {"one", "two"}


def test_a_reader_is_not_held_up_by_a_commit_and_sees_one_moment(store):
    store.write(put("old"))
    inside, go_on = threading.Event(), threading.Event()

    def slow(connection):
        put("new")(connection)
        inside.set()
        assert go_on.wait(60)

    crowd = Crowd(lambda: store.write(slow))
    assert inside.wait(60)
    with store.read() as connection:
        seen = connection.execute("SELECT key FROM meta WHERE key IN ('old', 'new')").fetchall()
        assert seen == [("old",)]
        go_on.set()
        assert crowd.join() == [None]
        seen = connection.execute("SELECT key FROM meta WHERE key IN ('old', 'new')").fetchall()
        assert seen == [("old",)]
    with store.read() as connection:
        assert len(connection.execute("SELECT key FROM meta").fetchall()) == 3


def test_a_reader_of_one_statement_keeps_no_moment(store, jobs):
    with store.read(once=True) as connection:
        for accepted in range(1, 4):
            jobs.accept(new_job(f"d{accepted}"))
            assert connection.execute("SELECT count(*) FROM job").fetchall() == [(accepted,)]
        assert not connection.in_transaction


def test_a_reader_cannot_write(store):
    with pytest.raises(LedgerError, match="readonly"), store.read() as connection:
        put("key")(connection)
    assert keys(store.path) == set()


def test_many_readers_share_few_connections(store):
    group_key = threading.Barrier(20)

    def read():
        with store.read() as connection:
            group_key.wait(60)
            return int(connection.execute("SELECT count(*) FROM meta").fetchone()[0])

    assert Crowd(*[read] * 20).join() == [1] * 20
    assert len(store._readers) <= 4


def test_data_version_changes_with_others_commits_only(store, elsewhere):
    before = store.data_version()
    store.write(put("mine"))
    assert store.data_version() == before
    elsewhere.write(put("another's"))
    after = store.data_version()
    assert after != before
    assert store.data_version() == after


def test_data_version_does_not_wait_for_a_commit(store):
    with committing(store):
        store.data_version()
        assert store._connection_lock.locked()


def test_closing_waits_for_the_commit_under_way_and_for_what_is_queued(store):
    with committing(store):
        crowd = writing(store, ["one", "two"])
        queued(store, 2)
        closing_it = Crowd(store.close)
        wait_for(lambda: store._is_closed, "the end")
        with pytest.raises(LedgerError, match="was closed"):
            store.write(put("key"))
    assert crowd.join() == [None, None]
    assert closing_it.join() == [None]
    assert keys(store.path) == {"first", "one", "two"}
    with pytest.raises(LedgerError, match="was closed"), store.read():
        pass
    with pytest.raises(LedgerError, match="was closed"):
        store.data_version()


def test_the_log_is_carried_over_and_cut_back(store):
    log = store.path.with_name(store.path.name + "-wal")
    largest = 0
    # At the end more rows than a transaction takes.
    counts = [300] * 50 + [2 * CHUNK + 1]
    for number, count in enumerate(counts):
        rows = [(f"{number}.{row}", "x" * 1000) for row in range(count)]
        store.execute("INSERT INTO meta VALUES (?, ?)", *rows)
        largest = max(largest, log.stat().st_size)
    assert len(keys(store.path)) == sum(counts)
    assert store.path.stat().st_size > 15_000_000
    assert largest < 2 * LOG_KEPT


def test_the_log_does_not_grow_for_ever_under_readers_that_overlap(store, monkeypatch):
    monkeypatch.setattr("boinc_gahp.ledger.store.LOG_LIMIT", 1_000_000)
    # There is always one that has begun before the others ended, as with many STATUS requests.
    log = store.path.with_name(store.path.name + "-wal")
    stop = threading.Event()
    begun = threading.Barrier(2)

    def read_on(offset):
        with store.read() as connection:
            connection.execute("SELECT count(*) FROM meta").fetchone()
            begun.wait(60)
        while not stop.is_set():
            with store.read() as connection:
                connection.execute("SELECT count(*) FROM meta").fetchone()
                stop.wait(0.02)

    crowd = Crowd(*(lambda offset=offset: read_on(offset) for offset in range(2)))
    store.execute("CREATE TABLE wide (x)", ())
    largest = 0
    for _ in range(40):
        store._next_log_wait = 0.0
        store.execute("INSERT INTO wide VALUES (zeroblob(200000))", ())
        store.execute("DELETE FROM wide", ())
        largest = max(largest, log.stat().st_size)
    stop.set()
    crowd.join()
    # Without waiting for them it would be 16 MB by now.
    assert largest < 8_000_000
