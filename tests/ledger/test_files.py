"""The ledger's file after kill -9, of earlier and later versions, and only to be read."""

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from boinc_gahp.errors import LedgerError
from boinc_gahp.ledger import _migrations, store as ledger_store
from boinc_gahp.ledger._migrations import VERSION
from boinc_gahp.ledger.jobs import JobLedger
from boinc_gahp.ledger.store import Store
from tests.ledger.crowd import locked, put
from tests.ledger.jobs import counts, new_job

KILLED = """
import os, sys, threading
from pathlib import Path
from boinc_gahp.ledger.jobs import JobLedger
from boinc_gahp.ledger.rows import NewJob
from boinc_gahp.ledger.store import Store
jobs = JobLedger(Store(Path(sys.argv[1])))
name = sys.argv[2]
def work(thread):
    number = 0
    while True:
        number += 1
        ids = [jobs.accept(NewJob(f"{name}.{thread}.{number}.{part}", "u", "a", "", "app", "t", 1,
                                  "x" * 3000)).id for part in range(3)]
        batch = jobs.plan("u", "a", f"bg-{name}.{thread}.{number}", "app", "t", ids, 0.0)
        jobs.about_to_send(batch.id, batch.id, ids)
        jobs.submitted(batch.id, batch.id)
        os.write(1, (" ".join(map(str, (batch.id, *ids))) + chr(10)).encode())
for thread in range(4):
    threading.Thread(target=work, args=(thread,)).start()
"""


@pytest.mark.processes
def test_a_process_killed_while_it_writes_leaves_a_consistent_file(path):
    Store(path).close()
    for round_ in range(3):
        process = subprocess.Popen(
            [sys.executable, "-c", KILLED, str(path), str(round_)],
            stdout=subprocess.PIPE,
            text=True,
        )
        lines = [process.stdout.readline() for _ in range(5 + 7 * round_)]
        process.send_signal(signal.SIGKILL)
        lines += process.stdout.read().splitlines(keepends=True)
        process.stdout.close()
        process.wait()
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        store = Store(path)
        jobs = JobLedger(store)
        for line in lines:
            if line.endswith("\n"):
                batch_id, *ids = map(int, line.split())
                assert [job.id for job in jobs.jobs_of(batch_id, "queued")] == ids
        # No batch has a part of its jobs, whatever came in between.
        for batch in jobs.batches("u", "a"):
            assert len(jobs.jobs_of(batch.id)) == 3
        store.close()


@pytest.mark.parametrize("version", [1, 5, 100, VERSION + 1])
@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
@pytest.mark.parametrize("read_only", [False, True])
def test_a_ledger_of_before_the_first_release_or_a_later_one_is_refused_and_stays_as_it_is(
    path, version, mode, read_only
):
    words = rf"has version {version}, but .*: install the boinc_gahp that made it"
    path.parent.mkdir(parents=True)
    # With WAL, its own program uses it at the same time.
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA journal_mode = {mode}")
        connection.execute("CREATE TABLE debt (batch_id INTEGER)")
        connection.execute(f"PRAGMA user_version = {version:d}")
        path.chmod(0o600)
        before = {each.name: each.read_bytes() for each in path.parent.glob("*[!m]")}
        with pytest.raises(LedgerError, match=words):
            Store(path, read_only=read_only)
        assert {each.name: each.read_bytes() for each in path.parent.glob("*[!m]")} == before


@pytest.fixture
def next_release(monkeypatch, store):
    """A ledger of this version, which has a job; and then the program is of the next."""
    JobLedger(store).accept(new_job("a"))
    monkeypatch.setattr(
        _migrations, "MIGRATIONS", (*_migrations.MIGRATIONS, ("CREATE TABLE more (x)",))
    )
    monkeypatch.setattr(_migrations, "VERSION", VERSION + 1)
    monkeypatch.setattr(ledger_store, "VERSION", VERSION + 1)
    return store.path


@pytest.mark.parametrize("read_only", [False, True])
def test_a_ledger_of_the_release_before_is_migrated_while_that_has_it_open(
    next_release, store, read_only
):
    later = Store(next_release, read_only=read_only)
    with later.read() as connection:
        assert connection.execute("SELECT * FROM more").fetchall() == []
        assert connection.execute("PRAGMA user_version").fetchone() == (VERSION + 1,)
    assert JobLedger(store).accept(new_job("b")).id > 1
    # It needs more connections than it has.
    with store.read(), store.read() as connection:
        assert connection.execute("SELECT count(*) FROM job").fetchone() == (2,)
    assert counts(JobLedger(later)) == {"waiting": 2}
    later.close()


def test_a_migration_that_fails_changes_nothing(next_release, monkeypatch):
    monkeypatch.setattr(
        _migrations,
        "MIGRATIONS",
        (*_migrations.MIGRATIONS[:-1], ("CREATE TABLE more (x)", "no SQL")),
    )
    with pytest.raises(LedgerError, match="syntax error"):
        Store(next_release)
    with closing(sqlite3.connect(next_release)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (VERSION,)
        with pytest.raises(sqlite3.OperationalError, match="no such table"):
            connection.execute("SELECT * FROM more")


def test_nothing_in_it_refers_to_what_is_not_there(store):
    JobLedger(store).accept(new_job("a"))
    with pytest.raises(LedgerError, match="FOREIGN KEY"):
        store.execute("DELETE FROM project", ())


@pytest.mark.processes
def test_processes_that_make_it_at_the_same_time_get_one_token(path):
    show = (
        "import sys; from pathlib import Path; from boinc_gahp.ledger.jobs import JobLedger;"
        "from boinc_gahp.ledger.store import Store;"
        "print(JobLedger(Store(Path(sys.argv[1]))).token)"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", show, str(path)], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    tokens = {process.communicate(timeout=60)[0] for process in processes}
    assert len(tokens) == 1
    assert all(process.returncode == 0 for process in processes)


def test_to_be_read_only_a_ledger_is_neither_made_nor_written(path):
    with pytest.raises(LedgerError, match="cannot be opened"):
        Store(path, read_only=True)
    assert not path.parent.exists()
    Store(path).close()
    store = Store(path, read_only=True)
    assert JobLedger(store).owners() == ()
    with pytest.raises(LedgerError, match="only for reading"):
        store.write(put("key"))
    store.close()


def test_a_ledger_is_read_while_another_process_writes_it(store):
    store.write(put("one"))
    reader = Store(store.path, read_only=True)
    store.write(put("two"))
    with locked(store.path), reader.read() as connection:
        assert connection.execute("SELECT count(*) FROM meta").fetchone() == (3,)
    reader.close()


def test_directories_that_are_made_are_private(path):
    old = os.umask(0o000)
    try:
        store = Store(path)
        JobLedger(store).accept(new_job("d"))
    finally:
        os.umask(old)
    assert path.parent.stat().st_mode & 0o777 == 0o700
    files = [each.stat() for each in path.parent.iterdir()]
    assert [each.st_mode & 0o777 for each in files] == [0o600] * 3, "the file, its log and index"
    store.close()
