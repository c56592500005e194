"""What every command prints in the same way: errors, and what to type next."""

from __future__ import annotations

import os
import shlex
import sys
from typing import TYPE_CHECKING

from boinc_gahp.terminal.words import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable


def complain(text: str) -> None:
    """Print a line on stderr, whatever is in the text; a full or closed stderr is ignored."""
    try:
        print(f"boinc_gahp: {one_line(text)}", file=sys.stderr, flush=True)
    except OSError:
        # The interpreter would try again when it ends, and change the exit status.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def command_line(words: Iterable[str]) -> str:
    """Return words quoted for a shell, without anything that could harm a terminal.

    A word with control characters, or with bytes that are not text, is written as ``$'…'``, which
    bash and zsh read.
    """
    return " ".join(shlex.quote(word) if word.isprintable() else _escaped(word) for word in words)


def _escaped(word: str) -> str:
    text = "".join(
        f"\\{letter}"
        if letter in "\\'"
        else letter
        if letter.isprintable()
        else "".join(f"\\x{byte:02x}" for byte in letter.encode("utf-8", "surrogateescape"))
        for letter in word
    )
    return f"$'{text}'"
