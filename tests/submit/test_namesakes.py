"""Two users of HTCondor 9 whose gridmanagers give their batches one name."""

import dataclasses
import time

import pytest

from boinc_gahp.errors import BatchConflict, NotFound, PermissionDenied
from boinc_gahp.localproject.states import BatchState
from boinc_gahp.submit.boinc_submit import boinc_submit
from boinc_gahp.submit.control import abort_jobs, retire_batch, set_lease
from boinc_gahp.submit.engine import submit
from boinc_gahp.submit.query import query_batches
from tests.inside import batches


@pytest.fixture
def second(site):
    """The same submit node for a user of another account."""
    authenticator = site.local.add_user(f"second-{site.directory.name}")
    return dataclasses.replace(site, authenticator=authenticator)


def namesakes(first):
    """Return the same batch for both; cluster ids of a schedd differ."""
    mine = first.batch(jobs=3)
    jobs = [(f"{mine.batch_name}#99.{number}", job) for number, (_, job) in enumerate(mine.jobs)]
    return mine, dataclasses.replace(mine, jobs=jobs)


def names(context, batch, since="0"):
    (jobs,) = query_batches(context, [batch], since, gridmanager=True).batches
    return sorted(name for name, _ in jobs)


def states(site, name):
    return [state for _, found, state in batches(site.local) if found == name]


def test_each_has_a_batch_that_is_followed_and_retired_by_its_owner_alone(site, second):
    mine, theirs = namesakes(site)
    batch = mine.batch_name
    soon = time.monotonic() + 270
    with site.context() as context, second.context() as other:
        boinc_submit(context, mine, soon)
        boinc_submit(other, theirs, soon)
        boinc_submit(other, theirs, soon)
        assert names(context, batch) == site.names(mine)
        for since in ("0", str(time.time())):
            assert names(other, batch, since) == site.names(theirs)
        set_lease(other, batch, time.time() + 1000)
        abort_jobs(other, site.names(theirs)[:1])
        assert names(other, batch) == site.names(theirs)[1:]
        retire_batch(other, batch)
        assert states(site, batch) == [BatchState.IN_PROGRESS, BatchState.RETIRED]
        assert names(context, batch) == site.names(mine)


def test_a_process_that_knows_nothing_finds_its_own(site, second):
    mine, theirs = namesakes(site)
    batch = mine.batch_name
    site.boinc_submit(mine)
    with second.context() as other:
        with pytest.raises(NotFound, match=f"no batch named {batch}$"):
            names(other, batch)
        boinc_submit(other, theirs, time.monotonic() + 270)
    for step in ("0", str(time.time()), "lease", "retire"):
        with second.context() as other:
            if step == "lease":
                set_lease(other, batch, time.time() + 1000)
            elif step == "retire":
                retire_batch(other, batch)
            else:
                assert names(other, batch, step) == site.names(theirs)
    assert states(site, batch) == [BatchState.IN_PROGRESS, BatchState.RETIRED]


def test_several_batches_of_which_one_has_a_namesake_are_told_together(site, second):
    mine, theirs = namesakes(site)
    others = [second.batch(jobs=1) for _ in range(3)]
    site.boinc_submit(mine)
    for request in (*others, theirs):
        second.boinc_submit(request)
    requests = [others[0], theirs, *others[1:], theirs]
    for since in ("0", "1"):
        with second.context() as other:
            told = query_batches(
                other, [request.batch_name for request in requests], since, gridmanager=True
            )
        assert [sorted(name for name, _ in jobs) for jobs in told.batches] == [
            site.names(request) for request in requests
        ]


def test_an_error_takes_back_the_accounts_own_batch_alone(site, second):
    mine, theirs = namesakes(site)
    site.boinc_submit(mine)
    second.boinc_submit(theirs)
    for path in site.paths(theirs):
        path.unlink(missing_ok=True)
    with pytest.raises(BatchConflict, match="not in this request"):
        second.boinc_submit(dataclasses.replace(theirs, jobs=theirs.jobs[:2]))
    assert states(site, mine.batch_name) == [BatchState.IN_PROGRESS] * 2


def test_a_person_is_told_to_choose_another_name(site, second):
    mine, theirs = namesakes(site)
    with site.context() as context, second.context() as other:
        submit(context, mine)
        with pytest.raises(BatchConflict, match="belongs to another account"):
            submit(other, theirs)
        with pytest.raises(PermissionDenied, match="not owner"):
            retire_batch(other, mine.batch_name)
    assert states(site, mine.batch_name) == [BatchState.IN_PROGRESS]
