"""Requests and replies of the web RPCs: XML, read and written as PHP does."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from lxml import etree

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Sequence

    from boinc_gahp.localproject.server.forms import FormFile


#: SimpleXML obeys the declaration; other encodings could hide a document type.
_ENCODING = re.compile(
    rb"<\?xml[^>]*encoding\s*=\s*[\"'](?!utf-8[\"']|iso-8859-1[\"']|us-ascii[\"']"
    rb"|windows-1252[\"'])",
    re.IGNORECASE,
)
#: What may come before the root element, and a document type with it.
_PROLOG = re.compile(rb"(?:\xef\xbb\xbf)?(?:\s+|<\?.*?\?>|<!--.*?-->)*(<!DOCTYPE)?", re.DOTALL)
_NUMBER = re.compile(r"\s*([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)")


class Element:
    """An element of a request; of children with the same name PHP takes the first."""

    def __init__(self, element: etree._Element) -> None:
        self._element = element

    def text(self, name: str) -> str:
        """Return the text of a child, or nothing."""
        return self._element.findtext(name) or ""

    def texts(self, name: str) -> list[str]:
        """Return the texts of all children with that name."""
        return [child.text or "" for child in self._element.iterfind(name)]

    def integer(self, name: str) -> int:
        """Return a child's text as PHP's ``(int)`` converts it."""
        return as_integer(php_float(self.text(name)))

    def real(self, name: str) -> float:
        """Return a child's text as PHP's ``(double)`` converts it."""
        return php_float(self.text(name))

    def child(self, name: str) -> Element:
        """Return a child; an empty one if there is none."""
        found = self._element.find(name)
        return Element(etree.Element(name) if found is None else found)

    def children(self, name: str) -> list[Element]:
        """Return all children with that name."""
        return [Element(child) for child in self._element.iterfind(name)]

    def reals(self) -> dict[str, float]:
        """Return all children as numbers, by their names."""
        return {str(child.tag): php_float(child.text or "") for child in reversed(self._element)}

    def xml(self, name: str) -> str:
        """Return a child as XML, or nothing."""
        found = self._element.find(name)
        if found is None:
            return ""
        return etree.tostring(found, encoding="unicode", with_tail=False)


class RpcRequest(Element):
    """A request; ``files`` came in the same form."""

    def __init__(self, root: etree._Element, files: Sequence[FormFile]) -> None:
        super().__init__(root)
        self.name = str(root.tag)
        self.files = files


def php_float(text: str) -> float:
    """Return the number at the beginning of a text, 0 if there is none."""
    match = _NUMBER.match(text)
    if match is None:
        return 0.0
    value = float(match[1])
    return value if abs(value) < 1e300 else 0.0


def as_integer(value: float) -> int:
    """Return a number as an integer of 64 bits, the nearest if it does not fit."""
    return max(-(1 << 63), min(int(value), (1 << 63) - 1))


def parse_request(data: bytes, files: Sequence[FormFile] = ()) -> RpcRequest:
    """Read a request.

    Raises:
        ValueError: it is not XML, has a document type, or its root element is empty; the arguments
            are PHP's parser messages, line by line.
    """
    prolog = _PROLOG.match(data)
    if b"\0" in data or _ENCODING.match(data) or (prolog is not None and prolog[1]):
        raise ValueError(
            "the request has a document type, a NUL or a rare encoding, which are not accepted"
        )
    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=True,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        raise ValueError(*(_complaint(data, error) if data else ())) from error
    if len(root) == 0 and not root.text:
        # For PHP the object is false, but there is no error to report.
        raise ValueError
    return RpcRequest(root, files)


def _complaint(data: bytes, error: etree.XMLSyntaxError) -> Iterator[str]:
    """Describe an error as libxml2 does: the message, the end of the line, and where."""
    line, column = error.position
    message = error.msg.rpartition(", line ")[0] or error.msg
    yield f"Entity: line {line}: parser error : {message}"
    text = data.decode("latin-1").split("\n")[line - 1] if line else ""
    shown = text[max(0, column - 79) :][:79]
    yield shown
    yield " " * max(0, min(column, len(shown) + 1) - 1) + "^"


PROLOG = '<?xml version="1.0" encoding="ISO-8859-1" ?>\n'
CONTENT_TYPE = "text/xml;charset=UTF-8"

#: Error numbers of the real server.
DATABASE_DOWN = -138
PROJECT_DOWN = -183

_INC = "/srv/boinc/projects/test/html/"


@dataclass(slots=True)
class RpcReply:
    """The inner part of a reply, written piece by piece.

    The server does not escape names and messages (``web-rpcs.rst``, "Transport and framing").
    """

    display_errors: bool
    _parts: list[str] = field(default_factory=list)

    def add(self, xml: str) -> None:
        """Append XML."""
        self._parts.append(xml)

    def success(self) -> None:
        """Append the usual answer of most RPCs."""
        self.add("<success>1</success>\n")

    def warn(self, message: str, place: str, line: int, kind: str = "Warning") -> None:
        """Append one of PHP's messages, if they are shown. ``place`` is below ``html/``."""
        if self.display_errors:
            self.add(php_message(message, place, line, kind))

    def __str__(self) -> str:
        return "".join(self._parts)


def php_message(message: str, place: str, line: int, kind: str = "Warning") -> str:
    """Return a message as PHP writes it into the page; the message is HTML."""
    return (
        f"<br />\n<b>{kind}</b>:  {message} in <b>{_INC}{place}</b> on line <b>{line}</b><br />\n"
    )


def uncaught(error: sqlite3.Error | OSError) -> str:
    """Return PHP's message when a failure of the database or the disk ends it."""
    if isinstance(error, OSError):
        return f"Uncaught ErrorException: {error.strerror}"
    missing = re.fullmatch(r"no such table: (?:main\.)?(\w+)", str(error))
    message = f"Table 'test.{missing[1]}' doesn't exist" if missing else str(error)
    return f"Uncaught mysqli_sql_exception: {message}"


def error_element(message: str, number: int, more: str = "") -> str:
    """Return an ``<error>``; ``message`` is not escaped."""
    return (
        f"<error>\n    <error_num>{number}</error_num>\n"
        f"    <error_msg>{message}</error_msg>\n{more}</error>\n"
    )


def htmlspecialchars(text: str) -> str:
    """Escape like PHP's function of that name from PHP 8.1 on."""
    return escape(text, {'"': "&quot;", "'": "&#039;"})


def php_number(value: float) -> str:
    """Write a number like PHP: 14 significant digits, no trailing zeros."""
    text = f"{value:.14g}"
    if "e" not in text:
        return text
    mantissa, exponent = text.split("e")
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{int(exponent):+d}"
