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


@pytest.mark.parametrize("lasting", [True, False], ids=["one process", "new processes"])
def test_each_has_a_batch_that_is_followed_and_retired_by_its_owner_alone(site, second, lasting):
    mine, theirs = namesakes(site)
    batch = mine.batch_name
    site.boinc_submit(mine)
    with site.context() as context, second.context() as one:

        def other(do, *arguments):
            if lasting:
                return do(one, *arguments)
            with second.context() as new:
                return do(new, *arguments)

        with pytest.raises(NotFound, match=f"no batch named {batch}$"):
            other(names, batch)
        for _ in range(2):
            other(boinc_submit, theirs, time.monotonic() + 270)
        assert names(context, batch) == site.names(mine)
        for since in ("0", str(time.time())):
            assert other(names, batch, since) == site.names(theirs)
        other(set_lease, batch, time.time() + 1000)
        other(abort_jobs, site.names(theirs)[:1])
        assert other(names, batch) == site.names(theirs)[1:]
        other(retire_batch, batch)
        assert states(site, batch) == [BatchState.IN_PROGRESS, BatchState.RETIRED]
        assert names(context, batch) == site.names(mine)


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
