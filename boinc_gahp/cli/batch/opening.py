"""What the actions of ``boinc_gahp batch`` share: arguments, and opening the project."""

from __future__ import annotations

import logging
import math
import sys
import time
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

from boinc_gahp.cli.main import FAILED
from boinc_gahp.errors import RpcError
from boinc_gahp.terminal import words
from boinc_gahp.terminal.live import remark
from boinc_gahp.terminal.output import command_line, complain
from boinc_gahp.terminal.parsing import common_words, config_words
from boinc_gahp.terminal.words import one_line

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Iterator, Sequence

    from boinc_gahp.api.project import Project
    from boinc_gahp.states import JobState


#: Seconds between two messages about a project that does not answer.
_PAUSE = 30.0
#: Seconds after which a command that only looks gives up on a terminal: somebody waits there.
_PATIENCE = 10.0


#: The arguments of several actions.
_BATCH = "id or name of a batch (id:5 or name:5 if a name looks like an id)"
BATCH, BATCHES, SOME_BATCHES = {"BATCH": _BATCH}, {"BATCH ...": _BATCH}, {"[BATCH ...]": _BATCH}
JOBS = {"--job JOB ...": "only the job with this name or id; may be repeated"}
#: That of actions that only look, for :func:`opened_to_look`.
PATIENCE = {
    "--timeout SPAN": "give up if the project has not answered for this long (default: 10s on a "
    "terminal, elsewhere [timeouts] retry and read)"
}


@contextmanager
def opened_to_look(options: Namespace) -> Iterator[Project]:
    """Open the project like :func:`opened`, for an action that can be repeated at any time.

    On a terminal it gives up soon if the project does not answer. A script has more patience.
    """
    patience: float | None = options.timeout
    if patience is None and sys.stdout.isatty():
        patience = _PATIENCE
    began = time.monotonic()
    try:
        with opened(options, timeout=patience) as project:
            yield project
    except RpcError as error:
        if patience is None or not error.gave_up:
            raise
        complain(
            error.with_code(
                f"{error}; gave up after {words.span(time.monotonic() - began)}; "
                "--timeout 5min waits longer for an answer"
            )
        )
        raise SystemExit(FAILED) from None


@contextmanager
def opened(options: Namespace, *, timeout: float | None = None) -> Iterator[Project]:
    """Open the project of ``--project`` and ``--config``; close its connections afterwards.

    If the project does not answer and a request is repeated, a message on stderr says so.

    Args:
        options: those of the command.
        timeout: seconds after which a request that is not answered is given up; None: as the
            settings say.

    Raises:
        ConfigError: the settings are wrong, or they have no such project, or no authenticator.
    """
    # A wrong command line can be reported with few of the imports that a project needs.
    from boinc_gahp.api.project import Project

    # Without any handler, logging would print warnings among the output.
    logging.getLogger().addHandler(logging.NullHandler())
    repeats, warnings = _Remarks(_PAUSE), _Remarks()
    warnings.setLevel(logging.WARNING)
    _repeating.addHandler(repeats)
    _manifests.addHandler(warnings)
    _repeating.setLevel(logging.DEBUG)
    try:
        with Project.from_settings(
            options.project, config=options.config, timeout=timeout
        ) as project:
            yield project
    finally:
        _manifests.removeHandler(warnings)
        _repeating.removeHandler(repeats)
        _repeating.setLevel(logging.NOTSET)


def no_more_remarks() -> None:
    """Let the caller report that the project does not answer."""
    _repeating.setLevel(logging.WARNING)


_repeating = logging.getLogger("boinc_gahp.rpc.retry")
_manifests = logging.getLogger("boinc_gahp.api.manifest_files")


class _Remarks(logging.Handler):
    """Prints what is logged, each text once; with a pause, only now and then.

    Args:
        pause: seconds between two messages; 0: none.
    """

    def __init__(self, pause: float = 0.0) -> None:
        super().__init__()
        self._pause = pause
        self._last = -math.inf
        self._told: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        """Print it, unless something was printed just before, or this was."""
        now, text = time.monotonic(), one_line(record.getMessage())
        if now >= self._last + self._pause and text not in self._told:
            self._last = now
            self._told.add(text)
            remark(f"boinc_gahp: {text}")


def as_typed(
    action: str, arguments: Sequence[str], config: str | None, name: str | None = None
) -> str:
    """Return the command line as typed, with what was typed before the command.

    Args:
        action: the word before ``arguments``.
        arguments: the words of the action.
        config: the value of ``--config`` before it.
        name: the name of the batch, if it was made up: ``--name`` gives it.
    """
    # Words behind -- are no options.
    end = arguments.index("--") if "--" in arguments else len(arguments)
    words = ["boinc_gahp", "batch", action, *arguments[:end]]
    if name is not None:
        words += ["--name", name]
    if config is not None and not any(
        word == "--config" or word.startswith("--config=") for word in arguments[:end]
    ):
        words += config_words(config)
    return command_line([*words, *arguments[end:]])


def command(options: Namespace, action: str, *words: object) -> str:
    """Return the command for another action on the same project."""
    return command_line(["boinc_gahp", "batch", action, *map(str, words), *common_words(options)])


class Choice:
    """Chooses jobs to show by their states, and counts all of them.

    Args:
        is_wanted: tells whether a job in a state is to be shown.
        most: how many jobs to choose; None: any number.

    Attributes:
        counts: the jobs by state.
        chosen: how many were chosen.
        left_out: how many more would have been.
        is_whole: whether the project could be asked about all that were chosen.
    """

    def __init__(self, is_wanted: Callable[[JobState], bool], most: int | None = None) -> None:
        self._is_wanted = is_wanted
        self._most = most
        self.counts: Counter[JobState] = Counter()
        self.chosen = self.left_out = 0
        self.is_whole = True

    def __call__(self, state: JobState) -> bool:
        """Tell whether a job in this state is to be shown."""
        self.counts[state] += 1
        if not self._is_wanted(state):
            return False
        is_chosen = self._most is None or self.chosen < self._most
        self.chosen += is_chosen
        self.left_out += not is_chosen
        return is_chosen
