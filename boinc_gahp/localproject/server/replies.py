"""Replies as submit_rpc_handler.php and job_file.php write them.

The prolog says ISO-8859-1, the header UTF-8, and the bytes are UTF-8 (``web-rpcs.rst``, "Transport
and framing").
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    import sqlite3

PROLOG = '<?xml version="1.0" encoding="ISO-8859-1" ?>\n'
CONTENT_TYPE = "text/xml;charset=UTF-8"

#: Error numbers of the real server; nearly everything is -1.
GENERAL = -1
DATABASE_DOWN = -138
PROJECT_DOWN = -183

_INC = "/srv/boinc/projects/test/html/"


class RpcFailed(Exception):
    """The RPC answers with an ``<error>``."""

    def __init__(self, message: str, number: int = GENERAL) -> None:
        super().__init__(message)
        self.message = message
        self.number = number


class PhpFatal(Exception):
    """PHP dies in the middle of the reply, with a message."""


class RpcReply:
    """The inner part of a reply, written piece by piece.

    The server does not escape names and messages (``web-rpcs.rst``, "Transport and framing").
    """

    def __init__(self, *, display_errors: bool) -> None:
        self._display_errors = display_errors
        self._parts: list[str] = []

    def add(self, xml: str) -> None:
        """Append XML."""
        self._parts.append(xml)

    def success(self) -> None:
        """Append the usual answer of most RPCs."""
        self.add("<success>1</success>\n")

    def warn(self, message: str, place: str, line: int, kind: str = "Warning") -> None:
        """Append one of PHP's messages, if they are shown. ``place`` is below ``html/``."""
        if self._display_errors:
            self.add(php_message(message, place, line, kind))

    def __str__(self) -> str:
        return "".join(self._parts)


def php_message(message: str, place: str, line: int, kind: str = "Warning") -> str:
    """Return a message as PHP writes it into the page; the message is HTML."""
    return (
        f"<br />\n<b>{kind}</b>:  {message} in <b>{_INC}{place}</b> on line <b>{line}</b><br />\n"
    )


def uncaught(error: sqlite3.Error | OSError) -> str:
    """Return PHP's message when a failure of the database or the disk ends it."""
    if isinstance(error, OSError):
        return f"Uncaught ErrorException: {error.strerror}"
    missing = re.fullmatch(r"no such table: (?:main\.)?(\w+)", str(error))
    message = f"Table 'test.{missing[1]}' doesn't exist" if missing else str(error)
    return f"Uncaught mysqli_sql_exception: {message}"


def error_element(message: str, number: int, more: str = "") -> str:
    """Return an ``<error>``; ``message`` is not escaped."""
    return (
        f"<error>\n    <error_num>{number}</error_num>\n"
        f"    <error_msg>{message}</error_msg>\n{more}</error>\n"
    )


def htmlspecialchars(text: str) -> str:
    """Escape like PHP's function of that name from PHP 8.1 on."""
    return escape(text, {'"': "&quot;", "'": "&#039;"})


def php_number(value: float) -> str:
    """Write a number like PHP: 14 significant digits, no trailing zeros."""
    text = f"{value:.14g}"
    if "e" not in text:
        return text
    mantissa, exponent = text.split("e")
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{int(exponent):+d}"
