"""Which project is meant."""

from dataclasses import replace

import pytest

from boinc_gahp.config.accounts import authenticator_of, find_project, project_at
from boinc_gahp.config.settings import ProjectSettings, Settings
from boinc_gahp.config.urls import ProjectUrl
from boinc_gahp.errors import ConfigError
from boinc_gahp.secret import Authenticator
from tests.config.conftest import error_of

SECRET = Authenticator("0123456789abcdef")
DEFAULT = ProjectSettings(ProjectUrl("https://boinc.example.edu/test/"), SECRET)
LHC = ProjectSettings(ProjectUrl("https://lhc.example.org/home/"), SECRET)
SETTINGS = Settings(project=DEFAULT, projects={"lhc": LHC})


@pytest.mark.parametrize(
    ("wanted", "project", "name"),
    [
        (None, DEFAULT, ""),
        ("", DEFAULT, ""),
        ("lhc", LHC, "lhc"),
        ("https://lhc.example.org/home/", LHC, "lhc"),
        ("HTTPS://LHC.example.org/home", LHC, "lhc"),
        ("https://boinc.example.edu/test", DEFAULT, ""),
    ],
)
def test_a_project_is_found_by_name_by_url_or_as_the_default(wanted, project, name):
    assert find_project(SETTINGS, wanted) == (name, project)


@pytest.mark.parametrize("wanted", ["LHC", "rosetta", "https://lhc.example.org/", "ftp://x/"])
def test_a_project_that_there_is_not_is_named_with_those_that_there_are(wanted):
    with pytest.raises(ConfigError) as raised:
        find_project(SETTINGS, wanted)
    for words in (f'"{wanted}"', DEFAULT.url, f"lhc: {LHC.url}"):
        assert words in str(raised.value)


def test_who_names_no_project_is_told_how_to_if_there_is_no_default():
    with pytest.raises(ConfigError, match=r"\[project\], or shout its name .*lhc: https://lhc"):
        find_project(Settings(projects={"lhc": LHC}), None, "shout its name")
    for wanted in (None, "lhc"):
        with pytest.raises(ConfigError, match=r"no settings file names a project.*odd"):
            find_project(Settings(problems=("something odd",)), wanted)


def test_who_has_no_settings_is_told_of_login_and_of_a_local_projects_file(node):
    def told():
        return error_of(lambda: find_project(Settings(), None))

    assert "run boinc_gahp login URL;" in told()
    assert "in this terminal: export BOINC_GAHP_CONFIG=DIR/boinc_gahp.toml" in told()
    node.write(node.home / "project/boinc_gahp.toml", "")
    assert "in this terminal: export BOINC_GAHP_CONFIG=~/project/boinc_gahp.toml" in told()


def test_a_project_without_authenticator_is_reported_with_the_section_to_mend():
    settings = Settings(projects={"lhc": ProjectSettings(LHC.url)})
    with pytest.raises(ConfigError, match=r"no authenticator for https://lhc.*\[projects\.lhc\]"):
        authenticator_of(settings, find_project(settings, "lhc")[1])


def test_why_there_is_no_authenticator_is_reported_if_it_is_known():
    lacking = Settings(
        projects={"lhc": ProjectSettings(LHC.url)},
        no_authenticator={"lhc": "it is open to all"},
    )
    with pytest.raises(ConfigError, match=r"^it is open to all$"):
        authenticator_of(lacking, find_project(lacking, LHC.url)[1])


def test_a_login_in_a_url_is_not_repeated():
    with pytest.raises(ConfigError) as raised:
        find_project(SETTINGS, "https://alice:geheim@lhc.example.org/home/")
    assert "geheim" not in str(raised.value)


def test_what_the_settings_say_of_an_address_goes_for_every_account_there():
    proxied = replace(LHC, proxy="http://p:1")
    settings = Settings(project=DEFAULT, projects={"a": LHC, "lhc": proxied})
    http, other = ProjectUrl("http://LHC.example.org/home"), Authenticator("fedcba9876543210")
    assert project_at(settings, http, other) == ProjectSettings(http, other)
    assert project_at(settings, http, other, "lhc").proxy == "http://p:1"
    assert project_at(settings, ProjectUrl("https://x/"), other, "lhc").proxy is None
