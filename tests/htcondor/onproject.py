"""Jobs that are on the project, and in the ledger as the sender leaves them."""

from __future__ import annotations

import itertools
import time
import uuid
from dataclasses import dataclass

from boinc_gahp.htcondor._context import ErrorGuard
from boinc_gahp.htcondor._description import JobDescription
from boinc_gahp.htcondor._fetching import FetchQueue
from boinc_gahp.htcondor._following import Follower
from boinc_gahp.submit.engine import submit
from boinc_gahp.submit.query import query_jobs
from boinc_gahp.submit.types import Job, LocalFile, SubmitRequest
from boinc_gahp.threads import Workers
from tests.helpers import wait_for
from tests.htcondor.desk import hand_over

_numbers = itertools.count(1)
_polls = itertools.count(1)
#: The names under which the supplied apps open their inputs.
_INPUTS = {"multi": ("in0", "in1")}


@dataclass(frozen=True)
class Sent:
    """A batch, and its jobs as the ledger has them now; ``requests`` are the project's."""

    context: object
    batch_id: int
    iwds: object
    requests: object

    def submit(self, jobs=None):
        """Have the project make its jobs, or only these."""
        names = {job.job_name for job in (self.jobs if jobs is None else jobs)}
        wanted = [request for request in self.requests if request[0] in names]
        batch = self.batch
        project_id = submit(self.context.project, SubmitRequest(batch.name, batch.app_name, wanted))
        self.context.jobs.submitted(batch.id, project_id)

    @property
    def batch(self):
        return self.context.jobs.batch(self.batch_id)

    @property
    def markers(self):
        """How requests name it: by its name, or by its id."""
        batch = self.batch
        return batch.name.encode(), b"<batch_id>%d</batch_id>" % batch.project_batch_id

    @property
    def jobs(self):
        return self.context.jobs.jobs_of(self.batch_id)

    @property
    def job(self):
        """The only job."""
        [job] = self.jobs
        return job

    def await_end(self):
        """Wait until all its jobs are done or in error on the project."""

        def ended():
            look = query_jobs(self.context.project, self.batch.project_batch_id or 0)
            return {word for _, word in look.jobs} <= {"DONE", "ERROR"}

        wait_for(ended, "the jobs' end", pause=0.05)

    @property
    def states(self):
        return [job.state for job in self.jobs]


def plan(site, context, *arguments, app="uppercase", text=b"text", lease=2e9, **description):
    """Plan a batch with one job for each of ``arguments``; all jobs are described alike."""
    ids, iwds, requests = [], [], []
    name = f"bg-{uuid.uuid4().hex}"
    for place, args in enumerate(arguments or [()], 1):
        number = next(_numbers)
        iwd = site.directory / "homes" / f"job{number}"
        iwd.mkdir(parents=True)
        wanted = {"stdout": "job.out", "stderr": "job.err", **description}
        about = JobDescription(f"key{number}", None, app, str(iwd), args=tuple(args), **wanted)
        ids.append(hand_over(context, about))
        iwds.append(iwd)
        inputs = {}
        for open_name in _INPUTS.get(app, ("in",)):
            path = site.directory / f"input{number}-{open_name}"
            path.write_bytes(text)
            inputs[open_name] = LocalFile(path)
        job = Job(tuple(args), inputs, output_template=about.output_template)
        requests.append((f"{name}-{place}", job))
    row = context.jobs.plan(*context.owner, name, app, about.group_key, ids, lease)
    return Sent(context, row.id, tuple(iwds), requests)


def send(*about, **options):
    """Have the project make a batch that is planned like that."""
    sent = plan(*about, **options)
    sent.submit()
    return sent


def follow(context, sent, *states, follower=None, timeout=60.0):
    """Poll until the batch's jobs have these states, in the order of the jobs.

    From one poll to the next more time passes, as the follower sees it, than any pause takes.
    """
    follower = follower or Follower(context)

    def have():
        follower.poll(2000.0 * next(_polls))
        return sent.states == list(states)

    try:
        wait_for(have, f"states {states}", timeout, pause=0.05)
    except AssertionError as error:
        raise AssertionError(f"{error}: {sent.states}") from None
    return follower


def fetch_all(site, sent):
    """Fetch as a new process does, until the outputs of a batch are there; return its context."""
    with site.context() as fresh:
        workers = Workers("test", fresh.wake)
        queue = FetchQueue(fresh, workers, ErrorGuard("the test"))

        def is_home():
            queue.begin(time.time())
            return "finished" not in sent.states

        wait_for(is_home, "the outputs")
        workers.close(60)
        return fresh
