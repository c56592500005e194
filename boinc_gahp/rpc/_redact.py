"""Hides secrets in texts: authenticators, secret values in URLs, and logins."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING
from urllib.parse import quote, quote_plus

from boinc_gahp.secret import hide_logins

if TYPE_CHECKING:
    from boinc_gahp.secret import Authenticator

#: What the query of a URL may have: a derived authenticator; a login (``web-rpcs.rst``, "Pages for
#: programs").
_IN_URLS = re.compile(r"((?:auth_str|passwd_hash|email_addr)=)[^&\s\"'<>)]*")
_ELEMENT = re.compile(r"((?:<|&lt;)authenticator(?:>|&gt;)).+?(?=<|&lt;|$)", re.DOTALL)
_HIDDEN = "[hidden]"
#: A shorter secret must be a mistake (real ones have 32 characters), and might be an ordinary word
#: of the message.
_SHORTEST = 8


class Redactor:
    """Removes an authenticator from texts: the server echoes a request that it cannot read."""

    __slots__ = ("_hide",)

    def __init__(self, authenticator: Authenticator) -> None:
        secret = authenticator.reveal()
        encoded = secret.encode("utf-8", "surrogateescape")
        in_xml = secret.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        in_html = in_xml.replace("'", "&#039;").replace('"', "&quot;")
        forms = {secret, in_xml, in_html}
        forms |= {quote(encoded), quote(encoded, safe=""), quote_plus(encoded)}
        pattern = re.compile("|".join(re.escape(form) for form in sorted(forms, key=len)[::-1]))
        # In a closure, so that no dump of attributes shows it.
        self._hide = pattern.sub if len(secret) >= _SHORTEST else lambda _, text: text

    def __call__(self, text: str) -> str:
        """Return ``text`` without the authenticator, and without logins in URLs."""
        text = hide_logins(text)
        text = _ELEMENT.sub(rf"\1{_HIDDEN}", self._hide(_HIDDEN, text))
        return _IN_URLS.sub(rf"\1{_HIDDEN}", text)

    def __repr__(self) -> str:
        """Show no pattern."""
        return "<redactor>"


def _hide_in_urls(record: logging.LogRecord) -> bool:
    """Hide secrets in URLs that urllib3 logs; that of ``workunit_file`` has the authenticator."""
    message = record.getMessage()
    hidden = _IN_URLS.sub(rf"\1{_HIDDEN}", message)
    if hidden != message:
        record.msg = hidden
        record.args = ()
    return True


def guard_library_logs() -> None:
    """Keep such values out of urllib3's own log records; may be called again."""
    for name in ("urllib3.connectionpool", "urllib3.util.retry", "urllib3.poolmanager"):
        logging.getLogger(name).addFilter(_hide_in_urls)
