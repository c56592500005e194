"""The authenticator, as a value that cannot be printed by accident; and logins in URLs."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable

#: Shorter texts are not masked: they are not real authenticators, and may be ordinary words.
_SHORTEST = 6

#: By account: a function that returns the text of each authenticator seen by this process.
_authenticators: dict[str, Callable[[], str]] = {}


#: A user's name and password in the URL of a proxy, or in a project's address by mistake.
_LOGIN = re.compile(r"(?<=://)[^/\s\"'<>]*@")


def hide_logins(text: str) -> str:
    """Return ``text`` without names and passwords in URLs."""
    return _LOGIN.sub("<login>@", text)


def mask(text: str, instead: str = "<authenticator>") -> str:
    """Return ``text`` without logins and without any authenticator that this process knows."""
    text = hide_logins(text)
    for reveal in list(_authenticators.values()):
        authenticator = reveal()
        if len(authenticator) >= _SHORTEST:
            text = text.replace(authenticator, instead)
    return text


class Authenticator:
    """An account's authenticator.

    It has no readable ``str``, ``repr`` or format, and cannot be pickled. Its text is kept in a
    closure, so that no dump of attributes shows it. :meth:`reveal` is only for the code that builds
    requests.
    """

    __slots__ = ("_account", "_reveal")

    def __init__(self, text: str) -> None:
        def reveal() -> str:
            return text

        self._reveal = reveal
        self._account = hashlib.sha256(
            b"boinc_gahp account\0" + text.encode("utf-8", "surrogateescape")
        ).hexdigest()[:16]
        _authenticators[self._account] = reveal

    def reveal(self) -> str:
        """Return the text."""
        return self._reveal()

    @property
    def account(self) -> str:
        """16 hex digits that identify the account and reveal nothing; kept in the ledger."""
        return self._account

    def __eq__(self, other: object) -> bool:
        """Compare by account."""
        return isinstance(other, Authenticator) and other._account == self._account

    def __hash__(self) -> int:
        """Hash by account."""
        return hash(self._account)

    def __repr__(self) -> str:
        """Show that there is an authenticator, but not its text."""
        return "<authenticator>"

    __str__ = __repr__

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled, because a pickle would contain the text."""
        raise TypeError("an authenticator must not be written anywhere")
