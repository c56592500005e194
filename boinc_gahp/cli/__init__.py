"""The command line: a module or a package for each command.

Manual pages, the reference, completion and tests are made from :func:`all_parsers`, so none of them
can miss one. Parsers are imported only by those who want them: a daemon has to start quickly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from boinc_gahp.terminal.parsing import Group, Parser

#: Each command's purpose. Its module has the same name.
COMMANDS = {
    "apps": "list the project's apps, and what is known of each",
    "batch": "submit jobs, watch them, and fetch outputs, without HTCondor",
    "check": "check the settings, project, account, apps and HTCondor",
    "completion": "print a shell completion script",
    "demo": "run 20 jobs from start to end on a local project",
    "files": "print where files to copy are: settings, submit files",
    "ledger": "list and manage the jobs that came from HTCondor",
    "local-project": "create and run a BOINC project on this machine",
    "login": "save your account of a project in the settings",
    "page": "show batches and jobs in a web browser",
    "template": "check job templates for errors",
}


def all_parsers() -> dict[tuple[str, ...], Parser]:
    """Return the parsers by the words of their commands, in the order of the help texts.

    ``()`` is ``boinc_gahp`` itself, ``("ledger",)`` a group, ``("ledger", "status")`` an action.
    """
    from boinc_gahp.terminal.parsing import Group

    found: dict[tuple[str, ...], Parser] = {}

    def add(path: tuple[str, ...], parser: Parser) -> None:
        found[path] = parser
        if isinstance(parser, Group):
            for name in parser.actions:
                add((*path, name), parser.below(name))

    add((), root_parser())
    return found


def root_parser() -> Group:
    """Return the parser of ``boinc_gahp`` itself, for the words before a command."""
    from boinc_gahp.terminal.parsing import Group

    parser = Group(
        "",
        "Sends jobs from an HTCondor pool, from a shell or from Python to a BOINC "
        "project. Without a command, boinc_gahp runs as the GAHP server that HTCondor "
        "starts; on a terminal it shows a prompt.",
        {name: (name.replace("-", "_"), "run", text) for name, text in COMMANDS.items()},
        package=__name__,
        examples=(
            "boinc_gahp demo",
            "boinc_gahp --config ~/project/boinc_gahp.toml check --app uppercase",
            "boinc_gahp --config ~/project/boinc_gahp.toml",
        ),
        word="command",
        usage="[--config FILE] [--trust-config] [COMMAND ...]",
    )
    return parser.takes({"--version": "print the version"}).with_common()
