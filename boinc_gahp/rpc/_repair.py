"""Turns the project's replies into well-formed XML while they arrive.

Replies look like XML and often are not (``web-rpcs.rst``, "Transport and framing"). Names and error
messages are not escaped; PHP's messages appear between the elements or outside the root; the tag
``<aborted JOBNAME>`` is never closed; a template file has its own XML declaration. A tolerant
parser alone is not enough: libxml2 recovers from ``<job_name>a<b</job_name>`` by dropping part of
the name. So the text of elements with names is escaped here, up to its closing tag, and everything
else that is not a tag becomes text. Then the parser does not have to guess.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

#: Elements whose text the project does not escape. (PHP escapes stderr_out, and an error message
#: that echoes a request, once more; their readers undo that.)
RAW_TEXT = ("job_name", "name", "app_name", "error_msg", "stderr_out", "templates")

#: How many bytes of a text's beginning and of its end are kept. The longest text seen was an error
#: message of 1 MB; a project's database cuts a job's stderr at 64 kB by default.
MAX_TEXT_PART = 512 * 1024
_LONGEST_MESSAGE = 65536
#: The same for a message of PHP.
_MAX_MESSAGE_PART = 1024
_MESSAGES_KEPT = 1000
_LONGEST_TAG = 4096
#: Long input is processed in pieces; the result does not depend on where it is cut.
_PIECE = 65536
#: The beginning of a PHP message, up to its kind, is shorter.
_HEAD = 60

_KINDS = rb"Fatal error|Parse error|Recoverable fatal error|Warning|Notice|Deprecated"
_RAW = "|".join(RAW_TEXT).encode()
#: Everything that is not plain XML: an ampersand, a raw text that needs escaping, HTML that PHP (or
#: a debugger in it) writes between the elements, and a ``<`` that does not begin a tag.
_SUSPECT = re.compile(
    rb"&|\]\]>"
    rb"|<(?P<raw>" + _RAW + rb")>(?![^<>&\r]{0,4096}</(?P=raw)>)"
    rb"|<(?P<html>/?(?:br|b|i|u|p|hr|em|font|pre|span|strong|table|tbody|th|td|tr)(?:\s[^<>]*)?/?>)"
    rb"|<(?!/?[A-Za-z_][\w.-]*\s*/?>)"
    rb"|\n(?P<plain>(?:PHP )?(?:" + _KINDS + rb"): )"
)
#: The unsuspicious parts of a reply with 100,000 jobs: four times as fast as checking every tag.
_UNSUSPECTED = re.compile(
    rb"[^<&\]\n]*(?:(?:<job_name>[^<>&\r]{0,4096}</job_name>|<name>[^<>&\r]{0,4096}</name>"
    rb"|</?(?:job|status|batch_size|id|canonical_instance_id|exit_status|cpu_time|file)>"
    rb"|\n(?!PHP |[FPRWND]))[^<&\]\n]*)*"
)
_HTML_MESSAGE = re.compile(rb"<br ?/?>\s*<b>(" + _KINDS + rb")</b>:\s*")
_HTML_MESSAGE_END = re.compile(rb" on line <b>\d+</b>(?:<br />)?")
_PLAIN_MESSAGE = re.compile(rb"\n(?:PHP )?(" + _KINDS + rb"): +")
_PLAIN_MESSAGE_END = re.compile(rb" on line \d+(?=\s)")
_NOT_XML = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]|\xef\xbf[\xbe\xbf]")
_CONTROLS = bytes(set(range(0x20)) - set(b"\t\n\r"))
_REPLACEMENT = "\ufffd".encode()
_SPECIAL = re.compile(rb"[&<>\r]")
#: XML would turn all line ends into newlines, and ``]]>`` is not allowed in a text.
_ESCAPED = {b"&": b"&amp;", b"<": b"&lt;", b">": b"&gt;", b"\r": b"&#13;", b"]]>": b"]]&gt;"}
_TAGS = re.compile(rb"<[^<>]{0,200}>")


@dataclass(frozen=True, slots=True)
class PhpMessage:
    """A message of the project's PHP; ``fatal`` if the script ended with it."""

    kind: str
    text: str

    @property
    def fatal(self) -> bool:
        """Whether the script ended here."""
        return "fatal" in self.kind.lower() or self.kind == "Parse error"


class Repair:
    """Takes the bytes of a reply as they arrive, and returns well-formed XML, if it was complete.

    It holds a limited number of bytes, and reads each byte a limited number of times. The middle of
    a text of more than a megabyte is left out, and replaced by a line that says so.

    Attributes:
        messages: PHP's messages, in their order (the first 1,000).
        repairs: how many places were not plain XML so far.
    """

    def __init__(self) -> None:
        self.messages: list[PhpMessage] = []
        self.repairs = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._ascii = True
        self._long: _LongText | None = None
        self._nearest: dict[object, tuple[int, int]] = {}
        self._held = b""
        self._unread = bytearray()

    def feed(self, data: bytes) -> bytes:
        """Take the next bytes; return the part that is finished."""
        return self.mend(self.clean(data))

    @property
    def is_between(self) -> bool:
        """Whether the bytes so far end between elements, with nothing but white space held back.

        Then an element can be left out of what is fed next.
        """
        return self._long is None and not self._unread and not self._held.strip()

    def clean(self, data: bytes) -> bytes:
        """Take the next bytes; return them as UTF-8, and only with characters that XML can hold."""
        return self._clean(data, final=False)

    def mend(self, data: bytes) -> bytes:
        """Take the next bytes as :meth:`clean` returned them; return the part that is finished."""
        if len(data) <= _PIECE:
            return self._take(data)
        return b"".join(
            self._take(data[start : start + _PIECE]) for start in range(0, len(data), _PIECE)
        )

    def _take(self, data: bytes) -> bytes:
        # The held-back bytes are read again only after many more have arrived. Otherwise the time
        # for a long text that arrives byte by byte would grow with the square of its length.
        self._unread += data
        if len(self._unread) < len(self._held) // 8:
            return b""
        return self._pass(final=False)

    def close(self) -> bytes:
        """Return the bytes that were held back."""
        self._unread += self._clean(b"", final=True)
        return self._pass(final=True)

    def _clean(self, data: bytes, *, final: bool) -> bytes:
        """Replace bytes that are not UTF-8, and characters that XML cannot hold."""
        if not (self._ascii and data.isascii()):
            data = self._decoder.decode(data, final).encode()
            # The decoder holds the bytes of an unfinished character.
            self._ascii = not self._decoder.getstate()[0]
        elif len(data.translate(None, _CONTROLS)) == len(data):
            return data
        return _NOT_XML.sub(_REPLACEMENT, data)

    def _pass(self, *, final: bool) -> bytes:
        data = self._held + self._unread
        self._held = b""
        self._unread.clear()
        self._nearest.clear()
        out: list[bytes] = []
        if self._long is not None:
            rest = self._long.take(data)
            if rest is None and not final:
                return b""
            out.append(_escaped(self._long.text()))
            self._long, data = None, rest or b""
        here = 0
        while match := _SUSPECT.search(data, plain := self._unsuspected(data, here)):
            self.repairs += 1
            out.append(data[here : match.start()])
            taken = self._suspect(data, match, out, final=final)
            if taken is None:
                self._held = b"" if self._long else data[match.start() :]
                return b"".join(out)
            here = taken
        end = len(data)
        if not final:
            # A PHP message may begin at a line's end, unless it is inside a plain text (but the
            # very last one may always); a bracket may begin ``]]>``.
            newline = data.rfind(b"\n", max(here, end - _HEAD, min(plain, end - 1)))
            end = len(data.rstrip(b"]")) if newline < 0 else newline
            end = max(end, here)
        out.append(data[here:end])
        self._held = data[end:]
        return b"".join(out)

    def _unsuspected(self, data: bytes, here: int) -> int:
        match = _UNSUSPECTED.match(data, here)
        return here if match is None else match.end()

    def _suspect(
        self, data: bytes, match: re.Match[bytes], out: list[bytes], *, final: bool
    ) -> int | None:
        """Put the replacement of ``match`` into ``out``; return where to go on, None to wait."""
        start = match.start()
        if match[0] in (b"&", b"]]>"):
            out.append(_ESCAPED[match[0]])
            return match.end()
        if match["raw"]:
            return self._raw_text(data, match, out, final=final)
        if match["html"] or match["plain"]:
            return self._message(data, match, final=final)
        unfinished = not final and len(data) - start < _LONGEST_TAG
        # A ">" alone does not end a declaration.
        closing = b"?>" if data.startswith(b"<?", start) else b">"
        end, after = self._find(closing, data, start + len(closing))
        if closing == b"?>" and end >= 0 and after - start <= _LONGEST_TAG:
            return after
        if unfinished and end < 0:
            return None
        out.append(b"&lt;")
        return match.end()

    def _raw_text(
        self, data: bytes, match: re.Match[bytes], out: list[bytes], *, final: bool
    ) -> int | None:
        closing = b"</" + match["raw"] + b">"
        begin = match.end()
        end, _ = self._find(closing, data, begin)
        if end < 0 and not final and len(data) - begin <= 2 * MAX_TEXT_PART:
            return None
        out.append(match[0])
        if end < 0 and final:
            return begin
        text = _LongText(closing)
        if text.take(data[begin:] if end < 0 else data[begin : end + len(closing)]) is None:
            self._long = text
            return None
        out.append(_escaped(text.text()))
        return end

    def _find(self, what: bytes | re.Pattern[bytes], data: bytes, start: int) -> tuple[int, int]:
        """Return the first place of ``what`` at or after ``start``, as begin and end; or -1, -1.

        ``start`` never decreases. Both results are remembered, also that nothing was found: of a
        thousand beginnings without an end, only one causes a search to the end of ``data``.
        """
        found = self._nearest.get(what)
        if found is None or 0 <= found[0] < start:
            if isinstance(what, bytes):
                place = data.find(what, start)
                found = (place, place + len(what) if place >= 0 else -1)
            else:
                match = what.search(data, start)
                found = (-1, -1) if match is None else match.span()
            self._nearest[what] = found
        return found

    def _message(self, data: bytes, match: re.Match[bytes], *, final: bool) -> int | None:
        """Take a PHP message out of the stream; other HTML is dropped."""
        start = match.start()
        waiting = not final and len(data) - start < _LONGEST_MESSAGE
        if match["html"]:
            head = _HTML_MESSAGE.match(data, start)
            tail = _HTML_MESSAGE_END
            if head is None:
                begun = waiting and match[0].startswith(b"<br") and len(data) - start < _HEAD
                return None if begun else match.end()
        else:
            head = _PLAIN_MESSAGE.match(data, start)
            tail = _PLAIN_MESSAGE_END
            if head is None:
                return match.end()
        _, end = self._find(tail, data, head.end())
        ends = 0 <= end <= start + _LONGEST_MESSAGE
        if not ends and waiting:
            return None
        text = data[head.end() : end if ends else head.end() + _LONGEST_MESSAGE]
        end = end if ends else head.end()
        if len(self.messages) < _MESSAGES_KEPT:
            if len(text) > 2 * _MAX_MESSAGE_PART:
                text = text[:_MAX_MESSAGE_PART] + b" ... " + text[-_MAX_MESSAGE_PART:]
            plain = _TAGS.sub(b"", text) if match["html"] else text
            self.messages.append(
                PhpMessage(head[1].decode(), plain.decode("utf-8", "replace").strip())
            )
        return end


class _LongText:
    """A text up to its closing tag; keeps its beginning and its end, however long it is."""

    def __init__(self, closing: bytes) -> None:
        self._closing = closing
        self._head = b""
        self._tail = bytearray()
        self._left_out = 0

    def take(self, data: bytes) -> bytes | None:
        """Take the next bytes; return those from the closing tag on, None if it has not come."""
        seen = len(self._tail)
        self._tail += data
        end = self._tail.find(self._closing, max(0, seen - len(self._closing) + 1))
        rest = bytes(self._tail[end:]) if end >= 0 else None
        if rest is not None:
            del self._tail[end:]
        if len(self._tail) > 2 * MAX_TEXT_PART:
            if not self._head:
                self._head = bytes(self._tail[:MAX_TEXT_PART])
                del self._tail[:MAX_TEXT_PART]
            self._leave_out(0 if rest is not None else len(self._closing))
        return rest

    def text(self) -> bytes:
        """Return the text, with a line in place of any part that was left out."""
        if not self._head:
            return bytes(self._tail)
        self._leave_out(0)
        if not self._left_out:
            return self._head + self._tail
        line = f"\n... {self._left_out:,} bytes left out here ...\n"
        # A character may have been cut in two.
        parts = (part.decode("utf-8", "ignore") for part in (self._head, self._tail))
        return line.join(parts).encode()

    def _leave_out(self, more: int) -> None:
        """Drop all but the last bytes and ``more``, which may be the start of the closing tag."""
        excess = len(self._tail) - MAX_TEXT_PART - more
        if excess > 0:
            del self._tail[:excess]
            self._left_out += excess


def _escaped(text: bytes) -> bytes:
    return _SPECIAL.sub(lambda special: _ESCAPED[special[0]], text)
