"""``boinc_gahp batch``: remote job submission for people and scripts, without HTCondor."""

from __future__ import annotations

from boinc_gahp.cli.main import INTERRUPTED
from boinc_gahp.terminal.output import complain
from boinc_gahp.terminal.parsing import Group
from boinc_gahp.terminal.stopping import orderly

_ACTIONS = {
    "list": ("showing", "list_batches", "list your batches, newest first"),
    "show": ("showing", "show", "show a batch and its jobs"),
    "estimate": ("submitting", "estimate", "ask the project how long jobs would take"),
    "submit": ("submitting", "submit", "send jobs as a batch, with their input files"),
    "run": ("running", "run_program", "let volunteers run your own program, in containers"),
    "wait": ("waiting", "wait", "wait until batches are complete, and show the progress"),
    "fetch": ("fetching", "fetch", "fetch the outputs of finished jobs"),
    "logs": ("logs", "logs", "show what jobs wrote to stderr, and why jobs failed"),
    "retry": ("retrying", "retry", "send failed jobs again, as a batch of their own"),
    "abort": ("controlling", "abort", "stop batches, or some jobs of a batch"),
    "retire": ("controlling", "retire", "let the project delete batches and their files"),
    "extend": ("controlling", "extend", "let the project keep batches for longer"),
}

_DESCRIPTION = """\
Submits batches of jobs to a BOINC project, watches them, and fetches their outputs.

BATCH is the id or the name of a batch. If a name looks like an id, write id:5 or name:5.

The project and your account come from the settings: from [project], or with --project NAME from
[projects.NAME]. "show sweep@NAME" is the same as "show sweep --project NAME". "list" lists the
batches of all projects.
"""


def run(arguments: list[str], config: str | None) -> int:
    """Run the action named by the first argument; return the exit status."""
    try:
        with orderly():
            return run_parser().act(arguments, config)
    except KeyboardInterrupt:
        # If there is more to say, the action has said it.
        complain("interrupted; it can be run again")
        return INTERRUPTED


def run_parser() -> Group:
    """Return the parser for the words before an action."""
    return Group(
        "batch",
        _DESCRIPTION,
        _ACTIONS,
        package=__name__,
        examples=(
            "boinc_gahp batch submit uppercase --input in=data.txt",
            "boinc_gahp batch wait 12",
            "boinc_gahp batch fetch 12",
        ),
    )
