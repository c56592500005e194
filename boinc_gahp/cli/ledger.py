"""``boinc_gahp ledger``: the jobs that HTCondor has handed over, for whoever keeps a submit node.

Each action is a function of a module beside this one; it gets the words after its name and the
settings file, prints what there is to say, and raises what is wrong.
"""

from __future__ import annotations

import argparse
import io
import logging
import sys
from importlib import import_module

#: Each action: the module with its ``run``, and what it is for.
ACTIONS = {
    "list": ("ledger_list", "list jobs, batches, troubles, and what is owed to projects"),
    "show": ("ledger_show", "tell all that is known of a job or a batch"),
    "settle": ("ledger_settle", "pay what is owed to projects now; good for cron"),
    "forget": ("ledger_forget", "drop jobs from the ledger"),
}


def run(arguments: list[str], config: str | None) -> int:
    """Do what the first of the arguments names; return the exit status."""
    width = max(map(len, ACTIONS)) + 2
    parser = argparse.ArgumentParser(
        prog="boinc_gahp ledger",
        usage="%(prog)s ACTION ...",
        description="What is known of the jobs that HTCondor 10 and later send with "
        "grid_resource = batch boinc; the ledger is this user's alone. list and show only read, "
        "and may be used at any time.",
        epilog="actions:\n"
        + "".join(f"  {name:<{width}}{text}\n" for name, (_, text) in ACTIONS.items())
        + "\nboinc_gahp ledger ACTION --help tells more about one.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("action", choices=ACTIONS, metavar="ACTION", help=argparse.SUPPRESS)
    action = parser.parse_args(arguments[:1]).action
    # Without any handler, logging would print warnings between the lines.
    logging.getLogger().addHandler(logging.NullHandler())
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that cannot show a name still shows the rest.
            stream.reconfigure(errors="backslashreplace")
    act = import_module(f"boinc_gahp.cli.{ACTIONS[action][0]}").run
    status: int = act(arguments[1:], config)
    return status
