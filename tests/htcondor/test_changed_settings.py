"""Settings that are put right are used by a daemon that runs, and by managers that are at work."""

from contextlib import contextmanager
from dataclasses import replace

import pytest

from tests import faultproxy
from tests.faultproxy import FaultProxy
from tests.helpers import wait_for
from tests.htcondor.helpers import await_status, row_of


@pytest.fixture(autouse=True)
def _soon(monkeypatch):
    monkeypatch.setattr("boinc_gahp.htcondor.service.SETTINGS_INTERVAL", 0.05)


def with_project(site, **changes):
    return replace(site.settings, project=replace(site.project, **changes))


@contextmanager
def daemon(site, settings):
    """Yield a service, and its settings as a list; the last one is what is in the file now."""
    file = [settings]
    with site.service(settings, lambda: file[-1]) as service:
        yield service, file


def test_settings_that_cannot_be_used_are_not(site, caplog):
    gone = with_project(site, ca_bundle=str(site.directory / "nothing.pem"))
    with daemon(site, site.settings) as (service, file):
        service.submit(site.job().ad)
        file.append(gone)
        wait_for(lambda: "The previous settings for" in caplog.text, "the warning")
        await_status(service, [service.submit(site.job().ad)], 4)


def test_times_for_htcondor_s_jobs_that_are_changed_are_kept_to(site):
    htcondor = replace(site.htcondor, send_after=3600.0, longest_wait=3600.0)
    with daemon(site, replace(site.settings, htcondor=htcondor)) as (service, file):
        job_id = service.submit(site.job().ad)
        file.append(site.settings)
        await_status(service, [job_id], 4)


def test_what_is_under_way_ends_with_the_settings_that_it_began_with(site, jobs):
    hang = faultproxy.hang()
    site.proxy.fail("submit_batch", hang)
    with daemon(site, site.settings) as (service, file), FaultProxy(site.local.url) as other:
        first = service.submit(site.job().ad)
        wait_for(hang.reached.is_set, "the submission")
        # The other way to the project is a proxy as good as any.
        file.append(with_project(site, proxy=other.url))
        second = service.submit(site.job().ad)
        wait_for(lambda: other.seen, "a request on the other way")
        hang.release()
        await_status(service, [first, second], 4)
        assert site.proxy.count("submit_batch") == 1
        [manager] = service._managers.values()
        wait_for(lambda: not manager._old_projects, "the end of the old connections")
    assert len(site.workunits()) == 2
    assert row_of(jobs, first).state == "done"
