"""A ledger of version 4, which had BOINC_SUBMIT's batches in a table of their own, ``debt``."""

from __future__ import annotations

import gzip
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from boinc_gahp.ledger import JobLedger, Ledger
from boinc_gahp.ledger.listing import all_pending_aborts
from boinc_gahp.ledger.migrations import VERSION
from boinc_gahp.secret import Authenticator
from tests.previous import previous_version  # noqa: F401  (fixture)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from boinc_gahp.ledger import BatchRow

#: Made by the code of commit 96b3b15: batches of all states and rows of debt of both kinds of one
#: account, and rows of debt of the same ids and names of others.
OLD = Path(__file__).parent / "old" / "ledger-96b3b15.sqlite.gz"
URL = "https://boinc.example.edu/test/"
ACCOUNT = Authenticator("0123456789abcdef0123456789abcdef").account
MINE = (URL, ACCOUNT)
HERS = (URL, "f" * 16)
ELSEWHERE = ("https://other.example.org:8443/", ACCOUNT)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "ledger.sqlite"
    path.write_bytes(gzip.decompress(OLD.read_bytes()))
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (4,)
    return path


@pytest.fixture
def ledger(path: Path) -> Iterator[Ledger]:
    ledger = Ledger(path)
    yield ledger
    ledger.close()


def told(batches: tuple[BatchRow, ...]) -> list[tuple[object, ...]]:
    return [
        (batch.name, batch.project_batch_id, batch.state, batch.not_before) for batch in batches
    ]


def test_what_was_pending_is_pending_by_the_same_rules(ledger: Ledger) -> None:
    assert told(ledger.pending_aborts(*MINE, 1795290000.0)) == [
        ("b_died", 22, "sent", 1795280000.0),
        ("b_abort", 23, "giving_up", 1795281000.0),
        ("b_submitting", 21, "sent", 4000000000.0),
    ]
    assert all(
        batch.sent and batch.sent > 1795300000 for batch in ledger.pending_aborts(*MINE, 0.0)
    )
    assert told(ledger.pending_aborts(*HERS, 0.0)) == [("bg-sent", 23, "sent", 1795281000.0)]
    assert told(ledger.pending_aborts(*ELSEWHERE, 0.0)) == [
        ("b_abort", 23, "giving_up", 1795281000.0)
    ]
    assert not ledger.begin_submit(*MINE, "b_abort", 23, 4000000000.0)
    assert ledger.begin_submit(*MINE, "b_died", 22, 4000000000.0)
    ledger.end_submit(*MINE, "b_submitting")
    ledger.abort_done(*MINE, 23)
    assert told(ledger.pending_aborts(*MINE, 0.0)) == [("b_died", 22, "sent", 4000000000.0)]
    assert len(all_pending_aborts(ledger.store)) == 3


def test_htcondors_batches_and_jobs_are_as_they_were_and_go_on(ledger: Ledger) -> None:
    jobs = JobLedger(ledger.store)
    batches = {batch.name: batch for batch in jobs.batches(*MINE)}
    assert [(batch.id, batch.state, batch.project_batch_id) for batch in batches.values()] == [
        (1, "planned", None),
        (2, "sent", 11),
        (3, "submitted", 12),
        (4, "giving_up", 13),
        (5, "ended", 14),
        (6, "retired", 15),
    ]
    given_up = batches["bg-giving-up"]
    assert (given_up.not_before, given_up.listed, given_up.sent) == (1795282060.0, 1, None)
    assert "aborted with 1 jobs" in str(given_up.trouble)
    assert [job.state for job in jobs.jobs_of(3)] == ["finished", "cancelled", "queued"]
    (failed, cancelled, _) = jobs.jobs_of(3)
    assert jobs.program_failure(failed.id) is not None
    assert failed.description == '{"of": "bg-submitted0"}'
    assert [pending.job_id for pending in jobs.pending_aborts(*MINE)] == [cancelled.id, 10]
    jobs.drop_from_batch(4)
    ids = [job.job_id for job in jobs.waiting(*MINE)]
    assert len(ids) == 2
    new = jobs.plan(*MINE, "bg-new", "uppercase", "t", ids, 0.0)
    assert new is not None
    # Number 7 was that of a batch that is gone.
    assert new.id > 7
    with pytest.raises(sqlite3.IntegrityError), closing(sqlite3.connect(ledger.path)) as raw:
        raw.execute(
            "INSERT INTO batch (name, project_id, app_name, together, state, created, changed, "
            "lease_until) VALUES ('bg-new', 1, '', '', 'planned', 0, 0, 0)"
        )


def test_nothing_refers_to_what_is_not_there(ledger: Ledger) -> None:
    with closing(sqlite3.connect(ledger.path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (VERSION,)
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    with ledger.store.read() as connection:
        (count,) = connection.execute("SELECT count(*) FROM debt").fetchone()
    assert count == len(all_pending_aborts(ledger.store)) == 5


def test_it_keeps_up_references_from_then_on(ledger: Ledger) -> None:
    with pytest.raises(Exception, match="FOREIGN KEY"):
        ledger.store.write(
            lambda connection: connection.execute("DELETE FROM batch WHERE id = 3").rowcount
        )


def test_a_batch_moves_to_another_account_once(ledger: Ledger) -> None:
    jobs = JobLedger(ledger.store)
    assert jobs.move(HERS, MINE, "") == (0, 0, 1)
    assert [batch.project_batch_id for batch in ledger.pending_aborts(*MINE, 0.0)] == [22, 23, 21]
    assert jobs.accounts(URL) == [ACCOUNT]
    with ledger.store.read() as connection:
        (count,) = connection.execute("SELECT count(*) FROM debt").fetchone()
    assert count == len(all_pending_aborts(ledger.store)) == 4


OLD_DAEMON = """
import json, sys
from pathlib import Path
from boinc_gahp.ledger import JobLedger, Ledger, NewJob, upkeep
from boinc_gahp.ledger.migrations import VERSION
assert VERSION == 4
url, account, path = sys.argv[1:]
ledger = Ledger(Path(path))
jobs = JobLedger(ledger.store)
print("open", flush=True)
for line in sys.stdin:
    print(json.dumps(eval(line)), flush=True)
"""


class OldDaemon:
    """A process with the code of the version before, which has the ledger open."""

    def __init__(self, previous_version: Path, path: Path) -> None:  # noqa: F811
        command = [sys.executable, "-c", OLD_DAEMON, *MINE, str(path)]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={"PYTHONPATH": str(previous_version), "PYTHONDONTWRITEBYTECODE": "1"},
            cwd=previous_version,
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "open\n"

    def does(self, what: str) -> str:
        """Have it evaluate an expression; return the value as JSON."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(what + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().rstrip("\n")

    def pending_aborts(self) -> str:
        return self.does("[(d.batch_name, d.kind, d.due) for d in ledger.debts(url, account, 0.0)]")


@pytest.fixture
def old(path: Path, previous_version: Path) -> Iterator[OldDaemon]:  # noqa: F811
    daemon = OldDaemon(previous_version, path)
    yield daemon
    daemon.process.kill()
    daemon.process.communicate()


@pytest.mark.processes
def test_what_a_daemon_of_that_version_goes_on_writing_is_pending(
    old: OldDaemon, path: Path
) -> None:
    ledger = Ledger(path)
    ledger.abort_done(*MINE, 23)
    ledger.end_submit(*MINE, "b_died")
    assert old.pending_aborts() == '[["b_submitting", "submitting", 4000000000.0]]'
    # It begins a submission, which is asked about, and ends well.
    assert old.does('ledger.begin_submit(url, account, "b", 31, 5.0)') == "true"
    assert told(ledger.pending_aborts(*MINE, 0.0))[0] == ("b", 31, "sent", 5.0)
    old.does('ledger.put_off(url, account, "b", 9.0)')
    assert told(ledger.pending_aborts(*MINE, 0.0))[0] == ("b", 31, "sent", 9.0)
    old.does('ledger.end_submit(url, account, "b")')
    assert [batch.name for batch in ledger.pending_aborts(*MINE, 0.0)] == ["b_submitting"]
    # Another fails: an abort is pending, put off and done.
    assert old.does('ledger.begin_submit(url, account, "b", 31, 5.0)') == "true"
    old.does('ledger.owe_abort(url, account, "b", 31, 7.0)')
    assert told(ledger.pending_aborts(*MINE, 0.0))[0] == ("b", 31, "giving_up", 7.0)
    assert not ledger.begin_submit(*MINE, "b", 31, 4000000000.0)
    old.does('ledger.owe_abort(url, account, "b", 31, 8.0)')
    assert told(ledger.pending_aborts(*MINE, 0.0))[0] == ("b", 31, "giving_up", 8.0)
    old.does("ledger.paid(url, account, 31)")
    assert [batch.name for batch in ledger.pending_aborts(*MINE, 0.0)] == ["b_submitting"]
    # And one that died before is given up by it.
    assert ledger.begin_submit(*MINE, "b", 31, 5.0)
    given_up = "ledger.give_up(url, account, ledger.debts(url, account, 0.0)[0], 6.0)"
    assert old.does(given_up) == "true"
    assert told(ledger.pending_aborts(*MINE, 0.0))[0] == ("b", 31, "giving_up", 6.0)
    ledger.close()


@pytest.mark.processes
def test_a_daemon_of_that_version_finds_what_is_written_in_the_new_way(
    old: OldDaemon, path: Path
) -> None:
    ledger = Ledger(path)
    for each in (21, 22, 23):
        ledger.abort_done(*MINE, each)
    assert old.pending_aborts() == "[]"
    assert ledger.begin_submit(*MINE, "b", 31, 5.0)
    assert old.pending_aborts() == '[["b", "submitting", 5.0]]'
    ledger.put_off(*MINE, "b", 9.0)
    assert old.pending_aborts() == '[["b", "submitting", 9.0]]'
    (batch,) = ledger.pending_aborts(*MINE, 0.0)
    assert ledger.begin_abort(batch, 10.0)
    assert old.pending_aborts() == '[["b", "abort", 10.0]]'
    # So it does not send what the new one aborts.
    assert old.does('ledger.begin_submit(url, account, "b", 31, 5.0)') == "false"
    old.does('ledger.end_submit(url, account, "b")')
    ledger.postpone(batch.id, 70.0, "it was aborted with 1 jobs", listed=1)
    assert old.pending_aborts() == '[["b", "abort", 70.0]]'
    ledger.abort_done(*MINE, 31)
    assert old.pending_aborts() == "[]"
    ledger.close()


@pytest.mark.processes
def test_a_manager_of_that_version_sees_htcondors_batches_alone_and_can_do_all_with_them(
    old: OldDaemon, path: Path
) -> None:
    ledger = Ledger(path)
    jobs = JobLedger(ledger.store)
    names = '["bg-planned", "bg-sent", "bg-submitted", "bg-giving-up", "bg-ended", "bg-retired"]'
    assert old.does("[batch.name for batch in jobs.batches(url, account)]") == names
    assert old.does("len(jobs.owners())") == "1"
    assert int(old.does("len(jobs.lasting(4e9, 1.0))")) > 0
    assert old.does('jobs.plan(url, account, "bg-new", "a", "t", [], 0.0)') == "null"
    new_job = (
        "__import__('boinc_gahp.ledger').ledger.NewJob('d', url, account, '', 'a', 't', 1, '{}')"
    )
    job_id = int(old.does(f"jobs.accept({new_job}).id"))
    planned = f'jobs.plan(url, account, "bg-new", "a", "t", [{job_id}], 0.0).id'
    batch_id = int(old.does(planned))
    assert batch_id > 7
    assert old.does(f"jobs.about_to_send({batch_id}, 99, [{job_id}])") == '"go"'
    old.does(f"jobs.submitted({batch_id}, 99)")
    row = jobs.batch(batch_id)
    assert row is not None
    assert (row.name, row.state, row.project_batch_id) == ("bg-new", "submitted", 99)
    old.does("jobs.give_up(2, 5.0)")
    old.does('jobs.postpone(2, 6.0, "x", listed=2)')
    row = jobs.batch(2)
    assert row is not None
    assert (row.state, row.not_before, row.listed) == ("giving_up", 6.0, 2)
    old.does("jobs.drop_from_batch(2)")
    assert len(jobs.waiting(*MINE)) == 2
    old.does("upkeep.forget(jobs.store, 1e12, 1e12, untold=True)")
    assert all_pending_aborts(ledger.store) == []
    ledger.close()
