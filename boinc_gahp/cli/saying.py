"""What every command says in the same way: what is wrong, and what to type next."""

from __future__ import annotations

import os
import shlex
import sys
from typing import TYPE_CHECKING

from boinc_gahp.cli.words import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable


def complain(text: str) -> None:
    """Print a line on stderr, whatever is in the text; one that is full or closed is let be."""
    try:
        print(f"boinc_gahp: {one_line(text)}", file=sys.stderr, flush=True)
    except OSError:
        # The interpreter would try again when it ends, and make the exit status another.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def command_line(words: Iterable[str]) -> str:
    """Return words as a shell takes them, without anything that could do harm to a terminal.

    A word with control characters, or with bytes that are no text, is written as ``$'…'``, which
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
