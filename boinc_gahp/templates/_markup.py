"""Reads the XML of templates and of filled-in documents, which need not be well-formed.

BOINC's own parser reads a template tag by tag, so admins can write templates that are not valid
XML: with comments, odd white space, declarations in the middle, several root elements
(``templates.rst``, "How they come back"). lxml reads as much of them as it can; it fetches nothing
and expands no entities.
"""

from __future__ import annotations

import dataclasses
import math
import re
from typing import TYPE_CHECKING, Any

from lxml import etree

from boinc_gahp.templates.types import Problem, Severity, TemplateError, wrong

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: The most characters of a text to read; a filled-in document has at most 64 KB.
MAX_TEXT = 1 << 20

#: A declaration or an instruction; or a document type, which may have a part in brackets. One that
#: has no end lasts to the end of the text, where a group matches: so each character is read once.
_PROLOG = re.compile(
    r"<(?=\?).*?(?:\?>|(\Z))"
    r"|<!DOCTYPE[^\[>]*(?:\[[^\]]*(?:\][^>]*)?)?(?:>|(\Z))",
    re.DOTALL,
)
_NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_DIGITS = re.compile(r"[+-]?[0-9]+")
_EXACT_DIGITS = 400
#: The least values of whole numbers that may be less than 0 or must be more; None: there is none.
_LEAST = {"min_quorum": 1, "target_nresults": 1, "size_class": None, "priority": None}


def parse(text: str, what: str) -> etree._Element:
    """Return ``text`` below one made-up root element, whatever its own roots are.

    Raises:
        TemplateError: it is too long, or contains no element.
    """
    if len(text) > MAX_TEXT:
        raise TemplateError(what, [too_long(text)])
    root = etree.fromstring(_wrapped(text), _parser(recover=True))
    if root is None or len(root) == 0:
        raise wrong(what, "expected XML elements, found none", "no-template")
    return root


def xml_error(text: str) -> Problem | None:
    """Return why a text is not a series of XML documents; nothing is recovered."""
    if len(text) > MAX_TEXT:
        return too_long(text)
    error = _syntax_error(_wrapped(text))
    if error is None:
        return None
    return Problem(error.lineno or 0, f"this is not XML: {error.msg}; correct it", "malformed")


def document_error(text: str) -> Problem | None:
    """Return why PHP cannot read an input template: it must be one XML document."""
    error = _syntax_error(text.encode("utf-8", "replace"))
    if error is None:
        return None
    return Problem(
        error.lineno or 0,
        f"this is not one XML document ({error.msg}): put all of it into one <input_template>, "
        "below the XML declaration if there is one; the web RPCs for remote jobs cannot read it",
        "not-one-document",
        Severity.WARNING,
    )


def _syntax_error(data: bytes) -> etree.XMLSyntaxError | None:
    try:
        etree.fromstring(data, _parser(recover=False))
    except etree.XMLSyntaxError as error:
        return error
    return None


def too_long(text: str) -> Problem:
    """Return the message for a text with more than ``MAX_TEXT`` characters."""
    return Problem(0, f"{len(text):,} characters: expected at most {MAX_TEXT:,}", "too-long")


def _wrapped(text: str) -> bytes:
    """Return the text below one root, without declarations and characters that XML forbids."""
    cleaned = _NOT_XML.sub(" ", _without_prologs(text))
    return f"<document>{cleaned}</document>".encode()


def _without_prologs(text: str) -> str:
    """Remove XML declarations, instructions and document types; lines keep their numbers."""
    return _PROLOG.sub(lambda m: m[0] if m.lastindex else "\n" * m[0].count("\n"), text)


def _parser(*, recover: bool) -> etree.XMLParser:
    return etree.XMLParser(
        recover=recover,
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        remove_comments=True,
        remove_pis=True,
    )


def children(element: etree._Element) -> Iterator[etree._Element]:
    """Yield the child elements, without entities, comments or instructions."""
    return (child for child in element if isinstance(child.tag, str))


def inner(element: etree._Element) -> str:
    """Return an element's text, with empty elements inside written as ``<TAG/>``, stripped."""
    parts = [element.text or ""]
    for child in element:
        if isinstance(child.tag, str):
            parts.append(f"<{child.tag}/>")
        parts.append(child.tail or "")
    return "".join(parts).strip()


def line_of(element: etree._Element) -> int:
    """Return the line in which an element begins, 0 if unknown."""
    line = getattr(element, "sourceline", None)
    return line if isinstance(line, int) else 0


class Fields:
    """The child elements of one or two elements, read by name and type.

    Values that cannot be read are noted in ``problems``, so that one pass finds everything.
    """

    def __init__(self, problems: list[Problem], *elements: etree._Element) -> None:
        self._problems = problems
        self._elements = elements
        self._found: dict[str, list[etree._Element]] = {}
        for element in elements:
            for child in children(element):
                self._found.setdefault(str(child.tag), []).append(child)

    @property
    def line(self) -> int:
        """The line in which the first of the elements begins."""
        return line_of(self._elements[0])

    def problem(self, code: str, text: str, element: etree._Element | None = None) -> None:
        """Note a problem with ``element``, or with the whole."""
        line = self.line if element is None else line_of(element)
        self._problems.append(Problem(line, text, code))

    def texts(self, name: str) -> tuple[str, ...]:
        """Return the texts of all elements called ``name`` that have one."""
        found = (inner(element) for element in self._found.get(name, ()))
        return tuple(text for text in found if text)

    def text(self, name: str) -> str | None:
        """Return the text of the first such element; None if there is none or it is empty."""
        texts = self.texts(name)
        return texts[0] if texts else None

    def flag(self, *names: str) -> bool:
        """Return whether a flag is set: ``<x/>`` or ``<x>1</x>``, not ``<x>0</x>``."""
        for name in names:
            for element in self._found.get(name, ()):
                text = inner(element)
                value = 1.0 if text == "" else _finite(text)
                if value is None:
                    self.problem(
                        "bad-flag",
                        f"<{name}> holds {text!r}: expected <{name}/>, or 1 or 0 in it",
                        element,
                    )
                elif value:
                    return True
        return False

    def real(self, name: str) -> float | None:
        """Return a number of at least 0."""
        for element in self._found.get(name, ()):
            text = inner(element)
            value = _finite(text)
            if value is not None and value >= 0:
                return value
            self.problem(
                "bad-number", f"<{name}> holds {text!r}: expected a number, 0 or more", element
            )
        return None

    def integer(self, name: str) -> int | None:
        """Return a whole number; forms such as ``11.000000`` and ``1e6`` are accepted too."""
        least = _LEAST.get(name, 0)
        for element in self._found.get(name, ()):
            text = inner(element)
            value = _finite(text)
            if value is not None and value == int(value) and (least is None or value >= least):
                # As written if that is exact; of thousands of digits, most are zeros.
                exact = len(text) <= _EXACT_DIGITS and _DIGITS.fullmatch(text)
                return int(text) if exact else int(value)
            bound = "" if least is None else f", {least} or more"
            self.problem(
                "bad-number", f"<{name}> holds {text!r}: expected a whole number{bound}", element
            )
        return None

    def values(self, kind: type, *but: str) -> dict[str, Any]:
        """Return the values of a dataclass's fields, which are called as their elements are.

        Each is read as its type says. Fields of other types, and those in ``but``, are left out.
        """
        found = ((each.name, _READERS.get(str(each.type))) for each in dataclasses.fields(kind))
        return {name: read(self, name) for name, read in found if read and name not in but}


#: How the fields of dataclasses are read, by their types.
_READERS: dict[str, Callable[[Fields, str], object]] = {
    "bool": Fields.flag,
    "float | None": Fields.real,
    "int | None": Fields.integer,
    "str | None": Fields.text,
}


def _finite(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and "_" not in text else None
