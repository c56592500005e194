"""Every example in README.rst and docs/ does what it shows.

The examples of a page run in order in one shell, with real local projects where the page makes
some. What is not run says who answers for it, or why nobody can (see :mod:`.examples`).
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.documents.examples import ROOT, Command, examples, is_shown, pages

#: Seconds that all examples of a page may take, on a busy machine.
_LONGEST = 1200.0
#: Seconds after which the page's background processes are killed.
_GRACE = 60.0
#: Seconds that the test of a page may take.
LIMIT = _LONGEST + 2 * _GRACE

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


class Sandbox:
    """A home for a page's examples, and the shell that runs them."""

    def __init__(self, directory):
        self._directory = directory
        self._home = directory / "home"
        self._home.mkdir()
        kept = {name: value for name, value in os.environ.items() if name in {"LANG", "TMPDIR"}}
        self._environment = kept | {
            "HOME": str(self._home),
            "USER": "alice",
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "LC_ALL": "C.UTF-8",
            "TERM": "dumb",
            "COLUMNS": "100",
            "PYTHONWARNINGS": "error",
        }

    def run(self, commands):
        """Run command lines in one shell; each with its output, and status, in a file."""
        script = ["trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT", f"cd {self._home}"]
        for number, command in enumerate(commands):
            path = self._directory / f"{number}.sh"
            path.write_text(command.line + "\n", "utf-8")
            out = self._directory / f"{number}.out"
            script.append(f". {path} >{out} 2>&1 </dev/null")
            script.append(f"echo $? >{out}.status")
            script.append(f'[ "$(cat {out}.status)" = {command.status} ] || exit 0')
        main = self._directory / "page.sh"
        main.write_text("\n".join(script) + "\n", "utf-8")
        process = subprocess.Popen(
            ["bash", str(main)],
            env=self._environment,
            cwd=self._home,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            process.wait(_LONGEST)
        finally:
            try:
                os.killpg(process.pid, signal.SIGTERM if process.returncode is None else 0)
                process.wait(_GRACE)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                pass
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()

    def result(self, number):
        """Return how a command ended (-1: it did not), and what it printed."""
        out = self._directory / f"{number}.out"
        status = Path(f"{out}.status")
        text = out.read_text("utf-8") if out.exists() else "(it was not reached)"
        return (int(status.read_text()) if status.exists() else -1), text

    def conversation(self, example):
        """Return a command that has a conversation on a terminal."""
        path = self._directory / f"console{example.number}.txt"
        path.write_text(example.text + "\n", "utf-8")
        return f"{sys.executable} {Path(__file__).parent / 'type_console.py'} {path}"


@pytest.mark.parametrize(
    ("shows", "output", "same"),
    [
        ("a b", "a  b\n", True),
        ("a …", "a 12 s\n", True),
        ("a …", "b 12 s\n", False),
        ("…\nend", "one\ntwo\nend\n", True),
        ("…\nend", "end\n", True),
        ("…\nend", "end\nmore\n", False),
        ("one\ntwo", "one\n", False),
    ],
    ids=["spaces", "varies", "another", "lines", "no-lines", "more-at-the-end", "less"],
)
def test_what_a_page_shows_is_compared_with_gaps(shows, output, same):
    assert is_shown(shows, output) is same
