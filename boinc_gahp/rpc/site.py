"""The pages of a project's web site that are made for programs, but are not web RPCs.

BOINC's clients and account managers use them (``web-rpcs.rst``, "Pages for programs"). They are
requested with GET, and answered in the same form as RPCs, with the same faults and errors.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from boinc_gahp.errors import BadRequest, RpcError
from boinc_gahp.rpc import _results, _table
from boinc_gahp.rpc._replies import IncompleteReply, RepeatedElements
from boinc_gahp.rpc.types import AppInfo, ProjectInfo
from boinc_gahp.secret import Authenticator

if TYPE_CHECKING:
    from lxml import etree

    from boinc_gahp.config.urls import ProjectUrl
    from boinc_gahp.rpc.client import WebRpcs


def about(project: WebRpcs) -> ProjectInfo:
    """Return what a project says of itself; needs no account."""

    def read(root: etree._Element) -> ProjectInfo:
        told = (root.findtext(each) or "" for each in _table.PROJECT_CONFIG.answers)
        name, url, base = (" ".join(text.split())[: _results.LONGEST_WORD] for text in told)
        return ProjectInfo(name, url, base, root.find("ldap_auth") is not None)

    return project.page(_table.PROJECT_CONFIG, {}, read)


def apps(project: WebRpcs) -> tuple[AppInfo, ...]:
    """Return a project's apps, with their versions; stock projects want a login for that."""
    found = RepeatedElements(("application",), _results.app, _table.MOST_APPS)
    return project.page(_table.APPS, {"xml": "1"}, lambda _: tuple(found.items), records=found)


def key_of(project: WebRpcs, email: str, password: str) -> Authenticator:
    """Return the authenticator of the account with an e-mail address and a password.

    What is made of the password is in the request's URL, and so in the project's access log, as it
    is when BOINC's own client asks. With it anybody could log in.

    Raises:
        BadRequest: the connection is not encrypted; nothing was sent.
        ProjectError: there is no such account (-136), or the password is wrong (-206).
    """
    if not project.is_private:
        must_be_private(project.url)
    # The address in lower case, as PHP's strtolower() makes it, in ASCII alone.
    salted = (
        password.encode("utf-8", "surrogateescape")
        + email.encode("utf-8", "surrogateescape").lower()
    )
    digest = hashlib.md5(salted, usedforsecurity=False).hexdigest()
    return project.page(
        _table.LOOKUP_ACCOUNT,
        {"email_addr": email, "passwd_hash": digest},
        _authenticator,
        secret=Authenticator(digest),
    )


def lacks_buda_app(project: WebRpcs, name: str) -> bool:
    """Tell whether a project shows that it has no BUDA app of a name; if it shows nothing, no.

    PHP warns of the missing file in the form for its jobs (``web-rpcs.rst``, "Pages for programs").
    """
    try:
        page = project.beginning_of(_table.BUDA_FORM, {"action": "form", "app": name})
    except RpcError:
        return False
    return f"/{name}/desc.json): failed to open stream".lower() in page.lower()


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
