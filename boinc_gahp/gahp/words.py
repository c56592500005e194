r"""Arguments of a line: splitting, escaping, and decoding bytes to text and back.

Text is UTF-8 with ``surrogateescape``, so that any bytes come back unchanged (``gahp.rst``,
"Lines").
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from boinc_gahp.errors import BadRequest

if TYPE_CHECKING:
    from collections.abc import Iterable

#: The literal argument that stands for "none".
NULL = "NULL"

_SPECIAL = re.compile(r"[ \\\r\n]")
_SPECIAL_BUT_SPACE = re.compile(r"[\\\r\n]")

# Stand for a literal backslash, a literal space and a border while a line is split. Lone high
# surrogates never come out of a decoder with surrogateescape, which uses U+DC80 to U+DCFF; but they
# double the memory for a line: if a line has no control characters, these are used.
_STAND_INS = (("\x01", "\x02", "\x03"), ("\ud800", "\ud801", "\ud802"))


def decode(line: bytes) -> str:
    """Return the text of ``line``."""
    return line.decode("utf-8", "surrogateescape")


def encode(text: str) -> bytes:
    """Return the bytes that ``text`` was decoded from."""
    return text.encode("utf-8", "surrogateescape")


def escape(text: str) -> str:
    """Return ``text`` as one argument of a line: backslash before space, backslash, CR and LF."""
    return _SPECIAL.sub(r"\\\g<0>", text)


def join(arguments: Iterable[str]) -> bytes:
    """Return a line with these arguments, without its end."""
    words = list(arguments)
    text = " ".join(words)
    # Among the statuses of 100,000 jobs, there is hardly ever anything to escape.
    if text.count(" ") < len(words) and not _SPECIAL_BUT_SPACE.search(text):
        return encode(text)
    return encode(" ".join(map(escape, words)))


def split(line: bytes) -> list[str]:
    r"""Return the arguments of a line, unescaped.

    Every unescaped space separates two arguments, so two spaces in a row have an empty argument
    between them. An empty line has one empty argument.

    The function replaces texts in the whole line: a line with 100,000 jobs has 30 MB, and a loop
    over its characters would take longer than the gridmanager waits.

    Raises:
        BadRequest: the line ends in a backslash that escapes nothing.
    """
    text = decode(line)
    if "\\" not in text:
        return text.split(" ")
    plain = not any(stand_in in text for stand_in in _STAND_INS[0])
    backslash, space, border = _STAND_INS[0 if plain else 1]
    text = text.replace("\\\\", backslash)  # runs of backslashes pair up from the left
    if text.endswith("\\"):
        raise BadRequest("the line ends in a backslash that has nothing to escape")
    text = text.replace("\\ ", space).replace("\\", "").replace(" ", border)
    return text.replace(space, " ").replace(backslash, "\\").split(border)
