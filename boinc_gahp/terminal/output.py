"""What commands print in the same way, and what a stream can show.

Colours are used unless NO_COLOR is set (no-color.org).
"""

from __future__ import annotations

import os
import re
import shlex
import sys
import textwrap
from functools import cache
from typing import TYPE_CHECKING, TextIO

from boinc_gahp.terminal.words import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable


def complain(text: str) -> None:
    """Print a line on stderr, whatever is in the text; a full or closed stderr is ignored."""
    try:
        print(in_lines(f"boinc_gahp: {one_line(text)}", sys.stderr), file=sys.stderr, flush=True)
    except OSError:
        # The interpreter would try again when it ends, and change the exit status.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def print_lines(lines: Iterable[str]) -> None:
    """Print lines on stdout, each as soon as it is there; a terminal gets them :func:`in_lines`."""
    for line in lines:
        print(in_lines(line, sys.stdout))


def in_lines(text: str, stream: TextIO) -> str:
    """Return a text broken at words, if ``stream`` is a terminal on which it does not fit.

    A command at its end has a line of its own, which is not broken: it is there to be copied.
    """
    width = width_of(stream)
    if width is None or len(_COLOURED.sub("", text)) <= width:
        return text
    said, of_command, words = text.rpartition(_COMMAND)
    lines = textwrap.wrap(
        f"{said}:" if of_command else text, width, break_long_words=False, break_on_hyphens=False
    )
    if of_command:
        lines.append(_COMMAND.removeprefix(": ") + words)
    return "\n".join(lines)


_COLOURED = re.compile("\x1b\\[[0-9;]*m")
#: Comes before the words of a command, at the end of a text.
_COMMAND = ": boinc_gahp "


def agreed(question: str, screen: TextIO) -> bool:
    """Ask on a terminal; tell whether the answer is yes. What is not known to be yes is no."""
    print(f"{question} [y/N] ", end="", file=screen, flush=True)
    try:
        answer = sys.stdin.readline()
    except UnicodeError:
        return False
    except KeyboardInterrupt:
        print(file=screen)
        raise
    if not answer:
        print(file=screen)
    return answer.strip().casefold() in {"y", "yes"}


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


_CODES = {"green": "32", "yellow": "33", "red": "31", "cyan": "36", "faint": "2", "bold": "1"}

#: The assumed width if the terminal does not report one.
_WIDTH = 80


def has_colours(stream: TextIO) -> bool:
    """Tell whether ``stream`` takes colours."""
    return not os.environ.get("NO_COLOR") and is_live(stream)


def coloured(text: str, colour: str, stream: TextIO) -> str:
    """Return ``text`` in a colour, if ``stream`` takes colours."""
    return painted(text, colour) if has_colours(stream) else text


def painted(text: str, colour: str) -> str:
    """Return ``text`` in a colour."""
    return f"\x1b[{_CODES[colour]}m{text}\x1b[0m"


def is_live(stream: TextIO) -> bool:
    """Tell whether ``stream`` is a terminal on which the cursor can be moved."""
    return os.environ.get("TERM") != "dumb" and stream.isatty()


def width_of(stream: TextIO) -> int | None:
    """Return the width in columns of the terminal ``stream``; None if it is not a terminal."""
    if not stream.isatty():
        return None
    try:
        return os.get_terminal_size(stream.fileno()).columns or _WIDTH
    except (OSError, ValueError):
        return _WIDTH


def bar(fraction: float, width: int, stream: TextIO) -> str:
    """Return a bar of ``width`` columns, without colour, in letters that ``stream`` has.

    Only a whole is shown as a full bar, and only zero as an empty one.
    """
    full, half, empty = _BARS[can_show("━╸", stream.encoding or "ascii")]
    halves = round(min(1.0, max(0.0, fraction)) * 2 * width)
    if 0 < fraction < 1:
        halves = min(2 * width - 1, max(1, halves))
    shown = full * (halves // 2) + half * (halves % 2)
    return shown + empty * (width - len(shown))


_BARS = {True: ("━", "╸", " "), False: ("#", "-", " ")}


@cache
def can_show(letters: str, encoding: str) -> bool:
    """Tell whether an encoding has these letters."""
    try:
        letters.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True
