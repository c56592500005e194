"""A project that gets another address, an account that gets another authenticator, under jobs."""

import re
from dataclasses import replace

import pytest

from boinc_gahp.cli.main import main
from boinc_gahp.htcondor import _following
from boinc_gahp.secret import Authenticator
from boinc_gahp.states import HTCondorState
from tests.faultproxy import FaultProxy
from tests.helpers import wait_for
from tests.htcondor.helpers import await_state, await_status, row_of
from tests.htcondor.process import write_settings
from tests.inside import fail_attempts
from tests.ledger.jobs import alive, new_job

pytestmark = pytest.mark.usefixtures("log_stopped")


@pytest.fixture
def log_stopped():
    from boinc_gahp import logs

    yield
    logs.stop()


@pytest.fixture
def elsewhere(site):
    """Another address of the same project."""
    with FaultProxy(site.local.url) as proxy:
        yield proxy


@pytest.fixture
def ledger(site, capsys):
    def ledger(*arguments):
        status = main(["ledger", *arguments, "--config", str(write_settings(site))])
        out, err = capsys.readouterr()
        return status, out + err

    return ledger


def begun(site, jobs, count=2):
    """Have jobs on the project, and no daemon any more; the volunteers wait."""
    site.local.pause_volunteers()
    with site.service() as service:
        ids = [service.submit(site.job().ad) for _ in range(count)]
        for job_id in ids:
            await_state(jobs, job_id, "queued")
    return ids


def test_jobs_go_on_at_a_projects_new_address(site, jobs, elsewhere, ledger):
    ids = begun(site, jobs)
    old, site.proxy = site.proxy, elsewhere
    status, said = ledger("status")
    assert status == 1
    assert f"the settings have no project {old.url} with the account" in said
    status, said = ledger("move", old.url.rstrip("/"), elsewhere.url)
    assert status == 0, said
    assert re.search(r"2 jobs, [12] batch(es)?, 0 requests still to be sent\.$", said.strip())
    assert ledger("status")[0] == 0
    go_on(site, ids)


def test_jobs_go_on_with_an_accounts_new_authenticator(site, jobs, ledger):
    ids = begun(site, jobs)
    new = "n" * 32 + site.authenticator[:8]
    rename = "UPDATE user SET authenticator = ? WHERE authenticator = ?"
    site.change(rename, new, site.authenticator)
    site.authenticator = new
    status, said = ledger("move", site.proxy.url, site.proxy.url)
    assert status == 0, said
    assert "there is nothing to move" in ledger("move", site.proxy.url, site.proxy.url)[1]
    go_on(site, ids)


def go_on(site, ids):
    """Let two jobs end, and see that they were not sent again."""
    site.local.resume_volunteers()
    with site.service() as service:
        await_status(service, ids, 4)
    assert len(site.workunits()) == 2


def test_an_owner_has_the_address_that_the_settings_have_now(jobs):
    for number, url in enumerate(["http://x.example:81/test/", "https://x.example:81/test/"]):
        jobs.accept(new_job(f"key{number}", url=url))
    assert [url for url, _, _ in jobs.owners()] == ["https://x.example:81/test/"]


def test_nothing_is_moved_to_an_account_that_does_not_have_the_batches(
    site, jobs, elsewhere, ledger
):
    begun(site, jobs)
    old, mine, site.proxy = site.proxy, site.authenticator, elsewhere
    site.authenticator = site.local.add_user("somebody else")
    status, said = ledger("move", old.url, elsewhere.url)
    assert status == 1
    assert re.search(r"has none of the [12] batch(es)? of", said)
    assert alive(jobs, old.url) == 2
    site.authenticator = mine
    site.local.core.web_stopped = True
    status, said = ledger("move", old.url, elsewhere.url)
    assert (status, "cannot be asked for the account's batches" in said) == (1, True)
    assert ledger("move", old.url, elsewhere.url, "--unchecked")[0] == 0
    assert alive(jobs, elsewhere.url) == 2


def test_nothing_is_moved_while_a_daemon_is_at_work_for_it(site, jobs, elsewhere, ledger):
    begun(site, jobs, 1)
    with site.held_back():
        old, site.proxy = site.proxy, elsewhere
        status, said = ledger("move", old.url, elsewhere.url)
    assert status == 1
    assert re.search(r"a boinc_gahp \(process [0-9]+\) is working for .*; end that process", said)
    assert ledger("move", old.url, elsewhere.url)[0] == 0


def test_what_is_meant_has_to_be_clear(site, jobs, elsewhere, ledger):
    begun(site, jobs, 1)
    old, mine, site.proxy = site.proxy, site.owner[1], elsewhere
    assert 'the settings have no project "alpha"' in ledger("move", old.url, "alpha")[1]
    said = ledger("move", "https://x.example/", elsewhere.url)[1]
    assert f"has nothing of https://x.example/; it has {old.url} (fingerprint {mine})" in said
    move = ("move", old.url, elsewhere.url)
    with site.ledger() as ledger_file:
        ledger_file.record_abort(old.url, "f" * 16, "b", 5, 0.0)
        assert "choose one of these fingerprints with --account" in ledger(*move)[1]
        said = ledger(*move, "--account", "f" * 16)[1]
        assert "0 jobs, 0 batches, 1 request still to be sent" in said
        [batch] = ledger_file.pending_aborts(*site.owner, 0.0)
        assert batch.project_batch_id == 5


def test_jobs_that_nobody_can_work_on_are_held_in_the_end_and_aborted_once_somebody_can(
    site, jobs, monkeypatch
):
    monkeypatch.setattr("boinc_gahp.htcondor.service.INTERVAL", 0.1)
    (job_id,) = begun(site, jobs, 1)
    site.reset(unknown_project_wait=3600.0)
    nobody = replace(
        site.settings, project=replace(site.project, authenticator=Authenticator("o" * 32))
    )

    def since():
        with jobs.store.read() as connection:
            return connection.execute("SELECT unknown_since FROM project").fetchone()[0]

    with site.service(nobody) as service:
        assert service.status(job_id)[0] == 1
        wait_for(since, "the note")
        jobs.store.execute("UPDATE project SET unknown_since = 5, trouble_since = 5", ())
        await_status(service, [job_id], HTCondorState.HELD)
        ad = service.status(job_id)[1]
        assert "HoldReasonCode = 2303" in ad
        assert f"the settings have no project {site.proxy.url} with the account" in ad
        service.end_reported(job_id)
        service.cancel(job_id)
        [pending] = jobs.pending_aborts(*site.owner)
        assert pending.id == row_of(jobs, job_id).id
    assert len(site.failed()) == 0
    with site.service() as service:
        service.ping()
        wait_for(lambda: len(site.failed()) == 1, "the abort on the project")
        wait_for(lambda: jobs.owners() == (), "nothing pending")
        assert since() is None


def test_htcondor_is_told_of_failed_attempts_before_any_job_is_done(site, jobs, monkeypatch):
    monkeypatch.setattr(_following, "_LOOK", 0.0)
    site.local.pause_volunteers()
    (job_id,) = begun(site, jobs, 1)
    with site.service() as service:
        service.ping()
        row = row_of(jobs, job_id)
        fail_attempts(site.local, jobs.batch(row.batch_id).project_batch_id)
        told = 'ExitReason = "no job is done yet, and 1 attempt has failed, the last (job '
        wait_for(lambda: told in service.status(job_id)[1], "the ad tells it")


def test_a_job_whose_project_is_in_trouble_for_an_hour_is_shown_as_suspended(
    site, jobs, monkeypatch, caplog
):
    monkeypatch.setattr("boinc_gahp.htcondor.service.INTERVAL", 0.1)
    (job_id,) = begun(site, jobs, 1)
    site.local.core.web_stopped = True
    with site.service() as service:
        service.ping()
        wait_for(lambda: jobs.troubles().get(site.owner), "the trouble")
        assert service.status(job_id) == (1, "[ ]")
        jobs.store.execute("UPDATE project SET trouble_since = trouble_since - 4000", ())
        await_status(service, [job_id], HTCondorState.SUSPENDED)
        assert f'ExitReason = "{site.proxy.url}: ' in service.status(job_id)[1]
        line = re.compile(rf"{re.escape(site.proxy.url)}: .+ \(for 1 h\)$", re.M)
        wait_for(lambda: line.search(caplog.text), "the day's line")
        site.local.core.web_stopped = False
        await_status(service, [job_id], 1)
        assert service.status(job_id)[1] == "[ ExitReason = undefined; ]"
    assert len(line.findall(caplog.text)) == 1
