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
    own = "url = 'http://127.0.0.1:9/'\nauthenticator = 'abcdefgh'\n"
    path.write_text(
        f"[project]\n{own}[projects.astro]\n{own}[projects.bio]\n{own}"
        f"[state]\ndir = '{directory / 'state'}'\n"
    )
    path.chmod(0o600)
    with Project.from_settings(config=path) as project:
        for number, name in enumerate(BATCHES, 1):
            sent = describe(SubmitRequest(name, "uppercase", [("job", Job())]), {})
            project.session.manifests.write(name, replace(sent, batch_id=number), new=True)
    return path


@pytest.fixture(scope="module", params=SHELLS)
def shell(request, directory, settings, tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    script = home / "script"
    script.write_text(ran(COMMAND, "completion", request.param).stdout)
    environment = {
        "HOME": str(home),
        "PATH": f"{COMMAND.parent}:/usr/bin:/bin",
        "BOINC_GAHP_CONFIG": str(settings),
    }
    with Shell(request.param, script, environment, directory) as shell:
        yield shell


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("boinc_gahp --config x led", ["--config", "x", "ledger"]),
        ("boinc_gahp --config=x led", ["--config=x", "ledger"]),
        ("boinc_gahp batch list --state in_", ["batch", "list", "--state", "in_progress"]),
        ("boinc_gahp batch list --state=in_", ["batch", "list", "--state=in_progress"]),
        (
            "boinc_gahp batch submit x --each a b --dry",
            ["batch", "submit", "x", "--each", "a", "b", "--dry-run"],
        ),
    ],
)
def test_words_of_the_command_line_are_completed(shell, typed, words):
    assert shell.complete(typed) == ["boinc_gahp", *words]


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("boinc_gahp --config ./sett", ["--config", "./settings.toml"]),
        ("boinc_gahp --config=./sett", ["--config=./settings.toml"]),
        (
            "boinc_gahp batch submit x --each plain.txt my",
            ["batch", "submit", "x", "--each", "plain.txt", "my file.txt"],
        ),
        ("boinc_gahp local-project run pro", ["local-project", "run", "projects"]),
    ],
)
def test_files_and_directories_are_completed(shell, typed, words):
    # zsh takes the slash away again when the line goes on.
    completed = [word.rstrip("/") for word in shell.complete(typed)]
    assert completed == ["boinc_gahp", *words]


@pytest.mark.parametrize("typed", ["--config ~/scr", "--config $HOME/scr", "--config=$HOME/scr"])
def test_a_path_that_begins_at_home_still_does_when_it_is_completed(shell, typed):
    path = shell.complete(f"boinc_gahp {typed}")[-1].removeprefix("--config=")
    assert Path(path).is_absolute()
    assert path.endswith("/script")


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("boinc_gahp batch show swe", ["batch", "show", "sweep"]),
        ("boinc_gahp batch show my", ["batch", "show", "my sweep"]),
        ("boinc_gahp batch show my\\ s", ["batch", "show", "my sweep"]),
        ("boinc_gahp batch show it", ["batch", "show", "it's: odd"]),
        ("boinc_gahp batch show name:1", ["batch", "show", "name:12"]),
        ("boinc_gahp batch show run", ["batch", "show", "run $(id) `id`"]),
        ('boinc_gahp batch show "run', ["batch", "show", "run $(id) `id`"]),
        ("boinc_gahp batch wait --project as", ["batch", "wait", "--project", "astro"]),
        ("boinc_gahp check --project=as", ["check", "--project=astro"]),
    ],
)
def test_names_of_batches_and_projects_are_completed(shell, typed, words):
    assert shell.complete(typed) == ["boinc_gahp", *words]


def test_a_project_that_is_not_in_the_settings_completes_nothing_and_says_nothing(shell):
    typed = "boinc_gahp batch show --project nosuch swe"
    assert shell.complete(typed)[-1] == "swe"


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
    environment = {
        "HOME": str(tmp_path),
        "PATH": f"{COMMAND.parent}:/usr/bin:/bin",
        "BOINC_GAHP_CONFIG": str(settings),
    }
    with Shell(name, script, environment, directory, first) as shell:
        # The first word with which zsh loads the script is completed, too.
        assert shell.complete("boinc_gahp ledg") == ["boinc_gahp", "ledger"]
        assert shell.complete("boinc_gahp batch show my") == [
            "boinc_gahp", "batch", "show", "my sweep",
        ]  # fmt: skip
