"""Text for people: shortened, quoted, made visible; counts, amounts, spans of time."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

#: How many characters of a server's message an error keeps; replies of 1 MB have been seen
#: (``web-rpcs.rst``, "Transport and framing").
MAX_WORDS = 400
#: So many times as many are read, because most of them may be white space.
_READ_PER_CHARACTER = 32


def shorten(words: str, limit: int = MAX_WORDS) -> str:
    """Return ``words`` on one line of at most ``limit`` characters, cut in the middle."""
    if len(words) > _READ_PER_CHARACTER * limit:
        # Only the ends of a megabyte are shown.
        half = _READ_PER_CHARACTER * limit // 2
        words = f"{words[:half]} {words[-half:]}"
    line = " ".join(words.split())
    if len(line) <= limit:
        return line
    head = limit * 2 // 3
    tail = limit - head - 5
    return f"{line[:head]} ... {line[-tail:]}"


def show(character: str) -> str:
    r"""Return a character as Python writes it: ``\x1b``, ``\u202e``; one byte as ``\xff``."""
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:
        code -= 0xDC00
    return chr(code).encode("unicode_escape", "surrogatepass").decode()


def visible(text: str, show: Callable[[str], str] = show) -> str:
    r"""Return ``text`` with its invisible characters shown as Python would write them.

    These are line ends and all other control characters (ESC, those of C1), marks that are
    invisible or change the direction of text (U+202E, U+200B), separators except the space, and
    values that are not characters. A project's messages pass through this on their way to people:
    into the log, errors, terminals and JSON.

    Args:
        text: bytes that are not UTF-8 may be in it as surrogates (PEP 383).
        show: returns the replacement of a character.
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else show(each) for each in text)


def printable(text: str) -> str:
    """Return text on one line that cannot control a terminal."""
    if text.isascii() and text.isprintable() and "  " not in text and text == text.strip():
        return text
    return visible(" ".join(text.split()))


def quoted(text: str, limit: int = 80) -> str:
    """Return ``text`` in quotes, cut to ``limit``, and :func:`visible`."""
    shown = visible(text if len(text) <= limit else f"{text[: limit - 20]}...{text[-17:]}")
    return f"'{shown}'" if '"' in shown else f'"{shown}"'


def listed(words: Sequence[str], most: int) -> str:
    """Return words joined by commas: ``a, b``, ``none``; ``a, b and 3 more`` beyond ``most``."""
    shown = ", ".join(words[:most]) or "none"
    return f"{shown} and {len(words) - most} more" if len(words) > most else shown


def count(number: int, one: str, many: str | None = None) -> str:
    """Return a count with its noun: ``1 job``, ``2 jobs``, ``10,000 batches``."""
    several = many or one + ("es" if one.endswith("ch") else "s")
    return f"{number:,} {one if number == 1 else several}"


def ended(message: str) -> str:
    """Return a message so that another can follow: with a semicolon, unless it is a question."""
    return message if message.endswith("?") else f"{message};"


def amount(value: float, unit: str) -> str:
    """Return a number with a decimal prefix: ``16 GB``, ``1.5 kB``, ``1 GFLOPS``."""
    prefixes = ["", "k", "M", "G", "T", "P"]
    # A value that rounds to 1000 gets the next prefix.
    while abs(value) >= 999.5 and len(prefixes) > 1:
        value /= 1000
        del prefixes[0]
    text = f"{value:,.0f}" if abs(value) >= 9.95 else f"{value:.1f}".removesuffix(".0")
    return f"{text} {prefixes[0]}{unit}"


def size(nbytes: float) -> str:
    """Return a size in bytes for people: ``999 bytes``, ``1.5 kB``, ``12 MB``."""
    return count(int(nbytes), "byte") if nbytes < 1000 else amount(nbytes, "B")


_UNITS = ((86400.0, "day"), (3600.0, "h"), (60.0, "min"))


def span(seconds: float) -> str:
    """Return a time span in the largest unit of which it has at least two, or else in seconds."""
    for unit, name in _UNITS:
        if seconds >= 2 * unit:
            number = int(seconds // unit)
            return f"{number} {name}s" if name == "day" else f"{number} {name}"
    return f"{max(0, int(seconds))} s"


def character_name(character: str) -> str:
    """Return a name for a character that cannot be shown."""
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:
        return f"the byte {code - 0xDC00:#04x}, which is not UTF-8"
    return {"\n": "a newline", "\r": "a carriage return", "\t": "a tab"}.get(
        character, f"the character U+{code:04X}"
    )


def nearest(
    word: str,
    names: Iterable[str],
    fold: Callable[[str], str] = str.casefold,
    *,
    alike: float = 0.6,
) -> str | None:
    """Return the name most similar to ``word``, for a "did you mean"; None if none is similar.

    Args:
        word: the word, where one of the names was expected.
        names: the existing names.
        fold: names that it makes equal count as one name.
        alike: how similar two names must be, from 0 to 1.
    """
    from difflib import get_close_matches  # noqa: PLC0415  (only errors need it)

    known = {fold(name): name for name in names}
    found = get_close_matches(fold(word), known, 1, alike)
    return known[found[0]] if found else None


def did_you_mean(
    word: str,
    names: Iterable[str],
    fold: Callable[[str], str] = str.casefold,
    show: Callable[[str], str] = str,
) -> str:
    """Return ``; did you mean NAME?`` for the :func:`nearest` name; "" if there is none."""
    meant = nearest(word, names, fold)
    return f"; did you mean {show(meant)}?" if meant else ""
