"""What the actions of ``boinc_gahp batch`` share: arguments, and opening the project."""

from __future__ import annotations

import logging
import math
import sys
import time
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from boinc_gahp.cli.main import FAILED, INTERRUPTED
from boinc_gahp.config.accounts import section
from boinc_gahp.config.layers import load
from boinc_gahp.errors import GahpError, RpcError, WrongBatch
from boinc_gahp.terminal.live import remark
from boinc_gahp.terminal.output import command_line, complain
from boinc_gahp.terminal.parsing import common_words
from boinc_gahp.terminal.words import one_line
from boinc_gahp.text import printable, span
from boinc_gahp.threads import in_parallel

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Iterator, Sequence

    from boinc_gahp.api.project import Project
    from boinc_gahp.states import JobState

T = TypeVar("T")

#: Seconds between two messages about a project that does not answer.
_PAUSE = 30.0
#: Seconds after which a command that only looks gives up on a terminal: somebody waits there.
_PATIENCE = 10.0


#: The arguments of several actions.
_BATCH = (
    "id or name of a batch (id:5 or name:5 if a name looks like an id; 5@NAME on the project "
    "[projects.NAME])"
)
BATCH, BATCHES, SOME_BATCHES = {"BATCH": _BATCH}, {"BATCH ...": _BATCH}, {"[BATCH ...]": _BATCH}
JOBS = {"--job JOB ...": "only the job with this name or id; may be repeated"}
#: Of commands that are about several projects.
PROJECTS = {
    "--project NAME ...": "only this project, [projects.NAME] of the settings; may be repeated "
    "(default: all)"
}
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
    patience, began = _patience(options), time.monotonic()
    try:
        with opened(options, timeout=patience) as project:
            yield project
    except GahpError as error:
        complain(_no_answer(error, patience, began))
        raise SystemExit(FAILED) from None


def ask_all(
    options: Namespace, names: Sequence[str], ask: Callable[[Project], T]
) -> dict[str, T | GahpError]:
    """Ask projects at once, as :func:`opened_to_look` does one; tell of those that do not answer.

    Args:
        options: those of the command.
        names: the projects' names in the settings; "" is the default one.
        ask: asks a project.

    Returns:
        By the project's name the answer, or why there is none.
    """
    from boinc_gahp.api.project import Project

    patience, began = _patience(options), time.monotonic()

    def answer(name: str) -> T | GahpError:
        try:
            with Project.from_settings(
                name or None, config=options.config, timeout=patience
            ) as project:
                return ask(project)
        except GahpError as error:
            of = f"{section(name)}: " if len(names) > 1 else ""
            complain(of + _no_answer(error, patience, began))
            return error

    with _told():
        answers = dict(in_parallel(answer, names, threads=len(names), name="projects"))
    return {name: answers[name] for name in names}


def _patience(options: Namespace) -> float | None:
    """Return the seconds after which a project that does not answer is given up."""
    patience: float | None = options.timeout
    return _PATIENCE if patience is None and sys.stdout.isatty() else patience


def _no_answer(error: GahpError, patience: float | None, began: float) -> str:
    """Return what to say of a project's error, with what makes the command wait longer."""
    if patience is None or not (isinstance(error, RpcError) and error.gave_up):
        return error.with_code()
    return error.with_code(
        f"{error}; gave up after {span(time.monotonic() - began)}; "
        "--timeout 5min waits longer for an answer"
    )


@contextmanager
def opened(options: Namespace, *, timeout: float | None = None) -> Iterator[Project]:
    """Open the project of ``--project`` and ``--config``; close its connections afterwards.

    If the project does not answer and a request is repeated, a message on stderr says so. Where a
    batch is named as ``NAME@PROJECT``, its project is opened; then ``options`` have the name alone.

    Args:
        options: those of the command.
        timeout: seconds after which a request that is not answered is given up; None: as the
            settings say.

    Raises:
        ConfigError: the settings are wrong, or they have no such project, or no authenticator.
    """
    # A wrong command line can be reported with few of the imports that a project needs.
    from boinc_gahp.api.project import Project

    _divide(options)
    with (
        _told(),
        Project.from_settings(options.project, config=options.config, timeout=timeout) as project,
    ):
        yield project


def _divide(options: Namespace) -> None:
    """Set the project that is named behind batches: ``sweep@NAME``.

    Raises:
        ConfigError: the settings are wrong.
        WrongBatch: more than one project is named.
    """
    given = getattr(options, "batch", None)
    named: list[str] = [given] if isinstance(given, str) else given or []
    if not any("@" in each for each in named):
        return
    known = load(options.config).projects
    divided = []
    for each in named:
        batch, _, project = each.rpartition("@")
        # Any other @ is a part of the batch's name.
        divided.append((batch, project) if batch and project in known else (each, options.project))
    projects = {project for _, project in divided}
    if len(projects) > 1 or options.project not in {None, *projects}:
        raise WrongBatch(
            f"{', '.join(map(printable, named))} are not on one project: name the batches of each "
            "project in a command of its own",
            said=named[0],
        )
    (options.project,) = projects
    batches = [batch for batch, _ in divided]
    options.batch = batches[0] if isinstance(given, str) else batches


@contextmanager
def _told() -> Iterator[None]:
    """Print what is logged of requests that are repeated, and of records on this machine."""
    repeats, warnings = _Remarks(_PAUSE), _Remarks()
    warnings.setLevel(logging.WARNING)
    _repeating.addHandler(repeats)
    _manifests.addHandler(warnings)
    _repeating.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        _manifests.removeHandler(warnings)
        _repeating.removeHandler(repeats)
        _repeating.setLevel(logging.NOTSET)


@contextmanager
def on_interrupt(text: str) -> Iterator[None]:
    """End the command if Ctrl-C interrupts it; ``text`` says so, and how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        complain(text)
        raise SystemExit(INTERRUPTED) from None


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


def as_typed(options: Namespace, name: str | None = None) -> str:
    """Return the command line as typed, with what was typed before the command.

    Args:
        options: those of the command.
        name: the name of the batch, if it was made up: ``--name`` gives it.
    """
    arguments, config = options.typed
    # Words behind -- are no options.
    end = arguments.index("--") if "--" in arguments else len(arguments)
    words = [*options.parser.prog.split(), *arguments[:end]]
    if name is not None:
        words += ["--name", name]
    if config is not None and not any(
        word == "--config" or word.startswith("--config=") for word in arguments[:end]
    ):
        words += common_words(None, config)
    return command_line([*words, *arguments[end:]])


def command(options: Namespace, action: str, *words: object) -> str:
    """Return the command for another action on the same project."""
    more = common_words(options.project, options.config)
    return command_line(["boinc_gahp", "batch", action, *map(str, words), *more])


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
