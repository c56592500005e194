"""boinc_gahp as somebody has it who installs it for themselves with pipx."""

from pathlib import Path

import pytest

from boinc_gahp.localproject.project import LocalProject
from tests.cli.conftest import write_settings
from tests.install.conftest import BIN, run


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def environment(home):
    return {
        "HOME": str(home),
        "PIPX_HOME": str(home / ".local/pipx"),
        "PIPX_BIN_DIR": str(home / ".local/bin"),
        "PIPX_MAN_DIR": str(home / ".local/share/man"),
        "XDG_CONFIG_DIRS": str(home / "site"),
    }


@pytest.fixture(scope="module")
def command(wheel, home, environment):
    run(BIN / "pipx", "install", wheel, env=environment)
    return home / ".local/bin/boinc_gahp"


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    with LocalProject(tmp_path_factory.mktemp("project"), hosts=1) as project:
        yield project


@pytest.fixture(scope="module")
def settings(home, project):
    path = home / ".config/boinc_gahp/boinc_gahp.toml"
    return write_settings(path, project.url, project.authenticator)


def test_it_tells_its_version(command, environment, wheel):
    done = run(command, "--version", env=environment)
    assert done.stdout == f"boinc_gahp {wheel.name.split('-')[1]}\n"


def test_its_manual_page_is_there_and_the_files_to_copy(command, environment):
    page = Path(environment["PIPX_MAN_DIR"], "man1/boinc_gahp.1")
    assert page.read_text("utf-8").startswith('.\\"')
    directory = run(command, "files", env=environment).stdout.strip()
    assert Path(directory, "submit/grid.sub").is_file()


@pytest.mark.parametrize("words", [["demo"], ["local-project", "run", "p"]])
def test_what_needs_the_extra_says_how_to_get_it(command, environment, words):
    done = run(command, *words, env=environment, status=1)
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "pip install 'boinc_gahp[local-project]'" in done.stderr
    assert "pipx inject boinc_gahp flask waitress" in done.stderr


def test_jobs_go_and_outputs_come(command, environment, settings, home):
    (home / "data.txt").write_text("hello\n")
    run(
        command, "batch", "submit", "uppercase", "--input", "in=data.txt", "--name", "first",
        cwd=home, env=environment,
    )  # fmt: skip
    run(command, "batch", "wait", "first", "--timeout", "60", cwd=home, env=environment)
    run(command, "batch", "fetch", "first", cwd=home, env=environment)
    assert "HELLO\n" in [path.read_text() for path in home.rglob("out")]


def test_uninstalling_leaves_settings_and_state_alone(command, environment, settings, home):
    run(command, stdin="QUIT\n", env=environment)
    run(BIN / "pipx", "uninstall", "boinc_gahp", env=environment)
    assert not command.exists()
    left = [path for path in home.rglob("*boinc_gahp*") if "first" not in path.parts]
    kept = {home / place for place in (".config/boinc_gahp", ".local/state/boinc_gahp")}
    kept.add(home / ".cache/boinc_gahp")
    assert kept <= set(left) | {home / ".cache/boinc_gahp"}
    assert [
        path for path in left if not {path, *path.parents} & kept and "pipx" not in path.parts
    ] == []
