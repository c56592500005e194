"""A sender at work on a real ledger and a real project, turned by hand, as these tests need it."""

from __future__ import annotations

import itertools
import time
from contextlib import contextmanager
from dataclasses import dataclass, field

from boinc_gahp.htcondor._context import ErrorGuard
from boinc_gahp.htcondor._description import JobDescription
from boinc_gahp.htcondor._sending import Sender
from boinc_gahp.ledger.rows import NewJob
from boinc_gahp.submit.types import LocalFile, Parameters
from tests import faultproxy
from tests.helpers import wait_for
from tests.htcondor.process import Gahp, write_settings

_numbers = itertools.count(1)

UNCLEAR = ("planned", "sent", "giving_up")


def hand_over(context, description):
    """Have the ledger accept a job; return its id."""
    job = NewJob(
        description.job_directory,
        *context.owner,
        "",
        description.app_name,
        description.group_key,
        description.size,
        description.to_json(),
    )
    return context.jobs.accept(job).id


@dataclass
class Desk:
    """A submit node's sender; what it is to do is what the ledger says."""

    site: object
    context: object
    sender: Sender = field(init=False)

    def __post_init__(self):
        self.sender = Sender(self.context)

    # -- jobs

    def accept(self, count, *args, app="uppercase", files=1, **asked):
        """Have HTCondor hand over jobs over one to ``files`` files of their own; return their ids.

        ``{}`` in an argument is the job's number; ``asked`` are fields of Parameters.
        """
        ids = []
        inputs = [self.file(b"input %d" % next(_numbers)) for _ in range(files)]
        for number in range(count):
            words = tuple(each.format(number) for each in args)
            file, parameters = inputs[number % files], Parameters(**asked)
            ids.append(self.accept_over(file, app, words, parameters=parameters))
        return ids

    def accept_over(self, file, app="uppercase", words=(), open_name="in", **description):
        """Have HTCondor hand over a job over a file; return its id."""
        return self.hand_over(
            JobDescription(
                f"home_bl_{next(_numbers)}",
                None,
                app,
                str(self.site.directory),
                args=words,
                inputs=((open_name, file),),
                **description,
            )
        )

    def hand_over(self, description):
        return hand_over(self.context, description)

    def file(self, contents):
        path = self.site.directory / f"in{next(_numbers)}.txt"
        path.write_bytes(contents)
        status = path.stat()
        return LocalFile(path, (status.st_size, status.st_mtime_ns))

    def row(self, job_id):
        return self.context.jobs.job(job_id)

    def states(self, ids):
        return [self.row(job_id).state for job_id in ids]

    # -- work

    def batches(self, *states):
        return self.context.jobs.batches(*self.context.owner, *states)

    def turn(self):
        """Do what a manager does about sending when it wakes."""
        now = time.time()
        self.sender.plan(now)
        for batch in self.batches(*UNCLEAR):
            if batch.not_before <= now:
                self.work(batch)

    def work(self, batch):
        ErrorGuard("the desk")("send a batch", lambda: self.sender.work(batch.id))

    def is_idle(self):
        """Take a turn; tell whether nothing is left to be sent."""
        self.turn()
        waiting = self.context.jobs.waiting(*self.context.owner)
        return not waiting and not self.batches(*UNCLEAR)

    def run(self, timeout=30.0):
        """Work until nothing is left to be sent."""
        wait_for(self.is_idle, "the end of all sending", timeout)

    # -- what came of it

    def alive_workunits(self):
        """Return the names of the account's workunits that are not in an aborted batch."""
        return self.site.workunits("b.state IN (0, 1, 2)")

    def check_once(self, ids):
        """Assert that each of these jobs has one workunit that lives, of its own name."""
        assert self.states(ids) == ["queued"] * len(ids)
        names = sorted(str(self.row(job_id).job_name) for job_id in ids)
        assert sorted(self.alive_workunits()) == names


@contextmanager
def desk_of(site):
    """Yield a desk as a new process has it."""
    with site.context() as context:
        yield Desk(site, context)


def only_for(fault, *markers):
    """Have ``fault`` happen to requests that hold one of the markers, the project do any other."""

    def run(exchange):
        exchange.read_body()
        if any(marker in exchange.body for marker in markers):
            return bool(fault(exchange))
        exchange.send(exchange.forward())
        return True

    return run


#: What a project in trouble answers, or does not.
TROUBLES = {
    "reply lost": faultproxy.lose_reply(),
    "503": faultproxy.status(503),
    "a page for people": faultproxy.html(),
    "cut": faultproxy.cut(0.6),
    "nothing": faultproxy.body(b""),
}


def lose_track(site, fault):
    """Have the next submit_batch go wrong, and nobody tell what has become of the batch."""
    site.proxy.fail("submit_batch", fault)
    site.proxy.fail("query_batch", faultproxy.status(404), skip=2, times=None)


def noting(bodies, fault=None):
    """Note the bodies of requests, before the fault happens or the project does them."""

    def run(exchange):
        exchange.read_body()
        bodies.append(bytes(exchange.body))
        return (fault or only_for(None))(exchange)

    return run


def fail_queries(site, fault):
    """Have a fault happen to all that is asked about batches."""
    for rpc in ("query_batch", "query_batch2"):
        site.proxy.fail(rpc, fault, times=None)


def refuse(words, marker=b"", *, rpc="submit_batch"):
    """Refuse with ``words`` a request that holds ``marker``, have the project do any other."""
    text = f"<{rpc}><error><error_num>-1</error_num><error_msg>{words}</error_msg></error>"
    return only_for(faultproxy.body(f"{text}</{rpc}>".encode()), marker)


def kill_at(site, step, *, carried_out):
    """Have another process send the jobs that wait, and kill it when ``step`` is under way."""
    hang = faultproxy.hang(carried_out=carried_out)
    site.proxy.fail(step, hang)
    with Gahp(write_settings(site)) as gahp:
        gahp.ping()
        wait_for(hang.reached.is_set, f"{step} under way")
        gahp.kill()
    return hang
