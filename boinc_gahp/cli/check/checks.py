"""What ``check`` tests on this machine: settings, directories, log, ledger."""

from __future__ import annotations

import tempfile
import time
from contextlib import closing, suppress
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING

from boinc_gahp.config.accounts import find_project
from boinc_gahp.config.places import cache_dir, ledger_file, log_file, state_dir
from boinc_gahp.errors import ConfigError, GahpError
from boinc_gahp.files import NotOurs, check_directories_above, make_private_directory
from boinc_gahp.ledger.jobs import JobLedger
from boinc_gahp.ledger.ledger import Ledger
from boinc_gahp.logs import SharedLogHandler

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from boinc_gahp.config.settings import ProjectSettings, Settings


#: The most problems of the ledger to list.
NAMED = 10


class Level(Enum):
    """The outcome of a point; the value is the word shown."""

    OK = "ok"
    #: It cannot be found out, or was not checked.
    NOTE = "note"
    #: It works, but not as well or as safely as it should.
    WARNING = "warning"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True)
class Check:
    """A checked point.

    Attributes:
        level: its outcome.
        text: what was looked at, a colon, and what was found.
        advice: what to do; "": nothing, or the text says it.
    """

    level: Level
    text: str
    advice: str = ""

    @property
    def shown(self) -> str:
        """The text and the advice."""
        return f"{self.text}; {self.advice}" if self.advice else self.text


#: Points that are in order, could not be found out, work but not as they should, do not work.
ok, note, warning, failed = (partial(Check, level) for level in Level)


def check_settings(settings: Settings) -> Iterator[Check]:
    """Report where the settings came from; loading them has shown that they are right."""
    if settings.sources:
        yield ok(f"settings: read from {', '.join(map(str, settings.sources))}")
    else:
        yield note("settings: no file was found; everything has its default")
    for problem in settings.problems:
        yield warning(f"settings: {problem}")


def chosen_project(settings: Settings, name: str | None) -> tuple[ProjectSettings | None, Check]:
    """Return the project to check, and a message about the choice."""
    try:
        found, project = find_project(settings, name)
    except ConfigError as error:
        return None, failed(f"project: {error.with_code()}")
    files = ", ".join(map(str, settings.project_files[found]))
    named = f"[projects.{found}] is " if found else ""
    return project, ok(f"project: {named}{project.url}, as set in {files}")


def check_directories(settings: Settings) -> Iterator[Check]:
    """Check whether log, ledger and cache can be written."""
    path = log_file(settings)
    if settings.logging.level == "off":
        yield note("log: off, as [logging] level says")
    else:
        yield _tried("log", path, "[logging] file or [state] dir", lambda: _open_log(settings))
    yield from _check_ledger(settings)
    cache = cache_dir(settings)
    trouble = _tried("cache", cache, "[state] cache_dir", lambda: _write_in(cache))
    if trouble.level is Level.FAILED:
        # Files are then read again, which only takes time.
        trouble = warning(trouble.text, trouble.advice)
    yield trouble
    told: list[str] = []
    for directory in (path.parent, state_dir(settings), cache):
        # Those that cannot be used are failures above.
        with suppress(OSError):
            told += check_directories_above(directory)
    for text in dict.fromkeys(told):
        yield warning(f"directories: {text}")


def _check_ledger(settings: Settings) -> Iterator[Check]:
    from boinc_gahp.cli.ledger.monitoring import stopped
    from boinc_gahp.cli.ledger.showing import must_not_be_lost, problem_words

    try:
        must_not_be_lost(ledger_file(settings))
        with closing(Ledger(ledger_file(settings))) as ledger:
            now = time.time()
            found = stopped(JobLedger(ledger.store), settings, now)
    except GahpError as error:
        yield failed(f"ledger: {error.with_code()}")
        return
    yield ok(f"ledger: {ledger_file(settings)}")
    for each in found[:NAMED]:
        yield warning(f"ledger: {problem_words(each.url, each.since, each.text, now)}")
    if len(found) > NAMED:
        yield warning(f"ledger: {len(found) - NAMED} more; boinc_gahp ledger status shows them")


def _tried(what: str, path: Path, setting: str, attempt: Callable[[], None]) -> Check:
    try:
        attempt()
    except NotOurs as error:
        return failed(f"{what}: {error}", f"or set {setting}")
    except OSError as error:
        return failed(
            f"{what}: {path} cannot be written ({error.strerror})", f"fix that, or set {setting}"
        )
    return ok(f"{what}: {path}")


def _open_log(settings: Settings) -> None:
    SharedLogHandler(log_file(settings), settings.logging.max_bytes, settings.logging.keep).close()


def _write_in(directory: Path) -> None:
    make_private_directory(directory)
    with tempfile.TemporaryFile(dir=directory):
        pass
