"""A sending process is killed at any step; the next one goes on, and each job has one workunit."""

import subprocess
import sys

import pytest

from boinc_gahp.htcondor.hold_codes import HoldCode
from tests import faultproxy
from tests.helpers import wait_for
from tests.htcondor.desk import desk_of, for_sending, refuse

pytestmark = pytest.mark.long

WORDS = "create_work failed: bad stdin argument 3"

SENDER = """
import sys, threading
from pathlib import Path
from boinc_gahp.fetch.context import FetchContext
from boinc_gahp.htcondor._context import AccountContext, CancelScopes
from boinc_gahp.config.settings import ProjectSettings, Settings
from boinc_gahp.config.settings import HTCondor
from boinc_gahp.ledger.jobs import JobLedger
from boinc_gahp.ledger.ledger import Ledger
from boinc_gahp.rpc.client import WebRpcs
from tests.htcondor.desk import Desk
url, authenticator, directory = sys.argv[1:]
settings = Settings(htcondor=HTCondor(quiet=0.0, poll_shortest=0.05, poll_longest=0.1))
ledger = Ledger(Path(directory) / "state" / "ledger.sqlite")
project = WebRpcs(url, authenticator)
cache = Path(directory) / "cache"
fetches = FetchContext.of(project, settings, ledger, cache, ProjectSettings(project.url))
jobs = JobLedger(ledger.store)
stopping = threading.Event()
context = AccountContext(
    project=fetches,
    jobs=jobs,
    url=project.url,
    account=project.account,
    settings=settings,
    wake=lambda: None,
    stopping=stopping,
    scopes=CancelScopes(),
)
desk = Desk(None, context)
while not desk.is_idle():
    stopping.wait(0.01)
"""


@pytest.fixture
def site(site, monkeypatch):
    # What is patched holds for the second process alone: the first one never gets so far.
    return for_sending(site, monkeypatch, read=2)


def kill_at(site, step, *, carried_out):
    """Have another process send the jobs that wait, and kill it when ``step`` is under way."""
    hang = faultproxy.hang(carried_out=carried_out)
    site.proxy.fail(step, hang)
    command = [sys.executable, "-c", SENDER, site.proxy.url, site.authenticator]
    with subprocess.Popen([*command, str(site.directory)]) as process:
        wait_for(hang.reached.is_set, f"{step} under way")
        process.kill()
    return hang


@pytest.mark.parametrize(
    ("step", "carried_out"),
    [("create_batch", True), ("submit_batch", True), ("submit_batch", False)],
    ids=["create_batch", "submit_batch", "a submit_batch that arrives later"],
)
def test_after_a_kill_the_next_process_completes_the_batch(site, step, carried_out):
    with desk_of(site) as desk:
        ids = desk.accept(5, files=5)
    hang = kill_at(site, step, carried_out=carried_out)
    with desk_of(site) as desk:
        (batch,) = desk.batches()
        assert batch.state == ("sent" if step == "submit_batch" else "planned")
        cancelled = desk.context.jobs.cancel(ids[4])
        assert cancelled is not None
        more = desk.accept(1)
        desk.run()
        # What was under way reaches the project only now.
        hang.release()
        _check(desk, ids[:4] + more)
        assert desk.row(ids[0]).batch_id == batch.id
        # It was in the request if that was sent.
        there = len(ids) if step == "submit_batch" else len(ids) - 1
        assert len(site.workunits()) == there + 1


def _check(desk, ids):
    assert desk.states(ids) == ["queued"] * len(ids)
    names = [str(desk.row(job_id).job_name) for job_id in ids]
    alive = desk.alive_workunits()
    assert set(names) <= set(alive)
    assert len(alive) == len(set(alive))


def test_after_a_kill_in_the_search_for_a_culprit_the_next_process_finds_it(site):
    site.proxy.fail("submit_batch", refuse(WORDS, b"number3<"), times=None)
    with desk_of(site) as desk:
        ids = desk.accept(8, "number{}")
    kill_at(site, "abort_batch", carried_out=True).release()
    with desk_of(site) as desk:
        (batch,) = desk.batches("giving_up")
        assert set(desk.states(ids)) == {"sending"}
        desk.run()
        culprit = desk.row(ids[3])
        assert (culprit.state, culprit.hold_code) == ("failed", HoldCode.REFUSED)
        assert WORDS in str(culprit.hold_reason)
        desk.check_once(ids[:3] + ids[4:])
        assert desk.context.jobs.batch(batch.id) is not None
        assert len(site.workunits()) == 7
