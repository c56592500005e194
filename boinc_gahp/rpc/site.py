"""The pages of a project's web site that are made for programs, but are not web RPCs.

BOINC's clients and account managers use them (``web-rpcs.rst``, "Pages for programs"). They are
requested with GET, and answered in the same form as RPCs, with the same faults.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote, urlencode

from boinc_gahp.config.urls import ProjectUrl
from boinc_gahp.errors import BadRequest
from boinc_gahp.rpc import _results, _table
from boinc_gahp.rpc._caller import Caller, RpcCall
from boinc_gahp.rpc._redact import Redactor
from boinc_gahp.rpc._redirects import upgraded
from boinc_gahp.rpc._replies import IncompleteReply, RepeatedElements
from boinc_gahp.rpc._transport import HttpTransport
from boinc_gahp.rpc.options import ClientOptions
from boinc_gahp.rpc.types import AppInfo, ProjectInfo
from boinc_gahp.secret import Authenticator

if TYPE_CHECKING:
    from collections.abc import Callable

    from lxml import etree
    from typing_extensions import Self

    from boinc_gahp.rpc._table import Rpc
    from boinc_gahp.rpc._transport import Transport

T = TypeVar("T")


class ProjectSite:
    """Pages for programs on a project's web site, and what they say.

    Thread-safe. Every method raises :class:`~boinc_gahp.errors.RpcError`, as those of
    :class:`WebRpcs` do.

    Attributes:
        url: the project's address; always ends in ``/``.
        host: its host, with the port unless it is the scheme's default.
    """

    def __init__(
        self,
        url: str,
        authenticator: Authenticator | None = None,
        *,
        options: ClientOptions = ClientOptions(),  # noqa: B008  (frozen)
        transport: Transport | None = None,
    ) -> None:
        self.url = ProjectUrl(url)
        self.host = self.url.host
        self._options = options
        self._authenticator = authenticator
        self._transport = HttpTransport(options) if transport is None else transport
        self._caller = self._caller_hiding(authenticator or Authenticator(""))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"ProjectSite({self.url!r})"

    @property
    def https_url(self) -> str | None:
        """The project's URL with https, if it has redirected a request there from http."""
        return upgraded(self.url) if self._caller.speaks_https.is_set() else None

    @property
    def is_private(self) -> bool:
        """Whether nobody on the way to the project can read requests."""
        return self.url.is_private or self._caller.speaks_https.is_set()

    def close(self) -> None:
        """Close the connections; pauses between attempts end at once."""
        self._caller.closing.set()
        if isinstance(self._transport, HttpTransport):
            self._transport.close()

    def about(self) -> ProjectInfo:
        """Return what the project says of itself; needs no account."""

        def read(root: etree._Element) -> ProjectInfo:
            told = (root.findtext(each) or "" for each in _table.PROJECT_CONFIG.answers)
            return ProjectInfo(*(" ".join(text.split())[: _results.LONGEST_WORD] for text in told))

        return self._get(_table.PROJECT_CONFIG, {}, read)

    def apps(self) -> tuple[AppInfo, ...]:
        """Return the project's apps, with their versions.

        Stock projects show the page only to users who have logged in, which the authenticator is
        sent for, as a browser's cookie.
        """
        found = RepeatedElements(("application",), _results.app, _table.MOST_APPS)
        cookie = None
        if self._authenticator is not None:
            key = self._authenticator

            def cookie() -> str:
                return f"auth={quote(key.reveal(), safe='', errors='surrogateescape')}"

        return self._get(
            _table.APPS, {"xml": "1"}, lambda _: tuple(found.items), records=found, cookie=cookie
        )

    def authenticator_of(self, email: str, password: str) -> Authenticator:
        """Return the authenticator of the account with an e-mail address and a password.

        What is made of the password is in the request's URL, and so in the project's access log,
        as it is when BOINC's own client asks. With it anybody could log in.

        Raises:
            BadRequest: the connection is not encrypted; nothing was sent.
            ProjectError: there is no such account (-136), or the password is wrong (-206).
        """
        if not self.is_private:
            must_be_private(self.url)
        # The address in lower case, as PHP's strtolower() makes it, in ASCII alone.
        salted = (
            password.encode("utf-8", "surrogateescape")
            + email.encode("utf-8", "surrogateescape").lower()
        )
        digest = hashlib.md5(salted, usedforsecurity=False).hexdigest()
        caller = self._caller_hiding(Authenticator(digest))
        if self._caller.speaks_https.is_set():
            caller.speaks_https.set()
        return self._get(
            _table.LOOKUP_ACCOUNT,
            {"email_addr": email, "passwd_hash": digest},
            _authenticator,
            caller=caller,
        )

    def _get(
        self,
        page: Rpc,
        query: dict[str, str],
        answer: Callable[[etree._Element], T],
        *,
        records: RepeatedElements[AppInfo] | None = None,
        cookie: Callable[[], str] | None = None,
        caller: Caller | None = None,
    ) -> T:
        url = f"{self.url}{page.handler}"
        if query:
            url += f"?{urlencode(query, errors='surrogateescape')}"
        call = RpcCall(page, url, records=records, cookie=cookie)
        return (caller or self._caller).ask(call, answer, None)

    def _caller_hiding(self, secret: Authenticator) -> Caller:
        return Caller(self.host, self._options, self._transport, Redactor(secret))


def must_be_private(url: ProjectUrl) -> None:
    """Raise BadRequest if others on the way to a project could read a password."""
    if not url.is_private:
        raise BadRequest(
            f"a password is not sent to {url}, since anybody on the network path could read it: "
            "use https:// if the project has it, or the account key"
        )


def _authenticator(root: etree._Element) -> Authenticator:
    words = _results.text(root, "authenticator").split()
    # The text is not told: it may be the secret.
    if len(words) != 1 or not (words[0].isascii() and words[0].isprintable()):
        raise IncompleteReply("<authenticator> is not one word")
    return Authenticator(_results.word(words[0], "authenticator"))
