"""Colours, of all commands: on terminals alone, and not if NO_COLOR or TERM=dumb ask for none."""

import contextlib
import re

import pytest

from boinc_gahp.cli.main import main
from tests.cli.batch.conftest import screen

#: Command lines; {batch} has a finished job.
LINES = {
    "batch list": "",
    "batch show": "{batch}",
    "batch wait": "{batch}",
    "batch fetch": "{batch} {out}",
    "batch logs": "{batch}",
    "check": "--app uppercase",
    "local-project status": "{p}",
    "template check": "{template}",
}
#: These have something to colour in the situation that the tests make.
COLOURED = ("check", "template check", "batch show")

_COLOUR = re.compile(r"\x1b\[(?:\d+;)*(?:3|4|9|10)\d(?:;[\d;]*)?m")


@pytest.fixture
def words_of(site, done, tmp_path, capsys):
    """The words of each command line, for one use of it."""
    template = tmp_path / "template"
    template.write_text("<input_template>\n<file_info>\n</file_info>\n</input_template>\n")
    main(["local-project", "init", str(tmp_path / "p")])
    capsys.readouterr()
    places = {"batch": done[0], "template": template, "p": tmp_path / "p", "out": tmp_path / "out"}
    return {
        command: [*command.split(), *line.format(**places).split()]
        for command, line in LINES.items()
    }


def run(words):
    with contextlib.suppress(SystemExit):
        main(words)


@pytest.mark.parametrize("command", LINES)
def test_no_command_writes_escapes_to_a_pipe(command, words_of, capsys, log_stopped):
    run(words_of[command])
    out, err = capsys.readouterr()
    assert out + err
    assert "\x1b" not in out + err


@pytest.mark.parametrize("command", COLOURED)
def test_terminals_get_colours(command, words_of, log_stopped):
    assert _COLOUR.search(screen(words_of[command]))


@pytest.mark.parametrize("command", [*COLOURED, "batch list", "batch wait", "batch fetch"])
@pytest.mark.parametrize(
    ("environment", "unwanted"),
    [({"NO_COLOR": "1"}, _COLOUR), ({"TERM": "dumb"}, re.compile("\x1b"))],
    ids=["no colours with NO_COLOR", "no escapes on a dumb terminal"],
)
def test_what_the_environment_asks_for_is_heeded(
    command, words_of, environment, unwanted, log_stopped
):
    shown = screen(words_of[command], columns=80, **environment)
    assert shown
    assert not unwanted.search(shown)
