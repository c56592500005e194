"""One RPC from end to end: attempts, redirects, time limits, errors, and its log line.

Redirects are followed to the same server, and from http to https of the same host. A request has
the authenticator in its body, and perhaps in its URL. So the URL is parsed by the same parser that
connects, :func:`urllib3.util.parse_url`, and the next URL is built from the parts that it found. A
location that two parsers may read differently is refused.
"""

from __future__ import annotations

import logging
import math
import re
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urljoin, urlsplit

from urllib3.util import Url, parse_url

from boinc_gahp.errors import (
    GahpError,
    ProjectError,
    ProtocolError,
    RpcError,
    TransportError,
)
from boinc_gahp.rpc._limits import TimeLimits
from boinc_gahp.rpc._pages import PAGE_BYTES, page_beginning
from boinc_gahp.rpc._replies import IncompleteReply, Reply, read
from boinc_gahp.rpc._reply_errors import ReplyErrors
from boinc_gahp.rpc._transport import HttpRequest, odd_encoding
from boinc_gahp.rpc.retry import repeated
from boinc_gahp.secret import hide_logins
from boinc_gahp.text import quoted, shorten

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lxml import etree

    from boinc_gahp.rpc._build import FormBody
    from boinc_gahp.rpc._redact import Redactor
    from boinc_gahp.rpc._repair import PhpMessage
    from boinc_gahp.rpc._replies import RepeatedElements
    from boinc_gahp.rpc._table import Rpc
    from boinc_gahp.rpc._transport import HttpReply, Transport
    from boinc_gahp.rpc.options import ClientOptions

T = TypeVar("T")

log = logging.getLogger("boinc_gahp.rpc")

_REDIRECTS = 5
#: Statuses that ask for the same request elsewhere. 303 asks for a GET of something else instead,
#: so it is not a reply to the request.
_AGAIN = (301, 302, 307, 308)
_PORTS = {"http": 80, "https": 443}
#: Allowed in a Location: visible ASCII without the backslash, which some read as a slash.
_PLAIN = re.compile(r"[!-\[\]-~]+")
_SAME_MESSAGE_AGAIN = 3600.0
_MESSAGES_REMEMBERED = 500
#: No request is started with less time left than this.
_NO_TIME = 0.001


@dataclass(slots=True)
class RpcCall:
    """One RPC: its address, its body, what its reply repeats, and so on; and its traffic.

    Attributes:
        until: ``time.monotonic()`` by which it ends; None: the time limits of the options hold.
        subject: what it is about, for errors.
        plain: whether its reply is a file: it must not be compressed, so that its length can be
            checked, may take as long as it likes, and is logged by the code that reads it.
    """

    rpc: Rpc
    url: str
    until: float | None
    make_body: Callable[[], FormBody] | None = None
    records: RepeatedElements[Any] | None = None
    subject: str = ""
    cookie: Callable[[], str] | None = None
    plain: bool = False
    attempts: int = 0
    began: float = field(default_factory=time.monotonic)
    sent: int = 0
    received: int = 0


@dataclass(slots=True)
class Caller:
    """The state that all RPCs to a project share; thread-safe.

    Attributes:
        speaks_https: set when a request to http was redirected to https of the same host. Later
            requests go there directly, so the authenticator is sent in clear only once.
    """

    host: str
    options: ClientOptions
    transport: Transport
    redact: Redactor
    closing: threading.Event = field(default_factory=threading.Event)
    speaks_https: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _warned: dict[str, float] = field(default_factory=dict)

    def ask(self, call: RpcCall, answer: Callable[[etree._Element], T]) -> T:
        """Send the request; return what ``answer`` makes of the reply's root element.

        Raises:
            RpcError: one of its subclasses, see :mod:`boinc_gahp.errors`.
        """
        errors = self._errors(call)

        def attempt() -> T:
            try:
                reply = self._read(call, errors)
                self._log_messages(call.rpc, reply.messages)
                return answer(errors.root_of(reply))
            except IncompleteReply as lacking:
                trouble = errors.incomplete(str(lacking))
            raise trouble

        return self._attempts(call, attempt)

    def open(self, call: RpcCall, begin: Callable[[HttpReply, ReplyErrors], T]) -> T:
        """Request a file; return what ``begin`` makes of the reply's beginning."""
        errors = self._errors(call)

        def attempt() -> T:
            reply = self._send(call, errors)
            try:
                return begin(reply, errors)
            except BaseException:
                reply.close()
                raise

        return self._attempts(call, attempt)

    # -- one RPC

    def _errors(self, call: RpcCall) -> ReplyErrors:
        return ReplyErrors(call.rpc, self.host, self.redact, call.subject)

    def _attempts(self, call: RpcCall, attempt: Callable[[], T]) -> T:
        def once() -> T:
            call.attempts += 1
            return attempt()

        try:
            result = repeated(once, call.rpc, self.options.retry_total, call.until, self.closing)
        except BaseException as error:
            self.log_line(call, _in_short(error))
            raise
        if not call.plain:
            self.log_line(call, "ok")
        return result

    def log_line(self, call: RpcCall, outcome: str) -> None:
        """Log the line that every RPC gets."""
        log.debug(
            "%s %s: %s, %.3f s, %d bytes out, %d bytes in%s",
            call.rpc.name,
            self.host,
            outcome,
            time.monotonic() - call.began,
            call.sent,
            call.received,
            f", {call.attempts} attempts" if call.attempts != 1 else "",
        )

    def _read(self, call: RpcCall, errors: ReplyErrors) -> Reply:
        http, rpc = self._send(call, errors), call.rpc
        try:
            return errors.translate(
                lambda: read(http.chunks(), rpc.root, call.records, answers=rpc.answers)
            )
        finally:
            call.received += http.received
            http.close()

    def _send(self, call: RpcCall, errors: ReplyErrors) -> HttpReply:
        """Send the request and follow redirects; return a reply with HTTP status 200."""
        url = call.url
        if self.speaks_https.is_set():
            url = upgraded(url)
        for _ in range(_REDIRECTS + 1):
            request = self._request(call, url)
            reply = errors.translate(partial(self.transport.send, request))
            odd = odd_encoding(reply.headers, plain=call.plain)
            if reply.status == 200 and odd is None:
                return reply
            try:
                if 300 <= reply.status < 400:
                    url = self._redirected(call, errors, url, reply)
                    continue
                body = b"" if odd is not None else beginning(errors.chunks(reply.chunks()))
            finally:
                reply.close()
            if odd is not None and reply.status == 200:
                raise errors.protocol(
                    f"the answer is encoded ({shorten(self.redact(odd), 60)}), which was not "
                    "requested: the project's admin should check the web server's settings"
                )
            raise errors.status(reply.status, reply.reason, page_beginning(body))
        what = f"redirects more than {_REDIRECTS} times: check the project's URL"
        raise self._refused(call.rpc, what)

    def _request(self, call: RpcCall, url: str) -> HttpRequest:
        options = self.options
        until = math.inf if call.until is None else call.until
        left = until - time.monotonic()
        if self.closing.is_set():
            raise self._refused(call.rpc, "was not asked: the connection to it was closed")
        if left < _NO_TIME:
            raise self._refused(call.rpc, "was not asked: the time limit was already reached")
        make_body = call.make_body

        def counted() -> FormBody:
            assert make_body is not None  # noqa: S101  (for the type checker)
            body = make_body()
            call.sent += body.len
            return body

        return HttpRequest(
            url=url,
            body=None if make_body is None else counted,
            connect_timeout=min(options.connect_timeout, left),
            limits=TimeLimits(
                options.read_timeout,
                until=until,
                whole=math.inf if call.plain else options.reply_timeout,
                rate=options.output_rate,
                rate_span=options.rate_span,
            ),
            fresh=call.rpc.fresh,
            plain=call.plain,
            cookie=call.cookie,
        )

    def _redirected(self, call: RpcCall, errors: ReplyErrors, url: str, reply: HttpReply) -> str:
        """Return the next URL; the request's method and body do not change."""
        rpc = call.rpc
        try:
            there = followed(reply.status, reply.headers.get("Location", ""), url)
        except ValueError as refused:
            what = str(refused)
        else:
            if is_login_form(there):
                raise errors.refusal(-1, "it wants a login (login_form.php)")
            if is_upgrade(url, there):
                self.speaks_https.set()
            self._log_once(
                f"{self.host} redirects to {shown(there)}: set the project's URL accordingly"
            )
            return there
        raise self._refused(rpc, what)

    def _refused(self, rpc: Rpc, what: str) -> TransportError:
        return TransportError(
            f"{self.host} {self.redact(what)}",
            rpc=rpc.name,
            host=self.host,
            may_be_running=False,
            passes=False,
        )

    # -- what PHP says

    def _log_messages(self, rpc: Rpc, messages: list[PhpMessage]) -> None:
        for message in messages:
            if rpc.dies and message.fatal:
                continue  # normal, perhaps a thousand times; the error reports it
            shown = shorten(self.redact(message.text), 300)
            # What a later PHP will refuse is for the project's admin; nobody else can act on it.
            level = logging.INFO if message.kind == "Deprecated" else logging.WARNING
            self._log_once(f"{rpc.name} of {self.host}: PHP reports {message.kind}: {shown}", level)

    def _log_once(self, text: str, level: int = logging.WARNING) -> None:
        """Log ``text`` unless the same was logged in the last hour."""
        now = time.monotonic()
        with self._lock:
            if now - self._warned.get(text, -math.inf) < _SAME_MESSAGE_AGAIN:
                return
            if len(self._warned) >= _MESSAGES_REMEMBERED:
                self._warned.clear()
            self._warned[text] = now
        log.log(level, "%s", text)


def beginning(chunks: Iterator[bytes]) -> bytes:
    """Return the beginning of an error's body, as much as is needed, even if it breaks off."""
    page = b""
    try:
        for chunk in chunks:
            page += chunk
            if len(page) > PAGE_BYTES:
                break
    except RpcError:
        pass
    return page


def _in_short(error: BaseException) -> str:
    """Return the outcome for the log: the kind of error, and the server's words if any."""
    if not isinstance(error, GahpError):
        return type(error).__name__
    kind = type(error).__name__
    if isinstance(error, ProjectError):
        return f"{kind} {error.number} {shorten(error.words, 120)!r}"
    if isinstance(error, ProtocolError) and error.php_fatal:
        return f"{kind} (PHP fatal error)"
    return f"{kind} ({shorten(str(error), 200)})"


# -- redirects


def followed(status: int, location: str, url: str) -> str:
    """Return the next URL after ``url`` was answered with ``status`` and ``location``.

    Raises:
        ValueError: it is not followed, because it leads to another server, nowhere, or is
            ambiguous; the text says what the server does, without its name.
    """
    if status not in _AGAIN or not location:
        raise ValueError(f"answered HTTP {status}: check the project's URL")
    here = parse_url(url)
    there = _read(location, url)
    server, other = _server(here), _server(there)
    upgrade = server[:2] == ("http", other[1]) and other[::2] == ("https", _PORTS["https"])
    if other[0] not in {server[0], "https"}:
        raise ValueError(
            f"redirects from {server[0]} to {shown(there.url)}, which is not followed: check "
            "the project's URL"
        )
    if other != server and not upgrade:
        raise ValueError(
            f"redirects to another server, {shown(there.url)}: if that is right, set the project's "
            "URL accordingly"
        )
    if there == here:
        raise ValueError(f"answered HTTP {status}: check the project's URL")
    return there.url


def is_upgrade(url: str, to: str) -> bool:
    """Tell whether a followed redirect leads from http to https."""
    return url.startswith("http:") and to.startswith("https:")


def is_login_form(to: str) -> bool:
    """Tell whether a redirect asks for a login, as pages for people do."""
    return (parse_url(to).path or "").endswith("/login_form.php")


def upgraded(url: str) -> str:
    """Return the same URL on the https server of its host."""
    return parse_url(url)._replace(scheme="https", port=None).url


def _read(location: str, url: str) -> Url:
    """Return the parts of ``location``, which may be relative to ``url``."""
    found, login = Url(), False
    if _PLAIN.fullmatch(location) is not None:
        with suppress(ValueError):  # includes urllib3's LocationParseError
            joined = urljoin(url, location)
            login = "@" in urlsplit(joined).netloc
            found = parse_url(joined)
    if not found.host or found.auth is not None or login:
        shown = quoted(hide_logins(location.partition("?")[0]), 120)
        raise ValueError(f"redirects to an invalid URL ({shown}): check the project's URL")
    return found._replace(path=found.path or "/", fragment=None)


def _server(parts: Url) -> tuple[str, str, int]:
    scheme = parts.scheme or ""
    return scheme, parts.host or "", parts.port or _PORTS.get(scheme, 0)


def shown(url: str) -> str:
    """Return a URL for messages: without its query, which may have ``auth_str``."""
    return shorten(parse_url(url)._replace(query=None).url, 200)
