"""From what the project writes to well-formed XML, as the bytes arrive.

Replies look like XML and often are not (``web-rpcs.md``, "Transport and framing"): names and error
messages stand in them unescaped, PHP's messages between the elements or outside the root, the tag
``<aborted JOBNAME>`` is never closed, a template file brings an XML declaration along. A tolerant
parser alone would not do: libxml2 recovers from ``<job_name>a<b</job_name>`` by dropping a part of
the name. So the text of the elements that hold names is escaped here, up to its closing tag, and
whatever else is no tag becomes text; the parser after this one then has nothing to guess.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

#: Elements whose text the project writes unescaped (or, for stderr_out and an error message that
#: echoes a request, escaped once more by PHP: that is undone by whoever reads them).
RAW_TEXT = ("job_name", "name", "app_name", "error_msg", "stderr_out", "templates")

#: A text that has not ended after so many bytes never will; the largest seen is an error message
#: of 1 MB.
_LONGEST_TEXT = 16 * 2**20
_LONGEST_MESSAGE = 65536
_LONGEST_TAG = 4096
_MESSAGES_KEPT = 1000
#: The beginning of one of PHP's messages, up to its kind, is shorter.
_HEAD = 60

_KINDS = rb"Fatal error|Parse error|Recoverable fatal error|Warning|Notice|Deprecated"
_RAW = "|".join(RAW_TEXT).encode()
#: Everything that is not plain XML: an ampersand, a raw text that needs escaping, HTML that PHP
#: (or a debugger in it) writes between the elements, and ``<`` that begins no tag.
_SUSPECT = re.compile(
    rb"&|\]\]>"
    rb"|<(?P<raw>" + _RAW + rb")>(?![^<>&\r]*</(?P=raw)>)"
    rb"|<(?P<html>/?(?:br|b|i|u|p|hr|em|font|pre|span|strong|table|tbody|th|td|tr)(?:\s[^<>]*)?/?>)"
    rb"|<(?!/?[A-Za-z_][\w.-]*\s*/?>)"
    rb"|\n(?P<plain>(?:PHP )?(?:" + _KINDS + rb"): )"
)
#: What a reply with 100,000 jobs consists of, as far as nothing in it is suspect: four times as
#: fast as looking at every tag.
_UNSUSPECTED = re.compile(
    rb"[^<&\]\n]*(?:(?:<job_name>[^<>&\r]*</job_name>|<name>[^<>&\r]*</name>"
    rb"|</?(?:job|status|batch_size|id|canonical_instance_id|exit_status|cpu_time|file)>"
    rb"|\n(?!PHP |[FPRWND]))[^<&\]\n]*)*"
)
_HTML_MESSAGE = re.compile(rb"<br ?/?>\s*<b>(" + _KINDS + rb")</b>:\s*")
_HTML_MESSAGE_END = re.compile(rb" on line <b>\d+</b>(?:<br />)?")
_PLAIN_MESSAGE = re.compile(rb"\n(?:PHP )?(" + _KINDS + rb"): +")
_PLAIN_MESSAGE_END = re.compile(rb" on line \d+(?=\s)")
_DECLARATION = re.compile(rb"<\?.{0,%d}?\?>" % (_LONGEST_TAG - 4), re.DOTALL)
_NOT_XML = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]|\xef\xbf[\xbe\xbf]")
_CONTROLS = bytes(set(range(0x20)) - set(b"\t\n\r"))
_REPLACEMENT = "\ufffd".encode()
_SPECIAL = re.compile(rb"[&<>\r]")
#: XML's line ends would be made plain newlines otherwise, and ``]]>`` must not stand in a text.
_ESCAPED = {b"&": b"&amp;", b"<": b"&lt;", b">": b"&gt;", b"\r": b"&#13;", b"]]>": b"]]&gt;"}
_TAGS = re.compile(rb"<[^<>]{0,200}>")


@dataclass(frozen=True, slots=True)
class PhpMessage:
    """A message of the project's PHP; ``fatal`` if the script died of it."""

    kind: str
    text: str

    @property
    def fatal(self) -> bool:
        """Whether the script ended here."""
        return "fatal" in self.kind.lower() or self.kind == "Parse error"


class Repair:
    """Feed it bytes as they come; what it returns is XML, as far as the reply ever was.

    Attributes:
        messages: PHP's messages, in the order of their coming (the first 1,000).
    """

    def __init__(self) -> None:
        self.messages: list[PhpMessage] = []
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._ascii = True
        self._held = b""
        self._unread = bytearray()

    def feed(self, data: bytes) -> bytes:
        """Take the next bytes; return what is certain by now."""
        # What is held back is looked at again only when there is a good deal more: otherwise a long
        # text that comes byte by byte would take a time that grows with its square.
        self._unread += self._clean(data, final=False)
        if len(self._unread) < len(self._held) // 8:
            return b""
        return self._pass(final=False)

    def close(self) -> bytes:
        """Return what was held back."""
        self._unread += self._clean(b"", final=True)
        return self._pass(final=True)

    def _clean(self, data: bytes, *, final: bool) -> bytes:
        """Replace what is not UTF-8, and characters that XML cannot hold."""
        if not (self._ascii and data.isascii()):
            data = self._decoder.decode(data, final).encode()
            # Bytes of an unfinished character wait in the decoder.
            self._ascii = not self._decoder.getstate()[0]
        elif len(data.translate(None, _CONTROLS)) == len(data):
            return data
        return _NOT_XML.sub(_REPLACEMENT, data)

    def _pass(self, *, final: bool) -> bytes:
        data = self._held + self._unread
        self._held = b""
        self._unread.clear()
        out: list[bytes] = []
        here = 0
        while match := _SUSPECT.search(data, self._unsuspected(data, here)):
            out.append(data[here : match.start()])
            taken = self._suspect(data, match, out, final=final)
            if taken is None:
                self._held = data[match.start() :]
                return b"".join(out)
            here = taken
        end = len(data)
        if not final:
            # A line's end may begin one of PHP's messages, a bracket may begin ``]]>``.
            newline = data.rfind(b"\n", max(here, end - _HEAD))
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
        """Put what ``match`` stands for into ``out``; return where to go on, None to wait."""
        start = match.start()
        if match[0] in (b"&", b"]]>"):
            out.append(_ESCAPED[match[0]])
            return match.end()
        if match["raw"]:
            return self._raw_text(data, match, out, final=final)
        if match["html"] or match["plain"]:
            return self._message(data, match, final=final)
        unfinished = not final and len(data) - start < _LONGEST_TAG
        closing = b">"
        if data.startswith(b"<?", start):
            declaration = _DECLARATION.match(data, start)
            if declaration:
                return declaration.end()
            closing = b"?>"  # a ">" alone does not end a declaration
        if unfinished and data.find(closing, start + len(closing)) < 0:
            return None
        out.append(b"&lt;")
        return match.end()

    def _raw_text(
        self, data: bytes, match: re.Match[bytes], out: list[bytes], *, final: bool
    ) -> int | None:
        closing = b"</" + match["raw"] + b">"
        end = data.find(closing, match.end())
        if end < 0 and not final and len(data) - match.start() < _LONGEST_TEXT:
            return None
        out.append(match[0])
        if end < 0:
            return match.end()
        text = data[match.end() : end]
        out.append(_SPECIAL.sub(lambda special: _ESCAPED[special[0]], text))
        return end

    def _message(self, data: bytes, match: re.Match[bytes], *, final: bool) -> int | None:
        """Take one of PHP's messages out of the stream; other HTML is dropped."""
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
        last = tail.search(data, head.end(), start + _LONGEST_MESSAGE)
        if last is None and waiting:
            return None
        end = head.end() if last is None else last.end()
        text = data[head.end() : end if last else head.end() + _LONGEST_MESSAGE]
        if len(self.messages) < _MESSAGES_KEPT:
            plain = _TAGS.sub(b"", text) if match["html"] else text
            self.messages.append(
                PhpMessage(head[1].decode(), plain.decode("utf-8", "replace").strip())
            )
        return end
