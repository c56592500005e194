"""A ledger that version 0.1.0 wrote, with one project under several addresses."""

from __future__ import annotations

import gzip
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from boinc_gahp.ledger import AccountLock, JobLedger, Ledger, Store
from boinc_gahp.ledger.listing import all_pending_aborts
from boinc_gahp.ledger.migrations import VERSION
from boinc_gahp.secret import Authenticator
from tests.ledger.jobs import new_job

#: Made by the code of commit ca924d4 (0.1.0): jobs of one account, whose settings named the project
#: as the first three of SPELLINGS, one after the other, and rows of debt to the first two.
OLD = Path(__file__).parent / "old" / "ledger-ca924d4.sqlite.gz"
ACCOUNT = Authenticator("0123456789abcdef0123456789abcdef").account
SPELLINGS = (
    "http://boinc.example.edu/test/",
    "https://boinc.example.edu:443/test/",
    "https://boinc.example.edu/test/",
    "http://boinc.example.edu:80/test",
    "HTTPS://Boinc.example.edu/test",
)
#: What that code called the locks of the first three.
LOCKS = ("bb4e6908c5c64e0e", "1bd270a9f7f3e4b2", "ae3defb428b06608")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "ledger.sqlite"
    path.write_bytes(gzip.decompress(OLD.read_bytes()))
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (2,)
        assert connection.execute("SELECT count(*) FROM project").fetchone() == (4,)
    return path


@pytest.fixture
def ledger(path: Path) -> Ledger:
    return Ledger(path)


@pytest.mark.parametrize("url", SPELLINGS)
def test_all_jobs_of_a_project_are_found_by_any_of_its_addresses(ledger: Ledger, url: str) -> None:
    jobs = JobLedger(ledger.store)
    mine = (url, ACCOUNT)
    assert jobs.owners() == (
        ("https://boinc.example.edu/test/", ACCOUNT, ""),
        ("https://other.example.org:8443/", ACCOUNT, "other"),
    )
    assert jobs.job_counts(*mine).alive == 4
    assert [job.state for job in jobs.listed(*mine, ["queued", "running", "waiting"])] == [
        "queued",
        "running",
        "queued",
        "waiting",
    ]
    assert [each.alive for each in jobs.on_project(*mine)] == [1, 2]
    assert [each.job_name for each in jobs.pending_aborts(*mine)] == ["bg-" + "01" * 16 + "-2"]
    assert [each.project_batch_id for each in ledger.pending_aborts(*mine, 0.0)] == [21]
    assert ledger.aborted_jobs(*mine) == {"b_2_1"}
    ledger.abort_done(*mine, 21)
    ledger.forget_aborted(*mine, "b_2")
    assert (all_pending_aborts(ledger.store), ledger.aborted_jobs(*mine)) == ([], frozenset())
    ledger.close()


def test_a_new_job_under_another_address_joins_the_others(ledger: Ledger) -> None:
    jobs = JobLedger(ledger.store)
    before = {job.job_id for job in jobs.waiting(SPELLINGS[0], ACCOUNT)}
    row = jobs.accept(new_job("new", account=ACCOUNT, url=SPELLINGS[0]))
    assert len(before) == 1
    assert {job.job_id for job in jobs.waiting(SPELLINGS[2], ACCOUNT)} > {row.id}
    assert len(jobs.owners()) == 2
    # What people are shown is what the settings say now.
    assert jobs.owners()[0][0] == SPELLINGS[0]
    ledger.close()


def test_a_daemon_of_the_old_version_that_still_runs_loses_nothing(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as old:
        Ledger(path).close()
        # The statements of ledger.py and requests.py as they were.
        old.execute(
            "INSERT INTO debt (project_url, account, batch_id, batch_name, kind, due, recorded) "
            "VALUES (?, ?, 21, 'b_1', 'abort', 5.0, 0.0) ON CONFLICT DO UPDATE SET "
            "batch_name = excluded.batch_name, kind = excluded.kind, due = excluded.due "
            "WHERE kind = coalesce(NULL, kind)",
            (SPELLINGS[2], ACCOUNT),
        )
        owner = old.execute(
            "INSERT INTO project (url, account, name) VALUES (?, ?, '')", (SPELLINGS[1], ACCOUNT)
        ).lastrowid
        old.execute("UPDATE job SET project_id = ? WHERE id = 5", (owner,))
        ledger = Ledger(path)
        assert JobLedger(ledger.store).job_counts(SPELLINGS[0], ACCOUNT).alive == 4
        assert [
            pending.not_before for pending in ledger.pending_aborts(SPELLINGS[0], ACCOUNT, 0.0)
        ] == [5.0]
        ledger.close()


@pytest.mark.parametrize("old", LOCKS)
def test_a_manager_of_the_old_version_keeps_a_new_one_away(tmp_path: Path, old: str) -> None:
    before = AccountLock(tmp_path, "https://any.example/", "")
    before.path = tmp_path / f"keeper-{old}.lock"
    assert before.try_acquire()
    for url in SPELLINGS:
        lock = AccountLock(tmp_path, url, ACCOUNT)
        assert lock.held_elsewhere()
        assert not lock.try_acquire()
    before.release()
    lock = AccountLock(tmp_path, SPELLINGS[0], ACCOUNT)
    assert lock.try_acquire()
    assert not AccountLock(tmp_path, SPELLINGS[1], ACCOUNT).try_acquire()
    # And it keeps the old one away.
    assert not before.try_acquire()
    lock.release()


def test_to_be_read_only_it_is_shown_as_it_would_be_and_stays_as_it_is(
    path: Path, tmp_path: Path
) -> None:
    copy = shutil.copy(path, tmp_path / "copy")
    store = Store(path, read_only=True)
    jobs = JobLedger(store)
    assert jobs.job_counts(SPELLINGS[0], ACCOUNT).alive == 4
    with store.read(), store.read() as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (VERSION,)
    store.close()
    assert path.read_bytes() == Path(copy).read_bytes()
