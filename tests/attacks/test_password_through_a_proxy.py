"""A proxy that ``http_proxy`` names wants to read the password for a project on this machine."""

from urllib.parse import urlsplit

import pytest

from boinc_gahp.errors import ProjectError
from boinc_gahp.localproject.project import LocalProject
from boinc_gahp.rpc.client import WebRpcs
from boinc_gahp.rpc.site import key_of
from tests.faultproxy import FaultProxy


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_password_for_this_machine_goes_past_the_environments_proxy(tmp_path, monkeypatch, host):
    with LocalProject(tmp_path / "p", hosts=0) as project, FaultProxy(project.url) as proxy:
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.setenv("http_proxy", proxy.url)
        url = project.url.replace(urlsplit(project.url).hostname, host)
        with WebRpcs(url, "") as rpcs, pytest.raises(ProjectError):
            key_of(rpcs, "ada@example.edu", "secret")
        assert proxy.seen == []
