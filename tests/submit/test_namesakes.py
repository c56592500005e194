"""Two users of HTCondor 9 whose gridmanagers give their batches one name."""

from __future__ import annotations

import dataclasses
import time
from typing import TYPE_CHECKING

import pytest

from boinc_gahp.errors import BatchConflict, NotFound, PermissionDenied
from boinc_gahp.fetch.types import FetchRequest
from boinc_gahp.localproject import BatchState
from boinc_gahp.submit.types import Client
from tests.helpers import wait_for
from tests.inside import batches, unfinished_jobs
from tests.submit.test_submit import answer_by

if TYPE_CHECKING:
    from pathlib import Path

    from boinc_gahp.bridge import Bridge
    from boinc_gahp.submit.types import SubmitRequest
    from tests.submit.conftest import Site


@pytest.fixture
def second(site: Site) -> Site:
    """The same submit node for a user of another account."""
    authenticator = site.local.add_user(f"second-{site.directory.name}")
    return dataclasses.replace(site, authenticator=authenticator)


def namesakes(first: Site) -> tuple[SubmitRequest, SubmitRequest]:
    """Return the same batch for both; cluster ids of a schedd differ."""
    mine = first.batch(jobs=3)
    jobs = [(f"{mine.batch_name}#99.{number}", job) for number, (_, job) in enumerate(mine.jobs)]
    return mine, dataclasses.replace(mine, jobs=jobs)


def names(bridge: Bridge, batch: str, since: str = "0") -> list[str]:
    (jobs,) = bridge.query_batches([batch], since, Client(gridmanager=True)).batches
    return sorted(name for name, _ in jobs)


def states(site: Site, name: str) -> list[BatchState]:
    return [state for _, found, state in batches(site.local) if found == name]


def test_each_has_a_batch_that_is_followed_and_retired_by_its_owner_alone(
    site: Site, second: Site
) -> None:
    mine, theirs = namesakes(site)
    batch = mine.batch_name
    with site.bridge() as bridge, second.bridge() as other:
        bridge.boinc_submit(mine, answer_by())
        other.boinc_submit(theirs, answer_by())
        other.boinc_submit(theirs, answer_by())
        assert names(bridge, batch) == site.names(mine)
        for since in ("0", str(time.time())):
            assert names(other, batch, since) == site.names(theirs)
        other.set_lease(batch, time.time() + 1000)
        other.abort_jobs(site.names(theirs)[:1])
        assert names(other, batch) == site.names(theirs)[1:]
        other.retire_batch(batch)
        assert states(site, batch) == [BatchState.IN_PROGRESS, BatchState.RETIRED]
        assert names(bridge, batch) == site.names(mine)


def test_a_process_that_knows_nothing_finds_its_own(site: Site, second: Site) -> None:
    mine, theirs = namesakes(site)
    batch = mine.batch_name
    with site.bridge() as bridge, second.bridge() as other:
        bridge.boinc_submit(mine, answer_by())
        with pytest.raises(NotFound, match=f"no batch named {batch}$"):
            names(other, batch)
        other.boinc_submit(theirs, answer_by())
    for step in ("0", str(time.time()), "lease", "retire"):
        with second.bridge() as other:
            if step == "lease":
                other.set_lease(batch, time.time() + 1000)
            elif step == "retire":
                other.retire_batch(batch)
            else:
                assert names(other, batch, step) == site.names(theirs)
    assert states(site, batch) == [BatchState.IN_PROGRESS, BatchState.RETIRED]


def test_several_batches_of_which_one_has_a_namesake_are_told_together(
    site: Site, second: Site
) -> None:
    mine, theirs = namesakes(site)
    others = [second.batch(jobs=1) for _ in range(3)]
    with site.bridge() as bridge:
        bridge.boinc_submit(mine, answer_by())
    with second.bridge() as other:
        for request in (*others, theirs):
            other.boinc_submit(request, answer_by())
    requests = [others[0], theirs, *others[1:], theirs]
    for since in ("0", "1"):
        with second.bridge() as other:
            told = other.query_batches(
                [request.batch_name for request in requests], since, Client(gridmanager=True)
            )
        assert [sorted(name for name, _ in jobs) for jobs in told.batches] == [
            site.names(request) for request in requests
        ]


def test_outputs_come_from_the_accounts_own_batch(site: Site, second: Site, tmp_path: Path) -> None:
    mine, theirs = namesakes(site)
    with site.bridge() as bridge, second.bridge() as other:
        bridge.boinc_submit(mine, answer_by())
        other.boinc_submit(theirs, answer_by())
    site.local.resume_volunteers()
    try:
        wait_for(lambda: unfinished_jobs(site.local) == 0, "the jobs' end")
    finally:
        site.local.pause_volunteers()
    for where, request in ((site, mine), (second, theirs)):
        with where.bridge() as bridge:
            home = tmp_path / where.authenticator
            home.mkdir()
            job = where.names(request)[0]
            bridge.fetch_output(FetchRequest(job, str(home), None, "ALL", ()))
            assert (home / "out").exists()


def test_an_error_takes_back_the_accounts_own_batch_alone(site: Site, second: Site) -> None:
    mine, theirs = namesakes(site)
    with site.bridge() as bridge, second.bridge() as other:
        bridge.boinc_submit(mine, answer_by())
        other.boinc_submit(theirs, answer_by())
        for path in site.paths(theirs):
            path.unlink(missing_ok=True)
        more = dataclasses.replace(theirs, jobs=theirs.jobs[:2])
        with pytest.raises(BatchConflict, match="not in this request"):
            other.boinc_submit(more, answer_by())
    assert states(site, mine.batch_name) == [BatchState.IN_PROGRESS] * 2


def test_a_person_is_told_to_choose_another_name(site: Site, second: Site) -> None:
    mine, theirs = namesakes(site)
    with site.bridge() as bridge, second.bridge() as other:
        bridge.submit(mine)
        with pytest.raises(BatchConflict, match="belongs to another account"):
            other.submit(theirs)
        with pytest.raises(PermissionDenied, match="not owner"):
            other.retire_batch(mine.batch_name)
    assert states(site, mine.batch_name) == [BatchState.IN_PROGRESS]
