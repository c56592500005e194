import sys
from dataclasses import replace
from pathlib import Path

import pytest

from boinc_gahp.api.manifest import describe
from boinc_gahp.api.project import Project
from boinc_gahp.cli import completion
from boinc_gahp.submit.types import Job, SubmitRequest
from tests.helpers import ran
from tests.install.shell import SHELLS, Shell

COMMAND = Path(sys.executable).with_name("boinc_gahp")
EACH = ("batch", "submit", "x", "--each")
BATCHES = ("sweep", "my sweep", "12", "it's: odd", "run $(id) `id`")


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    """Where the shells are, with files and directories that can be completed."""
    directory = tmp_path_factory.mktemp("shells")
    (directory / "my file.txt").write_text("x")
    (directory / "plain.txt").write_text("x")
    (directory / "projects").mkdir()
    return directory


@pytest.fixture(scope="module")
def settings(directory):
    """Settings with projects, to which batches were submitted from this machine."""
    path = directory / "settings.toml"
    project = "url = 'http://127.0.0.1:9/{}/'\nauthenticator = 'abcdefgh'\n"
    path.write_text(
        f"[project]\n{project.format('test')}"
        f"[projects.astro]\n{project.format('astro')}[projects.bio]\n{project.format('bio')}"
        f"[state]\ndir = '{directory / 'state'}'\n"
    )
    path.chmod(0o600)
    with Project.from_settings(config=path) as project:
        for number, name in enumerate(BATCHES, 1):
            sent = describe(SubmitRequest(name, "uppercase", [("job", Job())]), {})
            project.session.manifests.write(name, replace(sent, batch_id=number), new=True)
    return path


def environment(home, settings):
    path = f"{COMMAND.parent}:/usr/bin:/bin"
    return {"HOME": str(home), "PATH": path, "BOINC_GAHP_CONFIG": str(settings)}


@pytest.fixture(scope="module", params=SHELLS)
def shell(request, directory, settings, tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    script = home / "script"
    script.write_text(ran(COMMAND, "completion", request.param).stdout)
    with Shell(request.param, script, environment(home, settings), directory) as shell:
        yield shell


@pytest.mark.parametrize(
    ("typed", "line"),
    [
        ("--config x led", ["--config", "x", "ledger"]),
        ("--config=x led", ["--config=x", "ledger"]),
        ("batch list --state ru", ["batch", "list", "--state", "running"]),
        ("batch list --state=ru", ["batch", "list", "--state=running"]),
        ("batch submit x --each a b --dry", [*EACH, "a", "b", "--dry-run"]),
        # Files and directories.
        ("--config ./sett", ["--config", "./settings.toml"]),
        ("--config=./sett", ["--config=./settings.toml"]),
        ("batch submit x --each plain.txt my", [*EACH, "plain.txt", "my file.txt"]),
        ("local-project run pro", ["local-project", "run", "projects"]),
        # Batches and projects.
        ("batch show swe", ["batch", "show", "sweep"]),
        ("batch show my", ["batch", "show", "my sweep"]),
        ("batch show my\\ s", ["batch", "show", "my sweep"]),
        ("batch show it", ["batch", "show", "it's: odd"]),
        ("batch show name:1", ["batch", "show", "name:12"]),
        ("batch show run", ["batch", "show", "run $(id) `id`"]),
        ('batch show "run', ["batch", "show", "run $(id) `id`"]),
        ("batch wait --project as", ["batch", "wait", "--project", "astro"]),
        ("check --project=as", ["check", "--project=astro"]),
        # A project that is not in the settings completes nothing and says nothing.
        ("batch show --project nosuch swe", ["batch", "show", "--project", "nosuch", "swe"]),
    ],
)
def test_words_files_batches_and_projects_are_completed(shell, typed, line):
    # zsh takes the slash behind a directory away again when the line goes on.
    completed = [word.rstrip("/") for word in shell.complete(f"boinc_gahp {typed}")]
    assert completed == ["boinc_gahp", *line]


@pytest.mark.parametrize("typed", ["--config ~/scr", "--config $HOME/scr", "--config=$HOME/scr"])
def test_a_path_that_begins_at_home_still_does_when_it_is_completed(shell, typed):
    path = shell.complete(f"boinc_gahp {typed}")[-1].removeprefix("--config=")
    assert Path(path).is_absolute()
    assert path.endswith("/script")


@pytest.mark.parametrize("name", ["zsh", "fish"])
def test_the_shell_finds_the_script_where_it_is_installed(name, directory, settings, tmp_path):
    place, first = {
        "zsh": (
            "functions/_boinc_gahp",
            "PS1='ready> '; fpath=(~/functions $fpath); autoload -Uz compinit; compinit -D -u",
        ),
        "fish": (
            ".config/fish/completions/boinc_gahp.fish",
            "set fish_complete_path ~/.config/fish/completions; "
            "function fish_prompt; echo 'ready> '; end",
        ),
    }[name]
    script = tmp_path / place
    script.parent.mkdir(parents=True)
    script.write_text(completion.script(name))
    with Shell(name, script, environment(tmp_path, settings), directory, first) as shell:
        # The first word with which zsh loads the script is completed, too.
        assert shell.complete("boinc_gahp ledg") == ["boinc_gahp", "ledger"]
        assert shell.complete("boinc_gahp batch show my")[-1] == "my sweep"
