"""A submitting process is killed; the next one does what a gridmanager then asks for."""

import json
import subprocess
import sys
import time

import pytest

from boinc_gahp.errors import NotFound
from boinc_gahp.states import BatchState
from boinc_gahp.submit.boinc_submit import boinc_submit
from boinc_gahp.submit.query import query_batches
from tests import faultproxy
from tests.helpers import wait_for

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
    try:
        (jobs,) = query_batches(context, [request.batch_name], "0", gridmanager=True).batches
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
    assert site.state(request) is BatchState.IN_PROGRESS
    assert site.pending == ()
