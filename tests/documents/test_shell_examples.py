"""Every example in README.rst and docs/ does what it shows.

The examples of a page run in order in one shell, with real local projects where the page makes
some. What is not run says who answers for it, or why nobody can (see :mod:`.examples`).
"""

import itertools
import re
import shlex
import sys

import pytest

from tests.documents.examples import ROOT, Command, examples, is_shown, pages
from tests.documents.sandbox import LIMIT, Sandbox

_RUN = {"run", "hidden", "console"}


def _kind(example):
    return (example.marker or "").partition(",")[0].partition(" ")[0]


def _runs(example):
    return _kind(example) in _RUN


ALL = {page: examples(page) for page in pages()}
RUNNING = [page for page, found in ALL.items() if any(map(_runs, found))]


@pytest.mark.parametrize("page", pages())
def test_every_shell_example_says_who_answers_for_it(page):
    for example in ALL[page]:
        if not example.is_shell and example.marker is None:
            continue
        assert example.marker is not None, f"{example.where}: put '.. shell: ...' before it"
        kind, _, rest = example.marker.partition(", ")
        if kind.startswith("tested by "):
            path = kind.removeprefix("tested by ")
            assert (ROOT / path).exists(), f"{example.where}: there is no {path}"
        elif kind == "not run":
            assert rest, f"{example.where}: a reason is expected"
        else:
            assert kind in _RUN, f"{example.where}: {example.marker!r} is none of what there is"


def test_a_copy_button_copies_whole_commands():
    """It knows lines that end with a backslash, and here-documents that end as conf.py says."""
    for example in itertools.chain.from_iterable(ALL.values()):
        if example.is_shell and example.text.startswith("$ "):
            assert set(re.findall(r"<<'?(\w+)", example.text)) <= {"END"}, example.where
            for command in example.commands:
                if "<<" not in command.line:
                    shlex.split(command.line)  # fails at a quote that another line ends


@pytest.mark.processes
@pytest.mark.parametrize("page", RUNNING)
@pytest.mark.timeout(LIMIT)
def test_the_examples_of_a_page_do_what_they_show(page, tmp_path):
    sandbox = Sandbox(tmp_path)
    todo = [example for example in ALL[page] if _runs(example)]
    shell = [each for each in todo if each.language != "python"]
    python = [each for each in todo if each.language == "python"]
    steps = []
    for example in shell:
        if _kind(example) == "console":
            steps.append((example, Command(sandbox.conversation(example), None)))
        else:
            steps += [(example, command) for command in example.commands]
    if python:
        program = tmp_path / "page.py"
        program.write_text("\n\n".join(each.text for each in python) + "\n", "utf-8")
        steps.append((python[0], Command(f"{sys.executable} {program}", None)))
    sandbox.run([command for _, command in steps])
    for number, (example, command) in enumerate(steps):
        status, output = sandbox.result(number)
        told = f"{example.where}: $ {command.line}\n{output}"
        assert status == command.status, f"{told}\n(status {status})"
        if command.shows is not None and not command.line.endswith("&"):
            assert is_shown(command.shows, output), f"{told}\ninstead of:\n{command.shows}"
