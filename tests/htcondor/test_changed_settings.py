"""Settings that are put right are used by a daemon that runs, and by managers that are at work."""

import ssl
from contextlib import contextmanager
from dataclasses import replace

import pytest
import trustme

from tests import faultproxy
from tests.faultproxy import FaultProxy
from tests.helpers import wait_for
from tests.htcondor.helpers import await_status, row_of


@pytest.fixture(autouse=True)
def _soon(monkeypatch):
    monkeypatch.setattr("boinc_gahp.htcondor.service.SETTINGS_INTERVAL", 0.05)


class File:
    """The settings of a daemon, as somebody edits them."""

    def __init__(self, settings):
        self.settings = settings

    @contextmanager
    def daemon(self, site):
        with site.service(self.settings, lambda: self.settings) as service:
            yield service


def proxied(settings, url):
    return replace(settings, project=replace(settings.project, proxy=url))


def test_a_proxy_that_is_put_right_is_used(site, jobs):
    with FaultProxy(site.local.url) as gone:
        nowhere = gone.url
    file = File(proxied(site.settings, nowhere))
    with file.daemon(site) as service:
        job_id = service.submit(site.job().ad)
        wait_for(lambda: jobs.troubles().get(site.owner), "the trouble in the ledger")
        file.settings = site.settings
        await_status(service, [job_id], 4)
    assert jobs.troubles() == {}
    assert len(site.workunits()) == 1


def test_certificates_that_are_put_right_are_used(site, jobs):
    authority = trustme.CA()
    bundles = [site.directory / name for name in ("other.pem", "right.pem")]
    trustme.CA().cert_pem.write_to_path(str(bundles[0]))
    authority.cert_pem.write_to_path(str(bundles[1]))
    with secure(site, authority):
        wrong, right = (trusting(site.settings, bundle) for bundle in bundles)
        file = File(wrong)
        with file.daemon(site) as service:
            job_id = service.submit(site.job().ad)
            wait_for(lambda: jobs.troubles().get(site.owner), "the trouble in the ledger")
            # While somebody is at it, the file may not be there: the settings are used on.
            file.settings = trusting(site.settings, site.directory / "nothing.pem")
            assert service.status(job_id)[0] == 1
            file.settings = right
            await_status(service, [job_id], 4)


@contextmanager
def secure(site, authority):
    """Have the site's project answer over https."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    plain = site.proxy
    proxy = FaultProxy(site.local.url)
    proxy.url = proxy.url.replace("http://", "https://")
    proxy._listener = context.wrap_socket(
        proxy._listener, server_side=True, do_handshake_on_connect=False
    )
    with proxy:
        site.proxy = proxy
        yield
    site.proxy = plain


def trusting(settings, bundle):
    return replace(settings, project=replace(settings.project, ca_bundle=str(bundle)))


def test_times_for_htcondor_s_jobs_that_are_changed_are_kept_to(site):
    htcondor = replace(site.htcondor, send_after=3600.0, longest_wait=3600.0)
    file = File(replace(site.settings, htcondor=htcondor))
    with file.daemon(site) as service:
        job_id = service.submit(site.job().ad)
        file.settings = site.settings
        await_status(service, [job_id], 4)


def test_what_is_under_way_ends_with_the_settings_that_it_began_with(site, jobs):
    hang = faultproxy.hang()
    site.proxy.fail("submit_batch", hang)
    file = File(site.settings)
    with file.daemon(site) as service, FaultProxy(site.local.url) as other:
        first = service.submit(site.job().ad)
        wait_for(hang.reached.is_set, "the submission")
        # The other way to the project is a proxy as good as any.
        file.settings = proxied(site.settings, other.url)
        second = service.submit(site.job().ad)
        wait_for(lambda: other.seen, "a request on the other way")
        hang.release()
        await_status(service, [first, second], 4)
        assert site.proxy.count("submit_batch") == 1
        [manager] = service._managers.values()
        wait_for(
            lambda: not manager._old_projects, "the end of the connections with the old settings"
        )
    assert len(site.workunits()) == 2
    assert row_of(jobs, first).state == "done"
