"""``boinc_gahp ledger reconcile``, with a project, at the command line."""

import itertools
import time

import pytest

from boinc_gahp.states import BatchState
from boinc_gahp.submit.engine import submit
from boinc_gahp.submit.types import Job, LocalFile, SubmitRequest
from tests import faultproxy
from tests.cli.conftest import InProcess, write_settings
from tests.faultproxy import FaultProxy
from tests.helpers import wait_for
from tests.htcondor.helpers import Site, await_status
from tests.ledger.jobs import counts

pytestmark = pytest.mark.usefixtures("log_stopped")

_numbers = itertools.count(1)


@pytest.fixture
def site(project, home, tmp_path):
    authenticator = project.add_user(f"reconcile{next(_numbers)}")
    with FaultProxy(project.url) as proxy:
        site = Site(tmp_path, project, proxy, authenticator)
        write_settings(
            home / ".config/boinc_gahp/boinc_gahp.toml",
            proxy.url,
            authenticator,
            f"[state]\ndir = '{tmp_path}/state'\ncache_dir = '{tmp_path}/cache'\n"
            "[timeouts]\nretry = 0.3\n",
        )
        yield site


@pytest.fixture
def reconcile(capsys):
    return InProcess(capsys, "ledger", "reconcile").prints


def make_pending(site, count):
    """Leave a batch on the project of which all jobs were cancelled and none aborted."""
    with site.service() as service:
        with site.held_back():
            ids = [service.submit(site.job().ad) for _ in range(count)]
        with site.jobs() as jobs:
            wait_for(lambda: counts(jobs)["queued"] == count, "jobs on the project")
        await_status(service, ids, 1)
    with site.jobs() as jobs:
        for job_id in range(1, count + 1):
            jobs.cancel(job_id)


def test_what_is_pending_is_sent_and_reported(site, reconcile):
    make_pending(site, 2)
    assert reconcile() == f"{site.proxy.url} [project]: done: 2 jobs aborted, 1 batch retired\n"
    assert site.batch_states() == [BatchState.RETIRED]
    with site.jobs() as jobs:
        assert jobs.owners() == ()
    assert reconcile() == "Nothing is to be sent.\n"
    assert not reconcile("--quiet")


def test_what_stays_pending_is_reported_with_the_reason(site, reconcile):
    make_pending(site, 1)
    site.proxy.fail("abort_jobs", faultproxy.status(503), times=None)
    head, *reasons = reconcile("--quiet", "--timeout", "2", status=1).splitlines()
    assert head.startswith(f"{site.proxy.url} [project]: not sent yet: 1 job to be aborted")
    assert any("503" in reason for reason in reasons), reasons
    site.proxy.heal()
    assert not reconcile("--quiet")
    assert site.batch_states() == [BatchState.RETIRED]


def test_a_project_with_a_daemon_at_work_is_left_to_it(site, reconcile):
    make_pending(site, 1)
    with site.held_back():
        assert "left to the daemon (process " in reconcile()
        assert not reconcile("--quiet")
        with site.jobs() as jobs:
            assert len(jobs.pending_aborts(*site.owner)) == 1


def test_a_project_that_is_in_the_settings_no_more_is_reported(site, home, reconcile):
    make_pending(site, 1)
    settings = home / ".config/boinc_gahp/boinc_gahp.toml"
    settings.write_text(f"[state]\ndir = '{site.directory}/state'\n")
    out = reconcile(status=1)
    assert out.count("\n") == 1
    assert f"the settings have no project {site.proxy.url}" in out


def cut_short(site, ago):
    """Leave a batch on the project whose submitter died, ``ago`` seconds after it gave up."""
    path = site.directory / "in"
    path.write_bytes(b"text")
    name = f"cut#{next(_numbers)}"
    jobs = [(f"{name}#1.0", Job(inputs={"in": LocalFile(str(path))}))]
    request = SubmitRequest(name, "uppercase", jobs)
    with site.context() as context, site.ledger() as ledger:
        number = submit(context.project, request)
        ledger.begin_submit(*site.owner, request.batch_name, number, time.time() - ago)
        ledger.store.write(
            lambda connection: connection.execute("UPDATE batch SET sent = not_before - 300")
        )


def test_a_submit_that_was_cut_short_hours_ago_is_aborted(site, reconcile):
    cut_short(site, 5000)
    said = f"{site.proxy.url}: done: 1 abort of submits of HTCondor 9 that were cut short\n"
    assert reconcile() == said
    assert site.batch_states() == [BatchState.RETIRED]
    assert reconcile() == "Nothing is to be sent.\n"


def test_a_submit_that_htcondor_may_still_ask_for_is_left_alone_and_reported(site, reconcile):
    cut_short(site, 200)
    out = reconcile("--quiet", status=1)
    assert "not sent yet: 1 abort of submits of HTCondor 9" in out
    assert "HTCondor may ask for them until " in out
    assert site.batch_states() == [BatchState.IN_PROGRESS]


def test_a_pending_abort_for_a_project_that_is_not_in_the_settings_is_reported(site, reconcile):
    with site.ledger() as ledger:
        ledger.record_abort("https://elsewhere.example/", "0123456789abcdef", "b", 1, 0.0)
    assert reconcile("--quiet", status=1) == (
        "https://elsewhere.example/: not sent yet: 1 abort of submits of HTCondor 9 that were cut "
        "short (the settings do not have this project)\n"
    )


def test_where_there_is_no_ledger_nothing_is_pending_and_none_is_made(site, reconcile):
    path = site.directory / "state" / "ledger.sqlite"
    assert reconcile() == f"Nothing is to be sent: there is no ledger {path} yet.\n"
    assert not reconcile("--quiet")
    assert not path.exists()


@pytest.mark.parametrize("timeout", ["x", "-1", "nan"])
def test_a_timeout_that_is_none_is_reported(capsys, timeout):
    assert InProcess(capsys, "ledger", "reconcile").refuses("--timeout", timeout, status=2)
