"""Result Lines: what a request came to, as one line without its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boinc_gahp.gahp.words import NULL, encode, escape, join

if TYPE_CHECKING:
    from collections.abc import Iterable


#: The longest error, in characters; the names that a user chose can make it longer.
LONGEST = 4000
#: So much of a longer one's end stays; the name in ``no batch named NAME`` has at most 255.
_END_KEPT = 1000


def fitting(message: str) -> str:
    """Return an error's text, cut in the middle where it is too long for anybody to read."""
    if len(message) <= LONGEST:
        return message
    return f"{message[: LONGEST - _END_KEPT - 5]} ... {message[-_END_KEPT:]}"


def success_line(request_id: str, values: Iterable[str] = ()) -> bytes:
    """Return ``id NULL value...``."""
    return join([request_id, NULL, *values])


def error_line(request_id: str, message: str) -> bytes:
    """Return ``id message``, the message being one argument, not empty and not NULL.

    Either would be read as success (``gahp.md``, "BOINC_* commands").
    """
    if message.strip() in ("", NULL):
        message = f"an error without words ({message.strip() or 'empty'})"
    return encode(f"{request_id} {escape(message)}")


def seconds(value: float) -> str:
    """Return a time as the gridmanager reads it: decimal, without an exponent."""
    if not 0 <= value < 1e15:  # also what is no number: it reads the word with atof
        return "0"
    text = f"{value:.6f}".rstrip("0").rstrip(".")
    return text or "0"
