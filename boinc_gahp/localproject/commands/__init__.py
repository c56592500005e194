"""``boinc_gahp local-project``: a BOINC project on this machine, for trying out.

Each action is a function ``NAME(arguments, config)`` in a module of this package, with its parser
beside it. It prints its results and raises errors.
"""

from __future__ import annotations

from importlib import import_module

from boinc_gahp.localproject.commands.arguments import explained
from boinc_gahp.localproject.errors import LocalProjectTrouble
from boinc_gahp.terminal.parsing import Group

__all__ = ["ACTIONS", "LocalProjectTrouble", "run", "run_parser"]

#: Each action: its module and function, and its purpose.
ACTIONS = {
    "init": ("running", "init", "create a project in a new or empty directory"),
    "run": ("running", "run", "run the project until Ctrl-C; create it if needed"),
    "status": ("watching", "status", "show what the project contains and does"),
    "add-app": ("apps", "add_app", "add your own app, or another version of an app"),
    "add-user": ("people", "add_user", "add a user with rights, and write settings for the user"),
    "stage-file": ("working", "stage_file", "copy input files to the project's download directory"),
    "create-work": (
        "working",
        "create_work",
        "create jobs on the server, like BOINC's create_work",
    ),
    "behave": ("behaving", "behave", "make a host misbehave, or the hosts that run a job"),
    "set-host": ("behaving", "set_host", "change a host's speed, memory, disk, bandwidth"),
}


def run(arguments: list[str], config: str | None) -> int:
    """Run the action named by the first argument; return the exit status."""
    module, function, _ = ACTIONS[run_parser().chosen(arguments)]
    act = getattr(import_module(f"boinc_gahp.localproject.commands.{module}"), function)
    with explained():
        status: int = act(arguments[1:], config)
    return status


def run_parser(_config: str | None = None) -> Group:
    """Return the parser of the action's name."""
    return Group(
        "local-project",
        "Runs a complete BOINC project with volunteers on this machine, at 127.0.0.1.",
        {name: text for name, (_, _, text) in ACTIONS.items()},
        examples=(
            "boinc_gahp local-project init ~/project",
            "boinc_gahp local-project run ~/project",
        ),
    )
