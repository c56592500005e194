"""The console's history and how it shows typed text: never with an authenticator."""

from __future__ import annotations

import logging
import os
import re
from typing import TYPE_CHECKING

from prompt_toolkit.history import History
from prompt_toolkit.layout.processors import Processor, Transformation
from prompt_toolkit.layout.utils import explode_text_fragments

from boinc_gahp.files import (
    check_private_file,
    make_private_directory,
    open_private_file,
    write_whole,
)
from boinc_gahp.gahp import COMMANDS, LineSplitter, Secret, decode, encode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from prompt_toolkit.layout.processors import TransformationInput

log = logging.getLogger("boinc_gahp.daemon")

#: The most lines in the history file, and the longest line that it takes.
KEPT_LINES = 1000
LONGEST = 10_000

_WORD = re.compile(r"(?:[^ \\]|\\.)*", re.DOTALL)
_SECRET_AT = {
    command.name: number
    for command in COMMANDS.values()
    for number, piece in enumerate(command.arguments, 1)
    if isinstance(piece, Secret)
}
_SELECT_PROJECT = "BOINC_SELECT_PROJECT"
#: First words of lines that may go into the history file: other lines could hold anything.
_KNOWN = frozenset({*COMMANDS, "HELP"})


def secret_begins(line: str) -> int | None:
    """Return where an authenticator begins or would begin in a line; None if it takes none.

    A misspelt BOINC_SELECT_PROJECT counts as one.
    """
    place = _SECRET_AT.get(_meant(line))
    if place is None:
        return None
    at = len(line) - len(line.lstrip())
    for _ in range(place):
        at += len(_WORD.match(line, at)[0]) + 1  # type: ignore[index]  # it matches nothing, too
        if at > len(line):
            return None
    return at


def _meant(line: str) -> str:
    """Return the command that a line was probably meant to begin with."""
    first = _first_word(line)
    return _SELECT_PROJECT if "SELECT" in first or "PROJ" in first else first


def _first_word(line: str) -> str:
    return line.lstrip().partition(" ")[0].upper()


def _without_secret(line: str) -> str:
    """Return the part of a line to keep; without an address, any word may be the authenticator."""
    begins = secret_begins(line)
    text = (line if begins is None else line[:begins]).strip()
    if _meant(line) == _SELECT_PROJECT and "://" not in text:
        return text.partition(" ")[0]
    return text


class PrivateHistory(History):
    """History in a file that only its owner can read; no authenticators, not even in memory.

    The file holds Request Lines. Errors with it are logged: the console works without it.

    Args:
        path: the file; None to keep nothing between runs.
    """

    def __init__(self, path: Path | None) -> None:
        super().__init__()
        self._path = path

    def load_history_strings(self) -> Iterable[str]:
        """Return the lines of earlier runs, the newest first."""
        if self._path is None:
            return []
        try:
            check_private_file(self._path)
            data = self._path.read_bytes()
        except FileNotFoundError:
            return []
        except OSError as error:
            log.warning("The console's history cannot be read: %s", error)
            return []
        lines = [decode(line) for line in LineSplitter().feed(data) if isinstance(line, bytes)]
        if len(lines) > 2 * KEPT_LINES:
            lines = lines[-KEPT_LINES:]
            self._write(lines)
        return reversed(lines)

    def append_string(self, string: str) -> None:
        """Keep what was typed or pasted, line by line."""
        for line in string.splitlines():
            text = _without_secret(line)
            if text and self.get_strings()[-1:] != [text]:
                super().append_string(text)

    def store_string(self, string: str) -> None:
        """Append a line to the file, if this line may be stored there."""
        broken = string.endswith("\\") or len(string) > LONGEST
        if self._path is None or broken or _first_word(string) not in _KNOWN:
            return
        try:
            make_private_directory(self._path.parent)
            fd = open_private_file(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            with os.fdopen(fd, "wb") as file:
                os.fchmod(fd, 0o600)  # whatever its mode was
                file.write(encode(string) + b"\n")
        except OSError as error:
            log.warning("The console's history cannot be kept: %s", error)
            self._path = None

    def _write(self, lines: list[str]) -> None:
        assert self._path is not None  # noqa: S101  (for the type checker)
        try:
            write_whole(self._path, b"".join(encode(line) + b"\n" for line in lines), 0o600)
        except OSError as error:
            log.warning("The console's history cannot be shortened: %s", error)


class MaskAuthenticator(Processor):
    """Shows stars where an authenticator is typed."""

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        """Return a line as it is shown."""
        given = transformation_input
        begins = secret_begins(given.document.lines[given.lineno])
        if begins is None:
            return Transformation(given.fragments)
        shown = explode_text_fragments(list(given.fragments))
        shown[begins:] = [(part[0], "*" * len(part[1])) for part in shown[begins:]]
        return Transformation(shown)


def lines_of(text: str, splitter: LineSplitter) -> Iterator[bytes]:
    """Yield the Request Lines that ``text``, with a line end after it, completes."""
    for line in splitter.feed(encode(text) + b"\n"):
        if isinstance(line, bytes) and line.strip():
            yield line
