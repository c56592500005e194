"""``boinc_gahp batch``: remote job submission for people and scripts, without HTCondor.

Each action is a function ``NAME(arguments, config) -> exit status`` in a module of this package,
with a function ``NAME_parser(config) -> Parser`` beside it. It prints its results and raises
errors.
"""

from __future__ import annotations

import signal
import sys
import threading
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn

from boinc_gahp.cli.main import INTERRUPTED
from boinc_gahp.terminal.output import complain
from boinc_gahp.terminal.parsing import Group

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

__all__ = ["ACTIONS", "run", "run_parser"]

#: Each action: its module and function, and its purpose.
ACTIONS = {
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

#: Signals that end a command from outside.
_ENDS = (signal.SIGTERM, signal.SIGHUP)

_DESCRIPTION = """\
Submits batches of jobs to a BOINC project, watches them, and fetches their outputs.

BATCH is the id or the name of a batch. If a name looks like an id, write id:5 or name:5.

The project and your account come from the settings: from [project], or with --project NAME from
[projects.NAME]. "show sweep@NAME" is the same as "show sweep --project NAME". "list" lists the
batches of all projects.
"""


def run(arguments: list[str], config: str | None) -> int:
    """Run the action named by the first argument; return the exit status."""
    module, function, _ = ACTIONS[run_parser(config).chosen(arguments)]
    try:
        with _orderly():
            act = getattr(import_module(f"boinc_gahp.cli.batch.{module}"), function)
            status: int = act(arguments[1:], config)
    except KeyboardInterrupt:
        # If there is more to say, the action has said it.
        complain("interrupted; it can be run again")
        return INTERRUPTED
    return status


@contextmanager
def _orderly() -> Iterator[None]:
    """Make a signal that ends the command clean up the terminal and directories, as Ctrl-C does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in _ENDS}
    # Signals that were ignored at the start stay ignored: nohup and a shell's jobs rely on it.
    mine = [number for number, handler in before.items() if handler is not signal.SIG_IGN]
    for number in mine:
        signal.signal(number, _end)
    try:
        yield
    finally:
        for number in mine:
            signal.signal(number, before[number])


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    sys.exit(128 + number)


def run_parser(_config: str | None = None) -> Group:
    """Return the parser for the words before an action."""
    return Group(
        "batch",
        _DESCRIPTION,
        {name: text for name, (_, _, text) in ACTIONS.items()},
        examples=(
            "boinc_gahp batch submit uppercase --input in=data.txt",
            "boinc_gahp batch wait 12",
            "boinc_gahp batch fetch 12",
        ),
    )
