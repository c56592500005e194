"""Colours, of all commands: on terminals alone, and not if NO_COLOR or TERM=dumb ask for none."""

import contextlib
import re

import pytest

from boinc_gahp.cli.commands import all_parsers
from boinc_gahp.cli.main import main
from boinc_gahp.terminal.parsing import Group
from tests.cli.batch.conftest import screen

#: A command line for each command; {batch} has a finished job, {p} is a project's directory.
LINES = {
    "apps": "",
    "login": "no-address --stdin",
    "batch list": "",
    "batch show": "{batch}",
    "batch estimate": "uppercase --input in={data}",
    "batch submit": "uppercase --input in={data}",
    "batch run": "--image debian:12-slim --app uppercase --dry-run -- sh -c id",
    "batch wait": "{batch}",
    "batch fetch": "{batch} {out}",
    "batch logs": "{batch}",
    "batch retry": "{batch}",
    "batch abort": "{batch} --yes",
    "batch retire": "{other} --yes",
    "batch extend": "{batch} --for 1",
    "check": "--app uppercase",
    "completion": "bash",
    "ledger status": "--jobs",
    "ledger show": "1",
    "ledger reconcile": "",
    "ledger move": "http://old.example/ http://new.example/",
    "ledger forget": "--ended --yes",
    "local-project init": "{new}",
    "local-project status": "{p}",
    "local-project add-app": "{p} {name} --in in --out out --command cat",
    "local-project add-user": "{p} {name}",
    "local-project stage-file": "{p} {data}",
    "local-project create-work": "{p} uppercase nosuch",
    "local-project behave": "{p} volunteer-0 normal",
    "local-project set-host": "{p} volunteer-0 speed=1e9",
    "template check": "{template}",
}
#: These run until they are interrupted, or for long; tests of their own look at what they print.
PERSISTENT_AFTER = {"demo", "local-project run"}
#: These have something to colour in the situation that the tests make.
COLOURED = ("check", "template check", "batch show")

_COLOUR = re.compile(r"\x1b\[(?:\d+;)*(?:3|4|9|10)\d(?:;[\d;]*)?m")


@pytest.fixture(scope="module")
def made(_site, tmp_path_factory):
    """What the command lines are about."""
    directory = tmp_path_factory.mktemp("colours")
    data = directory / "data.txt"
    data.write_text("hello\n")
    template = directory / "template"
    template.write_text("<input_template>\n<file_info>\n</file_info>\n</input_template>\n")
    finished, _ = _site.finished("")
    other, _ = _site.batch()
    project = directory / "p"
    main(["local-project", "init", str(project)])
    return {
        "batch": str(finished),
        "other": str(other),
        "data": str(data),
        "template": str(template),
        "p": str(project),
        "directory": str(directory),
    }


@pytest.fixture
def words_of(made, tmp_path, site):
    """The words of each command line, for one use of it."""
    places = {**made, "new": tmp_path / "new", "out": tmp_path / "out", "name": tmp_path.name[-20:]}
    return {
        command: [*command.split(), *line.format(**places).split()]
        for command, line in LINES.items()
    }


def run(words):
    with contextlib.suppress(SystemExit):
        main(words)


def test_every_command_is_looked_at():
    parsers = all_parsers().items()
    actions = {" ".join(path) for path, parser in parsers if not isinstance(parser, Group)}
    assert actions == set(LINES) | PERSISTENT_AFTER


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
