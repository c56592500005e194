"""The rules for accepting, telling and cancelling jobs, against a plain model, at random."""

from __future__ import annotations

import os
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from boinc_gahp.ledger import JobLedger, Store
from boinc_gahp.ledger.jobs import ProgramFailure
from tests.ledger.jobs import HOLD, MINE, new_job

DIRECTORIES = st.sampled_from(["a", "b", "c", "d"])
INDICES = st.integers(0, 10**6)


@dataclass
class Job:
    """A job as the model knows it."""

    id: int
    directory: str
    state: str = "waiting"
    told: bool = False
    aborts: int = 0
    batch: int | None = None
    failed: bool = False

    @property
    def is_alive(self) -> bool:
        return self.state not in {"done", "failed", "cancelled"}


@dataclass
class Batch:
    """A batch as the model knows it."""

    id: int
    state: str = "planned"
    jobs: list[Job] = field(default_factory=list)

    def job_has_ended(self) -> None:
        if any(job.is_alive for job in self.jobs):
            return
        if self.state == "planned":
            for job in self.jobs:
                job.aborts = 0
        self.state = {"planned": "ended", "submitted": "ended", "sent": "giving_up"}.get(
            self.state, self.state
        )


class Ledgers(RuleBasedStateMachine):
    """Two processes' ledgers on one file, which is closed and opened again at times."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.TemporaryDirectory()
        self.path = Path(self.directory.name) / "ledger.sqlite"
        self.stores: list[Store] = []
        self.model: dict[int, Job] = {}
        self.batches: dict[int, Batch] = {}
        self.turn = 0

    @initialize()
    def open(self) -> None:
        self.stores = [Store(self.path), Store(self.path)]
        for store in self.stores:
            # Durability has tests of its own, with kill -9.
            store._connection.execute("PRAGMA synchronous = OFF")
        self.ledgers = [JobLedger(store) for store in self.stores]

    def teardown(self) -> None:
        for store in self.stores:
            store.close()
        self.directory.cleanup()

    @property
    def jobs(self) -> JobLedger:
        self.turn += 1
        return self.ledgers[self.turn % 2]

    def some(self, index: int) -> Job | None:
        jobs = list(self.model.values())
        return jobs[index % len(jobs)] if jobs else None

    def some_batch(self, index: int) -> Batch | None:
        batches = list(self.batches.values())
        return batches[index % len(batches)] if batches else None

    @rule()
    def restart(self) -> None:
        for store in self.stores:
            store.close()
        self.open()

    @rule(directory=DIRECTORIES)
    def accept(self, directory: str) -> None:
        same = [job for job in self.model.values() if job.directory == directory]
        latest = same[-1] if same else None
        row = self.jobs.accept(new_job(directory))
        if latest and (latest.is_alive or (latest.state != "cancelled" and not latest.told)):
            assert row.id == latest.id
            return
        assert row.id not in self.model
        assert row.id > max(self.model, default=0)
        assert row.state == "waiting"
        assert len(same) >= row.attempt - 1
        self.model[row.id] = Job(row.id, directory)

    @rule(index=INDICES)
    def cancel(self, index: int) -> None:
        job = self.some(index)
        if job is None:
            return
        before = self.jobs.cancel(job.id)
        assert before is not None
        assert before.state == job.state
        batch = None if job.batch is None else self.batches[job.batch]
        was_alive = job.is_alive
        if job.state != "cancelled":
            job.state = "cancelled"
            wanted = batch is not None and batch.state in {"planned", "sent", "submitted"}
            job.aborts = int(was_alive and wanted)
        if batch is not None and was_alive:
            batch.job_has_ended()

    @rule(index=INDICES)
    def tell(self, index: int) -> None:
        job = self.some(index)
        if job is not None:
            self.jobs.told([job.id])
            job.told = job.told or job.state in {"done", "failed"}

    @rule(indices=st.lists(INDICES, max_size=4), name=st.uuids())
    def plan(self, indices: list[int], name: object) -> None:
        wanted = [job for index in indices if (job := self.some(index)) is not None]
        ids = [job.id for job in wanted]
        row = self.jobs.plan(*MINE, f"bg-{name}", "uppercase", "t", ids, 0.0)
        chosen = [job for job in dict.fromkeys(ids) if self.model[job].state == "waiting"]
        assert (row is None) == (not chosen)
        if row is not None:
            batch = self.batches[row.id] = Batch(row.id, jobs=[self.model[each] for each in chosen])
            for job in batch.jobs:
                job.state, job.batch = "sending", row.id

    @rule(index=INDICES)
    def send(self, index: int) -> None:
        batch = self.some_batch(index)
        if batch is not None:
            may = self.jobs.about_to_send(batch.id, batch.id)
            assert may == (batch.state in {"planned", "sent"})
            batch.state = "sent" if may else batch.state

    @rule(index=INDICES)
    def submitted(self, index: int) -> None:
        batch = self.some_batch(index)
        if batch is None:
            return
        self.jobs.submitted(batch.id, batch.id)
        if batch.state in {"planned", "sent"}:
            batch.state = "submitted"
            for job in batch.jobs:
                job.state = "queued" if job.state == "sending" else job.state

    @rule(index=INDICES)
    def give_up(self, index: int) -> None:
        batch = self.some_batch(index)
        if batch is not None:
            self.jobs.give_up(batch.id, 0.0)
            if batch.state in {"planned", "sent"}:
                batch.state = "giving_up"

    @rule(index=INDICES)
    def drop(self, index: int) -> None:
        batch = self.some_batch(index)
        if batch is None:
            return
        self.jobs.drop_from_batch(batch.id)
        if batch.state in {"planned", "sent", "giving_up"}:
            batch.state = "retired"
            for job in batch.jobs:
                job.aborts = 0
                if job.state == "sending":
                    job.state, job.batch = "waiting", None
            batch.jobs = [job for job in batch.jobs if job.batch is not None]

    @rule(index=INDICES)
    def finish(self, index: int) -> None:
        job = self.some(index)
        if job is None or job.batch is None:
            return
        row = self.jobs.job(job.id)
        assert row is not None
        assert row.job_name is not None
        self.jobs.statuses(job.batch, {row.job_name: "finished"})
        if job.state in {"queued", "running"}:
            job.state = "finished"

    @rule(index=INDICES)
    def program_failed(self, index: int) -> None:
        job = self.some(index)
        if job is None:
            return
        self.jobs.program_failed(job.id, ProgramFailure(11, 1.0, "it failed", "its stderr"))
        if job.state in {"queued", "running", "finished"}:
            job.state, job.failed = "finished", True

    @rule(index=INDICES)
    def fetch(self, index: int) -> None:
        job = self.some(index)
        if job is None:
            return
        said = self.jobs.fetched(job.id, 0, 1.0)
        if job.state != "finished":
            assert said == "gone"
            return
        assert job.batch is not None
        batch = self.batches[job.batch]
        job.state = "done"
        if not any(other.is_alive for other in batch.jobs):
            batch.state = "ended"
            job.state = "fetched"
        assert said == job.state

    @rule(index=INDICES, retired=st.booleans())
    def close(self, index: int, retired: bool) -> None:
        batch = self.some_batch(index)
        if batch is None:
            return
        self.jobs.close_batch(batch.id, retired)
        if batch.state == "ended":
            batch.state = "retired" if retired else "ended"
            for job in batch.jobs:
                job.state = "done" if job.state == "fetched" else job.state

    @rule(index=INDICES)
    def fail(self, index: int) -> None:
        job = self.some(index)
        if job is not None:
            self.jobs.fail(job.id, HOLD)
            if job.is_alive:
                job.state = "failed"
                if job.batch is not None:
                    self.batches[job.batch].job_has_ended()

    @rule(index=INDICES)
    def abort(self, index: int) -> None:
        job = self.some(index)
        if job is not None:
            self.jobs.abort_done([job.id])
            job.aborts = 0

    @rule()
    def prune(self) -> None:
        dropped = [
            job
            for job in self.model.values()
            if not job.is_alive
            and (job.told or job.state == "cancelled")
            and not job.aborts
            and (job.batch is None or self.batches[job.batch].state == "retired")
        ]
        assert self.jobs.prune(time.time() + 10) == len(dropped)
        for job in dropped:
            # Its id is never given again: the model keeps its place by the ids that are left.
            del self.model[job.id]
            if job.batch is not None:
                self.batches[job.batch].jobs.remove(job)
        for batch in list(self.batches.values()):
            if batch.state == "retired" and not batch.jobs:
                del self.batches[batch.id]

    @invariant()
    def it_is_as_the_model_says(self) -> None:
        if not self.stores:
            return
        jobs = self.jobs
        for job in self.model.values():
            row = jobs.job(job.id)
            assert row is not None
            found = (row.state, row.told, row.abort_owed, row.batch_id, row.job_directory)
            assert found == (job.state, job.told, bool(job.aborts), job.batch, job.directory)
            assert row.exit_reason == ("it failed" if job.failed else None)
            if job.state in {"waiting", "sending", "queued", "running", "fetched", "done"}:
                assert jobs.program_failure(job.id) is None
            elif job.state == "finished":
                assert (jobs.program_failure(job.id) is not None) == job.failed
        for batch in self.batches.values():
            found_batch = jobs.batch(batch.id)
            assert found_batch is not None
            assert found_batch.state == batch.state
            assert [row.id for row in jobs.jobs_of(batch.id)] == [job.id for job in batch.jobs]
        assert {owed.job_id for owed in jobs.aborts_owed(*MINE)} == {
            job.id for job in self.model.values() if job.aborts
        }
        assert jobs.tally().alive == sum(job.is_alive for job in self.model.values())
        alive_or_owed = any(job.is_alive or job.aborts for job in self.model.values())
        open_batches = any(batch.state != "retired" for batch in self.batches.values())
        assert bool(jobs.owners()) == (alive_or_owed or open_batches)
        assert [each.job_id for each in jobs.waiting(*MINE)] == [
            job.id for job in self.model.values() if job.state == "waiting"
        ]


TestLedgers = Ledgers.TestCase
TestLedgers.settings = settings(
    max_examples=int(os.environ.get("EXAMPLES", "7")), stateful_step_count=30, deadline=None
)
