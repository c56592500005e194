"""What a project's web RPCs, its outputs and its pages are requested with."""

from __future__ import annotations

import copy
import hashlib
import math
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, urlencode

from boinc_gahp.config.urls import ProjectUrl
from boinc_gahp.errors import RpcError
from boinc_gahp.rpc import _build, _results, _table
from boinc_gahp.rpc._bodies import FormBody
from boinc_gahp.rpc._caller import Caller, RpcCall, beginning
from boinc_gahp.rpc._pages import page_beginning
from boinc_gahp.rpc._redact import Redactor
from boinc_gahp.rpc._redirects import upgraded
from boinc_gahp.rpc._transport import Clock, HttpTransport
from boinc_gahp.rpc.options import ClientOptions
from boinc_gahp.rpc.outputs import OutputStream
from boinc_gahp.secret import Authenticator

if TYPE_CHECKING:
    from collections.abc import Callable

    from lxml import etree
    from typing_extensions import Self

    from boinc_gahp.rpc._caller import Traffic
    from boinc_gahp.rpc._foreign_errors import ErrorTranslator
    from boinc_gahp.rpc._replies import RepeatedElements
    from boinc_gahp.rpc._table import Rpc
    from boinc_gahp.rpc._transport import HttpReply, Transport
    from boinc_gahp.rpc.types import (
        BatchSubmission,
    )

T = TypeVar("T")


class Connection:
    """A project and an account: what :class:`~boinc_gahp.rpc.client.WebRpcs` has in common.

    Attributes:
        url: the project's address; always ends in ``/``.
        host: its host, with the port unless it is the scheme's default.
        account: 16 hex digits that identify the authenticator in the ledger.
    """

    def __init__(
        self,
        url: str,
        authenticator: str | Authenticator,
        *,
        options: ClientOptions = ClientOptions(),  # noqa: B008  (frozen)
        transport: Transport | None = None,
    ) -> None:
        self.url = ProjectUrl(url)
        self.host = self.url.host
        if not isinstance(authenticator, Authenticator):
            authenticator = Authenticator(authenticator)
        self._authenticator = authenticator
        self._until: float | None = None
        self._clock = Clock()
        # Another transport's replies may be recordings, with the time of another day.
        self._tells_time = transport is None
        self._transport = HttpTransport(options, self._clock) if transport is None else transport
        self._caller = Caller(self.host, options, self._transport, Redactor(authenticator))

    @property
    def account(self) -> str:
        """16 hex digits that identify the authenticator."""
        return self._authenticator.account

    @property
    def https_url(self) -> str | None:
        """The project's URL with https, if it has redirected a request there from http."""
        return upgraded(self.url) if self._caller.speaks_https.is_set() else None

    @property
    def is_private(self) -> bool:
        """Whether nobody on the way to the project can read requests."""
        return self.url.is_private or self._caller.speaks_https.is_set()

    def until(self, deadline: float) -> Self:
        """Return a view whose RPCs, retries included, end by ``time.monotonic() == deadline``."""
        view = copy.copy(self)
        view._until = deadline if self._until is None else min(deadline, self._until)  # noqa: SLF001
        return view

    def once(self) -> Self:
        """Return a view whose RPCs are not repeated if they fail."""
        view = copy.copy(self)
        options = replace(self._caller.options, retry_total=0.0)
        view._caller = replace(self._caller, options=options)  # noqa: SLF001
        return view

    @property
    def deadline(self) -> float:
        """``time.monotonic()`` by which this view's RPCs end; infinite without a deadline."""
        return math.inf if self._until is None else self._until

    def close(self) -> None:
        """Close the connections of all views; pauses between attempts end at once."""
        self._caller.closing.set()
        if isinstance(self._transport, HttpTransport):
            self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r}, account {self.account})"

    def ping(self) -> None:
        """Ask whether the project answers; needs no account."""
        self._ask(_table.PING, _build.document("ping", None), _results.success)

    # -- the web site

    def page(
        self,
        page: Rpc,
        query: dict[str, str],
        answer: Callable[[etree._Element], T],
        *,
        records: RepeatedElements[Any] | None = None,
        secret: Authenticator | None = None,
    ) -> T:
        """Request a page of the web site that is made for programs; return what ``answer`` reads.

        ``secret`` is in the query, and in no error or log.
        """
        url = f"{self.url}{page.handler}"
        if query:
            url += f"?{urlencode(query, errors='surrogateescape')}"
        call = RpcCall(page, url, records=records, cookie=self._cookie if page.cookie else None)
        caller = self._caller
        if secret is not None:
            caller = replace(caller, redact=Redactor(secret))
        return caller.ask(call, answer, self._until)

    def beginning_of(self, page: Rpc, query: dict[str, str]) -> str:
        """Return the beginning of a page that is made for people."""
        cookie = self._cookie if page.cookie else None
        call = RpcCall(page, f"{self.url}{page.handler}?{urlencode(query)}", cookie=cookie)

        def begin(reply: HttpReply, translator: ErrorTranslator, traffic: Traffic) -> str:
            with closing(reply):
                text = page_beginning(beginning(translator.chunks(reply.chunks())))
            self._caller.log_line(page, "ok", traffic)
            return text

        return self._caller.open(call, begin, self._until)

    def _cookie(self) -> str:
        """Return the cookie of an account that has logged in."""
        return f"auth={quote(self._authenticator.reveal(), safe='', errors='surrogateescape')}"

    # -- what they have in common

    def _derived(self, of: str) -> str:
        """Return the ``auth_str`` made of the authenticator and one object."""
        text = self._authenticator.reveal() + of
        encoded = text.encode("utf-8", "surrogateescape")
        return hashlib.md5(encoded, usedforsecurity=False).hexdigest()

    def _to_project(self, at: float) -> float:
        """Convert a time of this machine's clock to the project's clock; 0 stays 0."""
        if not at:
            return at
        if self._tells_time and not self._clock.is_known:
            try:
                self.ping()
            except RpcError:
                if not self._clock.is_known:  # any reply tells the time
                    raise
        return self._clock.to_project(at)

    def _submission(self, rpc: str, submission: BatchSubmission) -> bytes:
        return _build.submission_document(rpc, self._authenticator, submission)

    def _simple(
        self,
        rpc: Rpc,
        answer: Callable[[etree._Element], T],
        *parts: str,
        records: RepeatedElements[Any] | None = None,
        subject: str = "",
    ) -> T:
        xml = _build.document(rpc.name, self._authenticator, parts)
        return self._ask(rpc, xml, answer, records=records, subject=subject)

    def _ask(
        self,
        rpc: Rpc,
        xml: bytes,
        answer: Callable[[etree._Element], T],
        *,
        records: RepeatedElements[Any] | None = None,
        subject: str = "",
    ) -> T:
        url = self.url + rpc.handler
        form = partial(FormBody, xml)
        return self._caller.ask(RpcCall(rpc, url, form, records, subject), answer, self._until)

    def _output(self, rpc: Rpc, query: dict[str, str], subject: str) -> OutputStream:
        text = urlencode(query, errors="surrogateescape")
        cookie = self._cookie if rpc.cookie else None
        call = RpcCall(rpc, f"{self.url}{rpc.handler}?{text}", subject=subject, cookie=cookie)

        def begin(reply: HttpReply, translator: ErrorTranslator, traffic: Traffic) -> OutputStream:
            def ended(outcome: str, received: int) -> None:
                traffic.received += received
                self._caller.log_line(rpc, outcome, traffic)

            return OutputStream(reply, translator, self._caller.reply_errors(call), ended)

        return self._caller.open(call, begin, self._until)
