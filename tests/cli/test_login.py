"""``boinc_gahp login``: on pipes in this process, and on a terminal."""

import stat

import pytest

from boinc_gahp.config.layers import load
from boinc_gahp.localproject.project import LocalProject
from boinc_gahp.secret import Authenticator
from tests.cli.conftest import InProcess, ended
from tests.rpc import scripted
from tests.rpc.canned import inside
from tests.rpc.scripted import Scripted

pytestmark = pytest.mark.usefixtures("log_stopped")

PASSWORD = "correct horse"
EMAIL = "ada@example.edu"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with LocalProject(tmp_path_factory.mktemp("site"), hosts=0) as project:
        project.add_user("ada", email=EMAIL, password=PASSWORD)
        project.add_user("newcomer", access=False)
        yield project


@pytest.fixture
def login(home, capsys, monkeypatch):
    monkeypatch.delenv("BOINC_GAHP_CONFIG", raising=False)
    return InProcess(capsys, "login")


@pytest.fixture
def settings_file(home):
    return home / ".config/boinc_gahp/projects.d/default.toml"


def test_a_key_from_a_pipe_is_saved_and_checked(login, site, settings_file):
    out = login.prints(site.url, "--stdin", stdin=f"  {site.authenticator}\n")
    assert "Project: Local project (http://127.0.0.1:" in out
    assert "account: the project knows it" in out
    assert out.endswith("All is well.\nThe project's apps: boinc_gahp apps\n")
    project = load().project
    assert (project.url, project.authenticator) == (site.url, Authenticator(site.authenticator))
    assert f"Saved: [project] in {settings_file}, which only you can read\n" in out
    assert stat.S_IMODE(settings_file.stat().st_mode) == 0o600
    assert site.authenticator not in out


def test_an_address_and_a_password_find_the_key_and_are_not_kept(login, site, home):
    out = login.prints(site.url, "--email", "Ada@Example.edu", "--stdin", stdin=PASSWORD)
    assert load().project.authenticator == Authenticator(site.authenticator_of("ada"))
    written = b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())
    assert PASSWORD.encode() not in written
    assert PASSWORD not in out
    assert b"passwd" not in written


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("", "standard input is empty"),
        ("\n", "it is empty"),
        ("ada@example.edu", "use --email"),
        (f"12_{'a' * 32}", "the weak account key"),
        ("correct horse", "not one word"),
        ("0123456789abcdef0123456789abcdef", "does not know this account key"),
    ],
    ids=["nothing", "empty", "address", "weak", "two words", "unknown"],
)
def test_what_is_no_key_is_refused_without_being_shown(login, site, settings_file, typed, says):
    status, out, err = login(site.url, "--stdin", stdin=typed)
    assert (status, err.count("\n"), says in err) == (1, 1, True)
    assert not typed.strip() or typed.strip() not in out + err
    assert not settings_file.exists()


@pytest.mark.parametrize(
    ("email", "password", "says"),
    [
        (EMAIL, "wrong", "does not accept this password for ada@example.edu"),
        ("bob@example.edu", PASSWORD, "has no account with the e-mail address bob@example.edu"),
    ],
)
def test_a_wrong_password_or_address_is_told(login, site, email, password, says):
    status, out, err = login(site.url, "--email", email, "--stdin", stdin=password)
    assert (status, says in err, "[BG-BAD-AUTHENTICATOR]" in err) == (1, True, True)
    assert password not in out + err
    assert load().project is None


@pytest.mark.parametrize("email", ["ada", EMAIL])
def test_where_people_log_in_through_ldap_the_key_is_the_way(login, email):
    config = scripted.ok(inside("project_config", "<name>Lab</name><ldap_auth/>"))
    unknown = inside("account_out", "<error><error_num>-136</error_num></error>")
    with Scripted() as server:
        server.answers += [config, scripted.ok(), scripted.ok(unknown)]
        status, _, err = login(server.url, "--email", email, "--stdin", stdin=PASSWORD)
        way = f"log in on {server.url}weak_auth.php, copy the account key, and give it to"
    assert (status, err.count("\n"), "through LDAP" in err) == (1, 1, True)
    assert f"{way} boinc_gahp login " in err


def test_without_a_terminal_nobody_is_asked(login, site):
    assert "use --stdin" in login(site.url, stdin=site.authenticator)[2]


def test_another_account_is_only_replaced_on_demand(login, site):
    ada = site.authenticator_of("ada")
    login.prints(site.url, "--stdin", stdin=site.authenticator)
    err = login(site.url, "--stdin", stdin=ada)[2]
    assert "[project] of the settings has another account: use --replace" in err
    assert load().project.authenticator == Authenticator(site.authenticator)
    login.prints(site.url, "--stdin", "--replace", stdin=ada)
    assert load().project.authenticator == Authenticator(ada)


def test_several_projects_live_side_by_side(login, site, settings_file, project):
    login.prints(site.url, "--stdin", stdin=site.authenticator)
    first = settings_file.read_text()
    words = (project.url, "--stdin", "--name", "second")
    out = login.prints(*words, stdin=project.authenticator)
    assert out.endswith("The project's apps: boinc_gahp apps --project second\n")
    assert "[projects.second] is" in out
    assert settings_file.read_text() == first
    assert settings_file.with_name("second.toml").exists()
    assert load().projects["second"].authenticator == Authenticator(project.authenticator)


def test_an_account_without_rights_is_saved_and_the_way_to_them_told(login, site):
    newcomer = site.authenticator_of("newcomer")
    out = login.prints(site.url, "--stdin", stdin=newcomer, status=1)
    assert "has no right to submit" in out
    assert "has a letter that asks for it" in out
    assert load().project is not None


def test_a_file_that_is_read_later_is_named(login, site, home, monkeypatch):
    other = home / "other.toml"
    other.write_text(f"[project]\nurl = '{site.url}'\nauthenticator = 'abcdefgh'\n")
    other.chmod(0o600)
    monkeypatch.setenv("BOINC_GAHP_CONFIG", str(other))
    status, _, err = login(site.url, "--stdin", stdin=site.authenticator)
    assert status == 1
    assert f"but not used, since {other} is read later and has another [project]" in err


@pytest.mark.parametrize(
    "play",
    [scripted.goodbye(), scripted.status(500), scripted.ok(b"<html><title>Welcome</title></html>")],
    ids=["no answer", "500", "a web site"],
)
def test_an_address_that_is_no_project_is_refused_before_anything_is_asked(
    login, settings_file, monkeypatch, play
):
    settings_file.parent.mkdir(parents=True)
    settings_file.write_text("[timeouts]\nretry = 0\n")
    with Scripted() as server:
        server.answers.append(play)
        status, out, err = login(server.url, "--stdin", stdin="unread")
        assert status == 1
        assert server.host in err
        assert "key" not in out
    assert settings_file.read_text() == "[timeouts]\nretry = 0\n"


@pytest.mark.processes
@pytest.mark.parametrize("columns", [80, 160])
def test_on_a_terminal_what_is_typed_is_not_shown(home, site, on_terminal, monkeypatch, columns):
    monkeypatch.delenv("BOINC_GAHP_CONFIG", raising=False)
    terminal = on_terminal("login", site.url, columns=columns)
    terminal.expect_exact("weak_auth.php")
    terminal.expect_exact("Account key: ")
    terminal.waitnoecho()
    terminal.sendline(site.authenticator)
    terminal.expect_exact("All is well.")
    shown = terminal.before
    assert ended(terminal) == 0
    assert site.authenticator not in shown + terminal.before
    terminal = on_terminal("login", site.url, "--email", EMAIL, columns=columns)
    terminal.expect_exact(f"Password of {EMAIL}: ")
    terminal.waitnoecho()
    terminal.sendline(PASSWORD)
    terminal.expect_exact("Replace it? [y/N] ")
    terminal.sendline("")
    terminal.expect_exact("nothing is saved")
    ended(terminal)
    assert PASSWORD not in terminal.before
    terminal = on_terminal("login", site.url, columns=columns)
    terminal.expect_exact("Account key: ")
    terminal.waitnoecho()
    terminal.sendintr()
    terminal.expect_exact("interrupted")
    ended(terminal)
    assert load().project.authenticator == Authenticator(site.authenticator)
