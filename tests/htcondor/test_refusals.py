"""What stands before the service where that cannot be had."""

from dataclasses import replace
from unittest.mock import Mock

import pytest

from boinc_gahp.config.settings import HTCondor, ProjectSettings
from boinc_gahp.config.urls import ProjectUrl
from boinc_gahp.errors import ConfigError
from boinc_gahp.htcondor import refusals
from boinc_gahp.htcondor.refusals import Refusals
from boinc_gahp.htcondor.service import Service
from tests.helpers import wait_for

JOB = "boinc/00000000.1"


def broken():
    raise ConfigError("boinc_gahp.toml is not TOML")


def test_accepted_jobs_are_suspended_with_the_reason_for_a_day_and_then_held():
    now = 0.0
    front = Refusals(broken, lambda: now)
    told = (7, '[ ExitReason = "boinc_gahp.toml is not TOML"; ]')
    assert [front.status(JOB) for _ in range(6)] == [told] * 6
    # As HTCondor holds a job that is not found five times, and keeps its id.
    now = HTCondor().unknown_project_wait
    with pytest.raises(ConfigError, match="is not TOML"):
        front.status(JOB)


def test_a_cancel_that_cannot_be_written_down_for_minutes_is_an_error(monkeypatch, caplog):
    monkeypatch.setattr(refusals, "RETRY_AFTER", 0.01)
    monkeypatch.setattr(refusals, "CANCEL_TIMEOUT", 0.05)
    with pytest.raises(ConfigError, match="is not TOML"):
        Refusals(broken).cancel(JOB)
    assert f"Job {JOB} is not aborted" in caplog.text
    assert caplog.text.count("is not TOML") == 1


def test_reasons_are_kept_for_so_many_jobs(monkeypatch):
    monkeypatch.setattr(refusals, "MAX_REFUSED", 3)
    front = Refusals(broken)
    jobs = [front.submit("[ ]") for _ in range(5)]
    assert len(front._reasons) == 3
    assert len(set(jobs)) == 5
    # Also of others it is known: nothing was mended meanwhile.
    assert len({front.status(job) for job in jobs}) == 1
    for job in jobs:
        front.cancel(job)
        front.end_reported(job)
    assert front._reasons == {}


def test_a_job_that_an_earlier_daemon_refused_is_held_also_when_all_is_mended():
    refused = Refusals(broken).submit("[ ]")
    mended = Mock(spec=Service)
    for service, words in ((broken, "is not TOML"), (lambda: mended, "could not accept this job")):
        status, ad = Refusals(service).status(refused)
        assert status == 5
        assert words in ad


def test_why_nobody_can_work_on_jobs_is_reported_if_it_is_known(site, jobs):
    with site.held_back(), site.service() as service:
        job_id = service.submit(site.job().ad)
    lacking = replace(
        site.settings,
        project=ProjectSettings(ProjectUrl(site.proxy.url)),
        no_authenticator={"": "the key is open to all"},
    )
    with site.service(lacking) as service:
        assert service.status(job_id)[0] == 1
        ((text, _),) = wait_for(lambda: list(jobs.troubles().values()), "the trouble")
        assert f"the jobs on {site.proxy.url} for" in text
        assert text.endswith(": the key is open to all")
