"""Pieces of reStructuredText."""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Characters that underline headings, from a page's title downwards.
LEVELS = "=-~^"

#: Where a docstring or comment says which page of internals a fact is from. Readers of the
#: reference have no use for it.
_SOURCE = re.compile(
    r"""\s*\(``[\w.-]+\.rst``[^()`]*(?:``[^`]*``[^()`]*)*\)""",
)
_SPECIAL = re.compile(r"[\\*`|_]")
#: Words of plain text that are typed as they stand.
_OPTION = re.compile(
    r"""(?<![^\s(\[{"'])(--[a-z][\w-]*|\$?[A-Z]+(?:_[A-Z]+)+|NULL)(?![^\s.,;:!?)\]}"'])"""
)


def escaped(text: str) -> str:
    """Return plain text so that nothing in it is markup."""
    text = _SPECIAL.sub(r"\\\g<0>", text)
    # "file:line" looks like an address, and "::" at a paragraph's end begins a literal block.
    return re.sub(r"(?<=\w):(?=\w)|:(?=:)", r"\\:", text)


def prose(text: str) -> str:
    """Return plain text as a paragraph: options and variables' names look as they are typed."""
    parts = []
    at = 0
    for match in _OPTION.finditer(text):
        parts += [escaped(text[at : match.start()]), literal(match[0])]
        at = match.end()
    whole = "".join([*parts, escaped(text[at:])])
    # "- is standard input" and "1. this" look like items of a list.
    return re.sub(r"^(?=\(?\w+[.)](?: |$)|[^\w\s\\`])", r"\\", whole)


def literal(text: str) -> str:
    """Return text that is shown as it is typed."""
    if not text.strip() or text != text.strip() or "``" in text:
        raise ValueError(f"{text!r} cannot stand between backquotes")
    return f"``{text}``"


def heading(text: str, level: int) -> str:
    """Return a heading; level 0 is a page's title."""
    return f"{text}\n{LEVELS[level] * max(len(text), 3)}\n"


def block(lines: str | Iterable[str], language: str = "none") -> str:
    """Return a block of code."""
    text = lines if isinstance(lines, str) else "\n".join(lines)
    return f".. code-block:: {language}\n\n{textwrap.indent(text.rstrip(), '   ')}\n"


def without_sources(text: str) -> str:
    """Return the text of a docstring or comment without the documents that it cites."""
    return _SOURCE.sub("", text)


def sentence(text: str) -> str:
    """Return a text with a capital at its beginning and a full stop at its end."""
    text = text.strip()
    if not text:
        return ""
    end = "" if text.endswith((".", "!", "?", ":")) else "."
    return text[0].upper() + text[1:] + end


def indented(text: str, by: int = 3) -> str:
    """Return a text moved to the right."""
    return textwrap.indent(text, " " * by)
