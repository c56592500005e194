"""The whole command line: a parser for each command and each action.

Manual pages, the reference, completion and tests are made from it, so none of them can miss one.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from boinc_gahp.cli import COMMANDS
from boinc_gahp.terminal.parsing import Group

if TYPE_CHECKING:
    from types import ModuleType

    from boinc_gahp.terminal.parsing import Parser


def all_parsers() -> dict[tuple[str, ...], Parser]:
    """Return the parsers by the words of their commands, in the order of the help texts.

    ``()`` is ``boinc_gahp`` itself, ``("ledger",)`` a group, ``("ledger", "status")`` an action.
    """
    found: dict[tuple[str, ...], Parser] = {}

    def add(path: tuple[str, ...]) -> None:
        found[path] = parser = parser_at(path)
        for name in parser.actions if isinstance(parser, Group) else ():
            add((*path, name))

    add(())
    return found


def parser_at(path: tuple[str, ...]) -> Parser:
    """Return the parser for these words, as :func:`all_parsers` has it."""
    if not path:
        return root_parser()
    module = import_module(COMMANDS[path[0]][0])
    if len(path) == 1:
        return _parser_in(module, "run")
    place, function, _ = module.ACTIONS[path[1]]
    package = module.__name__ if hasattr(module, "__path__") else module.__name__.rpartition(".")[0]
    return _parser_in(import_module(f"{package}.{place}"), function)


def root_parser() -> Group:
    """Return the parser of ``boinc_gahp`` itself, for the words before a command."""
    parser = Group(
        "",
        "Sends jobs from an HTCondor pool, from a shell or from Python to a BOINC "
        "project. Without a command, boinc_gahp runs as the GAHP server that HTCondor "
        "starts; on a terminal it shows a prompt.",
        {name: text for name, (_, text) in COMMANDS.items()},
        examples=(
            "boinc_gahp demo",
            "boinc_gahp --config ~/project/boinc_gahp.toml check --app uppercase",
            "boinc_gahp --config ~/project/boinc_gahp.toml",
        ),
        word="command",
        usage="[--config FILE] [--trust-config] [COMMAND ...]",
    )
    return parser.takes({"--version": "print the version"}).with_common(None)


def _parser_in(module: ModuleType, function: str) -> Parser:
    parser: Parser = getattr(module, f"{function}_parser")()
    return parser
