"""What another user of a submit node might do with a settings file.

Such a file decides where jobs, and the account's key, are sent. The tests run as root, who can make
another user's files; to the program, root is then a user like any other.
"""

import os
import sys
import tempfile
from pathlib import Path
from shlex import quote

import pytest

from boinc_gahp import logs
from boinc_gahp.api.project import Project
from boinc_gahp.cli.batch.opening import as_typed, command
from boinc_gahp.cli.batch.showing import show_parser
from boinc_gahp.cli.main import main
from boinc_gahp.config import layers, places
from boinc_gahp.config.places import TrustedPath, trusted
from boinc_gahp.errors import ConfigError
from tests.attacks.users import ALICE, BOB, ME, environment, needs_root, ping, run_as

URL = "http://127.0.0.1:9/test/"
PROJECT = f'[project]\nurl = "{URL}"\n'
SETTINGS = f'{PROJECT}authenticator = "{"5" * 32}"\n[timeouts]\nretry = 0\n'


@pytest.fixture
def home(tmp_path, monkeypatch):
    """The user's home, where nothing is set."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for kind in ("CONFIG", "STATE", "CACHE"):
        monkeypatch.delenv(f"XDG_{kind}_HOME", raising=False)
    monkeypatch.setenv("XDG_CONFIG_DIRS", str(tmp_path / "site"))
    monkeypatch.setattr(places, "ADMIN_DIR", tmp_path / "admin")
    monkeypatch.chdir(home)
    yield home
    logs.stop()


def written(path, text, owner=None):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o600)
    if owner is not None:
        os.chown(path, owner, -1)
    return path


@pytest.fixture
def theirs(home):
    """A settings file of bob's."""
    return written(home.parent / "bobs.toml", SETTINGS, BOB)


def refusal(path):
    return (
        f"{path} belongs to user {BOB}, so it is not read: copy it, and read the copy; or, if you "
        f'trust that user, add --trust-config to the command, or write config_of = "{BOB}" into '
        "the section [trust] of your own settings or the admin's"
    )


def their_problems(path):
    """Return what is told of bob's file that is trusted."""
    return (f"{path} belongs to user {BOB}, who can change where your jobs are sent",)


@needs_root
@pytest.mark.parametrize("how", ["--config", "BOINC_GAHP_CONFIG"])
@pytest.mark.parametrize(
    "words", ["batch list", "apps", "check", "ledger status", f"login {URL} --stdin"]
)
def test_lead_jobs_elsewhere_by_a_file_that_is_named(words, how, theirs, monkeypatch, capsys):
    named = ["--config", str(theirs)] if how == "--config" else []
    if not named:
        monkeypatch.setenv(how, str(theirs))
    assert main([*words.split(), *named]) == 1
    assert refusal(theirs) in "".join(capsys.readouterr())
    main([*named, "--trust-config", *words.split()])
    main([*words.split(), *named, "--trust-config"])
    assert "is not read" not in "".join(capsys.readouterr())


@needs_root
def test_lead_jobs_of_a_python_program_elsewhere(home, theirs, monkeypatch):
    with pytest.raises(ConfigError) as named:
        Project.from_settings(config=theirs)
    monkeypatch.setenv("BOINC_GAHP_CONFIG", str(theirs))
    with pytest.raises(ConfigError) as exported:
        Project.from_settings()
    assert str(named.value) == str(exported.value) == refusal(theirs)
    written(home / ".config/boinc_gahp/boinc_gahp.toml", f'[trust]\nconfig_of = "{BOB}"\n')
    with Project.from_settings() as project:
        assert project.url == URL


@pytest.mark.processes
@needs_root
def test_lead_jobs_of_the_daemon_elsewhere_until_a_setting_trusts_the_user(home, theirs):
    site = home.parent / "site/boinc_gahp/boinc_gahp.toml"
    environ = environment(home, theirs)
    result, errors = ping(environ, home)
    assert refusal(theirs) in result
    assert refusal(theirs) in errors
    written(site, f'[trust]\nconfig_of = "{BOB}"\n')
    result, errors = ping(environ, home)
    assert "127.0.0.1" in result
    assert "is not read" not in result + errors


@needs_root
def test_be_trusted_by_a_file_of_ones_own(home, theirs):
    written(theirs, f'{SETTINGS}[trust]\nconfig_of = "{BOB}"\n')
    with pytest.raises(ConfigError, match="is not read"):
        layers.load(str(theirs), {})
    with pytest.raises(ConfigError, match=r"another user's file must not set \[trust\]"):
        layers.load(TrustedPath(theirs), {})
    written(home / ".config/boinc_gahp/boinc_gahp.toml", f'[trust]\nconfig_of = "{ALICE}"\n')
    with pytest.raises(ConfigError, match="is not read"):
        layers.load(str(theirs), {})


@needs_root
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('authenticator_file = "~/.vault-token"', "authenticator_file in [project]"),
        ('ca_bundle = "ca.pem"', "ca_bundle in [project]"),
        ('proxy = "http://127.0.0.1:9"', "proxy in [project]"),
        ('publish_url = "http://127.0.0.1:9"', "publish_url in [project]"),
        ('container_image = "rootfs:~/x"', "container_image in [project]"),
        ('[projects.x]\nproxy = "http://127.0.0.1:9"', "proxy in [projects.x]"),
        ('[logging]\nfile = "~/.bashrc"', "[logging]"),
        ('[state]\ndir = "~/x"', "[state]"),
    ],
)
def test_reach_files_and_passwords_by_a_file_that_is_trusted(text, told, theirs):
    written(theirs, PROJECT + text)
    with pytest.raises(ConfigError) as refused:
        layers.load(TrustedPath(theirs), {})
    assert str(refused.value) == (
        f"{theirs} belongs to user {BOB}, and another user's file must not set {told}: copy the "
        "file, or put that into your own settings"
    )
    # The same is right in a file of this user.
    (theirs.parent / "home/x").touch()
    os.chown(theirs, os.geteuid(), -1)
    assert layers.load(str(theirs), {}).sources == (theirs,)


@needs_root
def test_an_account_and_an_image_in_a_registry_may_come_from_a_file_that_is_trusted(theirs):
    written(theirs, SETTINGS.replace("[timeouts]", 'container_image = "python:3"\n[timeouts]'))
    settings = layers.load(TrustedPath(theirs), {})
    assert settings.project.url == URL
    assert settings.problems == their_problems(theirs)


@needs_root
def test_lead_jobs_elsewhere_by_a_settings_file_in_the_users_directory(home):
    path = written(home / ".config/boinc_gahp/boinc_gahp.toml", SETTINGS, BOB)
    with pytest.raises(ConfigError) as refused:
        layers.load(None, {})
    assert str(refused.value) == (f"{path} belongs to user {BOB}, so it is not read: move it away")


@needs_root
def test_a_file_in_a_place_of_the_site_is_read_with_a_warning(home):
    path = written(home.parent / "site/boinc_gahp/boinc_gahp.toml", SETTINGS, BOB)
    assert layers.load(None, {}).problems == their_problems(path)


#: Goes into a user namespace in which root is unknown, as in a container, and loads the settings.
IN_A_CONTAINER = """
import ctypes, os, sys
from boinc_gahp.config.layers import load
user = os.getuid()
# Afterwards Python may be out of reach, and no module can be imported.
load(sys.argv[1], {})
assert ctypes.CDLL(None, use_errno=True).unshare(0x10000000) == 0, ctypes.get_errno()
open("/proc/self/uid_map", "w").write(f"{user} {user} 1")
assert (os.getuid(), os.stat("/").st_uid) == (user, 65534)
print(load(sys.argv[1], {}).project.url)
"""


@pytest.mark.processes
@needs_root
def test_a_file_of_the_machines_root_is_read_where_root_seems_to_be_nobody():
    with tempfile.TemporaryDirectory(prefix="boinc_gahp-", dir="/tmp") as node:
        Path(node).chmod(0o755)
        path = written(Path(node) / "settings.toml", PROJECT)
        path.chmod(0o644)
        words = (sys.executable, "-c", IN_A_CONTAINER, path)
        _, told, errors = run_as(ALICE, *words, env={"HOME": node})
    assert told == f"{URL}\n", errors


# -- as seen by whoever runs the tests


def test_commands_that_are_printed_trust_what_was_trusted():
    options = show_parser().read(["7"], trusted("x.toml"))
    rest = " 7 --config x.toml --trust-config"
    assert command(options, "fetch", 7) == f"boinc_gahp batch fetch{rest}"
    assert as_typed(options) == f"boinc_gahp batch show{rest}"


@pytest.mark.parametrize("place", ["named", "usual", "by link"])
def test_replace_a_settings_file_in_a_directory_that_everyone_can_write(place, home, capsys):
    above = home / (".config" if place == "usual" else "other")
    path = written(above / "boinc_gahp/boinc_gahp.toml", SETTINGS)
    named = str(path) if place == "named" else None
    if place == "by link":
        named = str(home.parent / "link.toml")
        Path(named).symlink_to(path)
    above.chmod(0o777)
    told = f"everyone can write the directory {above}, and so replace what is in it; as {ME}, run: "
    with pytest.raises(ConfigError) as refused:
        layers.load(named, {})
    assert f"{told}chmod o-w {quote(str(above))}" in str(refused.value)
    assert main(["check", *(["--config", named] if named else [])]) == 1
    assert f"FAILED   settings: {path if place != 'by link' else ''}" in capsys.readouterr().out
    for mode in (0o1777, 0o755):
        above.chmod(mode)
        assert layers.load(named, {}).problems == ()


@needs_root
def test_replace_settings_and_state_in_a_directory_that_a_group_can_write_is_told(home, capsys):
    written(home / ".config/boinc_gahp/boinc_gahp.toml", SETTINGS)
    os.chown(home, -1, BOB)
    home.chmod(0o775)
    main(["check"])
    out = capsys.readouterr().out
    told = (
        f"group {BOB} can write the directory {home}, and so replace what is in it; if that is not "
        f"intended, run: chmod g-w {home}"
    )
    assert f"warning  settings: {told}" in out
    assert out.count(f"warning  directories: {told}") == 1
    assert f"ok       ledger: {home}" in out


@needs_root
def test_write_a_settings_file_that_is_its_groups_is_told(home):
    path = written(home.parent / "mine.toml", SETTINGS)
    os.chown(path, -1, BOB)
    path.chmod(0o620)
    assert layers.load(str(path), {}).problems == (
        f"group {BOB} can write {path}, which tells where jobs are sent; if that is not intended, "
        f"run: chmod g-w {path}",
    )


def test_write_another_account_into_an_authenticator_file_that_everyone_can_write(home):
    written(home / ".config/boinc_gahp/boinc_gahp.toml", f'{PROJECT}authenticator_file = "key"\n')
    key = written(home / ".config/boinc_gahp/key", "5" * 32)
    assert layers.load(environ={}).no_authenticator == {}
    key.chmod(0o602)
    [told] = layers.load(environ={}).no_authenticator.values()
    assert told.endswith(f"everyone can write it; run: chmod 600 {key}")
