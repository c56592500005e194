"""Reads replies as they arrive, and checks them when they have ended.

:mod:`boinc_gahp.rpc._repair` and lxml's recovery are tolerant; this module is strict. A reply
counts only if the root element named after the RPC was closed, all tags match, it contains no PHP
fatal error, and the project reported no error.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from lxml import etree

from boinc_gahp.rpc._pages import PAGE_BYTES, is_page, page_beginning
from boinc_gahp.rpc._repair import PhpMessage, Repair
from boinc_gahp.rpc._table import ITEM_BYTES, REPLY_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from boinc_gahp.rpc._results import RegularForm

R = TypeVar("R")

#: What people can do about an answer that hardly comes from a project.
CHECK_URL = "check the project's URL, and whether it can be reached without a login page in between"

_SNIFFED = 2048
#: After so many bytes of markup, elements that were not taken are dropped.
_PRUNED_AFTER = 1 << 18
#: How many elements may remain. A record has a dozen, and so has the rest of a reply.
_MOST_ELEMENTS = 10_000
#: How many places may not be plain XML, such as a job's name; each costs a microsecond.
_MOST_REPAIRS = 2_000_000
#: The most characters of a record that is kept until its end comes, to read it at a glance.
_LONGEST_RECORD = 2048
#: An element before the reply, so that the parser shows the text around the reply.
_BEGUN = "begun"
_ENTITIES = {"&lt;": "<", "&gt;": ">", "&quot;": '"', "&#039;": "'", "&#39;": "'", "&amp;": "&"}
_ENTITY = re.compile("|".join(map(re.escape, _ENTITIES)))
#: Errors that end in a name, which the project does not escape.
_NAMING = re.compile(r"(?:no|not|app|job|bad) ")


class IncompleteReply(Exception):
    """A reply lacks a value that its RPC always returns, or has it in another form."""


def _endless(what: str) -> IncompleteReply:
    return IncompleteReply(f"it has more than {what}, so it was not read to its end: {CHECK_URL}")


@dataclass(slots=True)
class RepeatedElements(Generic[R]):
    """The elements that a reply repeats: each is turned into a value, and then dropped.

    Attributes:
        tags: their names.
        make: makes a value from an element; may raise :class:`IncompleteReply`.
        most: how many there can be.
        regular: the form of nearly all of them, if there are many.
        items: the values so far.
    """

    tags: tuple[str, ...]
    make: Callable[[etree._Element], R]
    most: int
    regular: RegularForm | None = None
    items: list[R] = field(default_factory=list)

    def take(self, element: etree._Element) -> None:
        """Make a value from ``element`` and keep it."""
        self.extend((self.make(element),))

    def extend(self, values: Iterable[R]) -> None:
        """Keep values."""
        self.items.extend(values)

    def clear(self) -> None:
        """Drop the values of a failed attempt."""
        self.items.clear()


@dataclass(slots=True)
class Reply:
    """A reply that has ended.

    Attributes:
        root: the root element without the records, which were taken out; None if it was never
            closed.
        error: ``<error>`` with a number, in the root or one level below.
        page: the beginning of the body if it was a web page.
        other: the beginning of the body if it was not markup and had no root.
        empty: whether only white space came.
        mismatch: where opening and closing tags do not match; empty if they do.
        incomplete: what a record lacks; empty if nothing.
        messages: PHP's messages in the reply.
    """

    root: etree._Element | None = None
    error: etree._Element | None = None
    page: str | None = None
    other: str = ""
    empty: bool = True
    mismatch: str = ""
    incomplete: str = ""
    messages: list[PhpMessage] = field(default_factory=list)

    @property
    def number(self) -> int:
        """``error_num``; -1 if it cannot be read."""
        text = "" if self.error is None else self.error.findtext("error_num") or ""
        try:
            number = int(text[:12])
        except ValueError:
            return -1
        return number

    @property
    def words(self) -> str:
        """``error_msg``, with PHP's escapes undone."""
        return unescaped_words("" if self.error is None else self.error.findtext("error_msg") or "")

    @property
    def fatal(self) -> PhpMessage | None:
        """The message with which PHP ended, if it did."""
        return next((message for message in self.messages if message.fatal), None)


def read(
    chunks: Iterable[bytes],
    root: str,
    records: RepeatedElements[Any] | None = None,
    *,
    answers: tuple[str, ...] = (),
) -> Reply:
    """Read a whole reply; repeated elements go to ``records``, which is emptied first.

    Of the root's children the first of each name in ``answers`` is kept.

    Raises:
        IncompleteReply: it has more bytes, or more records, than possible.
    """
    most = REPLY_BYTES
    if records is not None:
        records.clear()
        most = max(most, ITEM_BYTES * records.most)
    left = most
    reading = _Reading(root, records, answers)
    for chunk in chunks:
        left -= len(chunk)
        if left < 0:
            raise _endless(f"{most:,} bytes")
        reading.feed(chunk)
        if reading.has_enough:
            break
    return reading.close()


class _Reading:
    """One reply while it arrives."""

    def __init__(
        self, root: str, records: RepeatedElements[Any] | None, answers: tuple[str, ...]
    ) -> None:
        self._root = root
        self._records = records
        self._answers = (*answers, "error")
        self._count = 0
        self._unpruned = 0
        self._reply = Reply()
        self._repair = Repair()
        self._begun = b""
        #: The beginning of a record that may be regular.
        self._begun_record = ""
        self._taken: list[Any] = []
        tags = () if records is None else records.tags
        self._parser: Any = etree.XMLPullParser(
            events=("end",),
            tag=(_BEGUN, root, "error", *tags),
            encoding="utf-8",
            recover=True,
            resolve_entities=False,
            no_network=True,
            huge_tree=True,
        )
        # PHP's messages, and errors without a root element, come beside the root.
        self._parser.feed(f"<reply><{_BEGUN}/>".encode())
        begun: Any = next(self._parser.read_events())[1]
        self._top: etree._Element = begun.getparent()

    @property
    def has_enough(self) -> bool:
        """Whether it is a page, whose rest is not needed."""
        return self._reply.page is not None and len(self._begun) > PAGE_BYTES

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes."""
        reply = self._reply
        if reply.page is None and len(self._begun) < _SNIFFED:
            self._begun += chunk
            if is_page(self._begun):
                reply.page = ""
                return
        if reply.page is not None:
            self._begun += chunk
            return
        if reply.empty:
            reply.empty = not chunk or chunk.isspace()
        if self._records is None or self._records.regular is None:
            self._feed(self._repair.feed(chunk))
        else:
            self._read_at_a_glance(self._repair.clean(chunk), self._records, self._records.regular)
        if self._repair.repairs > _MOST_REPAIRS:
            raise _endless(f"{_MOST_REPAIRS:,} places that are not XML")

    def close(self) -> Reply:
        """Return the reply, which has ended."""
        reply = self._reply
        if reply.page is None:
            self._feed(self._repair.mend(self._begun_record.encode()))
            self._feed(self._repair.close() + b" ")
            reply.messages = self._repair.messages
            reply.mismatch = _mismatch(self._parser)
            if reply.root is None and b"<" not in self._begun:
                reply.other = page_beginning(self._begun).strip()
        else:
            reply.page = page_beginning(self._begun)
            reply.empty = False
        return reply

    def _read_at_a_glance(
        self, data: bytes, records: RepeatedElements[Any], regular: RegularForm
    ) -> None:
        """Take the records of the regular form out of ``data``; repair and parse the rest."""
        text = self._begun_record + data.decode()
        step = regular.pattern.groups + 1
        # What is between the records, each followed by its record's texts.
        parts = regular.pattern.split(text)
        if self._repair.is_between and not any(parts[:-1:step]):
            columns = (parts[number:-1:step] for number in range(1, step))
            records.extend(map(regular.make, zip(*columns, strict=True)))
            self._count += len(parts) // step
            rest = parts[-1]
        else:
            here = 0
            for match in regular.pattern.finditer(text):
                # The text before the match belongs before it.
                if match.start() > here:
                    self._feed(self._repair.mend(text[here : match.start()].encode()))
                    here = match.start()
                if self._repair.is_between:  # it is not a text that looks like a record
                    records.extend((regular.make(match.groups()),))
                    self._count += 1
                    here = match.end()
            rest = text[here:]
        begins = rest.rfind("<job>")
        if begins < 0 or len(rest) - begins > _LONGEST_RECORD:
            begins = len(rest)
        self._begun_record = rest[begins:]
        self._feed(self._repair.mend(rest[:begins].encode()))

    def _feed(self, data: bytes) -> None:
        if data:
            self._parser.feed(data)
        records = self._records
        tags = () if records is None else records.tags
        for _, element in self._parser.read_events():
            if records is None or element.tag not in tags:
                self._note(element, element.getparent())
                continue
            try:
                records.take(element)
            except IncompleteReply as lacking:
                self._reply.incomplete = self._reply.incomplete or str(lacking)
            self._count += 1
            self._taken.append(element)
        if records is not None and self._count > records.most:
            raise _endless(f"{records.most:,} <{records.tags[-1]}>s")
        # The parser may still write to the last element; those before it can be dropped.
        for element in self._taken[:-1]:
            parent = element.getparent()
            if parent is not None:  # not pruned yet
                parent.remove(element)
        del self._taken[:-1]
        self._unpruned += len(data)
        if self._unpruned > _PRUNED_AFTER:
            self._unpruned = 0
            self._prune()

    def _prune(self) -> None:
        """Drop unused elements; too many of the others mean that this is not a reply."""
        _keep_firsts(self._top, (self._root, "error"))
        if len(self._top) and self._top[-1].tag == self._root:
            _keep_firsts(self._top[-1], self._answers)
        if sum(1 for _ in islice(self._top.iter(), _MOST_ELEMENTS + 1)) > _MOST_ELEMENTS:
            raise _endless(f"{_MOST_ELEMENTS:,} elements")

    def _note(self, element: etree._Element, parent: etree._Element | None) -> None:
        """Keep the root, and an error in the root or beside it; a job's ``<error>`` is neither."""
        reply = self._reply
        if parent is None or parent.tag not in {"reply", self._root}:
            return
        if element.tag == "error":
            if reply.error is None:
                reply.error = element
        elif element.tag == self._root and parent.tag == "reply" and reply.root is None:
            reply.root = element


def _keep_firsts(parent: etree._Element, names: tuple[str, ...]) -> None:
    """Drop all children but the first of each name, and the last, which may be unfinished."""
    firsts: dict[str, etree._Element] = {}
    for child in parent.iterchildren(*names):
        firsts.setdefault(child.tag, child)
    if len(parent):
        last = parent[-1]
        del parent[:-1]
        parent[:0] = [child for child in firsts.values() if child is not last]


def _mismatch(parser: Any) -> str:
    for entry in parser.feed_error_log:
        if entry.type == etree.ErrorTypes.ERR_TAG_NAME_MISMATCH:
            return str(entry.message)
    return ""


def unescaped_words(text: str) -> str:
    """Return an error message without the escapes that PHP added.

    Only echoed requests and programs' outputs are escaped; messages that end in a name have it
    unescaped (``web-rpcs.rst``, "Transport and framing").
    """
    if _NAMING.match(text):
        return text
    return _unescape(text)


def _unescape(text: str) -> str:
    return _ENTITY.sub(lambda match: _ENTITIES[match[0]], text)


def stderr_text(text: str) -> str:
    """Return stderr_out without its CDATA and with PHP's escapes undone.

    It is CDATA and escaped as well (``web-rpcs.rst``, "query_completed_job").
    """
    inner = text.strip()
    if inner.startswith("<![CDATA[") and inner.endswith("]]>"):
        text = inner[len("<![CDATA[") : -len("]]>")]
    return _unescape(text)
