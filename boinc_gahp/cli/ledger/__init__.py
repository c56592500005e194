"""``boinc_gahp ledger``: the jobs that HTCondor has handed over, for admins of submit nodes.

Each action is a function in a module of this package. It gets the words after its name and the
settings file, prints its results, and raises errors.
"""

from __future__ import annotations

import logging
from importlib import import_module

from boinc_gahp.terminal.parsing import Group

#: Each action: its module and function, and its purpose.
ACTIONS = {
    "status": ("status", "run", "show jobs, requests to be sent, and problems; for monitoring"),
    "show": ("showing", "run", "show everything that is known about a job or a batch"),
    "reconcile": ("reconciling", "run", "send what did not reach a project; made for cron"),
    "move": ("changing", "move", "move the jobs of one project or account to another"),
    "forget": ("changing", "forget", "delete jobs from the ledger"),
}


def run(arguments: list[str], config: str | None) -> int:
    """Run the action named by the first argument; return the exit status."""
    module, function, _ = ACTIONS[run_parser().chosen(arguments)]
    # Without any handler, logging would print warnings between the lines.
    logging.getLogger().addHandler(logging.NullHandler())
    act = getattr(import_module(f"boinc_gahp.cli.ledger.{module}"), function)
    status: int = act(arguments[1:], config)
    return status


def run_parser(_config: str | None = None) -> Group:
    """Return the parser of the action's name."""
    return Group(
        "ledger",
        "Shows and manages the jobs that HTCondor 10 and later send with "
        "grid_resource = batch boinc. Each user has a ledger of their own. status "
        "and show only read, and can be used at any time.",
        {name: text for name, (_, _, text) in ACTIONS.items()},
        examples=("boinc_gahp ledger status", "boinc_gahp ledger reconcile --quiet"),
    )
