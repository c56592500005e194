"""Control requests, end to end against a local project."""

import time

import pytest

from boinc_gahp.errors import NotFound
from boinc_gahp.localproject.states import BatchState
from boinc_gahp.submit.control import abort_jobs, retire_batch, set_lease
from boinc_gahp.submit.query import query_batches
from boinc_gahp.submit.types import Client

GRIDMANAGER = Client(gridmanager=True)


@pytest.fixture
def batch(site):
    """A batch with three jobs."""
    request = site.batch(jobs=3, files=1)
    site.submit(request)
    return request


def names(context, request, client):
    [jobs] = query_batches(context, [request.batch_name], "0", client).batches
    return sorted(name for name, _ in jobs)


@pytest.mark.parametrize("again", [False, True], ids=["same process", "another process"])
def test_an_aborted_job_is_left_out_until_its_batch_is_retired(again, site, batch):
    whole = site.names(batch)
    with site.context() as first, site.context() as second:
        abort_jobs(first, whole[1:2])
        context = second if again else first
        assert names(context, batch, GRIDMANAGER) == [whole[0], whole[2]]
        assert names(context, batch, Client()) == whole
        retire_batch(context, batch.batch_name)
        assert names(context, batch, GRIDMANAGER) == whole


def test_a_lease_is_set_and_a_batch_retired_by_a_process_that_knows_only_names(site, batch):
    with site.context() as context:
        set_lease(context, batch.batch_name, time.time() + 21600)
        retire_batch(context, batch.batch_name)
        retire_batch(context, batch.batch_name)
        assert site.state(batch) == BatchState.RETIRED
        with pytest.raises(NotFound):
            set_lease(context, "nosuch", 0)


@pytest.mark.parametrize("late", [2, 60, 290])
def test_an_event_that_the_database_dates_before_the_answer_is_not_lost(late, site, batch):
    with site.context() as context:
        answer = query_batches(context, [batch.batch_name], "0", GRIDMANAGER)
        before = int(float(answer.server_time)) - late
        # Its clock is behind PHP's, or the update waited for a lock.
        with site.local.core.db.write() as connection:
            connection.execute(
                "CREATE TRIGGER late AFTER UPDATE ON workunit BEGIN "
                f"UPDATE workunit SET mod_time = {before} WHERE id = NEW.id; END"
            )
        try:
            [aborted, *_] = site.names(batch)
            abort_jobs(context, [aborted])
            changed = query_batches(context, [batch.batch_name], answer.server_time).batches[0]
        finally:
            with site.local.core.db.write() as connection:
                connection.execute("DROP TRIGGER late")
    assert (aborted, "ERROR") in changed
