"""What is typed at the console: completed, shown and kept, but never an authenticator."""

from __future__ import annotations

import logging
import os
import re
from typing import TYPE_CHECKING

from prompt_toolkit.completion import Completer, Completion
from prompt_toolkit.history import History
from prompt_toolkit.layout.processors import Processor, Transformation
from prompt_toolkit.layout.utils import explode_text_fragments

from boinc_gahp.files import check_private_file, make_private_directory, open_private_file
from boinc_gahp.gahp.commands import COMMANDS, PREFIXES
from boinc_gahp.gahp.lines import decode, encode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from prompt_toolkit.completion import CompleteEvent
    from prompt_toolkit.document import Document
    from prompt_toolkit.layout.processors import TransformationInput

log = logging.getLogger("boinc_gahp.daemon")

#: The longest line, in characters, that the history file takes; a longer one is pasted.
LONGEST = 10_000

#: A BOINC_SELECT_PROJECT, even if it is misspelt, up to its authenticator. An authenticator has
#: hexadecimal digits, so it never begins like http://.
_UP_TO_SECRET = re.compile(r"\s*[^ ]*(?:SELECT|PROJ)[^ ]*(?: +h[^ ]* +| +(?![h ]))", re.IGNORECASE)
#: The first words of lines that may go into the history file: other lines could hold anything.
_SUMMARIES = {name: command.summary for name, command in COMMANDS.items()} | {
    "HELP": "help on commands"
}


def secret_begins(line: str) -> int | None:
    """Return where an authenticator begins or would begin in a line; None if it takes none."""
    found = _UP_TO_SECRET.match(line)
    return found.end() if found else None


class CommandCompleter(Completer):
    """Completes the names of commands; their beginnings may be left out: PING is BOINC_PING."""

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterator[Completion]:
        """Yield the commands that the word before the cursor may become."""
        del complete_event
        *before, begun = document.text_before_cursor.upper().split(" ")
        if before in ([], ["HELP"]):
            beginnings = tuple(prefix + begun for prefix in PREFIXES if begun or not prefix)
            for name, summary in _SUMMARIES.items():
                if name.startswith(beginnings):
                    yield Completion(name, start_position=-len(begun), display_meta=summary)


class PrivateHistory(History):
    """History in a file that only its owner can read; no authenticators, not even in memory.

    The file has a Request Line on each line. Errors with it are logged: the console works without
    it.

    Args:
        path: the file; None to keep nothing between runs.
    """

    def __init__(self, path: Path | None) -> None:
        super().__init__()
        self._path = path

    def load_history_strings(self) -> Iterable[str]:
        """Return the lines of earlier runs, the newest first."""
        try:
            if self._path is None or not self._path.exists():
                return []
            check_private_file(self._path)
            return decode(self._path.read_bytes()).split("\n")[-2::-1]
        except OSError as error:
            log.warning("The console's history cannot be read: %s", error)
            return []

    def append_string(self, string: str) -> None:
        """Keep what was typed or pasted, line by line."""
        for line in string.splitlines():
            text = line[: secret_begins(line)].strip()
            if text and self.get_strings()[-1:] != [text]:
                super().append_string(text)

    def store_string(self, string: str) -> None:
        """Append a line to the file, if this line may be stored there."""
        known = string.partition(" ")[0].upper() in _SUMMARIES
        if self._path is None or not known or len(string) > LONGEST:
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


class MaskAuthenticator(Processor):
    """Shows stars where an authenticator is typed."""

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        """Return a line as it is shown."""
        given = transformation_input
        begins = secret_begins(given.document.lines[given.lineno])
        shown = explode_text_fragments(list(given.fragments))
        if begins is not None:
            shown[begins:] = [(part[0], "*" * len(part[1])) for part in shown[begins:]]
        return Transformation(shown)
