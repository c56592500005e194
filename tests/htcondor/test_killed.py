"""Daemons are killed at any moment; every job is run once, and comes home.

``KILLED=50`` runs as many histories of random kills; without it a few are run, the same ones every
time.
"""

from __future__ import annotations

import os
import random
import threading
from dataclasses import dataclass, field

import pytest

from tests import faultproxy
from tests.helpers import wait_for
from tests.htcondor.helpers import row_of
from tests.htcondor.process import Gahp, write_settings

pytestmark = pytest.mark.long

_LONG = int(os.environ.get("KILLED", "0"))
#: RPCs in the middle of which daemons are killed, and moments that are none.
_POINTS = (
    "get_templates",
    "query_batch",
    "create_batch",
    "query_files",
    "upload_files",
    "submit_batch",
    "submit_batch",
    "query_batch2",
    "query_completed_job",
    "result_file",
    "result_file",
    "retire_batch",
    "none",
)
#: What else goes wrong; each passes.
_FAULTS = (
    faultproxy.lose_reply,
    faultproxy.lose_request,
    faultproxy.reset,
    faultproxy.status,
    faultproxy.html,
    faultproxy.cut,
)


@dataclass
class Queue:
    """What HTCondor knows of its jobs, daemons or not.

    Attributes:
        ids: of the jobs, by their keys.
        cancelling: ids whose cancel was not answered yet.
        cancelled: how many were.
    """

    jobs: object
    ids: dict[str, str] = field(default_factory=dict)
    cancelling: set[str] = field(default_factory=set)
    cancelled: int = 0

    def work(self, gahp):
        """Cancel and submit what was not answered before; ask about all until all are done."""
        for job_id in tuple(self.cancelling):
            gahp.cancel(job_id)
            self.cancelling.discard(job_id)
        for job in self.jobs:
            if job.key not in self.ids:
                self.ids[job.key] = gahp.submit(job.ad)
        ends = gahp.follow([*self.ids.values()], every=0.02, within=600.0)
        assert {end.word for end in ends.values()} <= {4}

    def hold_some(self, chosen):
        """Hold and release some jobs: they are to be cancelled and submitted again."""
        for job in self.jobs:
            if job.key in self.ids and chosen.random() < 0.2:
                self.cancelling.add(self.ids.pop(job.key))
                self.cancelled += 1


def assert_all_ran_once(site, queue):
    """Check outputs, and that each attempt that HTCondor wanted is on the project once."""
    assert [job.key for job in queue.jobs if not job.is_right()] == []
    workunits = site.workunits()
    with site.jobs() as ledger:
        wanted = {row_of(ledger, job_id).job_name for job_id in queue.ids.values()}
    assert len(wanted) == len(queue.jobs)
    assert wanted <= set(workunits)
    assert len(workunits) <= len(queue.jobs) + queue.cancelled
    assert [path for job in queue.jobs for path in job.iwd.glob(".boinc_gahp*")] == []


def work_until_killed(site, chosen, queue):
    hang = faultproxy.hang(carried_out=chosen.random() < 0.5)
    for _ in range(chosen.randint(0, 3)):
        site.proxy.fail(chosen.choice(_POINTS), chosen.choice(_FAULTS)())
    site.proxy.fail(chosen.choice(_POINTS), hang, skip=chosen.choice([0, 0, 0, 1, 3]))
    killed = threading.Event()
    with Gahp(site.directory / "boinc_gahp.toml") as gahp:

        def kill():
            hang.reached.wait(chosen.uniform(0.2, 1.5))
            killed.set()
            gahp.kill()

        killer = threading.Thread(target=kill)
        killer.start()
        try:
            queue.work(gahp)
        except (AssertionError, OSError):
            if not killed.is_set():
                raise
        killer.join()
    site.proxy.heal()
    hang.release()


@pytest.mark.parametrize("seed", range(_LONG) if _LONG else [3])
def test_jobs_whose_daemons_are_killed_run_once_and_come_home(site, seed):
    chosen = random.Random(seed)
    queue = Queue([site.job() for _ in range(30 if _LONG else 8)])
    settings = write_settings(site)
    for _ in range(chosen.randint(3, 6) if _LONG else 1):
        work_until_killed(site, chosen, queue)
        queue.hold_some(chosen)
    with Gahp(settings) as gahp:
        queue.work(gahp)
    assert_all_ran_once(site, queue)


@pytest.mark.parametrize("carried_out", [False, True] if _LONG else [False])
def test_when_the_manager_is_killed_another_daemon_takes_over(site, carried_out):
    settings = write_settings(site)
    hang = faultproxy.hang(carried_out=carried_out)
    site.proxy.fail("submit_batch", hang)
    mine, others = site.job(), site.job()
    queue = Queue([mine, others])
    with Gahp(settings) as manager, Gahp(settings) as another:
        queue.ids[mine.key] = manager.submit(mine.ad)
        wait_for(hang.reached.is_set, "the submission")
        queue.ids[others.key] = another.submit(others.ad)
        manager.kill()
        hang.release()
        queue.work(another)
    assert_all_ran_once(site, queue)
