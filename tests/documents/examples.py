"""The examples of the documentation: found in its source, with what is to become of each.

A comment before an example tells who answers for it::

    .. shell: run                       it is run, and what it shows has to come
    .. shell: run, status 3             the same; its last command ends so
    .. shell: console                   its first line is run on a terminal, the others are typed
    .. shell: tested by PATH            another test does it
    .. shell: not run, REASON

and ``.. shell: hidden`` holds commands that readers do not see. ``.. python: run`` is for blocks of
Python; all of a page are one program, which runs after the page's shell examples.

All of a page runs in one shell, in a home of its own. In what a command shows, ``…`` stands for
anything, and on a line of its own for any lines.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent

#: Languages of blocks that are shell examples.
SHELL = {"console", "sh", "bash", "shell"}

_MARKER = re.compile(r" *\.\. (shell|python): (.*)")
_BLOCK = re.compile(r"\.\. (?:code-block|sourcecode|code):: *(\S*)")
_STATUS = re.compile(r"run, status (\d+)")


@dataclass(frozen=True)
class Command:
    """A command line of an example, what it shows (None: nothing is said) and how it ends."""

    line: str
    shows: str | None
    status: int = 0


@dataclass(frozen=True)
class Example:
    """A block of a page.

    Attributes:
        page: relative to the root.
        number: of the block's first line, from 1.
        language: of the block; "" where it says none.
        marker: what is to become of it; None: nothing was said.
        text: without its indentation.
    """

    page: str
    number: int
    language: str
    marker: str | None
    text: str

    @property
    def where(self):
        """The place, as editors understand it."""
        return f"{self.page}:{self.number}"

    @property
    def is_shell(self):
        """Whether a reader would type it into a shell."""
        return self.language in SHELL or (
            self.language in {"", "none"}
            and re.search(r"^\$ ", self.text, re.MULTILINE) is not None
        )

    @property
    def commands(self):
        """The command lines, in order."""
        found = []
        lines = self.text.splitlines()
        if not lines[0].startswith("$ "):
            return [Command(f"(\n{self.text}\n)", None)]  # a script
        while lines:
            line = lines.pop(0)[2:]
            while line.endswith("\\"):
                line += "\n" + lines.pop(0)
            document = re.search(r"<<'?(\w+)'?", line)
            while document and not line.endswith(f"\n{document[1]}"):
                line += "\n" + lines.pop(0)
            shown = []
            while lines and not lines[0].startswith("$ "):
                shown.append(lines.pop(0))
            found.append(Command(line, "\n".join(shown).strip("\n") if shown else None))
        status = _STATUS.fullmatch(self.marker or "")
        if status:
            found[-1] = Command(found[-1].line, found[-1].shows, int(status[1]))
        return found


def pages():
    """Return the pages whose examples are looked at."""
    found = [ROOT / "README.rst", ROOT / "CONTRIBUTING.rst"]
    found += sorted((ROOT / "docs").rglob("*.rst"))
    return [path.relative_to(ROOT).as_posix() for path in found]


def examples(page):
    """Return a page's blocks with markers, those hidden in comments too, and all shell blocks."""
    found = []
    lines = (ROOT / page).read_text("utf-8").splitlines()
    marker = None
    number = 0
    while number < len(lines):
        line = lines[number]
        number += 1
        said = _MARKER.match(line)
        block = _BLOCK.match(line.strip())
        if said and said[2] != "hidden":
            assert marker is None, f"{page}:{number}: the marker before is of no example"
            marker = said[2]
        elif said or block or (line.rstrip().endswith("::") and not line.startswith("..")):
            start, text = _indented(lines, number, line)
            language = said[1] if said else block[1] if block else ""
            if said and said[1] == "shell":
                language = "console"
            example = Example(page, start + 1, language, "hidden" if said else marker, text)
            if example.is_shell or example.marker is not None:
                found.append(example)
                marker = None
                number = start + text.count("\n") + 1
    assert marker is None, f"{page}: the last marker is of no example"
    return found


def _indented(lines, number, head):
    """Return where the block below a line begins, and its text."""
    indent = len(head) - len(head.lstrip())
    while number < len(lines) and (
        not lines[number].strip() or lines[number].strip().startswith(":")
    ):
        number += 1
    block = []
    for line in lines[number:]:
        if line.strip() and len(line) - len(line.lstrip()) <= indent:
            break
        block.append(line)
    return number, textwrap.dedent("\n".join(block)).strip("\n")


def is_shown(shows, output):
    """Tell whether ``output`` is what a page shows."""
    pattern = ""
    for line in shows.splitlines():
        if line.strip() == "…":
            pattern += r"(?:.*\n)*?"
        else:
            parts = (re.escape(part) for part in _spaced(line).split("…"))
            pattern += ".*?".join(parts) + r"\n"
    text = "".join(f"{_spaced(line)}\n" for line in output.splitlines())
    return re.fullmatch(pattern, text) is not None


def _spaced(line):
    return " ".join(line.split())
