from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from typing import TYPE_CHECKING

import pytest

from boinc_gahp.cli import completion
from boinc_gahp.cli.commands import all_parsers
from boinc_gahp.cli.main import main
from boinc_gahp.localproject import LocalProject
from boinc_gahp.rpc import WebRpcs
from boinc_gahp.terminal.parsing import Group, arguments_of
from tests.cli.conftest import COMMAND
from tests.helpers import wait_for

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.processes

SCRIPTS = {shell: completion.script(shell) for shell in completion.SHELLS}


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_a_script_is_printed(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    assert capsys.readouterr().out == SCRIPTS[shell]


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_a_script_is_what_its_shell_can_read(shell: str, tmp_path: Path) -> None:
    if shell != "bash" and shutil.which(shell) is None:
        pytest.skip(f"{shell} is not here; scripts/test --install has it")
    path = tmp_path / "script"
    path.write_text(SCRIPTS[shell])
    done = subprocess.run(
        [shell, "-n", path], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_wrong_shell_gets_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["completion", "zhs"])
    assert left.value.code == 2
    assert "; did you mean zsh? " in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["completion"])
    assert "the shell is missing: bash, zsh, fish" in capsys.readouterr().err


def asked(line: str) -> dict[str, str]:
    """Ask as fish's script does; return the words with their texts."""
    with tempfile.NamedTemporaryFile("r", encoding="utf-8") as answer:
        environment = {
            "_ARGCOMPLETE": "1",
            "_ARGCOMPLETE_DFS": "\t",
            "_ARGCOMPLETE_IFS": "\n",
            "_ARGCOMPLETE_SHELL": "fish",
            "_ARGCOMPLETE_STDOUT_FILENAME": answer.name,
            "_ARGCOMPLETE_SUPPRESS_SPACE": "1",
            "COMP_LINE": line,
            "COMP_POINT": str(len(line)),
        }
        done = subprocess.run(
            [COMMAND],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        return dict(line.split("\t") for line in answer.read().splitlines())


@pytest.mark.parametrize("path", all_parsers(), ids=" ".join)
def test_every_command_action_and_option_is_offered(path: tuple[str, ...]) -> None:
    parser = all_parsers()[path]
    line = " ".join(["boinc_gahp", *path])
    if isinstance(parser, Group):
        assert asked(f"{line} ") == parser.actions
    options = {
        string
        for argument in arguments_of(parser)
        for string in argument.option_strings
        if string.startswith("--")
    }
    assert set(asked(f"{line} --")) == options


@pytest.fixture(scope="module")
def ids(project: LocalProject) -> dict[str, int]:
    with WebRpcs(project.url, project.authenticator) as client:
        names = ("sweep", "my sweep", "4711", "a\tb")
        return {name: client.create_batch(name, "uppercase") for name in names}


@pytest.mark.usefixtures("settings")
def test_batches_are_offered_by_names_that_mean_one(ids: dict[str, int]) -> None:
    offered = {
        "name:4711": f"batch {ids['4711']}, init",
        "my sweep": f"batch {ids['my sweep']}, init",
        "sweep": f"batch {ids['sweep']}, init",
    }
    # A project on a busy machine may not answer within the second that a Tab waits.
    wait_for(lambda: asked("boinc_gahp batch show ") == offered, "the names of batches")


@pytest.mark.usefixtures("settings")
def test_batches_are_offered_by_id_to_whoever_types_a_number(ids: dict[str, int]) -> None:
    offered = {str(ids["sweep"]): "sweep, init"}
    line = f"boinc_gahp batch show {ids['sweep']}"
    wait_for(lambda: asked(line) == offered, "the batch's id")


@pytest.mark.parametrize(
    "line",
    [
        "boinc_gahp --config {} batch show --project other ",
        "boinc_gahp --config={} batch show --project=other ",
        "boinc_gahp batch wait --config {} --project other sweep ",
        "boinc_gahp batch fetch --project other --config ~/other.toml ",
    ],
)
def test_the_settings_and_the_project_that_the_line_names_are_asked(
    line: str, settings: Path, home: Path, tmp_path: Path
) -> None:
    with LocalProject(tmp_path / "other", hosts=0) as other:
        with WebRpcs(other.url, other.authenticator) as client:
            client.create_batch("elsewhere", "uppercase")
        own = f"url = '{other.url}'\nauthenticator = '{other.authenticator}'\n"
        path = home / "other.toml"
        path.write_text(f"{settings.read_text()}[projects.other]\n{own}")
        path.chmod(0o600)
        shutil.copy(settings.with_name("key"), home)
        wait_for(lambda: "elsewhere" in asked(line.format(path)), "the other project's batch")


def test_projects_are_offered_from_the_settings(settings: Path) -> None:
    with settings.open("a") as file:
        file.write("[projects.astro]\nurl = 'https://astro.example.edu/'\n")
    assert asked("boinc_gahp check --project ") == {"astro": "https://astro.example.edu/"}


@pytest.mark.usefixtures("settings", "ids")
def test_what_was_told_lately_is_not_asked_again(
    project: LocalProject,
    home: Path,
) -> None:
    first = asked("boinc_gahp batch show ")
    [cache] = (home / ".cache/boinc_gahp").glob("completion-*.json")
    assert project.authenticator not in cache.read_text()
    assert cache.stat().st_mode & 0o077 == 0
    project.core.web_stopped = True
    try:
        assert asked("boinc_gahp batch show ") == first
    finally:
        project.core.web_stopped = False


@pytest.mark.parametrize("trouble", ["no-settings", "no-project", "nobody-there", "no-account"])
def test_trouble_offers_nothing_and_says_nothing(settings: Path, trouble: str) -> None:
    text = {
        "no-settings": "[proj",
        "no-project": "[logging]\nlevel = 'off'\n",
        "nobody-there": "[project]\nurl = 'http://127.0.0.1:9/'\nauthenticator = 'abcdefgh'\n",
        "no-account": settings.read_text().replace("authenticator_file = 'key'\n", ""),
    }[trouble]
    settings.write_text(text)
    settings.chmod(0o600)
    assert asked("boinc_gahp batch show ") == {}


def test_a_project_that_does_not_answer_is_not_waited_for(settings: Path) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        settings.write_text(
            f"[project]\nurl='http://127.0.0.1:{port}/'\nauthenticator='abcdefgh'\n"
        )
        settings.chmod(0o600)
        assert asked("boinc_gahp batch show ") == {}
