"""Web pages that arrive instead of a reply or an output: recognises them and reads their text.

A page can contain anything. So only its beginning is read.
"""

from __future__ import annotations

import re

from lxml import etree

#: How many bytes of a page are read. BOINC's own pages have 5,000, with the message in the last 500
#: (wire/get_output__database_down).
PAGE_BYTES = 16384

_ROOT = re.compile(rb"<(?:!doctype\s+html|html)\b", re.IGNORECASE)
_SPACE = re.compile(rb"\s*")


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
    root = _parsed(page)
    title = "" if root is None else root.findtext(".//title") or ""
    return " ".join(title.split()) or page_text(page)


def page_text(page: str) -> str:
    """Return the words of a web page."""
    root = _parsed(page)
    if root is None:
        return ""
    etree.strip_elements(root, "script", "style", "head", "nav", with_tail=False)
    return " ".join(" ".join(map(str, root.itertext())).split())


def _parsed(page: str) -> etree._Element | None:
    parser = etree.HTMLParser(
        encoding="utf-8", no_network=True, remove_comments=True, remove_pis=True
    )
    try:
        return etree.fromstring(page.encode("utf-8", "replace"), parser)
    except etree.XMLSyntaxError:  # there is nothing in it
        return None


def _after_space(body: bytes, here: int) -> int:
    match = _SPACE.match(body, here)
    return here if match is None else match.end()
