import os
import pwd
import shlex
import sys
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from boinc_gahp.config import layers, places
from boinc_gahp.config.settings import LimitSettings, ProjectSettings, Settings
from boinc_gahp.config.urls import ProjectUrl, are_one_project
from boinc_gahp.errors import BadRequest
from boinc_gahp.secret import Authenticator
from tests.config.conftest import SECRET, error_of, revealed
from tests.helpers import ran

A = "https://a.example.edu/project/"
B = "https://b.example.edu/project/"


def test_without_any_file_there_are_defaults_and_no_project(node):
    settings = node.load()
    assert settings.project is None
    assert settings.sources == ()
    assert settings.problems == ()
    assert settings.limits == LimitSettings()
    assert places.state_dir(settings) == node.home / ".local/state/boinc_gahp"
    assert places.cache_dir(settings) == node.home / ".cache/boinc_gahp"
    assert places.log_file(settings) == node.home / ".local/state/boinc_gahp/boinc_gahp.log"
    # They are known for settings that were not loaded, too.
    assert places.state_dir(Settings()) == places.state_dir(settings)
    assert places.cache_dir(Settings()) == places.cache_dir(settings)


def test_later_files_are_laid_over_earlier_ones_key_by_key(node):
    node.write(node.admin, f'[project]\nurl = "{A}"\n[limits]\nworkers = 3\ncontrol_workers = 3')
    node.write(node.site, "[limits]\nworkers = 4\n[staging]\nfiles_per_post = 7")
    node.write(node.user, f'[project]\nauthenticator = "{SECRET}"\n[timeouts]\nread = 5')
    node.write(node.other, "[limits]\nworkers = 5")
    settings = node.load(node.other)
    assert settings.sources == (node.admin, node.site, node.user, node.other)
    assert (settings.limits.workers, settings.limits.control_workers) == (5, 3)
    assert settings.staging.files_per_post == 7
    assert settings.timeouts.read == 5.0
    assert revealed(settings.project) == SECRET
    assert settings.project.url == A
    assert settings.problems == ()


def test_the_first_of_several_site_directories_wins(node, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_DIRS", f"{tmp_path / 'first'}:{tmp_path / 'second'}")
    node.write(tmp_path / "first/boinc_gahp/boinc_gahp.toml", "[limits]\nworkers = 1")
    node.write(tmp_path / "second/boinc_gahp/boinc_gahp.toml", "[limits]\nworkers = 2")
    assert node.load().limits.workers == 1


def test_projects_d_is_read_after_the_file_beside_it_by_name_and_before_the_next_directory(node):
    paths = [
        node.write(node.admin, "[limits]\nworkers = 1\ncontrol_workers = 1"),
        node.write(node.admin.parent / "projects.d/a.toml", f"[projects.a]\nurl = '{A}'"),
        node.write(node.user, "[limits]\nworkers = 2"),
        node.write(node.user.parent / "projects.d/1.toml", f"[project]\nurl = '{B}'"),
        node.write(node.user.parent / "projects.d/2.toml", "[projects.a]\nmax_post_bytes = 9"),
        node.write(node.other, "[limits]\ncontrol_workers = 5"),
    ]
    for name in (".hidden.toml", "2.toml~", "README"):
        node.write(node.user.parent / "projects.d" / name, "[")
    node.write(node.other.parent / "projects.d/not-read.toml", "[")
    settings = node.load(node.other)
    assert settings.sources == tuple(paths)
    assert (settings.limits.workers, settings.limits.control_workers) == (2, 5)
    assert settings.projects["a"].max_post_bytes == 9
    assert settings.project_files == {"a": (paths[1], paths[4]), "": (paths[3],)}


def test_config_is_preferred_to_the_variable(node):
    one = node.write(node.work / "one.toml", "[limits]\nworkers = 1")
    two = node.write(node.work / "two.toml", "[limits]\nworkers = 2")
    assert layers.load(None, {"BOINC_GAHP_CONFIG": str(two)}).limits.workers == 2
    assert layers.load("one.toml", {"BOINC_GAHP_CONFIG": str(two)}).limits.workers == 1
    assert layers.load("one.toml", {}).sources == (one,)


def test_the_user_is_who_owns_the_process_whatever_the_environment_says(node, monkeypatch):
    monkeypatch.setenv("USER", "condor")
    monkeypatch.setenv("LOGNAME", "condor")
    assert places.user_name() == pwd.getpwuid(os.getuid()).pw_name


class TestPaths:
    def test_tilde_user_and_relative_paths_are_expanded(self, node):
        node.write(
            node.other,
            f'[project]\nurl = "{A}"\nca_bundle = "ca.pem"\n'
            '[state]\ndir = "~/state"\ncache_dir = "cache/{user}"\n[logging]\nfile = "~root/x.log"',
        )
        settings = node.load(node.other)
        assert settings.state.dir == node.home / "state"
        assert settings.state.cache_dir == node.other.parent / "cache" / places.user_name()
        assert places.log_file(settings) == Path(pwd.getpwnam("root").pw_dir, "x.log")
        assert settings.project.ca_bundle == str(node.other.parent / "ca.pem")

    def test_an_image_that_is_a_file_is_a_path_others_are_names(self, node):
        node.write(
            node.other,
            f'[project]\nurl = "{A}"\ncontainer_app = "docker"\n'
            'container_image = "rootfs:~/r.tar"\n'
            f'[projects.b]\nurl = "{B}"\ncontainer_image = "oci-archive:i.tar"\n'
            f'[projects.c]\nurl = "{B}"\ncontainer_image = " docker://quay.io/a/b:1 "\n'
            f'[projects.d]\nurl = "{B}"\n',
        )
        settings = node.load(node.other)
        assert settings.project.container_app == "docker"
        assert settings.project.container_image == f"rootfs:{node.home}/r.tar"
        found = {name: each.container_image for name, each in settings.projects.items()}
        assert found == {
            "b": f"oci-archive:{node.other.parent}/i.tar",
            "c": "docker://quay.io/a/b:1",
            "d": None,
        }

    @pytest.mark.parametrize(
        ("text", "why"),
        [
            ("", "a path is expected"),
            ("a\\u0000b", "a path is expected"),
            ("~no-such-user-here/x", "there is no user"),
            ("/x/{usr}", "did you mean {user}?"),
        ],
        ids=["empty", "NUL", "unknown-user", "unknown-word"],
    )
    def test_what_is_no_path_is_refused(self, node, text, why):
        node.write(node.user, f'[state]\ndir = "{text}"')
        error = error_of(node.load)
        assert f"{node.user}: dir in [state] is" in error
        assert why in error

    def test_a_named_settings_file_may_begin_with_tilde(self, node):
        path = node.write(node.home / "mine.toml", "")
        assert node.load("~/mine.toml").sources == (path,)


class TestAuthenticator:
    def test_a_file_beside_the_settings_gives_it(self, node):
        node.write(node.user, f'[project]\nurl = "{A}"\nauthenticator_file = "authenticator"')
        node.write(node.user.parent / "authenticator", f"  {SECRET}  \n")
        settings = node.load()
        assert revealed(settings.project) == SECRET
        assert settings.problems == ()
        assert SECRET not in repr(settings)

    def test_it_is_never_sent_to_another_url_that_a_later_file_names(self, node):
        node.write(node.admin, f'[project]\nurl = "{A}"')
        node.write(node.user, f'[project]\nauthenticator = "{SECRET}"')
        node.write(node.other, f'[project]\nurl = "{B}"')
        settings = node.load(node.other)
        assert settings.project == ProjectSettings(ProjectUrl(B))
        [problem] = settings.problems
        assert str(node.user) in problem
        assert str(node.other) in problem
        assert SECRET not in problem

    @pytest.mark.parametrize(
        ("before", "later", "kept"),
        [
            ("", B, False),
            (f'url = "{A}"\n', "HTTPS://A.example.edu/project", True),
            (f'url = "{A}"\n', A.replace("https", "http"), False),
        ],
        ids=["before there was a url", "another spelling", "plain http"],
    )
    def test_only_another_spelling_of_its_url_keeps_it(self, node, before, later, kept):
        node.write(node.user, f'[project]\n{before}authenticator = "{SECRET}"')
        node.write(node.other, f'[project]\nurl = "{later}"')
        settings = node.load(node.other)
        assert revealed(settings.project) == (SECRET if kept else None)
        assert [problem for problem in settings.problems if "is not used" not in problem] == []
        assert bool(settings.problems) is not kept

    def test_another_url_takes_nothing_of_the_earlier_project_along(self, node):
        node.write(node.admin, f'[project]\nurl = "{A}"\nmax_post_bytes = 5\nproxy = "http://p"')
        node.write(node.user, f'[project]\nurl = "{B}"\nauthenticator = "{SECRET}"')
        assert node.load().project == ProjectSettings(ProjectUrl(B), Authenticator(SECRET))

    @pytest.mark.parametrize("form", ["{}\nsecond line", 'authenticator = "{}"', "'{}'", "key={}"])
    def test_a_file_with_more_than_the_key_is_no_key(self, node, form):
        node.write(node.user, f'[project]\nurl = "{A}"\nauthenticator_file = "key"')
        path = node.write(node.user.parent / "key", form.format(SECRET))
        settings = node.load()
        assert revealed(settings.project) is None
        [problem] = settings.problems
        assert f"only the key belongs into {path}," in problem
        assert SECRET not in problem

    def test_a_missing_or_empty_file_is_a_problem_and_no_reason_to_stay_away(self, node):
        node.write(node.admin, f'[project]\nurl = "{A}"\nauthenticator_file = "~/mine"')
        missing = (f"{node.home}/mine: No such file", f"chmod 600 {node.home}/mine")
        for said in (missing, ("is empty",)):
            settings = node.load()
            assert revealed(settings.project) is None
            [problem] = settings.problems
            assert settings.no_authenticator == {"": problem}
            assert [words for words in said if words not in problem] == []
            node.write(node.home / "mine", " \n")

    @pytest.mark.parametrize("where", ["settings", "authenticator_file", "config.txt"])
    def test_a_file_that_everyone_can_read_is_refused_with_the_remedy(self, node, where):
        if where == "authenticator_file":
            node.write(node.user, f'[project]\nurl = "{A}"\nauthenticator_file = "my key"')
            path = node.write(node.user.parent / "my key", SECRET, 0o644)
            # Another project's can be used.
            settings = node.load()
            assert revealed(settings.project) is None
            text = settings.no_authenticator[""]
            assert settings.problems == (text,)
        else:
            place, written = {
                "settings": (node.user, f'[projects.x]\nauthenticator = "{SECRET}"'),
                "config.txt": (node.work / "config.txt", f"{A}\n{SECRET}\n"),
            }[where]
            path = node.write(place, written, 0o604)
            text = error_of(node.load)
        assert "everyone can read it" in text
        assert text.endswith(f"chmod 600 {shlex.quote(str(path))}")

    @pytest.mark.parametrize("name", ["boinc_gahp.toml", "key"])
    def test_a_file_that_its_group_can_read_is_a_problem(self, node, name):
        key = "_file = 'key'" if name == "key" else f" = '{SECRET}'"
        node.write(node.user, f'[project]\nurl = "{A}"\nauthenticator{key}')
        node.write(node.user.parent / "key", SECRET)
        path = node.user.with_name(name)
        path.chmod(0o640)
        settings = node.load()
        assert revealed(settings.project) == SECRET
        [problem] = settings.problems
        assert str(path) in problem
        assert "its group can read it" in problem

    def test_a_settings_file_without_one_may_be_read_by_everyone(self, node):
        node.write(node.admin, f'[project]\nurl = "{A}"', 0o644)
        assert node.load().problems == ()

    def test_a_settings_file_that_everyone_can_write_is_refused(self, node):
        node.write(node.user, "", 0o602)
        assert f"chmod o-w {node.user}" in error_of(node.load)


class TestOldFile:
    """The two lines of the C++ program."""

    def test_it_is_accepted_as_a_named_file(self, node):
        node.write(node.other, f"{A.rstrip('/')}\n{SECRET}\n")
        project = node.load(node.other).project
        assert (project.url, revealed(project)) == (A, SECRET)

    def test_it_is_found_in_the_working_directory(self, node):
        path = node.write(node.work / "config.txt", f"{A}\r\n{SECRET}\r\n")
        settings = node.load()
        assert (revealed(settings.project), settings.sources) == (SECRET, (path,))

    def test_the_one_in_the_working_directory_is_the_last_that_is_looked_for(self, node):
        node.write(node.work / "config.txt", f"{A}\n{SECRET}\n")
        node.write(node.user, f'[project]\nurl = "{B}"')
        assert node.load().project == ProjectSettings(ProjectUrl(B))

    def test_another_users_is_left_out(self, node, monkeypatch):
        node.write(node.work / "config.txt", f"{A}\n{SECRET}\n")
        monkeypatch.setattr(os, "getuid", lambda: 12345)
        settings = node.load()
        assert settings.project is None
        assert "belongs to another user" in settings.problems[0]

    @pytest.mark.parametrize("kind", ["other-text", "directory", "binary", "fifo"])
    def test_other_things_of_that_name_are_nobodys_business(self, node, kind):
        path = node.work / "config.txt"
        if kind == "directory":
            path.mkdir()
        elif kind == "fifo":
            os.mkfifo(path)
        else:
            path.write_bytes(b"colour = blue\n" if kind == "other-text" else b"\xff\xfe\0")
        settings = node.load()
        assert settings.sources == ()
        assert settings.problems == ()


@pytest.mark.parametrize("option", ["--config", "BOINC_GAHP_CONFIG"])
def test_a_named_file_that_is_missing_is_an_error(node, option):
    given = ("none.toml", {}) if option == "--config" else (None, {option: "none.toml"})
    message = error_of(lambda: layers.load(*given))
    assert message == (
        f"the settings file none.toml that {option} names cannot be read: No such file or directory"
    )


@pytest.mark.parametrize("kind", ["directory", "fifo"])
def test_a_settings_file_that_is_no_file_is_an_error(node, kind):
    node.user.parent.mkdir(parents=True)
    node.user.mkdir() if kind == "directory" else os.mkfifo(node.user)
    assert str(node.user) in error_of(node.load)


needs_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")


def load_as_somebody(admin):
    """Return what a user without a home, and without the right to look into ``admin``, gets."""
    program = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from boinc_gahp.config import layers, places; from boinc_gahp.config.layers import load\n"
        "os.setgroups([]); os.setgid(54321); os.setuid(54321); os.environ.pop('HOME', None)\n"
        "places.ADMIN_DIR = Path(sys.argv[1])\n"
        "try:\n"
        "    print(load(None, {}).problems)\n"
        "except Exception as error:\n"
        "    print(type(error).__name__, error)\n"
    )
    environment = {key: text for key, text in os.environ.items() if not key.startswith("COV")}
    return ran(sys.executable, "-c", program, admin, env=environment).stdout


@pytest.mark.processes
@needs_root
def test_a_usual_file_that_cannot_be_read_is_a_problem(node, monkeypatch, tmp_path):
    node.write(node.admin, "[limits]\nworkers = 1", 0o600)
    more = node.write(node.admin.parent / "projects.d/a.toml", "").parent
    more.chmod(0o700)
    tmp_path.chmod(0o700)
    for kind in ("STATE", "CACHE"):
        monkeypatch.setenv(f"XDG_{kind}_HOME", "/tmp/x")
    told = load_as_somebody(node.admin.parent)
    for path in (node.admin, more):
        assert f"{path} cannot be read (permission denied) and is left out" in told


@pytest.mark.processes
@needs_root
def test_a_user_without_a_home_is_told_which_settings_help(node, tmp_path):
    told = load_as_somebody(tmp_path / "none")
    assert told.startswith("ConfigError user 54321 has no home directory: set HOME, or dir in the")


def test_a_project_without_url_is_a_problem(node):
    node.write(node.user, "[projects.x]\nmax_post_bytes = 3\n[project]\nmax_post_bytes = 3")
    settings = node.load()
    assert (settings.project, dict(settings.projects)) == (None, {})
    assert all("has no url" in problem for problem in settings.problems)
    assert len(settings.problems) == 2


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080/"),
        ("https://X.edu/Test", "https://x.edu/Test/"),
        ("HTTP://[::1]:80/a/", "http://[::1]/a/"),
        ("https://x.edu:443/a", "https://x.edu/a/"),
        ("https://x.edu:80/a/", "https://x.edu:80/a/"),
    ],
    ids=["no-path", "host-in-capitals", "ipv6", "default-port", "other-port"],
)
def test_an_address_is_known_in_one_form(text, url):
    assert ProjectUrl(text) == url
    assert ProjectUrl(url) == url


@given(st.text())
def test_any_text_is_an_address_or_refused(text):
    try:
        url = ProjectUrl(text)
    except BadRequest:
        return
    assert ProjectUrl(url) is url
    assert ProjectUrl(str(url)) == url
    assert url.identity.startswith(f"//{url.host}/")
    assert are_one_project(text, url)


@given(
    st.from_regex(r"[a-z][a-z0-9.-]{0,20}[a-z0-9](:(1|8080|65535))?", fullmatch=True),
    st.from_regex(r"(/[a-zA-Z0-9._~-]{1,8}){0,3}", fullmatch=True),
)
def test_scheme_default_port_and_final_slash_make_no_other_project(host, path):
    spellings = [f"{scheme}://{host}{path}" for scheme in ("http", "https")]
    if ":" not in host:
        spellings += [f"http://{host}:80{path}", f"https://{host.upper()}:443{path}"]
    spellings += [f"{spelling}/" for spelling in spellings]
    assert all(are_one_project(spelling, spellings[0]) for spelling in spellings)
    others = [
        f"http://x{host}{path}",
        f"https://{host}{path}/x",
        f"http://{host.partition(':')[0]}:81",
    ]
    assert not any(are_one_project(other, spellings[0]) for other in others)
