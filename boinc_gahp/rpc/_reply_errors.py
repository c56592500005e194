"""The errors of RPCs: the right exception, with a message that says what to do."""

from __future__ import annotations

import re
from dataclasses import dataclass
from http.client import responses
from typing import TYPE_CHECKING, TypeVar

from boinc_gahp.errors import ProjectError, ProtocolError, RpcError, TransportError
from boinc_gahp.rpc._foreign_errors import FOREIGN, translated
from boinc_gahp.rpc._pages import page_text, page_title
from boinc_gahp.text import shorten

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lxml import etree

    from boinc_gahp.rpc._redact import Redactor
    from boinc_gahp.rpc._replies import Reply
    from boinc_gahp.rpc._table import Rpc

T = TypeVar("T")

_DOWN = re.compile(
    r"project down for maintenance|temporarily shut down|can.t connect to database", re.I
)
_CHECK_URL = (
    "check the project's URL, and whether it can be reached without a login page in between"
)
#: What to do about some statuses of HTTP.
_ADVICE = {
    404: "check the project's URL",
    413: "the web server does not accept a request of this size",
}
_QUERY = re.compile(r"\n[ \t]*query=")
_XML_PREFIX = re.compile(r"\s*<\?xml")


@dataclass(frozen=True, slots=True)
class ReplyErrors:
    """Makes the errors of one RPC to one host about ``subject``."""

    rpc: Rpc
    host: str
    redact: Redactor
    subject: str = ""

    def translate(self, work: Callable[[], T]) -> T:
        """Return ``work()``; translate any exception of a library."""
        try:
            return work()
        except FOREIGN as foreign:
            error = translated(foreign, self.rpc.name, self.host, self.redact)
        # Raised outside the except block, which would keep the foreign error as __context__.
        raise error

    def chunks(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        """Yield ``chunks``; translate any exception of a library."""
        try:
            yield from chunks
        except FOREIGN as foreign:
            error = translated(foreign, self.rpc.name, self.host, self.redact)
        else:
            return
        raise error

    @property
    def _question(self) -> str:
        return f"{self.rpc.name} for {self.subject}" if self.subject else self.rpc.name

    def refusal(self, number: int, words: str) -> ProjectError:
        """Return the error for the project's number and words."""
        from boinc_gahp.rpc import _refusals  # noqa: PLC0415  (slow to import, and seldom needed)

        words = self.redact(words)
        # The database's error is followed by the query, which may have a megabyte.
        shown = shorten(_QUERY.split(words, maxsplit=1)[0]) or f"error {number}"
        kind, named, advice = _refusals.meaning(number, words)
        advice = f" ({advice})" if advice else ""
        return kind(
            f"{self.host} refuses {self._question}{advice}: {shown}",
            rpc=self.rpc.name,
            host=self.host,
            number=number,
            words=words,
            named=named,
        )

    def status(self, status: int, reason: str, body: str) -> RpcError:
        """Return the error for an HTTP status other than success."""
        body = self.redact(body)
        if status == 500 and _XML_PREFIX.match(body):
            # With display_errors off a PHP fatal error looks like this.
            return self.protocol(
                "the project's PHP died of this request (HTTP 500 after the reply's beginning): "
                "its admin can find the reason in the web server's error log",
                php_fatal=True,
                cut=True,
            )
        title = shorten(page_title(body), 120)
        words = shorten(self.redact(reason), 120) or responses.get(status, "an unknown status")
        if title and words.lower() not in title.lower():
            words = f"{words}, {title!r}"
        advice = _ADVICE.get(status, "check the project's URL, or ask the project's admin")
        if status >= 500:
            advice = "try again later; if this continues, tell the project's admin"
        return TransportError(
            f"{self._question} of {self.host}: HTTP {status} ({words}): {advice}",
            rpc=self.rpc.name,
            host=self.host,
            may_be_running=status >= 500,
            status=status,
            passes=status >= 500 or status in {408, 429},
        )

    def root_of(self, reply: Reply) -> etree._Element:
        """Return the root of ``reply``; raise its error if it is not a good one."""
        if reply.error is not None:
            raise self.refusal(reply.number, reply.words)
        fatal = reply.fatal
        if fatal is not None:
            raise self.protocol(
                f"the project's PHP died of this request: {shorten(self.redact(fatal.text), 300)}",
                php_fatal=True,
            )
        if reply.page is not None:
            raise self.page(reply.page)
        if reply.root is None:
            if reply.other:
                shown = shorten(self.redact(reply.other), 120)
                raise self.protocol(
                    f"the answer {shown!r} is not from a BOINC project: {_CHECK_URL}"
                )
            if reply.empty:
                raise self.protocol("the answer is empty; try again", cut=True)
            # HTTP's framing is right: so PHP ended, as it does without display_errors and
            # output_buffering when it dies.
            raise self.protocol(
                "the answer is cut off; try again", php_fatal=self.rpc.dies, cut=True
            )
        if reply.mismatch:
            raise self.protocol(f"the answer's tags do not match ({reply.mismatch})")
        if reply.incomplete:
            raise self.incomplete(reply.incomplete)
        return reply.root

    def page(self, page: str) -> RpcError:
        """Return the error for a web page instead of a reply."""
        from boinc_gahp.rpc import _refusals  # noqa: PLC0415  (slow to import, and seldom needed)

        text = self.redact(page_text(page))
        down = _DOWN.search(text)
        if down:
            number = (
                _refusals.DATABASE_DOWN if "database" in down[0].lower() else _refusals.WEB_STOPPED
            )
            return self.refusal(number, down[0])
        title = shorten(self.redact(page_title(page)), 120)
        return self.protocol(f"a web page ({title!r}) came instead of an answer: {_CHECK_URL}")

    def incomplete(self, what: str) -> ProtocolError:
        """Return the error for a complete reply that lacks ``what``."""
        return self.protocol(f"the answer is incomplete or wrong: {shorten(what, 200)}")

    def too_much(self, what: str) -> ProtocolError:
        """Return the error for a reply that is too long to be read."""
        return self.protocol(
            f"the answer has more than {what}, so it was not read to its end: {_CHECK_URL}"
        )

    def protocol(self, what: str, *, php_fatal: bool = False, cut: bool = False) -> ProtocolError:
        """Return the error for a reply that is wrong as ``what`` says."""
        return ProtocolError(
            f"{self._question} of {self.host}: {what}",
            rpc=self.rpc.name,
            host=self.host,
            php_fatal=php_fatal,
            cut=cut,
        )
