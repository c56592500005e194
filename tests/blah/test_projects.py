"""Which project a job means."""

from __future__ import annotations

import pytest

from boinc_gahp.blah.projects import find_project
from boinc_gahp.config import ProjectSettings, Settings
from boinc_gahp.errors import ConfigError
from boinc_gahp.secret import Authenticator

SECRET = Authenticator("0123456789abcdef")
DEFAULT = ProjectSettings("https://boinc.example.edu/test/", SECRET)
LHC = ProjectSettings("https://lhc.example.org/home/", SECRET)
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
def test_a_project_is_found_by_name_by_url_or_as_the_default(
    wanted: str | None, project: ProjectSettings, name: str
) -> None:
    assert find_project(SETTINGS, wanted) == (project, name)


@pytest.mark.parametrize("wanted", ["LHC", "rosetta", "https://lhc.example.org/", "ftp://x/"])
def test_a_project_that_there_is_not_is_named_with_those_that_there_are(wanted: str) -> None:
    with pytest.raises(ConfigError) as raised:
        find_project(SETTINGS, wanted)
    for words in (f'"{wanted}"', DEFAULT.url, f"lhc: {LHC.url}"):
        assert words in str(raised.value)


def test_a_job_that_names_no_project_is_told_how_to_if_there_is_no_default() -> None:
    with pytest.raises(ConfigError, match=r"\+remote_BoincProject.*lhc: https://lhc"):
        find_project(Settings(projects={"lhc": LHC}), None)
    for wanted in (None, "lhc"):
        with pytest.raises(ConfigError, match=r"no settings file names a project.*odd"):
            find_project(Settings(problems=("something odd",)), wanted)


def test_a_project_without_authenticator_is_told_with_the_section_to_mend() -> None:
    settings = Settings(projects={"lhc": ProjectSettings(LHC.url)})
    with pytest.raises(ConfigError, match=r"no authenticator for https://lhc.*\[projects\.lhc\]"):
        find_project(settings, "lhc")


def test_why_there_is_no_authenticator_is_told_if_it_is_known() -> None:
    lacking = Settings(
        projects={"lhc": ProjectSettings(LHC.url)}, no_authenticator={"lhc": "it is open to all"}
    )
    with pytest.raises(ConfigError, match=r"^it is open to all$"):
        find_project(lacking, LHC.url)


def test_a_login_in_a_url_is_not_repeated() -> None:
    with pytest.raises(ConfigError) as raised:
        find_project(SETTINGS, "https://alice:geheim@lhc.example.org/home/")
    assert "geheim" not in str(raised.value)
