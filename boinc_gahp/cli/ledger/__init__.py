"""``boinc_gahp ledger``: the jobs that HTCondor has handed over, for admins of submit nodes."""

from __future__ import annotations

from boinc_gahp.terminal.parsing import Group


def run_parser() -> Group:
    """Return the parser of the action's name."""
    return Group(
        "ledger",
        "Shows and manages the jobs that HTCondor 10 and later send with "
        "grid_resource = batch boinc. Each user has a ledger of their own. status "
        "and show only read, and can be used at any time.",
        {
            "status": (
                "status",
                "run",
                "show jobs, requests to be sent, and problems; for monitoring",
            ),
            "show": ("showing", "run", "show everything that is known about a job or a batch"),
            "reconcile": ("reconciling", "run", "send what did not reach a project; made for cron"),
            "move": ("changing", "move", "move the jobs of one project or account to another"),
            "forget": ("changing", "forget", "delete jobs from the ledger"),
        },
        package=__name__,
        examples=("boinc_gahp ledger status", "boinc_gahp ledger reconcile --quiet"),
    )
