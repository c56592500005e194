import re
import shlex
import sys

import pytest

from boinc_gahp.cli import COMMANDS, all_parsers
from boinc_gahp.terminal.parsing import Group, arguments_of
from tests.cli.conftest import InProcess
from tests.helpers import ran

PARSERS = all_parsers()
ACTIONS = {path: parser for path, parser in PARSERS.items() if not isinstance(parser, Group)}


def command_lines(example):
    """Return the words after ``boinc_gahp`` for each time that a shell command line runs it."""
    text = example.partition("  # ")[0].replace("\\\n", " ")
    words = shlex.shlex(text, posix=True, punctuation_chars=True)
    words.whitespace_split = True
    words.commenters = ""
    found = [[]]
    for word in words:
        if word and set(word) <= set("|&;()<>"):
            found.append([])
        else:
            found[-1].append(word)
    return [line[1:] for line in found if line and line[0] == "boinc_gahp"]


def each(parsers):
    return pytest.mark.parametrize(
        "path", parsers, ids=[" ".join(path) or "boinc_gahp" for path in parsers]
    )


def test_every_command_and_every_action_of_a_group_has_a_parser():
    assert {path[0] for path in PARSERS if path} == set(COMMANDS)
    for path, parser in PARSERS.items():
        children = parser.actions if isinstance(parser, Group) else {}
        under = [other[-1] for other in PARSERS if other[:-1] == path and other]
        assert list(children) == under or (path == () and set(children) == set(COMMANDS))


@each(PARSERS)
def test_a_parser_has_a_description_an_example_and_exit_statuses(path):
    parser = PARSERS[path]
    assert parser.command == " ".join(path)
    assert parser.prog == " ".join(("boinc_gahp", *path))
    assert parser.description
    assert parser.examples
    assert {0, 1, 2, 130} <= set(parser.statuses)
    assert all(parser.statuses.values())
    assert [argument for argument in arguments_of(parser) if not argument.help] == []


@each(PARSERS)
def test_help_is_80_columns_wide_or_as_narrow_as_the_terminal(path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    text = PARSERS[path].format_help()
    assert [line for line in text.splitlines() if len(line) > 80] == []
    monkeypatch.setenv("COLUMNS", "60")
    assert PARSERS[path]._get_formatter()._width == 60


@each(PARSERS)
def test_examples_are_command_lines_that_the_parser_takes(path):
    for example in PARSERS[path].examples:
        lines = command_lines(example)
        assert lines, example
        assert any(_read(words)[: len(path)] == path for words in lines), example


def _read(words):
    """Parse what follows ``boinc_gahp``; return the words that lead to the parser."""
    before = PARSERS[()]
    while words and words[0].startswith("-"):
        number = 1 if "=" in words[0] else 2
        before.read(words[:number])
        words = words[number:]
    depth = next(depth for depth in (2, 1, 0) if tuple(words[:depth]) in PARSERS)
    path, rest = tuple(words[:depth]), words[depth:]
    if path in ACTIONS:
        ACTIONS[path].read(rest)
    else:
        assert not rest
    return path


@each(PARSERS)
def test_help_is_printed_by_the_command_itself(path, capsys):
    out = InProcess(capsys).prints(*path, "--help")
    assert out == PARSERS[path].format_help()
    assert "\x1b" not in out


@each(ACTIONS)
def test_a_wrong_option_gets_one_line_and_status_2(path, capsys):
    # What is required comes first, so it is given.
    given = next(words for example in PARSERS[path].examples for words in command_lines(example))
    words = _arguments(given, path)
    end = words.index("--") if "--" in words else len(words)
    wrong = (*words[:end], "--hepl", *words[end:])
    err = InProcess(capsys).refuses(*path, *wrong, status=2)
    assert err.count("\n") == 1
    assert "--hepl; did you mean --help?" in err
    assert err.endswith(f" boinc_gahp {' '.join(path)} --help tells more\n")


def _arguments(words, path):
    place = next(place for place in range(len(words)) if tuple(words[place:])[: len(path)] == path)
    return words[place + len(path) :]


@pytest.mark.processes
def test_all_of_it_helps_without_the_extras():
    program = (
        "import sys\n"
        "sys.modules.update(dict.fromkeys(['flask', 'waitress', 'werkzeug', 'jinja2', 'sphinx']))\n"
        "from boinc_gahp.cli import all_parsers\n"
        "from boinc_gahp.cli.main import main\n"
        "for path in all_parsers():\n"
        "    try:\n"
        "        print(main([*path, '--help']))\n"
        "    except SystemExit as leave:\n"
        "        print(leave.code or 0)\n"
        "main(['demo'])\n"
        "main(['local-project', 'init', '/nowhere/project'])\n"
    )
    done = ran(sys.executable, "-c", program)
    assert done.stdout.count("usage: boinc_gahp") == len(PARSERS)
    assert re.findall(r"^\d+$", done.stdout, re.MULTILINE) == ["0"] * len(PARSERS)
    demo, init = done.stderr.splitlines()
    assert demo.startswith("boinc_gahp: the demo needs flask and waitress; install ")
    assert init.startswith("boinc_gahp: a local project needs flask and waitress; install ")
