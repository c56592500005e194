"""Web pages that arrive instead of a reply or an output: recognises them and reads their text.

A page can contain anything. So only its beginning is read, once, from one end to the other, without
going back.
"""

from __future__ import annotations

import html
import re
from contextlib import suppress

#: How many bytes of a page are read. BOINC's own pages have 5,000, with the message in the last 500
#: (wire/get_output__database_down).
PAGE_BYTES = 16384

_ROOT = re.compile(rb"<(?:!doctype\s+html|html)\b", re.IGNORECASE)
_SPACE = re.compile(rb"\s*")
_NAME = re.compile(r"[a-z][a-z0-9]*")
#: Elements whose text is not for people, and their ends.
_HIDDEN = {name: re.compile(rf"</{name}\s*>") for name in ("script", "style", "head", "nav")}
_LOWER = {ord(letter): letter.lower() for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}


def is_page(body: bytes) -> bool:
    """Tell whether ``body``, or the beginning of one, is a web page; comments may precede it."""
    here = _after_space(body, 0)
    while body.startswith(b"<!--", here):
        end = body.find(b"-->", here + len(b"<!--"))
        if end < 0:
            return False
        here = _after_space(body, end + len(b"-->"))
    return _ROOT.match(body, here) is not None


def page_beginning(body: bytes) -> str:
    """Return the part of a page that is read, without cutting a word in two."""
    if len(body) > PAGE_BYTES:
        # Half an authenticator would not be recognised.
        body = body[: max(0, *(body.rfind(end, 0, PAGE_BYTES) for end in (b" ", b"\n", b"<")))]
    return body.decode("utf-8", "replace")


def page_title(page: str) -> str:
    """Return the title of a web page, or its first words."""
    lowered = page.translate(_LOWER)  # no letter changes its place
    start = lowered.find("<title")
    begin = lowered.find(">", start) + 1 if start >= 0 else 0
    end = lowered.find("</title>", begin) if begin else -1
    return _words(page[begin:end]) if end >= 0 else page_text(page)


def page_text(page: str) -> str:
    """Return the words of a web page."""
    lowered = page.translate(_LOWER)
    parts: list[str] = []
    unclosed: set[str] = set()
    here = 0
    while (start := page.find("<", here)) >= 0:
        name = _NAME.match(lowered, start + 1)
        closing = None
        if name is not None and name[0] in _HIDDEN and name[0] not in unclosed:
            closing = _HIDDEN[name[0]].search(lowered, name.end())
            if closing is None:
                unclosed.add(name[0])
        end = page.find(">", start) + 1 if closing is None else closing.end()
        if end == 0:
            break
        parts.append(page[here:start])
        here = end
    parts.append(page[here:])
    return _words(" ".join(parts))


def _words(text: str) -> str:
    with suppress(ValueError):  # a character number of more than 4,300 digits
        text = html.unescape(text)
    return " ".join(text.split())


def _after_space(body: bytes, here: int) -> int:
    match = _SPACE.match(body, here)
    return here if match is None else match.end()
