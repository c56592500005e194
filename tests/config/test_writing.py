"""An account is written into a file of its own; what people have written stays as it is."""

import stat

import pytest

from boinc_gahp.config.layers import load
from boinc_gahp.config.urls import ProjectUrl, are_one_project
from boinc_gahp.config.writing import account_entry
from boinc_gahp.errors import ConfigError
from boinc_gahp.secret import Authenticator
from tests.config.conftest import error_of

URL = ProjectUrl("https://boinc.example.edu/fold/")
OTHER = ProjectUrl("https://other.example.org/")
KEY = Authenticator("0123456789abcdef\"\\'")


def save(url=URL, name=None, *, config=None):
    """Save the account; return the file."""
    settings = load(None if config is None else str(config), {})
    entry = account_entry(load(environ={}), settings, ProjectUrl(url), name)
    entry.write(KEY)
    return entry.file


def project(name=""):
    settings = load(environ={})
    return settings.projects[name] if name else settings.project


def test_the_first_project_is_the_default_one_in_a_file_for_this_user_alone(node):
    file = save()
    assert file == node.user.parent / "projects.d" / "default.toml"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert (project().url, project().authenticator) == (URL, KEY)
    assert load(environ={}).problems == ()


def test_the_next_one_gets_a_name_of_its_address_and_a_file_of_that_name(node):
    first = save(OTHER)
    before = first.read_text()
    assert save() == first.with_name("fold.toml")
    assert first.read_text() == before
    assert project("fold").authenticator == KEY
    assert project().url == OTHER


@pytest.mark.parametrize(
    "again", ["https://boinc.example.edu/fold", "http://BOINC.example.edu/fold/"]
)
def test_a_project_is_found_again_by_any_of_its_addresses(node, again):
    save(OTHER)
    file = save()
    assert save(again) == file
    assert are_one_project(project("fold").url, URL)


def test_what_somebody_has_set_for_the_project_is_kept_and_https_takes_the_place_of_http(node):
    text = (
        f'[project]\nurl = "{OTHER}"\n[projects."my fold"]\nproxy = "http://p/"\n'
        f'url = "{URL.replace("https", "http")}"\nauthenticator = "old-old-old"\n'
    )
    node.write(node.user, text)
    entry = account_entry(load(environ={}), load(environ={}), URL, None)
    assert (entry.name, entry.present) == ("my fold", Authenticator("old-old-old"))
    entry.write(KEY)
    assert entry.file.name == "my-fold.toml"
    found = project("my fold")
    assert (found.url, found.authenticator, found.proxy) == (URL, KEY, "http://p/")
    assert node.user.read_text() == text


def test_a_file_of_another_project_is_not_written_over(node):
    save(OTHER)
    node.write(node.user, f"[projects.default]\nurl = '{URL}'\n[projects.x]\nurl = 'https://x/'\n")
    assert "default.toml has [project]: choose another name" in error_of(save)
    said = error_of(lambda: save("https://third.example/", "x"))
    assert "[projects.x] of the settings is the project https://x/" in said
    assert "[project] of the settings is" in error_of(lambda: save(name="default"))
    assert "cannot be named" in error_of(lambda: save(name="a.b"))


def test_a_project_that_a_named_file_hides_keeps_its_name(node):
    default = save()
    node.write(node.other, f"[project]\nurl = '{OTHER}'\n")
    assert save(config=node.other) == default
    assert save("https://third.example/sim/", config=node.other).name == "sim.toml"
    assert save(name="default", config=node.other) == default
    default.unlink()
    assert save(config=node.other).name == "fold.toml"
    assert save(OTHER, config=node.other).name == "default.toml"


def test_without_a_home_nothing_is_saved(node, monkeypatch):
    monkeypatch.setattr("boinc_gahp.config.writing.user_directory", lambda: None)
    assert "set HOME" in error_of(save)


def test_a_directory_that_cannot_be_made_is_told(node):
    node.write(node.user.parent, "")
    with pytest.raises(ConfigError, match=r"could not be written: .*boinc_gahp"):
        save()
