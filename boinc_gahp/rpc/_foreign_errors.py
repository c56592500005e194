"""Translates the exceptions of urllib3, lxml and sockets.

Callers of ``rpc`` only see :mod:`boinc_gahp.errors`. The cause is chained unless it contains a URL:
urllib3's own texts quote whole URLs, and one of them contains the authenticator.
"""

from __future__ import annotations

import http.client
import re
import ssl
import traceback
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import urllib3
from lxml import etree

from boinc_gahp.errors import ProtocolError, TransportError
from boinc_gahp.text import shorten

if TYPE_CHECKING:
    from boinc_gahp.rpc._redact import Redactor
    from boinc_gahp.rpc._table import Rpc

FOREIGN = (
    urllib3.exceptions.HTTPError,
    http.client.HTTPException,
    OSError,
    EOFError,
    zlib.error,
    etree.LxmlError,
    UnicodeError,
)


#: Raised before there is a connection, to the project or to a proxy.
_NOT_CONNECTED = (
    urllib3.exceptions.ConnectTimeoutError,
    urllib3.exceptions.NewConnectionError,
)


#: Where an error was found in Python's own source.
_IN_OPENSSL = re.compile(r"_ssl\.c:[0-9]+: | \(_ssl\.c:[0-9]+\)")


@dataclass(frozen=True, slots=True)
class _Rule:
    """What an exception of ``kinds``, anywhere in the chain, says about an exchange.

    Attributes:
        what: what happened, and what to do; ``{why}`` is the innermost reason.
        sent: whether the request may have reached the project.
        unmade: whether the rule only applies if no connection was made.
        passes: whether trying again may help, though nobody changes anything.
        damaged: whether an answer had begun.
        words: what one of the exceptions says, too.
    """

    kinds: tuple[type[BaseException], ...]
    what: str
    sent: bool = True
    unmade: bool = False
    passes: bool = True
    damaged: bool = False
    words: str = ""


#: The first rule that matches is used; the last one matches everything.
_RULES = (
    _Rule(
        (ssl.SSLCertVerificationError,),
        "its certificate is not trusted ({why}): check the project's URL, have its admin renew "
        "what has expired, or set ca_bundle to a file with the certificate of the authority that "
        "signed it",
        sent=False,
        passes=False,
    ),
    _Rule(
        (urllib3.exceptions.LocationValueError,),
        "a URL is wrong ({why}): check the project's URL, the setting proxy, and the variables "
        "HTTP_PROXY and HTTPS_PROXY",
        sent=False,
        passes=False,
    ),
    _Rule(
        (urllib3.exceptions.ProxyError,),
        "the proxy cannot be reached or refuses ({why}): check the setting proxy and the variables "
        "HTTP_PROXY and HTTPS_PROXY",
        sent=False,
        unmade=True,
    ),
    # urllib3 also raises this when a connection through a proxy breaks after the request was sent.
    _Rule(
        (urllib3.exceptions.ProxyError,),
        "the connection through the proxy failed ({why}): try again, or check the setting proxy "
        "and the variables HTTP_PROXY and HTTPS_PROXY",
    ),
    _Rule(
        (TimeoutError,),
        "no secure connection was made in time ({why}): check whether the URL should begin with "
        "http://, or try again later",
        sent=False,
        words="handshake",
    ),
    _Rule(
        (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError),
        "the secure connection broke ({why}): try again, or check whether the URL should begin "
        "with http://",
    ),
    _Rule(
        (ssl.SSLError, urllib3.exceptions.SSLError),
        "no secure connection was made ({why}): check whether the URL should begin with http://",
        passes=False,
    ),
    _Rule(
        (
            urllib3.exceptions.IncompleteRead,
            urllib3.exceptions.DecodeError,
            urllib3.exceptions.InvalidChunkLength,
            http.client.IncompleteRead,
            zlib.error,
            etree.LxmlError,
        ),
        "the answer broke off or is damaged ({why}): try again",
        damaged=True,
    ),
    _Rule(
        _NOT_CONNECTED,
        "cannot connect ({why}): check the project's URL, and whether its web server is running",
        sent=False,
    ),
    _Rule(
        (TimeoutError, urllib3.exceptions.TimeoutError),
        "no answer in time ({why}): try again later",
    ),
    _Rule((BaseException,), "the connection failed ({why}): try again"),
)


def translated(
    foreign: BaseException, rpc: Rpc, host: str, redact: Redactor
) -> TransportError | ProtocolError:
    """Return the translation of ``foreign``, with a harmless cause."""
    links = chain(foreign)
    rule = next(
        rule
        for rule in _RULES
        if any(isinstance(link, rule.kinds) and rule.words in str(link) for link in links)
        and not (rule.unmade and not any(map(_is_unmade, links)))
    )
    message = f"{host}, asked to {rpc.asked}: {rule.what.format(why=_why(links, redact))}"
    error = (
        ProtocolError(message, rpc=rpc.name, host=host, cut=True)
        if rule.damaged
        else TransportError(
            message,
            rpc=rpc.name,
            host=host,
            may_be_running=rule.sent,
            passes=rule.passes,
        )
    )
    error.__cause__ = _harmless(links, redact)
    return error


def _why(links: list[BaseException], redact: Redactor) -> str:
    """Return the innermost reason, in the operating system's words if it has some."""
    if any(isinstance(link, urllib3.exceptions.InvalidChunkLength) for link in links):
        return "its end is missing"
    for link in reversed(links):
        words = (
            getattr(link, "verify_message", None) or getattr(link, "strerror", None) or str(link)
        )
        if words:
            return shorten(redact(_IN_OPENSSL.sub("", str(words))), 200)
    return type(links[-1]).__name__


def _harmless(links: list[BaseException], redact: Redactor) -> BaseException | None:
    """Return the innermost link of the chain without a URL or secret."""
    for link in reversed(links):
        shown = "".join(traceback.format_exception(link)) + repr(link) + repr(vars(link))
        if "auth_str=" not in shown and redact(shown) == shown:
            return link
    return None


def _is_unmade(link: BaseException) -> bool:
    """Tell whether ``link`` is only raised if no connection was made."""
    if isinstance(link, OSError) and str(link).startswith("Tunnel connection failed"):
        return True  # http.client's text for a proxy that refuses CONNECT
    return isinstance(link, _NOT_CONNECTED)


def chain(error: BaseException) -> list[BaseException]:
    """Return ``error`` and its causes, outermost first."""
    links: list[BaseException] = []
    todo = [error]
    while todo:
        link = todo.pop(0)
        if any(link is known for known in links):
            continue
        links.append(link)
        inner = (link.__cause__, link.__context__, getattr(link, "reason", None), *link.args)
        todo += [item for item in inner if isinstance(item, BaseException)]
    return links
