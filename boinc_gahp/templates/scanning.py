"""Looks at a template as text: whether it is XML, and each element is on a line of its own.

lxml recovers what it can and does not keep the lines of closing tags. Here every tag is seen with
its line, in one pass; its time is proportional to the text's length.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

from boinc_gahp.templates.markup import prolog_end, xml_error
from boinc_gahp.templates.types import Problem, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

#: A name is taken whole: if it were cut, the rest would be scanned again and again.
_TAG = re.compile(r"<(/?)([A-Za-z_][\w:.\-]*)(?![\w:.\-])([^<>]*?)(/?)>")
_NEXT = re.compile(r"[<&]")
_ENTITY = re.compile(r"&(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#x[0-9A-Fa-f]{1,6});")
#: How a construct that looks like a tag begins and ends, and its name.
_SECTIONS = (("<!--", "-->", "comment"), ("<![CDATA[", "]]>", "CDATA section"))
#: The elements that hold others; all others are written on one line with their text.
_CONTAINERS = {
    "input_template",
    "output_template",
    "file_info",
    "file_ref",
    "workunit",
    "result",
}
_BYTE_ORDER_MARK = "\ufeff"
#: Elements that are filled in inside the text of others.
_MACRO = re.compile(r"OUTFILE_[0-9]+|UPLOAD_URL")


@dataclass(slots=True)
class _Element:
    name: str
    line: int
    holds_elements: bool = False


class Scan:
    """One pass over a text.

    Attributes:
        problem: why it is not XML, if it is not; the text after that place was not scanned.
        roots: the lines of the outermost elements.
        late_declarations: the lines of XML declarations other than the first of the text.
    """

    def __init__(self, text: str) -> None:
        self.problem: Problem | None = None
        self.roots: list[int] = []
        self.late_declarations: list[int] = []
        self._text = text
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self._open: list[_Element] = []
        self._in_line: dict[int, int] = {}
        self._split: list[int] = []
        place = 0
        while self.problem is None and (match := _NEXT.search(text, place)):
            place = self._step(match.start())
        if self.problem is None and self._open:
            self._not_closed(self._open[-1], "the end")
        if self.problem is None:
            self.problem = xml_error(text)

    def crowded(self) -> Iterator[Problem]:
        """Yield the lines that hold more than one element or tag, or a part of one."""
        why = "old clients and the server's file deleter read line by line"
        for line, count in self._in_line.items():
            if count > 1:
                text = "more than one element or tag in a line: expected each on a line of its own"
                yield Problem(line, f"{text}; {why}", "one-per-line", Severity.WARNING)
        for line in self._split:
            text = "an element whose text is on several lines: expected it on one line"
            yield Problem(line, f"{text}; {why}", "one-per-line", Severity.WARNING)

    def _step(self, start: int) -> int:
        """Look at the construct that begins at ``start``; return where to go on."""
        text = self._text
        if text[start] == "&":
            match = _ENTITY.match(text, start)
            if match is None:
                self._fail(start, "& does not begin an entity here: expected &amp;")
                return start
            return match.end()
        tag = _TAG.match(text, start)
        if tag is None:
            return self._section(start)
        closing, name, _, empty = tag.groups()
        line = self._line(start)
        if closing:
            self._close(name, line)
        elif empty:
            if not (self._open and _MACRO.fullmatch(name)):
                self._begin(line)
                self._count(line)
        else:
            self._begin(line)
            self._open.append(_Element(name, line))
        return tag.end()

    def _section(self, start: int) -> int:
        text = self._text
        for begin, end, what in _SECTIONS:
            if text.startswith(begin, start):
                stop = text.find(end, start + len(begin))
                if stop < 0:
                    self._fail(start, f"this {what} does not end: expected {end}")
                return stop + len(end)
        if not text.startswith(("<?", "<!"), start):
            self._fail(start, "< does not begin a tag here: expected &lt;, or a complete tag")
        if text.startswith("<?xml", start) and text[: min(start, 2)] not in ("", _BYTE_ORDER_MARK):
            self.late_declarations.append(self._line(start))
        stop = prolog_end(text, start)
        if stop < 0:
            self._fail(start, "this declaration does not end: expected > after it")
        return stop

    def _begin(self, line: int) -> None:
        if not self._open:
            self.roots.append(line)
            return
        outer = self._open[-1]
        if not outer.holds_elements:
            outer.holds_elements = True
            self._count(outer.line)

    def _close(self, name: str, line: int) -> None:
        if not self._open:
            self._fail_in(line, f"</{name}> closes nothing: expected a <{name}> before it")
            return
        element = self._open[-1]
        if element.name != name:
            if any(outer.name == name for outer in self._open):
                self._not_closed(element, f"</{name}> in line {line}")
            else:
                self._fail_in(
                    line,
                    f"</{name}> where <{element.name}> of line {element.line} is open: expected "
                    f"</{element.name}>",
                )
            return
        self._open.pop()
        if element.holds_elements or name in _CONTAINERS:
            if not element.holds_elements:
                self._count(element.line)
            self._count(line)
        elif element.line == line:
            self._count(line)
        else:
            self._count(element.line)
            # BOINC itself writes a command line between two line ends.
            if name != "command_line":
                self._split.append(element.line)

    def _not_closed(self, element: _Element, before: str) -> None:
        self._fail_in(
            element.line,
            f"<{element.name}> is not closed before {before}: expected </{element.name}>",
        )

    def _count(self, line: int) -> None:
        self._in_line[line] = self._in_line.get(line, 0) + 1

    def _line(self, place: int) -> int:
        return bisect_right(self._starts, place)

    def _fail(self, place: int, text: str) -> None:
        self._fail_in(self._line(place), text)

    def _fail_in(self, line: int, text: str) -> None:
        if self.problem is None:
            self.problem = Problem(line, text, "malformed")
