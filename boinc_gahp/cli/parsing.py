"""Parsers of command lines that also say what documentation and completion are made from.

Every action of the command line is a function ``NAME(arguments, config) -> exit status`` with a
function ``NAME_parser() -> Parser`` beside it, so that help, manual pages, completion and the tests
of the documentation see the same options.
"""

from __future__ import annotations

import argparse
import re
import textwrap
from typing import TYPE_CHECKING, Any, Literal, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

#: What every command may end with; a parser's own ``statuses`` come on top.
STATUSES = {
    0: "all is well",
    1: "it is not; stderr says in a line what is wrong and what to do",
    2: "the command line is wrong",
    130: "interrupted from the keyboard",
}

Kind = Literal["file", "directory", "project", "batch"]

_WIDTH = 80


class Parser(argparse.ArgumentParser):
    """A parser of one action's arguments.

    Args:
        command: the words before them: ``batch list``; empty for ``boinc_gahp`` itself.
        description: paragraphs, with an empty line between them.
        examples: command lines, each as it is typed; a line's remark may follow after ``  # ``.
        statuses: exit statuses beyond, or other than, :data:`STATUSES`.
        usage: instead of argparse's own, without the program's name.

    Attributes:
        command: as given.
        examples: as a tuple.
        statuses: all of them, in order.
    """

    def __init__(
        self,
        command: str,
        description: str,
        *,
        examples: Iterable[str] = (),
        statuses: Mapping[int, str] | None = None,
        usage: str | None = None,
    ) -> None:
        self.command = command
        self.examples = tuple(examples)
        self.statuses = dict(sorted({**STATUSES, **(statuses or {})}.items()))
        super().__init__(
            prog=f"boinc_gahp {command}".strip(),
            usage=None if usage is None else f"%(prog)s {usage}",
            description=_wrapped(description),
            epilog=_epilog(self.examples, statuses or {}),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )

    def completes(self, action: argparse.Action, kind: Kind) -> argparse.Action:
        """Note what an argument's value is, for completion; return the argument."""
        action.completes = kind  # type: ignore[attr-defined]
        return action

    def add_config(self, config: str | None) -> None:
        """Add ``--config FILE``; ``config`` is what was said before the command."""
        self.completes(
            self.add_argument(
                "--config",
                metavar="FILE",
                default=config,
                help="read FILE after the other settings files, over them",
            ),
            "file",
        )

    def add_project(self) -> None:
        """Add ``--project NAME``."""
        self.completes(
            self.add_argument(
                "--project",
                metavar="NAME",
                help="the project [projects.NAME] of the settings (default: [project])",
            ),
            "project",
        )

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, with the nearest name, and leave with status 2."""
        options = [word for action in self._actions for word in action.option_strings]
        found = re.match(r"unrecognized arguments: (-\S+)", message)
        if found:
            message += nearest(found[1].partition("=")[0], options)
        found = re.match(r"argument .*: invalid choice: '(.*?)' \(choose from (.*)\)", message)
        if found:
            message += nearest(found[1], re.findall(r"[\w.-]+", found[2]))
        self.exit(2, f"{self.prog}: {message}; {self.prog} --help tells more\n")


def nearest(said: str, names: Iterable[str]) -> str:
    """Return ``; did you mean NAME?`` for the name that is most like what was said, or nothing."""
    import difflib  # only where something is wrong already

    known = {name.casefold(): name for name in names}
    found = difflib.get_close_matches(said.casefold(), known, n=1)
    return f"; did you mean {known[found[0]]}?" if found else ""


def kind_of(action: Any) -> Kind | None:
    """Return what :meth:`Parser.completes` noted for an argument."""
    kind: Kind | None = getattr(action, "completes", None)
    return kind


def _wrapped(text: str) -> str:
    """Wrap the paragraphs that are not laid out already."""
    return "\n\n".join(
        part if "\n" in part else textwrap.fill(part, _WIDTH) for part in text.split("\n\n")
    )


def _epilog(examples: Iterable[str], statuses: Mapping[int, str]) -> str:
    parts = []
    lines = "".join(f"  {line}\n" for line in examples)
    if lines:
        parts.append(f"examples:\n{lines}")
    if statuses:
        listed = "".join(f"  {status:<5}{text}\n" for status, text in sorted(statuses.items()))
        parts.append(f"exit status, beside 0, 1, 2 and 130:\n{listed}")
    return "\n".join(parts)
