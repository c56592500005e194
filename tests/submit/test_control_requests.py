"""Control requests, end to end against a local project."""

import time

import pytest

from boinc_gahp.config.settings import Settings
from boinc_gahp.errors import NotFound
from boinc_gahp.fetch.context import FetchContext
from boinc_gahp.localproject.php import STOCK
from boinc_gahp.localproject.project import LocalProject
from boinc_gahp.localproject.states import BatchState
from boinc_gahp.rpc.client import WebRpcs
from boinc_gahp.rpc.options import ClientOptions
from boinc_gahp.submit.control import abort_jobs, retire_batch, set_lease
from boinc_gahp.submit.engine import submit
from boinc_gahp.submit.query import query_batches
from boinc_gahp.submit.types import Client, Job, LocalFile, SubmitRequest
from tests.inside import batches

GRIDMANAGER = Client(gridmanager=True)


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    with LocalProject(tmp_path_factory.mktemp("project"), hosts=1, php=STOCK) as local:
        local.pause_volunteers()
        yield local


@pytest.fixture
def context(local, ledger):
    context = new_context(local, ledger)
    yield context
    context.close()


def new_context(local, ledger):
    """Return a context as a new process would have it."""
    options = ClientOptions(retry_total=1, read_timeout=10)
    return FetchContext.of(
        WebRpcs(local.url, local.authenticator, options=options), Settings(), ledger, None
    )


@pytest.fixture
def batch(context, tmp_path):
    """The name of a batch with three jobs."""
    name = f"condor#{tmp_path.name}#1"
    path = tmp_path / "in"
    path.write_bytes(b"text")
    inputs = {"in": LocalFile(str(path))}
    jobs = [(f"{name}#1.{number}", Job(inputs=inputs)) for number in range(3)]
    submit(context, SubmitRequest(name, "uppercase", jobs))
    return name


def names(context, batch, client):
    [jobs] = query_batches(context, [batch], "0", client).batches
    return sorted(name.rpartition(".")[2] for name, _ in jobs)


def state(local, batch):
    [found] = [state for _, name, state in batches(local) if name == batch]
    return found


@pytest.mark.parametrize("again", [False, True], ids=["same process", "another process"])
def test_an_aborted_job_is_left_out_until_its_batch_is_retired(
    again, local, ledger, context, batch
):
    abort_jobs(context, [f"{batch}#1.1"])
    if again:
        context.close()
        context = new_context(local, ledger)
    assert names(context, batch, GRIDMANAGER) == ["0", "2"]
    assert names(context, batch, Client()) == ["0", "1", "2"]
    retire_batch(context, batch)
    assert names(context, batch, GRIDMANAGER) == ["0", "1", "2"]
    context.close()


def test_a_lease_is_set_and_a_batch_retired_by_a_process_that_knows_only_names(
    local, context, batch
):
    other = new_context(local, None)
    set_lease(other, batch, time.time() + 21600)
    retire_batch(other, batch)
    retire_batch(other, batch)
    other.close()
    assert state(local, batch) == BatchState.RETIRED
    with pytest.raises(NotFound):
        set_lease(context, "nosuch", 0)


@pytest.mark.parametrize("late", [2, 60, 290])
def test_an_event_that_the_database_dates_before_the_answer_is_not_lost(
    local, context, batch, late
):
    answer = query_batches(context, [batch], "0", GRIDMANAGER)
    before = int(float(answer.server_time)) - late
    # Its clock is behind PHP's, or the update waited for a lock.
    with local.core.db.write() as connection:
        connection.execute(
            "CREATE TRIGGER late AFTER UPDATE ON workunit BEGIN "
            f"UPDATE workunit SET mod_time = {before} WHERE id = NEW.id; END"
        )
    try:
        abort_jobs(context, [f"{batch}#1.0"])
        changed = query_batches(context, [batch], answer.server_time).batches[0]
    finally:
        with local.core.db.write() as connection:
            connection.execute("DROP TRIGGER late")
    assert (f"{batch}#1.0", "ERROR") in changed
