"""The pages for programs that a project answers (``web-rpcs.rst``, "Pages for programs")."""

import re

import pytest

from boinc_gahp.errors import ProjectDown, ProjectError
from boinc_gahp.localproject.project import LocalProject
from boinc_gahp.rpc.client import WebRpcs
from boinc_gahp.rpc.options import ClientOptions
from boinc_gahp.rpc.site import about, apps, key_of
from boinc_gahp.secret import Authenticator


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    with LocalProject(tmp_path_factory.mktemp("project"), hosts=0) as project:
        project.add_user("ada", email="Ada@example.edu", password="correct horse")
        yield project


@pytest.fixture
def site(project):
    options = ClientOptions(retry_total=0)
    with WebRpcs(project.url, project.authenticator, options=options) as site:
        yield site


def test_the_account_is_found_by_address_and_password_and_neither_is_kept(project, site):
    for address in ("ada@example.edu", "ADA@Example.EDU"):
        found = key_of(site, address, "correct horse")
        assert found == Authenticator(project.authenticator_of("ada"))
    query = "SELECT passwd_hash FROM user WHERE name = 'ada'"
    [(kept,)] = project.core.db.connection().execute(query)
    assert re.fullmatch(r"[0-9a-f]{16}\$[0-9a-f]{128}", kept)
    for email, password, number in (
        ("ada@example.edu", "wrong", -206),
        ("ada@example.edu", "", -206),
        ("bob@example.edu", "correct horse", -136),
        ("", "", -136),
    ):
        with pytest.raises(ProjectError) as caught:
            key_of(site, email, password)
        assert caught.value.number == number


def test_the_project_tells_its_address_even_while_it_is_down(project, site):
    project.core.web_stopped = True
    try:
        assert about(site).master_url == project.url
        with pytest.raises(ProjectDown):
            key_of(site, "ada@example.edu", "correct horse")
        with pytest.raises(ProjectDown):
            apps(site)
    finally:
        project.core.web_stopped = False


def test_the_list_of_apps_is_only_for_those_who_have_logged_in(project):
    for other in ("", "0" * 32):
        with WebRpcs(project.url, other) as site, pytest.raises(ProjectError, match="a login"):
            apps(site)
