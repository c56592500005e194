"""The ledger's file after kill -9, from earlier and later versions, and only to be read."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from boinc_gahp.errors import LedgerError
from boinc_gahp.ledger import JobLedger, Ledger, Store
from boinc_gahp.ledger.migrations import MIGRATIONS, VERSION
from tests.ledger.jobs import MINE, new_job
from tests.ledger.test_store import locked, put

if TYPE_CHECKING:
    from pathlib import Path


KILLED = """
import os, sys, threading
from pathlib import Path
from boinc_gahp.ledger import JobLedger, NewJob, Store
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
def test_a_process_killed_while_it_writes_leaves_a_consistent_file(path: Path) -> None:
    Store(path).close()
    for round_ in range(3):
        process = subprocess.Popen(
            [sys.executable, "-c", KILLED, str(path), str(round_)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
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


def first_version(path: Path) -> None:
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        for statement in MIGRATIONS[0]:
            connection.execute(statement)
        connection.execute("PRAGMA user_version = 1")
        connection.execute("INSERT INTO debt VALUES (?, ?, 7, 'b', 'abort', 1000.0, 0.0)", MINE)
        connection.execute("INSERT INTO aborted_job VALUES (?, ?, 'b#1.0', 'b', 0.0)", MINE)


def test_a_ledger_of_the_first_version_keeps_its_pending_aborts_and_gets_jobs(path: Path) -> None:
    first_version(path)
    ledger = Ledger(path)
    (batch,) = ledger.pending_aborts(*MINE, 0.0)
    assert (batch.name, batch.project_batch_id, batch.not_before) == ("b", 7, 1000.0)
    assert batch.state == "giving_up"
    assert ledger.aborted_jobs(*MINE) == {"b#1.0"}
    jobs = JobLedger(ledger.store)
    assert jobs.accept(new_job("d")).id == 1
    ledger.close()


@pytest.mark.processes
def test_processes_that_migrate_at_the_same_time_get_one_token(path: Path) -> None:
    first_version(path)
    show = (
        "import sys; from pathlib import Path; from boinc_gahp.ledger import JobLedger, Store;"
        "print(JobLedger(Store(Path(sys.argv[1]))).token)"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", show, str(path)], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    tokens = {process.communicate(timeout=60)[0] for process in processes}
    assert len(tokens) == 1
    assert all(process.returncode == 0 for process in processes)


def test_to_be_read_only_a_ledger_is_neither_made_nor_migrated_nor_written(path: Path) -> None:
    with pytest.raises(LedgerError, match="cannot be opened"):
        Store(path, read_only=True)
    assert not path.parent.exists()
    first_version(path)
    store = Store(path, read_only=True)
    assert JobLedger(store).owners() == ()
    with pytest.raises(LedgerError, match="only for reading"):
        store.write(put("key"))
    store.close()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)


def test_to_be_read_only_a_later_version_is_refused(path: Path) -> None:
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    with pytest.raises(LedgerError, match="install a later boinc_gahp"):
        Store(path, read_only=True)


def test_a_ledger_is_read_while_another_process_writes_it(store: Store) -> None:
    store.write(put("one"))
    reader = Store(store.path, read_only=True)
    store.write(put("two"))
    with locked(store.path), reader.read() as connection:
        assert connection.execute("SELECT count(*) FROM meta").fetchone() == (3,)
    reader.close()


def test_directories_that_are_made_are_private(path: Path) -> None:
    old = os.umask(0o000)
    try:
        Store(path).close()
    finally:
        os.umask(old)
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert path.stat().st_mode & 0o777 == 0o600
