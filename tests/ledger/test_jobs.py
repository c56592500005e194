"""Jobs and batches: which change is made from which state, and what every other state refuses."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from boinc_gahp.errors import LedgerError
from boinc_gahp.ledger import ALIVE, Hold, JobLedger, Store
from boinc_gahp.ledger.jobs import STATES, OwedAbort, Tally
from boinc_gahp.ledger.rows import BATCH_STATES
from tests.ledger.jobs import (
    ACCOUNT,
    HOLD,
    LEASE,
    MINE,
    URL,
    batch_state,
    finish,
    get,
    in_state,
    new_job,
    planned,
    states,
    submitted,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ENDED = sorted(set(STATES) - ALIVE)


def everything(store: Store) -> list[Any]:
    """Return all that is in the tables of jobs and batches, but for times of changes."""
    with store.read() as connection:
        connection.row_factory = sqlite3.Row
        rows = [
            {key: row[key] for key in row.keys() if key != "changed"}  # noqa: SIM118
            for table in ("project", "batch", "job", "description")
            for row in connection.execute(f"SELECT * FROM {table}")
        ]
        connection.row_factory = None
    return rows


# -- accepted, asked about, told of, cancelled


def test_a_job_is_accepted_as_it_is_described(jobs: JobLedger, elsewhere: Store) -> None:
    before = time.time()
    row = jobs.accept(replace(new_job("d", description='{"a": 1}'), project_name="alpha"))
    assert before <= row.accepted == row.changed == row.asked <= time.time()
    assert JobLedger(elsewhere).job(row.id) == row
    assert (row.id, row.job_directory, row.attempt) == (1, "d", 1)
    assert (row.project_url, row.account, row.project_name) == (URL, ACCOUNT, "alpha")
    assert (row.app_name, row.together, row.size) == ("uppercase", "0" * 32, 600)
    assert row.description == '{"a": 1}'
    assert (row.state, row.batch_id, row.job_name) == ("waiting", None, None)
    assert [row.told, row.abort_owed, row.writing] == [False] * 3
    assert row.is_alive


@pytest.mark.parametrize("state", STATES)
def test_a_repeated_submit_is_the_same_job_until_it_is_cancelled_or_told(
    jobs: JobLedger, state: str
) -> None:
    job_id = in_state(jobs, state)
    again = jobs.accept(new_job("d"))
    assert (again.id == job_id) == (state != "cancelled")
    assert again.attempt == (2 if state == "cancelled" else 1)


@pytest.mark.parametrize("state", ["done", "failed"])
def test_a_job_whose_end_was_told_is_submitted_anew(jobs: JobLedger, state: str) -> None:
    job_id = in_state(jobs, state)
    jobs.told([job_id])
    again = jobs.accept(new_job("d"))
    assert (again.id != job_id, again.attempt, again.state) == (True, 2, "waiting")
    assert jobs.accept(new_job("d")).id == again.id


@pytest.mark.parametrize("state", STATES)
def test_only_an_end_can_be_told(jobs: JobLedger, state: str) -> None:
    job_id = in_state(jobs, state)
    jobs.told([job_id, 12345])
    assert get(jobs, job_id).told == (state in {"done", "failed"})


def test_the_latest_time_at_which_a_job_was_asked_about_counts(jobs: JobLedger) -> None:
    row = jobs.accept(new_job("d"))
    jobs.asked([row.id, 12345], row.asked + 10)
    jobs.asked([row.id], row.asked + 5)
    assert get(jobs, row.id).asked == row.asked + 10


def test_a_repeated_submit_counts_as_asking(jobs: JobLedger) -> None:
    row = jobs.accept(new_job("d"))
    assert jobs.accept(new_job("d")).asked > row.asked


@pytest.mark.parametrize(
    ("state", "abort_owed"),
    [
        ("waiting", False),
        ("sending", True),
        ("queued", True),
        ("running", True),
        ("finished", True),
        ("fetched", False),
        ("done", False),
        ("failed", False),
        ("cancelled", True),
    ],
)
def test_an_abort_is_owed_for_a_cancelled_job_that_the_project_may_have(
    jobs: JobLedger, state: str, abort_owed: bool
) -> None:
    job_id = in_state(jobs, state)
    before = get(jobs, job_id)
    assert jobs.cancel(job_id) == before
    after = get(jobs, job_id)
    assert (after.state, after.abort_owed) == ("cancelled", abort_owed)
    assert (after.batch_id, after.job_name) == (before.batch_id, before.job_name)
    assert bool(jobs.aborts_owed(*MINE)) == abort_owed


def test_a_cancel_after_the_abort_owes_none_again(jobs: JobLedger) -> None:
    job_id = in_state(jobs, "cancelled")
    jobs.abort_done([job_id])
    jobs.cancel(job_id)
    assert jobs.aborts_owed(*MINE) == []


@pytest.mark.parametrize("job_id", [0, -1, 2, 2**63, 10**30])
def test_a_job_that_there_is_not_is_unknown(jobs: JobLedger, job_id: int) -> None:
    jobs.accept(new_job("d"))
    assert jobs.job(job_id) is None
    assert jobs.cancel(job_id) is None
    jobs.told([job_id])
    jobs.asked([job_id], 1.0)


def test_ids_are_not_used_again(jobs: JobLedger) -> None:
    first = jobs.accept(new_job("d")).id
    jobs.cancel(first)
    assert jobs.prune(time.time() + 1) == 1
    assert jobs.accept(new_job("d")).id == first + 1


def test_the_token_lasts_and_is_another_ledgers_other(
    jobs: JobLedger, elsewhere: Store, tmp_path: Path
) -> None:
    assert len(bytes.fromhex(jobs.token)) == 4
    assert JobLedger(elsewhere).token == jobs.token
    other = Store(tmp_path / "other.sqlite")
    assert JobLedger(other).token != jobs.token
    other.close()


def test_bytes_that_are_no_utf8_do_no_harm(jobs: JobLedger) -> None:
    row = jobs.accept(replace(new_job("caf\udce9"), app_name="\udcff"))
    assert jobs.accept(new_job("caf\udce9")).id == row.id
    assert jobs.accept(new_job("caf\udce8")).id != row.id
    jobs.hold([row.id], Hold("no file caf\udce9", 2301, 2))
    assert get(jobs, row.id).hold_reason == r"no file caf\udce9"


# -- batches


def test_a_batch_is_planned_of_the_jobs_that_still_wait(jobs: JobLedger) -> None:
    ids = [jobs.accept(new_job(name)).id for name in "abcd"]
    jobs.cancel(ids[1])
    other = jobs.accept(new_job("other", account="another")).id
    assert [job.job_id for job in jobs.waiting(*MINE)] == [ids[0], *ids[2:]]
    wanted = [ids[3], ids[1], ids[0], other, 99, ids[3]]
    batch = jobs.plan(*MINE, "bg-1", "uppercase", "t", wanted, LEASE)
    assert batch is not None
    assert batch == jobs.batch(batch.id)
    assert (batch.name, batch.state, batch.project_batch_id) == ("bg-1", "planned", None)
    assert (batch.lease_until, batch.not_before, batch.trouble) == (LEASE, 0.0, None)
    named = [(job.id, job.job_name, job.state) for job in jobs.jobs_of(batch.id)]
    assert named == [(ids[3], "bg-1-1", "sending"), (ids[0], "bg-1-2", "sending")]
    assert [job.job_id for job in jobs.waiting(*MINE)] == [ids[2]]
    assert jobs.plan(*MINE, "bg-2", "uppercase", "t", [ids[0], ids[1]], LEASE) is None
    assert [batch.name for batch in jobs.batches(*MINE)] == ["bg-1"]


def test_a_batchs_name_is_used_once(jobs: JobLedger) -> None:
    planned(jobs, "a")
    with pytest.raises(LedgerError, match="UNIQUE"):
        planned(jobs, "b")
    assert len(jobs.waiting(*MINE)) == 1


def test_jobs_of_a_batch_come_in_the_order_of_their_numbers(jobs: JobLedger) -> None:
    batch, ids = planned(jobs, *map(str, range(12)))
    assert [job.id for job in jobs.jobs_of(batch.id)] == ids
    jobs.cancel(ids[2])
    assert [job.id for job in jobs.jobs_of(batch.id, "cancelled", "running")] == [ids[2]]
    assert len(jobs.jobs_of(batch.id, "sending")) == 11
    assert jobs.jobs_of(batch.id, "no such state") == []


def in_batch_state(jobs: JobLedger, state: str) -> tuple[int, list[int]]:
    """Return a batch of that state with jobs of all the states that it can have then."""
    batch, ids = planned(jobs, "a", "b", "c", "d", "e")
    jobs.cancel(ids[4])
    if state in {"sent", "giving_up"}:
        jobs.about_to_send(batch.id, 7)
    if state == "giving_up":
        jobs.give_up(batch.id, 50.0)
    if state in {"submitted", "ended", "retired"}:
        jobs.submitted(batch.id, 7)
        jobs.statuses(batch.id, {"bg-1-1": "finished", "bg-1-2": "running"})
    if state in {"ended", "retired"}:
        jobs.cancel(ids[2])
        jobs.fail(ids[3], HOLD)
        jobs.fail(ids[1], HOLD)
        assert jobs.fetched(ids[0], 0, 1.0) == "fetched"
    if state == "retired":
        jobs.close_batch(batch.id, retired=True)
    assert batch_state(jobs, batch) == state
    return batch.id, ids


#: Each change of a batch: its name, the change, the states that allow it, and what then becomes of
#: the batch and of its jobs a, b, c, d and e.
CHANGES: list[tuple[str, Callable[[JobLedger, int], object], dict[str, tuple[str, str]]]] = [
    (
        "about to send",
        lambda jobs, batch: jobs.about_to_send(batch, 8),
        {"planned": ("sent", "sssss"), "sent": ("sent", "sssss")},
    ),
    (
        "submitted",
        lambda jobs, batch: jobs.submitted(batch, 8),
        {"planned": ("submitted", "qqqqc"), "sent": ("submitted", "qqqqc")},
    ),
    (
        "give up",
        lambda jobs, batch: jobs.give_up(batch, 60.0),
        {
            "planned": ("giving_up", "ssssc"),
            "sent": ("giving_up", "ssssc"),
            "giving_up": ("giving_up", "ssssc"),
        },
    ),
    (
        "drop",
        lambda jobs, batch: jobs.drop_from_batch(batch),
        {
            "planned": ("retired", "wwwwc"),
            "sent": ("retired", "wwwwc"),
            "giving_up": ("retired", "wwwwc"),
        },
    ),
    (
        "close",
        lambda jobs, batch: jobs.close_batch(batch, retired=False),
        {"ended": ("ended", "dFcFc")},
    ),
    (
        "retire",
        lambda jobs, batch: jobs.close_batch(batch, retired=True),
        {"ended": ("retired", "dFcFc")},
    ),
]
LETTERS = {"s": "sending", "q": "queued", "w": "waiting", "d": "done", "c": "cancelled"}
LETTERS |= {"F": "failed"}


@pytest.mark.parametrize("state", BATCH_STATES)
@pytest.mark.parametrize("change", CHANGES, ids=[change[0] for change in CHANGES])
def test_a_batch_changes_only_from_the_states_that_allow_it(
    jobs: JobLedger,
    store: Store,
    state: str,
    change: tuple[str, Callable[[JobLedger, int], object], dict[str, tuple[str, str]]],
) -> None:
    name, do, allowed = change
    batch_id, ids = in_batch_state(jobs, state)
    before = everything(store)
    said = do(jobs, batch_id)
    if state not in allowed:
        assert everything(store) == before
        assert said in {None, False}
        return
    after, letters = allowed[state]
    batch = jobs.batch(batch_id)
    assert batch is not None
    assert batch.state == after
    expected = [LETTERS[letter] for letter in letters[:4]] + ["cancelled"]
    assert states(jobs, ids) == expected
    if name in {"about to send", "submitted"}:
        assert batch.project_batch_id == 8
        assert said in {None, True}
    if name == "drop":
        assert jobs.aborts_owed(*MINE) == []
        assert {job.batch_id for job in jobs.jobs_of(batch_id)} == {batch_id}
        assert [job.id for job in jobs.jobs_of(batch_id)] == [ids[4]]
        assert [job.job_id for job in jobs.waiting(*MINE)] == ids[:4]
        assert get(jobs, ids[0]).job_name is None


def test_what_postpones_a_batch_is_told_until_it_is_submitted(jobs: JobLedger) -> None:
    batch, _ = planned(jobs, "a")
    jobs.postpone(batch.id, 500.0, "the project is down")
    row = jobs.batch(batch.id)
    assert row is not None
    assert (row.not_before, row.trouble, row.state) == (500.0, "the project is down", "planned")
    jobs.submitted(batch.id, 7)
    row = jobs.batch(batch.id)
    assert row is not None
    assert (row.not_before, row.trouble) == (0.0, None)


ALL_END: list[tuple[str, str, str]] = [
    ("planned", "ended", "no abort"),
    ("sent", "giving_up", "abort"),
    ("submitted", "ended", "abort"),
    ("giving_up", "giving_up", "no abort"),
]


@pytest.mark.parametrize(("state", "after", "owed"), ALL_END, ids=[row[0] for row in ALL_END])
def test_a_batch_whose_last_job_is_cancelled_ends(
    jobs: JobLedger, state: str, after: str, owed: str
) -> None:
    batch, ids = planned(jobs, "a", "b")
    if state != "planned":
        jobs.about_to_send(batch.id, 7)
    if state == "submitted":
        jobs.submitted(batch.id, 7)
    if state == "giving_up":
        jobs.give_up(batch.id, 50.0)
    jobs.cancel(ids[0])
    assert batch_state(jobs, batch) == state
    jobs.cancel(ids[1])
    assert batch_state(jobs, batch) == after
    assert len(jobs.aborts_owed(*MINE)) == (2 if owed == "abort" else 0)
    # What was decided cannot be sent any more.
    assert not jobs.about_to_send(batch.id, 7)
    jobs.submitted(batch.id, 7)
    assert batch_state(jobs, batch) == after


@pytest.mark.parametrize("way", ["hold", "fail"])
def test_a_batch_whose_last_job_fails_ends(jobs: JobLedger, way: str) -> None:
    batch, ids = submitted(jobs, "a", "b")
    jobs.cancel(ids[0])
    assert batch_state(jobs, batch) == "submitted"
    if way == "hold":
        jobs.hold([ids[1]], HOLD)
    else:
        jobs.fail(ids[1], HOLD)
    assert batch_state(jobs, batch) == "ended"


# -- jobs on the project


@pytest.mark.parametrize("said", ["queued", "running", "finished"])
@pytest.mark.parametrize("state", STATES)
def test_what_the_project_says_changes_only_jobs_that_are_queued_or_running(
    jobs: JobLedger, state: str, said: Any
) -> None:
    job_id = in_state(jobs, state)
    jobs.statuses(get(jobs, job_id).batch_id or 1, {"bg-1-1": said, "bg-1-9": said, "x": said})
    assert get(jobs, job_id).state == (said if state in {"queued", "running"} else state)


def test_a_poll_with_no_news_writes_nothing(jobs: JobLedger, elsewhere: Store) -> None:
    batch, _ = submitted(jobs, "a", "b")
    jobs.statuses(batch.id, {"bg-1-1": "running"})
    before = elsewhere.data_version()
    jobs.statuses(batch.id, {"bg-1-1": "running", "bg-1-2": "queued"})
    jobs.project_trouble(*MINE, None)
    assert elsewhere.data_version() == before


def test_finished_jobs_are_to_be_fetched_oldest_first(jobs: JobLedger) -> None:
    _, ids = submitted(jobs, "a", "b", "c", "d")
    finish(jobs, ids[3], ids[0], ids[1])
    assert [job.id for job in jobs.to_fetch(*MINE, 10)] == [ids[0], ids[1], ids[3]]
    assert [job.id for job in jobs.to_fetch(*MINE, 2)] == ids[:2]
    assert jobs.to_fetch(URL, "another", 10) == []


@pytest.mark.parametrize("state", STATES)
def test_only_for_a_finished_job_may_be_written(jobs: JobLedger, state: str) -> None:
    job_id = in_state(jobs, state)
    assert jobs.writing(job_id, True) == (state == "finished")
    assert get(jobs, job_id).writing == (state == "finished")
    assert jobs.writing(job_id, False) == (state == "finished")
    assert not get(jobs, job_id).writing


def test_writing_ends_after_a_cancel_too(jobs: JobLedger) -> None:
    job_id = in_state(jobs, "finished")
    assert jobs.writing(job_id, True)
    jobs.cancel(job_id)
    assert get(jobs, job_id).writing
    assert not jobs.writing(job_id, False)
    assert not get(jobs, job_id).writing


def test_a_new_keeper_knows_that_nobody_writes(jobs: JobLedger) -> None:
    job_id = in_state(jobs, "finished")
    jobs.writing(job_id, True)
    jobs.stop_writing(URL, "another")
    assert get(jobs, job_id).writing
    jobs.stop_writing(*MINE)
    assert not get(jobs, job_id).writing


@pytest.mark.parametrize("state", STATES)
def test_only_a_finished_job_is_fetched(jobs: JobLedger, store: Store, state: str) -> None:
    job_id = in_state(jobs, state)
    before = everything(store)
    said = jobs.fetched(job_id, 3, 1.5)
    if state != "finished":
        assert said == "gone"
        assert everything(store) == before
        return
    row = get(jobs, job_id)
    assert (said, row.state, row.exit_code, row.cpu_time) == ("done", "done", 3, 1.5)


def test_the_last_job_of_a_batch_waits_for_its_end(jobs: JobLedger) -> None:
    batch, ids = submitted(jobs, "a", "b", "c")
    finish(jobs, *ids)
    assert jobs.fetched(ids[1], 0, 1.0) == "done"
    jobs.cancel(ids[0])
    assert batch_state(jobs, batch) == "submitted"
    assert jobs.fetched(ids[2], 7, 2.0) == "fetched"
    assert batch_state(jobs, batch) == "ended"
    row = get(jobs, ids[2])
    assert (row.state, row.exit_code, row.cpu_time) == ("fetched", 7, 2.0)
    jobs.close_batch(batch.id, retired=False)
    assert states(jobs, ids) == ["cancelled", "done", "done"]
    assert batch_state(jobs, batch) == "ended"
    jobs.close_batch(batch.id, retired=True)
    assert batch_state(jobs, batch) == "retired"


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("way", ["hold", "fail"])
def test_only_jobs_that_are_alive_fail(jobs: JobLedger, store: Store, state: str, way: str) -> None:
    job_id = in_state(jobs, state)
    before, row = everything(store), get(jobs, job_id)
    if way == "hold":
        jobs.hold([job_id], HOLD)
    else:
        jobs.fail(job_id, HOLD, exit_code=2, cpu_time=3.0)
    if state in ENDED:
        assert everything(store) == before
        return
    after = get(jobs, job_id)
    assert after.state == "failed"
    assert (after.hold_reason, after.hold_code, after.hold_subcode) == ("the app crashed", 2304, 11)
    assert (after.batch_id, after.job_name) == (row.batch_id, row.job_name)
    if way == "fail":
        assert (after.exit_code, after.cpu_time) == (2, 3.0)


def test_batches_on_the_project_are_those_with_jobs_alive(jobs: JobLedger) -> None:
    first, ids = submitted(jobs, "a", "b", "c")
    planned(jobs, "d", name="bg-2")
    jobs.cancel(ids[0])
    finish(jobs, ids[1])
    assert jobs.on_project(*MINE) == [("bg-1", first.id, 2)]
    jobs.fetched(ids[1], 0, 0.0)
    jobs.fail(ids[2], HOLD)
    assert jobs.on_project(*MINE) == []


# -- owed, leased, forgotten


def test_aborts_are_owed_until_they_are_done(jobs: JobLedger) -> None:
    batch, ids = submitted(jobs, "a", "b", "c")
    jobs.cancel(ids[0])
    jobs.cancel(ids[2])
    owed = jobs.aborts_owed(*MINE)
    assert owed[0] == OwedAbort(ids[0], "bg-1-1", batch.id, "submitted", 7)
    assert [abort.job_name for abort in owed] == ["bg-1-1", "bg-1-3"]
    assert jobs.aborts_owed(URL, "another") == []
    jobs.abort_done([ids[0]])
    assert [abort.job_id for abort in jobs.aborts_owed(*MINE)] == [ids[2]]


def test_leases_are_renewed_of_batches_that_htcondor_asks_about(jobs: JobLedger) -> None:
    now = time.time()
    asked, (job_id,) = submitted(jobs, "a", name="asked")
    silent, (silent_id,) = submitted(jobs, "b", name="silent")
    gone, (gone_id,) = submitted(jobs, "c", name="gone")
    planned(jobs, "d", name="planned")
    for each in (asked, silent, gone):
        jobs.leased(each.id, now + 100)
    with jobs.store.read() as connection:
        assert connection.execute("SELECT count(*) FROM job").fetchone() == (4,)
    jobs.store.write(lambda connection: connection.execute("UPDATE job SET asked = 0").rowcount)
    jobs.asked([job_id], now - 10)
    jobs.asked([silent_id], now - 60)
    jobs.asked([gone_id], now)
    jobs.fail(gone_id, HOLD)
    assert [row.name for row in jobs.leases(*MINE, now, 200.0, 30.0)] == ["asked"]
    assert jobs.leases(*MINE, now, 50.0, 30.0) == []
    jobs.leased(asked.id, now + 500)
    assert jobs.leases(*MINE, now, 200.0, 30.0) == []
    assert [row.id for row in jobs.orphans(30.0)] == sorted(
        [silent_id, 4], key=lambda each: get(jobs, each).asked
    )


def test_owners_are_those_with_anything_alive_or_owed(jobs: JobLedger) -> None:
    assert jobs.owners() == ()
    jobs.accept(replace(new_job("x", account="alive"), project_name="old"))
    jobs.accept(replace(new_job("y", account="alive"), project_name="new"))
    jobs.cancel(jobs.accept(new_job("z", account="nothing")).id)
    assert jobs.owners() == ((URL, "alive", "new"),)
    jobs.cancel(1)
    jobs.cancel(2)
    assert jobs.owners() == ()
    batch, (job_id,) = submitted(jobs, "a")
    assert jobs.owners() == ((*MINE, ""),)
    jobs.cancel(job_id)
    assert jobs.owners() == ((*MINE, ""),)
    jobs.close_batch(batch.id, retired=True)
    assert jobs.owners() == ((*MINE, ""),)
    jobs.abort_done([job_id])
    assert jobs.owners() == ()


def test_a_projects_trouble_lasts_from_its_beginning_to_its_end(jobs: JobLedger) -> None:
    jobs.project_trouble(*MINE, "nobody knows this project")
    assert jobs.troubles() == {}
    jobs.accept(new_job("d"))
    before = time.time()
    jobs.project_trouble(*MINE, "no answer")
    ((words, since),) = jobs.troubles().values()
    assert words == "no answer"
    assert before <= since <= time.time()
    jobs.project_trouble(*MINE, "web stopped")
    assert jobs.troubles() == {MINE: ("web stopped", since)}
    jobs.project_trouble(*MINE, None)
    assert jobs.troubles() == {}


def test_a_jobs_trouble_is_told_until_it_is_over(jobs: JobLedger) -> None:
    job_id = in_state(jobs, "finished")
    jobs.job_trouble([job_id], "disk full")
    assert get(jobs, job_id).trouble == "disk full"
    jobs.fetched(job_id, 0, 0.0)
    assert get(jobs, job_id).trouble is None


def test_jobs_are_counted_by_state(jobs: JobLedger) -> None:
    _, ids = submitted(jobs, "a", "b", "c")
    jobs.cancel(ids[0])
    jobs.accept(new_job("d"))
    jobs.accept(new_job("e", account="another"))
    assert jobs.tally(*MINE) == Tally(waiting=1, queued=2, cancelled=1)
    assert jobs.tally(URL) == jobs.tally() == Tally(waiting=2, queued=2, cancelled=1)
    assert jobs.tally().alive == 4
    assert jobs.tally("https://elsewhere.example/") == Tally()


@pytest.mark.parametrize("is_told", [True, False])
@pytest.mark.parametrize("state", STATES)
def test_what_is_dropped_is_over_and_told_or_cancelled(
    jobs: JobLedger, state: str, is_told: bool
) -> None:
    job_id = in_state(jobs, state)
    batch_id = get(jobs, job_id).batch_id
    if is_told:
        jobs.told([job_id])
    later = time.time() + 1
    assert jobs.prune(later) == 0 or state == "cancelled"
    if state in ENDED:
        jobs.abort_done([job_id])
        for job in jobs.jobs_of(batch_id or 0, *ALIVE):
            jobs.cancel(job.id)
            jobs.abort_done([job.id])
        jobs.close_batch(batch_id or 0, retired=True)
        jobs.prune(later)
    dropped = state == "cancelled" or (is_told and state in {"done", "failed"})
    assert (jobs.job(job_id) is None) == dropped
    assert (jobs.batch(batch_id or 0) is None) == (dropped or batch_id is None)


def test_what_has_changed_since_is_not_dropped(jobs: JobLedger) -> None:
    job_id = jobs.accept(new_job("d")).id
    jobs.cancel(job_id)
    assert jobs.prune(get(jobs, job_id).changed) == 0
    assert jobs.prune(get(jobs, job_id).changed + 1) == 1
    with jobs.store.read() as connection:
        assert connection.execute("SELECT count(*) FROM description").fetchone() == (0,)


def test_two_processes_that_accept_the_same_job_get_one(jobs: JobLedger, elsewhere: Store) -> None:
    both = (jobs, JobLedger(elsewhere))
    found: list[set[int]] = [set(), set()]

    def accept(which: int) -> None:
        for number in range(30):
            found[which].add(both[which].accept(new_job(f"d{number}")).id)

    threads = [threading.Thread(target=accept, args=(which,)) for which in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found[0] == found[1]
    assert len(found[0]) == 30


def test_of_two_processes_that_plan_the_same_jobs_one_gets_each(
    jobs: JobLedger, elsewhere: Store
) -> None:
    ids = [jobs.accept(new_job(str(number))).id for number in range(20)]
    batches: list[Any] = [None, None]

    def plan(which: int, ledger: JobLedger) -> None:
        batches[which] = ledger.plan(*MINE, f"bg-{which}", "app", "t", ids, LEASE)

    threads = [
        threading.Thread(target=plan, args=each) for each in enumerate((jobs, JobLedger(elsewhere)))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(batch is None for batch in batches) == [False, True]


def test_no_authenticator_can_be_in_what_is_kept_of_owners(jobs: JobLedger) -> None:
    jobs.accept(new_job("d"))
    for file in jobs.store.path.parent.iterdir():
        assert file.stat().st_mode & 0o077 == 0, file
        assert file.stat().st_uid == os.getuid()
