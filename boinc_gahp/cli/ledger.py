"""``boinc_gahp ledger``: the jobs that HTCondor has handed over, for whoever keeps a submit node.

Each action is a function of a module beside this one; it gets the words after its name and the
settings file, prints what there is to say, and raises what is wrong.
"""

from __future__ import annotations

import logging
from importlib import import_module

from boinc_gahp.cli.parsing import Group

#: Each action: the module and the function in it, and what it is for.
ACTIONS = {
    "list": ("ledger_list", "run", "list jobs, batches, troubles, and what is owed to projects"),
    "status": ("ledger_status", "run", "tell whether a person should look; for monitoring"),
    "show": ("ledger_show", "run", "tell all that is known of a job or a batch"),
    "settle": ("ledger_settle", "run", "pay what is owed to projects now; good for cron"),
    "move": ("ledger_move", "run", "give all of one project or account to another"),
    "forget": ("ledger_forget", "run", "drop jobs from the ledger"),
}


def run(arguments: list[str], config: str | None) -> int:
    """Do what the first of the arguments names; return the exit status."""
    module, function, _ = ACTIONS[run_parser().chosen(arguments)]
    # Without any handler, logging would print warnings between the lines.
    logging.getLogger().addHandler(logging.NullHandler())
    act = getattr(import_module(f"boinc_gahp.cli.{module}"), function)
    status: int = act(arguments[1:], config)
    return status


def run_parser(_config: str | None = None) -> Group:
    """Return the parser of the action's name."""
    return Group(
        "ledger",
        "What is known of the jobs that HTCondor 10 and later send with grid_resource = batch "
        "boinc; the ledger is this user's alone. list, status and show only read, and may be used "
        "at any time.",
        {name: text for name, (_, _, text) in ACTIONS.items()},
        examples=("boinc_gahp ledger list", "boinc_gahp ledger settle --quiet"),
    )
