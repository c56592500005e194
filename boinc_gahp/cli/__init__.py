"""The command line: a module or a package for each command.

Manual pages, the reference, completion and tests are made from :func:`all_parsers`, so none of them
can miss one. Parsers are imported only by those who want them: a daemon has to start quickly.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

    from boinc_gahp.terminal.parsing import Group, Parser

#: Each command's module, and its purpose. A module's ``run(arguments, config)`` does the work and
#: returns the exit status.
COMMANDS = {
    "apps": ("boinc_gahp.cli.apps", "list the project's apps, and what is known of each"),
    "batch": (
        "boinc_gahp.cli.batch",
        "submit jobs, watch them, and fetch outputs, without HTCondor",
    ),
    "check": ("boinc_gahp.cli.check", "check the settings, project, account, apps and HTCondor"),
    "completion": ("boinc_gahp.cli.completion", "print a shell completion script"),
    "demo": ("boinc_gahp.cli.demo", "run 20 jobs from start to end on a local project"),
    "files": ("boinc_gahp.cli.files", "print where files to copy are: settings, submit files"),
    "ledger": ("boinc_gahp.cli.ledger", "list and manage the jobs that came from HTCondor"),
    "local-project": (
        "boinc_gahp.cli.local_project",
        "create and run a BOINC project on this machine",
    ),
    "login": ("boinc_gahp.cli.login", "save your account of a project in the settings"),
    "page": ("boinc_gahp.cli.page", "show batches and jobs in a web browser"),
    "template": ("boinc_gahp.cli.template", "check job templates for errors"),
}


def all_parsers() -> dict[tuple[str, ...], Parser]:
    """Return the parsers by the words of their commands, in the order of the help texts.

    ``()`` is ``boinc_gahp`` itself, ``("ledger",)`` a group, ``("ledger", "status")`` an action.
    """
    from boinc_gahp.terminal.parsing import Group

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
    name = place if "." in place else f"{package}.{place}"
    return _parser_in(import_module(name), function)


def root_parser() -> Group:
    """Return the parser of ``boinc_gahp`` itself, for the words before a command."""
    from boinc_gahp.terminal.parsing import Group

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
