"""Daemons are killed at any moment; every job is run once, and comes home.

``KILLED=50`` runs as many histories of random kills; without it a few are run, the same ones every
time.
"""

from __future__ import annotations

import os
import random
import threading
from typing import TYPE_CHECKING

import pytest

from tests import faultproxy
from tests.blah.process import Gahp, write_settings
from tests.helpers import wait_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.blah.helpers import Job, Site

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


def assert_all_ran_once(site: Site, jobs: Sequence[Job]) -> None:
    assert [job.key for job in jobs if not job.is_right()] == []
    workunits = site.workunits()
    assert len(workunits) == len(set(workunits)) == len(jobs)
    assert [path for job in jobs for path in job.iwd.glob(".boinc_gahp*")] == []


def work(gahp: Gahp, jobs: Sequence[Job], ids: dict[str, str]) -> None:
    """Submit what was not answered before, and ask about all until all are done."""
    for job in jobs:
        if job.key not in ids:
            ids[job.key] = gahp.submit(job.ad)
    left = set(ids.values())
    while left:
        left = {job_id for job_id in left if gahp.status(job_id) != 4}
        threading.Event().wait(0.02)


def work_until_killed(
    site: Site, chosen: random.Random, jobs: Sequence[Job], ids: dict[str, str]
) -> None:
    hang = faultproxy.hang(carried_out=chosen.random() < 0.5)
    site.proxy.fail(chosen.choice(_POINTS), hang, skip=chosen.choice([0, 0, 0, 1, 3]))
    killed = threading.Event()
    with Gahp(site.directory / "boinc_gahp.toml") as gahp:

        def kill() -> None:
            hang.reached.wait(chosen.uniform(0.2, 1.5))
            killed.set()
            gahp.kill()

        killer = threading.Thread(target=kill)
        killer.start()
        try:
            work(gahp, jobs, ids)
        except (AssertionError, OSError):
            if not killed.is_set():
                raise
        killer.join()
    site.proxy.heal()
    hang.release()


@pytest.mark.parametrize("seed", range(_LONG) if _LONG else [3])
def test_jobs_whose_daemons_are_killed_run_once_and_come_home(site: Site, seed: int) -> None:
    chosen = random.Random(seed)
    jobs = [site.job() for _ in range(30 if _LONG else 8)]
    ids: dict[str, str] = {}
    settings = write_settings(site)
    for _ in range(chosen.randint(3, 6) if _LONG else 2):
        work_until_killed(site, chosen, jobs, ids)
    with Gahp(settings) as gahp:
        work(gahp, jobs, ids)
    assert_all_ran_once(site, jobs)


@pytest.mark.parametrize("carried_out", [True, False], ids=["done", "arrives later"])
def test_when_the_keeper_is_killed_another_daemon_takes_over(site: Site, carried_out: bool) -> None:
    settings = write_settings(site)
    hang = faultproxy.hang(carried_out=carried_out)
    site.proxy.fail("submit_batch", hang)
    mine, others = site.job(), site.job()
    with Gahp(settings) as keeper, Gahp(settings) as another:
        mine_id = keeper.submit(mine.ad)
        wait_for(hang.reached.is_set, "the submission")
        others_id = another.submit(others.ad)
        keeper.kill()
        hang.release()
        work(another, [mine, others], {mine.key: mine_id, others.key: others_id})
    assert_all_ran_once(site, [mine, others])
