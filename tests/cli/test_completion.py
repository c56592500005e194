from __future__ import annotations

import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from boinc_gahp.cli import completion
from boinc_gahp.cli.commands import all_parsers
from boinc_gahp.cli.main import main
from boinc_gahp.cli.parsing import Group, arguments_of
from boinc_gahp.rpc import WebRpcs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from boinc_gahp.localproject import LocalProject

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


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_a_script_names_every_command_action_and_option(shell: str) -> None:
    script = SCRIPTS[shell]
    written = set(re.findall(r"[\w-]+", script))
    if shell == "fish":
        written |= {f"--{name}" for name in re.findall(r" -l ([\w-]+)", script)}
        written |= {f"-{name}" for name in re.findall(r" -s (\w)", script)}
    for parser in all_parsers().values():
        if isinstance(parser, Group):
            assert set(parser.actions) <= written
        for argument in arguments_of(parser):
            assert set(argument.option_strings) <= written


def test_a_wrong_shell_gets_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["completion", "zhs"])
    assert left.value.code == 2
    assert "; did you mean zsh? " in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["completion"])
    assert "the shell is missing: bash, zsh, fish" in capsys.readouterr().err


@pytest.fixture
def asked(settings: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., dict[str, str]]:
    """Asks as a script does; returns the words with their texts."""

    def asked(*arguments: str) -> dict[str, str]:
        assert main(["completion", *arguments]) == 0
        out, err = capsys.readouterr()
        assert err == ""
        return dict(line.split("\t") for line in out.splitlines())

    return asked


@pytest.fixture(scope="module")
def ids(project: LocalProject) -> dict[str, int]:
    with WebRpcs(project.url, project.authenticator) as client:
        names = ("sweep", "my sweep", "4711", "a\tb")
        return {name: client.create_batch(name, "uppercase") for name in names}


def test_batches_are_offered_by_names_that_mean_one(
    ids: dict[str, int], asked: Callable[..., dict[str, str]]
) -> None:
    assert asked("--batches=") == {
        "name:4711": f"batch {ids['4711']}, init",
        "my sweep": f"batch {ids['my sweep']}, init",
        "sweep": f"batch {ids['sweep']}, init",
    }


def test_batches_are_offered_by_id_to_whoever_types_a_number(
    ids: dict[str, int], asked: Callable[..., dict[str, str]]
) -> None:
    offered = asked(f"--batches={ids['sweep']}")
    assert offered[str(ids["sweep"])] == "sweep, init"
    assert len(offered) == len(ids)


def test_projects_are_offered_from_the_settings(
    settings: Path, asked: Callable[..., dict[str, str]]
) -> None:
    with settings.open("a") as file:
        file.write("[projects.astro]\nurl = 'https://astro.example.edu/'\n")
    assert asked("--projects=") == {"astro": "https://astro.example.edu/"}


def test_what_was_told_lately_is_not_asked_again(
    settings: Path,
    ids: dict[str, int],
    project: LocalProject,
    home: Path,
    asked: Callable[..., dict[str, str]],
) -> None:
    first = asked("--batches=")
    [cache] = (home / ".cache/boinc_gahp").glob("completion-*.json")
    assert project.authenticator not in cache.read_text()
    assert cache.stat().st_mode & 0o077 == 0
    project.stop_web()
    try:
        assert asked("--batches=") == first
    finally:
        project.stop_web(False)


@pytest.mark.parametrize("trouble", ["no-settings", "no-project", "nobody-there", "no-account"])
def test_trouble_offers_nothing_and_says_nothing(
    settings: Path, trouble: str, asked: Callable[..., dict[str, str]]
) -> None:
    text = {
        "no-settings": "[proj",
        "no-project": "[logging]\nlevel = 'off'\n",
        "nobody-there": "[project]\nurl = 'http://127.0.0.1:9/'\nauthenticator = 'abcdefgh'\n",
        "no-account": settings.read_text().replace("authenticator_file = 'key'\n", ""),
    }[trouble]
    settings.write_text(text)
    settings.chmod(0o600)
    assert asked("--batches=") == {}


def test_a_project_that_does_not_answer_is_not_waited_for(
    settings: Path, asked: Callable[..., dict[str, str]]
) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        settings.write_text(
            f"[project]\nurl='http://127.0.0.1:{port}/'\nauthenticator='abcdefgh'\n"
        )
        settings.chmod(0o600)
        assert asked("--batches=") == {}
