"""The log: one rotating file per user, written by several daemons, without secrets.

Each record is one line, with time, process and level. Nothing is ever written to stdout, which
belongs to the GAHP conversation. Problems with the log itself stop nothing: they are reported once,
on stderr.
"""

from __future__ import annotations

import fcntl
import logging
import os
import re
import stat
import sys
import time
from contextlib import suppress
from io import FileIO
from itertools import pairwise
from typing import TYPE_CHECKING

from boinc_gahp import __version__, secret
from boinc_gahp.config.places import log_file
from boinc_gahp.files import NotOurs, make_private_directory, open_private_file
from boinc_gahp.text import visible

if TYPE_CHECKING:
    from pathlib import Path

    from boinc_gahp.config.settings import Settings

log = logging.getLogger("boinc_gahp.log")

_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}

MASK = "<authenticator>"

#: Where an authenticator can be in texts of libraries and servers: URLs of get_output.php, request
#: documents, settings, and the line that selects a project.
_SECRET_PLACES = (
    re.compile(r"(auth_str=)[^&\s\"'<>)]+", re.IGNORECASE),
    re.compile(r"(<authenticator>)(?:[^<]*(?=</authenticator)|[\w.+-]{6,})", re.IGNORECASE),
    re.compile(r"(\bauthenticator[\"']?\s*[=:]\s*[\"'])[^\"']+", re.IGNORECASE),
    re.compile(r"(BOINC_SELECT_PROJECT\s+\S*:\S*\s+)(?!<)\S+", re.IGNORECASE),
)


def redact(text: str) -> str:
    """Return ``text`` without authenticators that this process knows or can recognise."""
    masked = secret.mask(text, MASK)
    for place in _SECRET_PLACES:
        masked = place.sub(rf"\1{MASK}", masked)
    return masked


class RedactingFormatter(logging.Formatter):
    """Puts a record on one line, a traceback on the lines below it, and removes secrets."""

    converter = staticmethod(time.gmtime)
    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03dZ"

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  (logging's name)
        """Keep a message on its line: parts of it may come from outside."""
        record.message = visible(redact(record.message))
        return super().formatMessage(record)

    def format(self, record: logging.LogRecord) -> str:
        """Return the text, with any traceback, without secrets and control characters."""
        text = super().format(record)
        if not (record.exc_info or record.exc_text or record.stack_info):
            return text  # formatMessage() has dealt with it
        return "\n".join(map(visible, redact(text).split("\n")))


class SharedLogHandler(logging.Handler):
    """Appends to a file that other processes append to and rotate, too.

    A process that finds the file too large takes a lock beside it and renames it; before each line,
    every process checks whether the file still has its name. (The stdlib's rotating handler keeps
    writing to a file that another process has renamed.) A record is one write at the end of the
    file, so lines of several processes do not mix. Threads wait for each other only for the check
    and the write.

    Args:
        path: the log; ``path.1`` … ``path.<keep>`` are the old ones, ``path.lock`` the lock.
        max_bytes: a file of this size is rotated before the next line.
        keep: number of old files.

    Attributes:
        path: the log; the daemon names it in errors.

    Raises:
        OSError: the file cannot be opened for writing.
    """

    def __init__(self, path: Path, max_bytes: int, keep: int) -> None:
        super().__init__()
        self.path = path
        self._max_bytes = max_bytes
        self._keep = keep
        self._failed = False
        self._open()

    def handle(self, record: logging.LogRecord) -> bool:
        """Write a record; the other threads do not wait while it is formatted."""
        if not self.filter(record):
            return False
        self.emit(record)
        return True

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record; rotate first if necessary."""
        try:
            line = f"{self.format(record)}\n".encode("utf-8", "backslashreplace")
            self.acquire()
            try:
                self._write(line)
            finally:
                self.release()
        except Exception:  # noqa: BLE001  (a record that cannot be written is no reason to stop)
            self.handleError(record)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()

    def handleError(self, _record: logging.LogRecord) -> None:  # noqa: N802  (logging's name)
        """Report once, on stderr: losing log lines is no reason to lose jobs."""
        if not self._failed:
            self._failed = True
            _warn(f"the log {self.path} cannot be written: {sys.exc_info()[1]}")

    def _open(self) -> None:
        # Its directory may have been deleted since the last line.
        make_private_directory(self.path.parent, or_shared=True)
        self._file = _open(self.path)
        self._opened = os.fstat(self._file.fileno())

    def _write(self, line: bytes) -> None:
        named = self._named()
        if named is not None and self._is_due(named):
            self._rotate_if_due()
            named = self._named()
        if self._file.closed or named is None or not os.path.samestat(named, self._opened):
            self._file.close()
            self._open()
        self._file.write(line)

    def _named(self) -> os.stat_result | None:
        """Return the status of the file that has the log's name now."""
        try:
            return os.stat(self.path)  # noqa: PTH116  (before each line: the quick way)
        except FileNotFoundError:
            return None

    def _rotate_if_due(self) -> None:
        lock = open_private_file(
            self.path.with_name(f"{self.path.name}.lock"), os.O_RDWR | os.O_CREAT
        )
        try:
            # The process with the lock is rotating; there is no need to wait.
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Another process may have rotated since.
            named = self._named()
            if named is not None and self._is_due(named):
                self._rotate()
        except BlockingIOError:
            pass
        finally:
            os.close(lock)

    def _is_due(self, status: os.stat_result) -> bool:
        return stat.S_ISREG(status.st_mode) and status.st_size >= self._max_bytes

    def _rotate(self) -> None:
        names = [f"{self.path}.{number}" for number in range(self._keep, 0, -1)]
        names.append(str(self.path))
        for older, newer in pairwise(names):
            with suppress(FileNotFoundError):
                os.replace(newer, older)  # noqa: PTH105
        if self._keep == 0:
            os.unlink(self.path)  # noqa: PTH108


def start(settings: Settings) -> Path | None:
    """Start the log that ``settings`` ask for; return its path, or None without one.

    Never raises: if the log cannot be written, one line on stderr says so.
    """
    root = logging.getLogger()
    ours = logging.getLogger("boinc_gahp")
    # Without a handler, logging would print warnings to stderr.
    if not root.handlers:
        root.addHandler(logging.NullHandler())
    level = _LEVELS.get(settings.logging.level)
    if level is None:
        ours.setLevel(logging.CRITICAL + 1)
        return None
    path = log_file(settings)
    try:
        handler = SharedLogHandler(path, settings.logging.max_bytes, settings.logging.keep)
    except OSError as error:
        _warn(f"no log is written: {path} cannot be opened: {error.strerror or error}")
        return None
    handler.setFormatter(RedactingFormatter())
    root.addHandler(handler)
    ours.setLevel(level)
    sources = ", ".join(map(str, settings.sources)) or "no file"
    log.info("boinc_gahp %s begins; settings from %s", __version__, sources)
    for problem in settings.problems:
        log.warning("%s", problem)
    return path


def stop() -> None:
    """Close the log that :func:`start` opened, if any."""
    root = logging.getLogger()
    for handler in [each for each in root.handlers if isinstance(each, SharedLogHandler)]:
        root.removeHandler(handler)
        handler.close()
    logging.getLogger("boinc_gahp").setLevel(logging.NOTSET)


def _open(path: Path) -> FileIO:
    file = FileIO(open_private_file(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT), "a")
    if os.fstat(file.fileno()).st_nlink > 1:
        file.close()
        raise NotOurs(f"{str(path)!r} has other names, too (hard links): have it moved away")
    return file


def _warn(text: str) -> None:
    # stderr may be closed, or a pipe without a reader.
    with suppress(OSError, ValueError):
        os.write(2, f"boinc_gahp: {redact(text)}\n".encode("utf-8", "backslashreplace"))
