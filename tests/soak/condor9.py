"""A user with HTCondor 9: jobs in batches, through BOINC_* commands (``gridmanager-boinc.rst``)."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field

from tests.daemon.gridmanager import Gridmanager, submission
from tests.soak.node import User
from tests.soak.work import APP, FAILURE

#: Jobs in a batch at most: those of one condor_submit.
_TOGETHER = 40
#: Real seconds between queries; HTCondor's are a minute.
_LOOK_EVERY = 1.0
#: Simulated seconds between renewals of leases, and before one that failed is tried again.
_RENEW, _RENEW_AGAIN = 5400.0, 300.0


@dataclass
class Batch:
    """A batch as a gridmanager knows it.

    Attributes:
        jobs: by their names on the project.
        known: the project has it, as far as is known.
        since: what was last said to ask for next time.
        done: the jobs of which it was said, and whose outputs are not here yet.
    """

    name: str
    jobs: object
    known: bool = False
    since: str = "0"
    leased: float = -math.inf
    done: set[str] = field(default_factory=set)

    @property
    def left(self):
        """The jobs that have not ended."""
        return {name: job for name, job in self.jobs.items() if not job.fate}


@dataclass
class BoincUser(User):
    """Does what a gridmanager of HTCondor 9 does for jobs of ``grid_resource = boinc``.

    What its user does is done at once: a job on hold is released. So a batch that could not be
    submitted becomes another one, and an output that could not be fetched is asked for again.
    """

    _made: int = 0
    _batches: list[Batch] = field(default_factory=list)

    def talk(self, daemon, until):
        gridmanager = Gridmanager(daemon)
        assert gridmanager.say(["BOINC_SELECT_PROJECT", self.url, self.authenticator]) == ["S"]
        gridmanager.do("BOINC_PING")
        for batch in self._batches:
            batch.since, batch.known = "0", False
        looked = -math.inf
        while (self.left or self._batches) and time.monotonic() < until:
            self._submit(gridmanager)
            self._cancel(gridmanager)
            if looked < time.monotonic() - _LOOK_EVERY:
                looked = time.monotonic()
                self._recover(gridmanager)
                self._renew(gridmanager)
                self._look(gridmanager)
                self._fetch(gridmanager)
            self._retire(gridmanager)
            time.sleep(0.1)

    @property
    def _known(self):
        return [batch for batch in self._batches if batch.known]

    def _recover(self, gridmanager):
        """Find out what the project has, as after a crash; what it does not know is sent.

        A batch that cannot be asked about is held, and released; the others are not kept waiting.
        """
        for batch in [batch for batch in self._batches if not batch.known]:
            words = gridmanager.do("BOINC_QUERY_BATCHES", "0", "1", batch.name)
            if words[0] == "NULL" and int(words[2]):
                batch.known = True
                self._note(batch, words[3:])
            elif words[0] == "NULL" or words[0].endswith(f"no batch named {batch.name}"):
                self._send(gridmanager, batch)

    def _submit(self, gridmanager):
        """Put what is due into a batch."""
        taken = {job.work.number for batch in self._batches for job in batch.left.values()}
        due = [job for job in self.left if job.due <= self.now and job.work.number not in taken][
            :_TOGETHER
        ]
        if not due:
            return
        self._made += 1
        name = f"condor#{self.name}#{APP}#{self._made}"
        batch = Batch(name, {f"{name}#{job.work.number}.0": job for job in due})
        self._batches.append(batch)
        for job in due:
            job.directory.mkdir(parents=True, exist_ok=True)
        self._send(gridmanager, batch)

    def _send(self, gridmanager, batch):
        jobs = {
            name: (job.work.arguments, (str(self.input_path(job.input)), "in"))
            for name, job in batch.jobs.items()
        }
        [error] = gridmanager.do("BOINC_SUBMIT", *submission(batch.name, APP, jobs))
        if error == "NULL":
            batch.known = True
        else:
            # All jobs are put on hold; released, they are submitted anew, in another batch.
            self.held.append(error)
            self.given_up.add(batch.name)
            self._batches.remove(batch)

    def _cancel(self, gridmanager):
        for batch in self._batches:
            for name, job in batch.left.items():
                if self.is_unwanted(job):
                    # Whatever comes of it, the job leaves the queue.
                    gridmanager.do("BOINC_ABORT_JOBS", name)
                    job.fate = "cancelled"

    def _renew(self, gridmanager):
        for batch in self._batches:
            if batch.leased < self.now - _RENEW:
                until = f"{self.plan.clock.origin + self.now + self.plan.lease:.0f}"
                [error] = gridmanager.do("BOINC_SET_LEASE", batch.name, until)
                batch.leased = self.now - (0.0 if error == "NULL" else _RENEW - _RENEW_AGAIN)

    def _look(self, gridmanager):
        for batch in self._known:
            words = gridmanager.do("BOINC_QUERY_BATCHES", batch.since, "1", batch.name)
            if words[0] == "NULL":
                batch.since = words[1]
                self._note(batch, words[3:])

    def _note(self, batch, pairs):
        for name, word in zip(pairs[::2], pairs[1::2], strict=True):
            job = batch.jobs[name]
            if job.fate:
                continue
            if word == "DONE":
                batch.done.add(name)
            elif word == "ERROR":
                job.fate = "failed"
                if not job.work.fails:
                    self.problem(job, "is in error")

    def _fetch(self, gridmanager):
        wanted = [
            (batch, name, job)
            for batch in self._batches
            for name, job in batch.left.items()
            if name in batch.done
        ]
        asked = [
            ("BOINC_FETCH_OUTPUT", name, str(job.directory), "job.err", "ALL", "0")
            for _, name, job in wanted
        ]
        for (_, _, job), words in zip(wanted, gridmanager.do_all(asked), strict=True):
            if words[0] != "NULL":
                self.held.append(words[0])
            elif not job.work.fails:
                self.is_home(job)
            else:
                job.fate = "failed"
                if words[1] != str(FAILURE):
                    self.problem(job, f"failed, and has exit code {words[1]}")

    def _retire(self, gridmanager):
        for batch in self._known:
            if not batch.left:
                # What it says is not looked at; the job leaves the queue.
                [error] = gridmanager.do("BOINC_RETIRE_BATCH", batch.name)
                if error != "NULL":
                    self.excused.add(batch.name)
                self._batches.remove(batch)
