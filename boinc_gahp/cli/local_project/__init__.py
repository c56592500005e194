"""``boinc_gahp local-project``: a BOINC project on this machine, for trying out.

Each action is a function of a module of this package; it gets the words after its name, prints what
there is to say, and raises what is wrong.
"""

from __future__ import annotations

import argparse
import io
import sys
from importlib import import_module

from boinc_gahp.cli.extra import need_local_project
from boinc_gahp.cli.local_project.arguments import LocalProjectTrouble, explained

__all__ = ["ACTIONS", "LocalProjectTrouble", "run"]

#: Each action: the module and the function in it, and what it is for.
ACTIONS = {
    "init": ("running", "init", "make a project in a new or empty directory"),
    "run": ("running", "run", "run it until Ctrl-C; makes it if it is new"),
    "status": ("watching", "status", "tell what it holds and does"),
    "add-app": ("apps", "add_app", "add an app of your own, or another version of it"),
    "add-user": ("people", "add_user", "add a user, with rights, and write settings for them"),
    "stage-file": ("working", "stage_file", "copy input files to where jobs find them"),
    "create-work": ("working", "create_work", "make jobs on the server, as BOINC's program does"),
    "behave": ("behaving", "behave", "let a host, or what runs a job, misbehave"),
    "set-host": ("behaving", "set_host", "change a host's speed, memory, disk, bandwidth"),
}


def run(arguments: list[str], _config: str | None) -> int:
    """Do what the first of the arguments names; return the exit status."""
    width = max(map(len, ACTIONS)) + 2
    parser = argparse.ArgumentParser(
        prog="boinc_gahp local-project",
        usage="%(prog)s ACTION ...",
        description="A whole BOINC project on this machine, with volunteers, on 127.0.0.1.",
        epilog="actions:\n"
        + "".join(f"  {name:<{width}}{text}\n" for name, (_, _, text) in ACTIONS.items())
        + "\nboinc_gahp local-project ACTION --help tells more about one, with examples.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("action", choices=ACTIONS, metavar="ACTION", help=argparse.SUPPRESS)
    action = parser.parse_args(arguments[:1]).action
    need_local_project()
    module, function, _ = ACTIONS[action]
    act = getattr(import_module(f"boinc_gahp.cli.local_project.{module}"), function)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal that cannot show a name still shows the rest.
        sys.stdout.reconfigure(errors="backslashreplace")
    with explained():
        status: int = act(arguments[1:])
    return status
