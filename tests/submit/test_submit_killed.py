"""A submitting process is killed; the next one does what a gridmanager then asks for."""

import json
import subprocess
import sys
import time

import pytest

from boinc_gahp.errors import NotFound
from boinc_gahp.localproject.backend.create_work import NewJob
from boinc_gahp.states import BatchState
from boinc_gahp.submit.boinc_submit import boinc_submit
from boinc_gahp.submit.control import reconcile
from boinc_gahp.submit.query import query_batches
from boinc_gahp.submit.types import Client
from tests import faultproxy
from tests.helpers import wait_for
from tests.inside import staged_files
from tests.submit.test_submit_faults import local_project, state_of  # noqa: F401  (fixture)

pytestmark = pytest.mark.long

SUBMITTER = """
import json, sys, time
from pathlib import Path
from boinc_gahp.fetch.context import FetchContext
from boinc_gahp.config.settings import Settings
from boinc_gahp.ledger.ledger import Ledger
from boinc_gahp.rpc.client import WebRpcs
from boinc_gahp.submit.types import Job, SubmitRequest
from boinc_gahp.submit.boinc_submit import boinc_submit
url, authenticator, ledger, cache, request = sys.argv[1:]
name, jobs = json.loads(request)
rpcs, ledger = WebRpcs(url, authenticator), Ledger(Path(ledger))
boinc_submit(
    FetchContext.of(rpcs, Settings(), ledger, Path(cache)),
    SubmitRequest(name, "uppercase", [(j, Job((), {"in": f})) for j, f in jobs]),
    time.monotonic() + 270,
)
"""


def submitter(site, request):
    names = [name for name, _ in request.jobs]
    jobs = [(name, str(path)) for name, path in zip(names, site.paths(request), strict=True)]
    return subprocess.Popen(
        [
            sys.executable,
            "-c",
            SUBMITTER,
            site.proxy.url,
            site.authenticator,
            str(site.ledger.path),
            str(site.directory / "cache"),
            json.dumps([request.batch_name, jobs]),
        ]
    )


def recover(context, request):
    """Do what a gridmanager does for a batch of unknown state; return whether it submitted."""
    client = Client(gridmanager=True)
    try:
        (jobs,) = query_batches(context, [request.batch_name], "0", client).batches
    except NotFound as error:
        assert str(error).endswith(f"no batch named {request.batch_name}")  # noqa: PT017
        jobs = ()
    if not jobs:
        boinc_submit(context, request, time.monotonic() + 270)
    return not jobs


@pytest.mark.parametrize("carried_out", [True, False], ids=["done", "arrives later"])
@pytest.mark.parametrize("step", ["create_batch", "query_files", "upload_files", "submit_batch"])
def test_after_a_kill_at_any_step_each_job_exists_once_and_nothing_is_pending(
    site, step, carried_out
):
    request = site.batch(jobs=6, files=6)
    hang = faultproxy.hang(carried_out=carried_out)
    site.proxy.fail(step, hang)
    with submitter(site, request) as process:
        wait_for(hang.reached.is_set, f"{step} under way")
        process.kill()
    with site.context() as context:
        submitted = recover(context, request)
        # What was under way reaches the project only now.
        hang.release()
        recover(context, request)
    assert submitted == (step != "submit_batch" or not carried_out)
    assert site.workunits(request) == site.names(request)
    assert state_of(site, request.batch_name) is BatchState.IN_PROGRESS
    with site.project() as project:
        assert site.ledger.pending_aborts(project.url, project.account, time.time()) == ()


def test_a_killed_submit_that_nobody_asks_about_is_aborted_by_the_next_process(site):
    request = site.batch()
    hang = faultproxy.hang(carried_out=True)
    site.proxy.fail("submit_batch", hang)
    with submitter(site, request) as process:
        wait_for(hang.reached.is_set, "submit_batch under way")
        process.kill()
    hang.release()
    with site.project() as project:
        (pending,) = site.ledger.pending_aborts(project.url, project.account, time.time())
        assert pending.state == "sent"
        assert 0 < pending.not_before - time.time() < 310
        # The time until nobody waits for it any more has passed.
        site.ledger.begin_submit(
            project.url,
            project.account,
            pending.name,
            pending.project_batch_id or 0,
            time.time() - 1000,
        )
    with site.context() as context:
        context.cache._born -= 1000
        reconcile(context)
    assert state_of(site, request.batch_name) is BatchState.ABORTED


def test_jobs_that_appear_after_the_abort_of_a_killed_submit_are_aborted_too(site):
    request = site.batch()
    hang = faultproxy.hang(carried_out=True)
    site.proxy.fail("submit_batch", hang)
    with submitter(site, request) as process:
        wait_for(hang.reached.is_set, "submit_batch under way", timeout=30)
        process.kill()
    hang.release()
    with site.project() as project:
        owner = (project.url, project.account)
    (pending,) = site.ledger.pending_aborts(*owner, time.time())

    def settle_when_due(context):
        # What is looked at once a minute.
        site.ledger.record_abort(
            *owner, pending.name, pending.project_batch_id or 0, time.time() - 1
        )
        reconcile(context)

    def alive():
        with site.local.core.db.read() as connection:
            (count,) = connection.execute(
                "SELECT count(*) FROM workunit WHERE batch = ? AND error_mask = 0",
                (pending.project_batch_id,),
            ).fetchone()
        return int(count)

    with site.context() as context:
        settle_when_due(context)
        assert alive() == 0
        # PHP was killed; what it had started goes on to insert jobs.
        job = NewJob(name=f"{request.batch_name}#late", files=(staged_files(site.local)[-1],))
        site.local.create_work("uppercase", [job])
        with site.local.core.db.write() as connection:
            connection.execute(
                "UPDATE workunit SET batch = ? WHERE name = ?", (pending.project_batch_id, job.name)
            )
        assert alive() == 1
        settle_when_due(context)
        assert len(site.ledger.pending_aborts(*owner, time.time())) == 1
        settle_when_due(context)
    assert alive() == 0
    assert site.ledger.pending_aborts(*owner, time.time()) == ()
