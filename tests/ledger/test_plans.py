"""With many jobs in the ledger, no question of the manager's goes through all of them."""

import re
import sqlite3
from contextlib import closing, contextmanager

from boinc_gahp.ledger import upkeep
from boinc_gahp.ledger.ledger import Ledger, all_pending_aborts
from boinc_gahp.ledger.monitoring import overviews
from tests.ledger.jobs import HOLD, LEASE, MINE, URL, finish, new_job, submitted

#: Tables of few rows, and lists that are given, may be gone through.
SMALL = {"owed_request", "project", "meta", "json_each"}
#: What SQLite says where it reads all rows, or all jobs of a project.
ALL = re.compile(r"SCAN (\w+)|SEARCH (?=job)(\w+) USING .*INDEX job_of_project \(project_id=\?\)$")


@contextmanager
def statements(store):
    """Yield a list that grows by what the store asks SQLite, with the values in place."""
    seen = []
    take = store._take_reader

    def traced():
        connection = take()
        connection.set_trace_callback(seen.append)
        return connection

    store._take_reader = traced
    store._connection.set_trace_callback(seen.append)
    try:
        yield seen
    finally:
        store._connection.set_trace_callback(None)
        store._take_reader = take


def scanned(store, seen):
    """Return the tables of which some statement reads all rows, each with the statement."""
    found = set()
    with closing(sqlite3.connect(store.path)) as connection:
        for statement in set(seen):
            if not re.match(r"\s*(SELECT|UPDATE|DELETE|INSERT)", statement):
                continue
            for *_, step in connection.execute("EXPLAIN QUERY PLAN " + statement):
                scan = ALL.match(step)
                if scan and (scan[1] or scan[2]) not in SMALL and "CONSTANT" not in step:
                    found.add((scan[1] or scan[2], statement))
    return found


def use_everything(jobs):
    """Do all that HTCondor's requests and a manager do."""
    batch, ids = submitted(jobs, "a", "b", "c", "d", "e")
    jobs.job(ids[0])
    jobs.job(ids[0], described=False)
    jobs.htcondor_polled(dict.fromkeys(ids, 1.0))
    jobs.owners()
    jobs.waiting(*MINE)
    jobs.batches(*MINE, "planned", "sent")
    jobs.batches(*MINE)
    jobs.jobs_of(batch.id, "queued", "running")
    jobs.jobs_of(batch.id, "queued", described=False)
    jobs.postpone(batch.id, 1.0, "x")
    jobs.statuses(batch.id, {"bg-1-1": "running"})
    jobs.on_project(*MINE)
    finish(jobs, ids[1], ids[2])
    jobs.to_fetch(*MINE, 8)
    jobs.writing(ids[1], True)
    jobs.fetched(ids[1], 0, 1.0)
    jobs.stop_writing(*MINE)
    jobs.end_reported(ids)
    jobs.cancel(ids[2])
    jobs.pending_aborts(*MINE)
    jobs.abort_done([ids[2]])
    jobs.job_trouble(ids, "x")
    jobs.hold([ids[3]], HOLD)
    jobs.leases(*MINE, 0.0, LEASE + 1, 1e9)
    jobs.leased(batch.id, 1.0)
    jobs.project_trouble(*MINE, "x")
    jobs.troubles()
    jobs.hold([ids[4], ids[0]], HOLD)
    jobs.close_batch(batch.id, retired=True)
    more = [jobs.accept(new_job(name)).id for name in "fg"]
    planned = jobs.plan(*MINE, "bg-2", "uppercase", "t", more, LEASE)
    jobs.about_to_send(planned.id, 8, more)
    jobs.begin_abort(planned.id, 0.0)
    jobs.drop_from_batch(planned.id)
    jobs.persistent_problems(1e12)
    jobs.other_problems(1e12, 0.0, 1e12, 2303)
    jobs.under_way(*MINE)
    jobs.set_unknown(*MINE, True)
    jobs.hold_all_jobs(*MINE, HOLD)
    jobs.polled(*MINE, 1.0)
    jobs.take_turn("x", 1e12)
    overviews(jobs.store, 1e12, 1e12)
    upkeep.drop_old(jobs.store, 1e12, 1e12, 1e12, untold=True)
    jobs.accept(new_job("a"))
    jobs.accounts(URL)


def use_submits(ledger):
    """Do all that BOINC_SUBMIT and what settles its batches do."""
    ledger.begin_submit(*MINE, "b", 7, 1.0)
    ledger.put_off(*MINE, "b", 2.0)
    (batch,) = ledger.pending_aborts(*MINE, 1.0)
    ledger.begin_abort(batch, 3.0)
    ledger.postpone(batch.id, 4.0, "x")
    ledger.record_abort(*MINE, "b", 7, 5.0)
    ledger.end_submit(*MINE, "b")
    all_pending_aborts(ledger.store)
    ledger.abort_done(*MINE, 7)


def test_no_question_goes_through_all_jobs_or_batches(store, jobs):
    with statements(store) as seen:
        use_everything(jobs)
    assert len(seen) > 100
    # sqlite_sequence has a row for each table.
    assert {table for table, _ in scanned(store, seen)} == {"sqlite_sequence"}


def test_no_question_about_boinc_submits_batches_does_either(store):
    ledger = Ledger(store.path)
    with statements(ledger.store) as seen:
        use_submits(ledger)
    ledger.close()
    assert len(seen) > 20
    assert scanned(store, seen) == set()
