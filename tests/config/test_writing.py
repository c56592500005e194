"""An account is written into a settings file, and the rest of the file stays as it was."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings as limits, strategies as st

from boinc_gahp.config import ProjectUrl, account_entry, load
from boinc_gahp.errors import ConfigError
from boinc_gahp.secret import Authenticator

if TYPE_CHECKING:
    from pathlib import Path

URL = ProjectUrl("https://boinc.example.edu/fold/")
OTHER = ProjectUrl("https://other.example.org/")
KEY = Authenticator("0123456789abcdef0123456789abcdef")

COMMENTED = """\
# My settings; do not touch.

[timeouts]    # the network here is slow
read = 240

[project]
url = "https://other.example.org/"   # theirs
authenticator_file = 'other-key'

[staging]
keep = 3600
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "settings" / "boinc_gahp.toml"


def save(path: Path, url: ProjectUrl = URL, name: str | None = None) -> str:
    """Save the account; return the section."""
    settings = load(str(path)) if path.exists() else load(environ={})
    path.parent.mkdir(exist_ok=True)
    entry = account_entry(settings, str(path), url, name)
    entry.write(KEY)
    return entry.section


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_first_project_is_the_default_one(path: Path) -> None:
    assert save(path) == "[project]"
    project = load(str(path)).project
    assert project is not None
    assert (project.url, project.authenticator) == (URL, KEY)
    assert mode(path) == mode(path.with_name("authenticator")) == 0o600
    assert "0123456789abcdef" not in path.read_text()


def test_the_next_one_gets_a_name_of_its_address_and_nothing_else_changes(path: Path) -> None:
    path.parent.mkdir()
    path.write_text(COMMENTED)
    path.chmod(0o644)
    assert save(path) == "[projects.fold]"
    text = path.read_text()
    assert text.startswith(COMMENTED)
    settings = load(str(path))
    assert settings.projects["fold"].authenticator == KEY
    assert settings.project is not None
    assert settings.project.url == OTHER
    assert settings.timeouts.read == 240
    assert mode(path) == 0o644
    assert mode(path.with_name("authenticator-fold")) == 0o600


@pytest.mark.parametrize(
    "again", ["https://boinc.example.edu/fold", "http://BOINC.example.edu/fold/"]
)
def test_a_project_is_found_again_by_any_of_its_addresses(path: Path, again: str) -> None:
    path.parent.mkdir()
    path.write_text(COMMENTED)
    save(path)
    before = path.read_text()
    assert save(path, URL if again.startswith("http:") else ProjectUrl(again)) == "[projects.fold]"
    assert path.read_text() == before
    assert account_entry(load(str(path)), str(path), ProjectUrl(again), None).name == "fold"


def test_https_takes_the_place_of_http_and_comments_stay(path: Path) -> None:
    path.parent.mkdir()
    path.write_text('[project]  # mine\nurl = "http://boinc.example.edu/fold/"  # for now\n')
    save(path)
    assert path.read_text() == (
        '[project]  # mine\nurl = "https://boinc.example.edu/fold/"  # for now\n'
        'authenticator_file = "authenticator"\n'
    )


def test_an_authenticator_in_the_settings_moves_into_a_file(path: Path) -> None:
    path.parent.mkdir()
    path.write_text(
        f'[project]\nurl = "{URL}"\nauthenticator = "old-old-old"\nproxy = "http://p/"\n'
    )
    path.chmod(0o600)
    entry = account_entry(load(str(path)), str(path), URL, None)
    assert entry.present == Authenticator("old-old-old")
    entry.write(KEY)
    assert "old-old-old" not in path.read_text()
    project = load(str(path)).project
    assert project is not None
    assert (project.authenticator, project.proxy) == (KEY, "http://p/")


def test_the_file_that_the_settings_name_is_used(path: Path) -> None:
    path.parent.mkdir()
    path.write_text(f"[project]\nurl = '{URL}'\nauthenticator_file = 'keys/mine'\n")
    path.with_name("keys").mkdir()
    before = path.read_text()
    save(path)
    assert path.read_text() == before
    assert path.with_name("keys").joinpath("mine").read_text() == f"{'0123456789abcdef' * 2}\n"


def test_two_projects_do_not_share_a_file(path: Path) -> None:
    path.parent.mkdir()
    path.write_text(
        f"[project]\nurl = '{OTHER}'\nauthenticator_file = 'key'\n"
        f"[projects.fold]\nurl = '{URL}'\nauthenticator_file = 'key'\n"
    )
    key = path.with_name("key")
    key.write_text("another-account")
    key.chmod(0o600)
    save(path)
    assert key.read_text() == "another-account"
    assert load(str(path)).projects["fold"].authenticator == KEY


def test_the_name_of_another_project_is_refused(path: Path) -> None:
    path.parent.mkdir()
    path.write_text(COMMENTED)
    save(path, name="a")
    with pytest.raises(ConfigError, match=r"\[projects.a\] of the settings is the project https"):
        save(path, ProjectUrl("https://third.example/"), name="a")
    with pytest.raises(ConfigError, match="cannot be named"):
        save(path, ProjectUrl("https://third.example/"), name="a.b")


def test_a_link_to_the_settings_stays_a_link(path: Path, tmp_path: Path) -> None:
    path.parent.mkdir()
    real = tmp_path / "dotfiles.toml"
    real.write_text(COMMENTED)
    path.symlink_to(real)
    save(path)
    assert path.is_symlink()
    assert "[projects.fold]" in real.read_text()
    assert path.with_name("authenticator-fold").exists()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("https://a.example/\nkey\n", "in two lines"),
        ("[project\n", "not TOML"),
        ("[projct]\n", "did you mean project"),
    ],
)
def test_settings_that_cannot_be_changed_are_left_alone(path: Path, text: str, says: str) -> None:
    path.parent.mkdir()
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(ConfigError, match=says):
        account_entry(load(environ={}), str(path), URL, None)
    assert path.read_text() == text
    assert list(path.parent.iterdir()) == [path]


_LINES = st.lists(
    st.sampled_from(
        [
            "",
            "# a comment",
            "[timeouts]\nread = 7  # s",
            "[projects.fold]\nurl = 'https://boinc.example.edu/fold/'",
            "[projects.b]\nurl = 'https://b.example/'",
            "[project]\nurl = 'https://other.example.org/'",
            "[staging]\nkeep = 1",
            "[logging]\n\nlevel = 'debug'",
            "[projects]",
            "[projects]\nc = { url = 'https://c.example/' }",
            "projects.fold.url = 'https://boinc.example.edu/fold/'",
        ]
    ),
    unique=True,
    max_size=6,
)


@given(_LINES)
@limits(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_the_settings_are_only_the_projects_section_changes(
    path: Path, lines: list[str]
) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(lines))
    path.with_name("authenticator").unlink(missing_ok=True)
    try:
        before = load(str(path))
    except ConfigError:
        return
    told, text = "", path.read_text()
    try:
        save(path)
    except ConfigError as error:
        told = str(error)
    if told:
        # tomlkit cannot add to a [projects] that is split into parts.
        assert "put these lines there yourself" in told
        assert path.read_text() == text
        return
    after = load(str(path))
    projects = {"": after.project, **after.projects}
    (mine,) = [name for name, each in projects.items() if each and each.url == URL]
    assert projects.pop(mine).authenticator == KEY  # type: ignore[union-attr]
    assert projects.items() <= ({"": None} | {"": before.project, **before.projects}).items()
    assert (after.timeouts, after.staging) == (before.timeouts, before.staging)
    kept = [line for text in lines for line in text.split("\n") if "#" in line]
    assert all(line in path.read_text() for line in kept)
