"""A user with HTCondor 10 or later: jobs through BLAH_* commands (``gridmanager-batch.rst``)."""

import math
import time

from tests.daemon.gridmanager import BatchGridmanager, job_ad
from tests.soak.node import User
from tests.soak.work import APP, FAILURE

#: GRIDMANAGER_MAX_SUBMITTED_JOBS_PER_RESOURCE: so many jobs of a user are with the daemon.
AT_ONCE = 1000
#: Jobs submitted before others are looked at.
_SUBMITTED_TOGETHER = 100
#: Real seconds between looks at a job; HTCondor's are a minute, and more for many jobs.
_LOOK_EVERY = 2.0
_COMPLETED, _HELD, _REMOVED = 4, 5, 3


class BatchUser(User):
    """Submits, looks and cancels as a gridmanager does, through one daemon after the other."""

    def talk(self, daemon, until):
        gridmanager = BatchGridmanager(daemon)
        gridmanager.ping()
        looked = {}
        while self.left and time.monotonic() < until:
            begun = time.monotonic()
            self._submit(gridmanager)
            self._cancel(gridmanager)
            due = [
                job
                for job in self.left
                if job.id and looked.get(job.id, -math.inf) < time.monotonic() - _LOOK_EVERY
            ]
            found = gridmanager.statuses([job.id for job in due])
            for job in due:
                looked[job.id] = time.monotonic()
                self._note(gridmanager, job, found[job.id])
            time.sleep(max(0.0, begun + 0.1 - time.monotonic()))

    def _submit(self, gridmanager):
        there = sum(1 for job in self.left if job.id)
        due = [job for job in self.left if not job.id and job.due <= self.now]
        due = due[: min(_SUBMITTED_TOGETHER, AT_ONCE - there)]
        for job, job_id in zip(due, gridmanager.submit_all(map(self._ad, due)), strict=True):
            job.id = job_id

    def _ad(self, job):
        job.directory.mkdir(parents=True, exist_ok=True)
        return job_ad(
            str(job.directory),
            Cmd=f"/usr/bin/{APP}",
            BoincApp=APP,
            Out="job.out",
            Err="job.err",
            Arguments=" ".join(job.work.arguments),
            TransferInput=str(self.input_path(job.input)),
            JobDirectory=f"home_bl_127.0.0.1_9618_vm_{job.work.number}.0_1795261016",
        )

    def _cancel(self, gridmanager):
        unwanted = [job for job in self.left if job.id and self.is_unwanted(job)]
        gridmanager.cancel(*[job.id for job in unwanted])
        for job in unwanted:
            job.fate = "cancelled"

    def _note(self, gridmanager, job, status):
        if status.word == _COMPLETED and job.work.fails:
            job.fate = "failed"
            if status["ExitCode"] != FAILURE:
                self.problem(job, f"failed, and has exit code {status['ExitCode']}")
        elif status.word == _COMPLETED:
            self.is_home(job)
        elif status.word in {_HELD, _REMOVED}:
            # HTCondor cancels what it puts on hold.
            gridmanager.cancel(job.id)
            job.fate = "failed"
            if not job.work.fails:
                self.problem(job, f"has status {status.word}: {status['HoldReason']}")
