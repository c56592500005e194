"""The rules for accepting, telling and cancelling jobs, against a plain model, at random."""

import os
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from boinc_gahp.ledger.jobs import JobLedger
from boinc_gahp.ledger.ledger import Ledger
from boinc_gahp.ledger.rows import ProgramFailure
from tests.ledger.jobs import HOLD, MINE, alive, in_request, new_job, prune

#: EXAMPLES=1000 takes minutes.
pytestmark = pytest.mark.timeout(3600)

DIRECTORIES = st.sampled_from(["a", "b", "c", "d"])
INDICES = st.integers(0, 255)
PLANS = st.lists(INDICES, min_size=1, max_size=4)
#: How far a sender comes with a batch at once.
SENDINGS = st.sampled_from(["", "request", "send"])
#: The project's ids of BOINC_SUBMIT's batches.
SUBMITS = st.integers(1, 3)


@dataclass
class Job:
    """A job as the model knows it."""

    id: int
    directory: str
    attempt: int
    state: str = "waiting"
    end_reported: bool = False
    aborts: int = 0
    batch: int | None = None
    failed: bool = False

    @property
    def is_alive(self):
        return self.state not in {"done", "failed", "cancelled"}


@dataclass
class Batch:
    """A batch as the model knows it."""

    id: int
    state: str = "planned"
    jobs: list[Job] = field(default_factory=list)
    #: The jobs of the submit_batch that a sender is busy with, as they were when it was made.
    request: list[Job] | None = None

    def leave(self, *, but):
        """Let all jobs leave the batch but those."""
        for job in self.jobs:
            if job not in but:
                job.batch, job.aborts = None, 0
        self.jobs = [job for job in self.jobs if job in but]

    def give_back(self):
        """Let jobs that are being sent wait again; for the others no aborts are pending."""
        for job in self.jobs:
            job.aborts = 0
            if job.state == "sending" and job.batch == self.id:
                job.state, job.batch = "waiting", None
        self.jobs = [job for job in self.jobs if job.batch == self.id]

    def job_has_ended(self):
        if any(job.is_alive for job in self.jobs):
            return
        if self.state == "planned":
            for job in self.jobs:
                job.aborts = 0
        self.state = {"planned": "ended", "submitted": "ended", "sent": "giving_up"}.get(
            self.state, self.state
        )


def of_a_job(**arguments):
    """Make a rule about a job, if there is one."""
    return lambda do: precondition(lambda self: self.model)(rule(index=INDICES, **arguments)(do))


def of_a_batch(**arguments):
    """Make a rule about a batch, if there is one."""
    return lambda do: precondition(lambda self: self.batches)(rule(index=INDICES, **arguments)(do))


def _some(index, all_, states):
    fitting = [one for one in all_ if one.state in states]
    chosen = fitting if fitting and index % 4 else all_
    return chosen[index // 4 % len(chosen)]


class Ledgers(RuleBasedStateMachine):
    """Two processes' ledgers on one file, which is closed and opened again at times."""

    def __init__(self):
        super().__init__()
        self.directory = tempfile.TemporaryDirectory()
        self.path = Path(self.directory.name) / "ledger.sqlite"
        self.stores = []
        self.model = {}
        self.batches = {}
        #: States of BOINC_SUBMIT's batches, by the project's ids of them.
        self.submits = {}
        self.turn = 0
        self.last_id = 0

    @initialize(planned=PLANS, name=st.uuids(), sending=SENDINGS)
    def begin(self, planned, name, sending):
        """Have jobs and a batch at once: in many histories, hypothesis leaves some rules out."""
        self.open()
        self.accept(["a", "b", "c", "d"])
        self.plan(planned, name, sending)

    def open(self):
        self.submitters = [Ledger(self.path), Ledger(self.path)]
        self.stores = [ledger.store for ledger in self.submitters]
        for store in self.stores:
            # Durability has tests of its own, with kill -9.
            store._connection.execute("PRAGMA synchronous = OFF")
        self.ledgers = [JobLedger(store) for store in self.stores]

    def teardown(self):
        for store in self.stores:
            store.close()
        self.directory.cleanup()

    @property
    def jobs(self):
        self.turn += 1
        return self.ledgers[self.turn % 2]

    @property
    def submitter(self):
        self.turn += 1
        return self.submitters[self.turn % 2]

    def some(self, index, *states):
        """Return a job, mostly one of these states if there is one."""
        return _some(index, list(self.model.values()), states)

    def some_batch(self, index, *states):
        """Return a batch, mostly one of these states if there is one."""
        return _some(index, list(self.batches.values()), states)

    @rule()
    def restart(self):
        for store in self.stores:
            store.close()
        self.open()
        for batch in self.batches.values():
            batch.request = None  # its sender has ended

    @rule(directories=st.lists(DIRECTORIES, min_size=1, max_size=4, unique=True))
    def accept(self, directories):
        for directory in directories:
            self.accept_one(directory)

    def accept_one(self, directory):
        same = [job for job in self.model.values() if job.directory == directory]
        latest = same[-1] if same else None
        row = self.jobs.accept(new_job(directory))
        if latest and (
            latest.is_alive or (latest.state != "cancelled" and not latest.end_reported)
        ):
            assert row.id == latest.id
            return
        # Not even the id of a job that was dropped is given again.
        assert row.id > self.last_id
        self.last_id = row.id
        assert row.state == "waiting"
        assert row.attempt == (latest.attempt + 1 if latest else 1)
        self.model[row.id] = Job(row.id, directory, row.attempt)

    @of_a_job()
    def cancel(self, index):
        job = self.some(index, "waiting", "sending", "queued", "running")
        before = self.jobs.cancel(job.id)
        assert before.state == job.state
        batch = None if job.batch is None else self.batches[job.batch]
        was_alive = job.is_alive
        if job.state != "cancelled":
            job.state = "cancelled"
            wanted = batch is not None and batch.state in {"planned", "sent", "submitted"}
            job.aborts = int(was_alive and wanted)
        if batch is not None and was_alive:
            batch.job_has_ended()

    @of_a_job()
    def tell(self, index):
        job = self.some(index, "done", "failed")
        self.jobs.end_reported([job.id])
        job.end_reported = job.end_reported or job.state in {"done", "failed"}

    @precondition(lambda self: bool(self.model))
    @rule(planned=PLANS, name=st.uuids(), sending=SENDINGS)
    def plan(self, planned, name, sending):
        wanted = [self.some(index, "waiting") for index in planned]
        ids = [job.id for job in wanted]
        row = self.jobs.plan(*MINE, f"bg-{name}", "uppercase", "t", ids, 0.0)
        chosen = [job for job in dict.fromkeys(ids) if self.model[job].state == "waiting"]
        assert (row is None) == (not chosen)
        if row is not None:
            batch = self.batches[row.id] = Batch(row.id, jobs=[self.model[each] for each in chosen])
            for job in batch.jobs:
                job.state, job.batch = "sending", row.id
            if sending:
                self.send_batch(batch, sending)

    @of_a_batch(sending=SENDINGS)
    def send(self, index, sending):
        self.send_batch(self.some_batch(index, "planned", "sent"), sending)

    def send_batch(self, batch, sending):
        """A sender makes its request for a batch, and sends it now or later, once or more often."""
        if batch.request is None:
            if batch.state not in {"planned", "sent"}:
                return
            batch.request = [self.model[each] for each in in_request(self.jobs, batch.id)]
            alive = [job for job in batch.jobs if job.state == "sending"]
            assert batch.request == (alive if batch.state == "planned" else batch.jobs)
            if sending == "request":
                return
        sent = batch.request
        said = self.jobs.about_to_send(batch.id, batch.id, [job.id for job in sent])
        if batch.state not in {"planned", "sent"}:
            assert said == "over"
        elif batch.state == "planned" and any(job.state != "sending" for job in sent):
            assert said == "changed"
        else:
            assert said == "go"
            # What is alive is never left out: it would be in no batch, and never be sent.
            assert all(job in sent for job in batch.jobs if job.is_alive)
            batch.state = "sent"
            batch.leave(but=sent)
        if said != "go":
            batch.request = None

    @of_a_batch(size=st.integers(0, 2), names=st.tuples(st.uuids(), st.uuids()))
    def divide(self, index, size, names):
        batch = self.some_batch(index, "planned", "giving_up")
        jobs = batch.jobs
        parts = {
            f"bg-{name}": [job.id for job in part]
            for name, part in zip(names, (jobs[:size], jobs[size : 2 * size]), strict=True)
        }
        divided = self.jobs.divide(batch.id, parts, "t/family/1", "refused", 0.0)
        assert divided == (batch.state in {"planned", "giving_up"})
        if not divided:
            return
        batch.state = "ended" if batch.state == "planned" else "retired"
        new = {row.name: row.id for row in self.jobs.batches(*MINE, "planned")}
        for name, job_ids in parts.items():
            alive = [self.model[each] for each in job_ids]
            alive = [job for job in alive if job.state == "sending"]
            assert bool(alive) == (name in new)
            for job in alive:
                job.batch = new[name]
            if alive:
                self.batches[new[name]] = Batch(new[name], jobs=alive)
        batch.give_back()

    @of_a_batch()
    def submitted(self, index):
        batch = self.some_batch(index, "sent")
        self.jobs.submitted(batch.id, batch.id)
        if batch.state in {"planned", "sent"}:
            batch.state = "submitted"
            for job in batch.jobs:
                job.state = "queued" if job.state == "sending" else job.state

    @of_a_batch()
    def begin_abort(self, index):
        batch = self.some_batch(index, "sent")
        self.jobs.begin_abort(batch.id, 0.0)
        if batch.state in {"planned", "sent"}:
            batch.state = "giving_up"

    @of_a_batch()
    def drop(self, index):
        batch = self.some_batch(index, "giving_up")
        self.jobs.drop_from_batch(batch.id)
        if batch.state in {"planned", "sent", "giving_up"}:
            batch.state = "retired"
            batch.give_back()

    @of_a_job()
    def finish(self, index):
        job = self.some(index, "queued", "running")
        if job.batch is None:
            return
        row = self.jobs.job(job.id)
        self.jobs.statuses(job.batch, {row.job_name: "finished"})
        if job.state in {"queued", "running"}:
            job.state = "finished"

    @of_a_job()
    def program_failed(self, index):
        job = self.some(index, "queued", "running", "finished")
        self.jobs.program_failed(job.id, ProgramFailure(11, 1.0, "it failed", "its stderr"))
        if job.state in {"queued", "running", "finished"}:
            job.state, job.failed = "finished", True

    @of_a_job()
    def fetch(self, index):
        job = self.some(index, "finished")
        said = self.jobs.fetched(job.id, 0, 1.0)
        if job.state != "finished":
            assert said == "gone"
            return
        batch = self.batches[job.batch]
        job.state = "done"
        if not any(other.is_alive for other in batch.jobs):
            batch.state = "ended"
            job.state = "fetched"
        assert said == job.state

    @of_a_batch(retired=st.booleans())
    def close(self, index, retired):
        batch = self.some_batch(index, "ended")
        self.jobs.close_batch(batch.id, retired)
        if batch.state == "ended":
            batch.state = "retired" if retired else "ended"
            for job in batch.jobs:
                job.state = "done" if job.state == "fetched" else job.state

    @of_a_job()
    def fail(self, index):
        job = self.some(index, "sending", "queued", "finished")
        self.jobs.hold([job.id], HOLD)
        if job.is_alive:
            job.state = "failed"
            if job.batch is not None:
                self.batches[job.batch].job_has_ended()

    @of_a_job()
    def abort(self, index):
        job = self.some(index)
        self.jobs.abort_done([job.id])
        job.aborts = 0

    @precondition(lambda self: any(not job.is_alive for job in self.model.values()))
    @rule()
    def prune(self):
        dropped = [
            job
            for job in self.model.values()
            if not job.is_alive
            and (job.end_reported or job.state == "cancelled")
            and not job.aborts
            and (job.batch is None or self.batches[job.batch].state == "retired")
        ]
        assert prune(self.jobs, time.time() + 10) == len(dropped)
        for job in dropped:
            del self.model[job.id]
            if job.batch is not None:
                self.batches[job.batch].jobs.remove(job)
        for batch in list(self.batches.values()):
            if batch.state == "retired" and not batch.jobs:
                del self.batches[batch.id]

    @rule(number=SUBMITS)
    def begin_submit(self, number):
        is_new = self.submits.get(number) != "giving_up"
        assert self.submitter.begin_submit(*MINE, f"b{number}", number, 5.0) == is_new
        if is_new:
            self.submits[number] = "sent"

    @rule(number=SUBMITS)
    def record_abort(self, number):
        self.submitter.record_abort(*MINE, f"b{number}", number, 6.0)
        self.submits[number] = "giving_up"

    @rule(number=SUBMITS)
    def end_submit(self, number):
        self.submitter.end_submit(*MINE, f"b{number}")
        if self.submits.get(number) == "sent":
            del self.submits[number]

    @rule(number=SUBMITS)
    def aborted(self, number):
        self.submitter.abort_done(*MINE, number)
        self.submits.pop(number, None)

    @precondition(lambda self: self.stores)
    @invariant()
    def submits_are_as_the_model_says(self):
        found = self.submitter.pending_aborts(*MINE, 0.0)
        assert {batch.project_batch_id: batch.state for batch in found} == self.submits
        assert all(batch.not_before == {"sent": 5.0}.get(batch.state, 6.0) for batch in found)

    @precondition(lambda self: self.stores)
    @invariant()
    def it_is_as_the_model_says(self):
        jobs = self.jobs
        for job in self.model.values():
            row = jobs.job(job.id)
            found = (row.state, row.end_reported, row.abort_pending, row.batch_id)
            assert found == (job.state, job.end_reported, bool(job.aborts), job.batch)
            assert row.job_directory == job.directory
            assert row.exit_reason == ("it failed" if job.failed else None)
            if job.state in {"waiting", "sending", "queued", "running", "fetched", "done"}:
                assert jobs.program_failure(job.id) is None
            elif job.state == "finished":
                assert (jobs.program_failure(job.id) is not None) == job.failed
        for batch in self.batches.values():
            assert jobs.batch(batch.id).state == batch.state
            assert [row.id for row in jobs.jobs_of(batch.id)] == [job.id for job in batch.jobs]
        submitted = [batch for batch in self.batches.values() if batch.state == "submitted"]
        assert {pending.id for pending in jobs.pending_aborts(*MINE)} == {
            job.id for job in self.model.values() if job.aborts
        }
        assert alive(jobs) == sum(job.is_alive for job in self.model.values())
        lives = {batch.id: sum(job.is_alive for job in batch.jobs) for batch in submitted}
        assert jobs.on_project(*MINE) == {batch: lives[batch] for batch in lives if lives[batch]}
        finished = [job.id for job in self.model.values() if job.state == "finished"]
        assert [row.id for row in jobs.to_fetch(*MINE, 2)] == finished[:2]
        alive_or_pending = any(job.is_alive or job.aborts for job in self.model.values())
        open_batches = any(batch.state != "retired" for batch in self.batches.values())
        assert bool(jobs.owners()) == (alive_or_pending or open_batches)
        assert [each.id for each in jobs.waiting(*MINE)] == [
            job.id for job in self.model.values() if job.state == "waiting"
        ]


TestLedgers = Ledgers.TestCase
TestLedgers.settings = settings(
    max_examples=int(os.environ.get("EXAMPLES", "20")), stateful_step_count=40, deadline=None
)
