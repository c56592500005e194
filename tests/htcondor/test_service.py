"""HTCondor's requests, answered from the ledger; another process holds the manager's lock here."""

import re
import sqlite3
import threading
import time
from contextlib import closing
from dataclasses import replace

import pytest

from boinc_gahp.config.settings import ProjectSettings, State
from boinc_gahp.config.urls import ProjectUrl
from boinc_gahp.errors import ConfigError, GahpError, NoSuchJob
from boinc_gahp.ledger.rows import Hold
from boinc_gahp.secret import Authenticator
from tests import faultproxy
from tests.helpers import wait_for
from tests.htcondor.helpers import await_status, row_of
from tests.ledger.jobs import counts


@pytest.fixture
def lock(site):
    """Another process is the manager, and does nothing."""
    with site.held_back() as lock:
        yield lock


@pytest.fixture
def service(site, lock):
    with site.service() as service:
        yield service


def running(jobs, job_id):
    """Have a job be on the project as far as the ledger knows, its outputs to be fetched."""
    row = row_of(jobs, job_id)
    owner = (row.project_url, row.account)
    batch = jobs.plan(*owner, f"bg-{row.id}", row.app_name, row.group_key, [row.id], 1e10)
    jobs.submitted(batch.id, 1)
    jobs.statuses(batch.id, {f"bg-{row.id}-1": "finished"})
    return row.id


def test_a_job_has_a_lasting_id_as_soon_as_it_is_in_the_ledger(service, site, jobs):
    service.ping()
    job = site.job()
    job_id = service.submit(job.ad)
    assert re.fullmatch(r"boinc/[0-9a-f]{8}\.[1-9][0-9]*", job_id)
    row = row_of(jobs, job_id)
    assert (row.state, row.job_directory, row.app_name) == ("waiting", job.key, "uppercase")
    assert service.status(job_id) == (1, "[ ]")
    assert service.submit(job.ad) == job_id
    with site.service() as another:
        assert another.submit(job.ad) == job_id
        assert another.status(job_id)[0] == 1
    assert counts(jobs) == {"waiting": 1}


def test_the_reason_of_a_refusal_is_what_a_scientist_reads(service, site):
    job = site.job()
    (job.iwd / "in").unlink()
    elsewhere = site.job(BoincProject='"elsewhere"')
    for ad, words in ((job.ad, "in"), (elsewhere.ad, "elsewhere"), ("no ad", "cannot be read")):
        with pytest.raises(GahpError, match=words):
            service.submit(ad)


def test_a_repeated_submit_is_the_same_job_though_it_would_be_refused_by_now(site, lock):
    job = site.job()
    with site.service() as service:
        job_id = service.submit(job.ad)
        (job.iwd / "in").unlink()
        assert service.submit(job.ad) == job_id
    with site.service(replace(site.settings, project=None)) as service:
        assert service.submit(job.ad) == job_id
        service.cancel(job_id)
        with pytest.raises(GahpError, match="cannot be read"):
            service.submit(job.ad)


def test_an_id_that_is_not_of_this_ledger_is_unknown_and_is_cancelled_well_enough(
    service, site, jobs
):
    job_id = service.submit(site.job().ad)
    for unknown in (
        "boinc/00000000.1" if jobs.token != "00000000" else "boinc/11111111.1",
        job_id + "0",
        f"boinc/{jobs.token}.{10**18 - 1}",
        f"boinc/{jobs.token}.{10**30}",
        "1234.cluster",
        "",
    ):
        with pytest.raises(NoSuchJob, match="not in the ledger"):
            service.status(unknown)
        service.cancel(unknown)
        service.end_reported(unknown)
    assert service.status(job_id)[0] == 1
    assert service.status(job_id.removeprefix("boinc/"))[0] == 1


def test_a_cancelled_job_is_of_no_interest_and_a_release_is_a_new_attempt(service, site, jobs):
    job = site.job()
    first = service.submit(job.ad)
    service.cancel(first)
    assert service.status(first)[0] == 3
    second = service.submit(job.ad)
    assert second != first
    assert (row_of(jobs, second).attempt, row_of(jobs, second).state) == (2, "waiting")
    service.cancel(first)
    assert row_of(jobs, second).state == "waiting"


@pytest.mark.parametrize("status", [4, 5])
def test_a_job_that_has_ended_is_the_same_until_htcondor_was_told_so(service, site, jobs, status):
    job = site.job()
    job_id = service.submit(job.ad)
    number = running(jobs, job_id)
    if status == 4:
        assert jobs.fetched(number, 3, 1.5) == "fetched"
        assert service.status(job_id)[0] == 2
        jobs.close_batch(row_of(jobs, job_id).batch_id, retired=True)
    else:
        jobs.hold([number], Hold("it crashed", 2304, 11))
    word, ad = service.status(job_id)
    assert word == status
    assert ("ExitCode = 3" if status == 4 else 'HoldReason = "it crashed"') in ad
    assert service.submit(job.ad) == job_id
    service.end_reported(job_id)
    assert service.submit(job.ad) != job_id
    assert row_of(jobs, job_id).end_reported


def test_a_job_whose_end_is_the_first_news_of_it_is_running_once_before(service, site, jobs):
    job_id = service.submit(site.job().ad)
    assert jobs.fetched(running(jobs, job_id), 0, None) == "fetched"
    jobs.close_batch(row_of(jobs, job_id).batch_id, retired=True)
    assert [service.status(job_id)[0] for _ in range(3)] == [2, 4, 4]
    service.end_reported(job_id)
    wait_for(lambda: row_of(jobs, job_id).end_reported, "the note")
    with site.service() as another:
        assert another.status(job_id)[0] == 4


def test_the_loop_of_a_daemon_does_not_wait_for_what_is_noted(service, site, jobs):
    job_id = service.submit(site.job().ad)
    jobs.hold([running(jobs, job_id)], Hold("it crashed", 2304, 11))
    with closing(sqlite3.connect(jobs.store.path, isolation_level=None)) as another_process:
        another_process.execute("BEGIN IMMEDIATE")
        service.end_reported(job_id)
        assert not row_of(jobs, job_id).end_reported
    wait_for(lambda: row_of(jobs, job_id).end_reported, "the note")


def test_a_note_that_cannot_be_written_is_tried_now_and_then(
    service, site, jobs, monkeypatch, caplog
):
    monkeypatch.setattr("boinc_gahp.htcondor.service.INTERVAL", 0.02)
    job_id = service.submit(site.job().ad)
    jobs.hold([running(jobs, job_id)], Hold("it crashed", 2304, 11))
    refuse = "BEFORE UPDATE OF end_reported ON job BEGIN SELECT RAISE(ABORT, 'no space'); END"
    jobs.store.execute(f"CREATE TRIGGER full {refuse}", ())
    waits, wait = [], threading.Event().wait
    monkeypatch.setattr(service._news, "wait", lambda each: waits.append(each) or wait(each))
    service.end_reported(job_id)
    wait_for(lambda: caplog.text.count("no space") > 2, "some attempts")
    # It waits after each.
    assert caplog.text.count("no space") <= len(waits) + 1
    jobs.store.execute("DROP TRIGGER full", ())
    wait_for(lambda: row_of(jobs, job_id).end_reported, "the note")


def test_a_project_that_no_manager_can_work_on_keeps_no_other_from_having_one(site, lock, jobs):
    elsewhere = ProjectSettings(ProjectUrl("http://127.0.0.1:9/one/"), Authenticator("o" * 32))
    settings = replace(site.settings, projects={"one": elsewhere})
    with site.service(settings) as service:
        service.submit(site.job(BoincProject='"one"').ad)
        service.submit(site.job().ad)
    lock.release()
    broken = replace(elsewhere, ca_bundle=str(site.directory / "absent.pem"))
    with site.service(replace(settings, projects={"one": broken})) as service:
        service.ping()
        wait_for(lambda: not counts(jobs, site.project.url)["waiting"], "the other's job")
        ((text, _),) = jobs.troubles().values()
        assert "absent.pem" in text


def test_which_jobs_htcondor_asked_about_is_written_down_at_the_latest_at_the_end(site, lock, jobs):
    with site.service() as service:
        job_id = service.submit(site.job().ad)
        jobs.store.execute("UPDATE job SET last_polled = 5", ())
        service.status(job_id)
    assert row_of(jobs, job_id).last_polled > time.time() - 60


def test_a_cancel_does_not_wait_for_a_process_that_is_gone(service, site, jobs, lock):
    job_id = service.submit(site.job().ad)
    assert jobs.writing(running(jobs, job_id), True)
    cancel = threading.Thread(target=service.cancel, args=[job_id])
    cancel.start()
    wait_for(lambda: row_of(jobs, job_id).state == "cancelled", "the cancel")
    lock.release()
    cancel.join(60)
    assert not cancel.is_alive()


def test_a_project_that_is_down_shows_soon_however_long_requests_may_be_tried_again(
    site, jobs, monkeypatch
):
    monkeypatch.setattr("boinc_gahp.htcondor.service.RETRY_TIME", 0.1)
    site.timeouts = replace(site.timeouts, retry=120.0)
    site.proxy.fail("*", faultproxy.status(503), times=None)
    with site.service() as service:
        job_id = service.submit(site.job().ad)
        wait_for(lambda: jobs.troubles().get(site.owner), "the trouble in the ledger")
        assert service.status(job_id) == (1, "[ ]")


def test_settings_that_are_put_right_are_found_by_a_daemon_that_runs(site, lock, monkeypatch):
    monkeypatch.setattr("boinc_gahp.htcondor.service.SETTINGS_INTERVAL", 0.0)
    elsewhere = State(site.directory / "elsewhere")
    nobody = replace(site.settings, project=ProjectSettings(ProjectUrl(site.proxy.url)))
    answers = [nobody]

    def load():
        if isinstance(answers[-1], ConfigError):
            raise answers[-1]
        return answers[-1]

    with site.service(nobody, load) as service:
        with pytest.raises(ConfigError, match="no authenticator for"):
            service.ping()
        # The ledger stays where it is, and a file that is being written is no trouble.
        answers.append(site.settings)
        service.ping()
        answers.append(replace(site.settings, state=elsewhere))
        service.submit(site.job().ad)
        answers.append(ConfigError("half"))
        job_id = service.submit(site.job().ad)
        assert service.status(job_id)[0] == 1
    assert not (site.directory / "elsewhere").exists()


def test_a_ping_fails_only_if_no_job_can_be_accepted(site, lock):
    site.local.core.web_stopped = True
    with site.service() as service:
        service.ping()
    nobody = replace(site.settings, project=ProjectSettings(ProjectUrl(site.proxy.url)))
    with site.service(nobody) as service, pytest.raises(ConfigError, match="no authenticator for"):
        service.ping()
    with site.service(replace(nobody, projects={"one": site.project})) as service:
        service.ping()


def test_a_service_that_was_never_asked_anything_ends(site):
    with site.service() as service:
        service.end_reported("boinc/00000000.1")
    assert not (site.directory / "state").exists()


def test_a_service_that_ends_leaves_no_thread(site):
    before = set(threading.enumerate())
    with site.service() as service:
        job_id = service.submit(site.job().ad)
        await_status(service, [job_id], 4)
    # A connection's threads of the proxy may stay.
    left = [thread.name for thread in set(threading.enumerate()) - before]
    assert not [name for name in left if not name.startswith(("fault proxy", "waitress"))]
