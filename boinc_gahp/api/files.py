"""Input files and arguments as text: on command lines, and in files with one row per job.

``PATH``, ``file:PATH``, ``staged:PHYSICAL_NAME``, ``inline:TEXT`` and ``remote:URL,NBYTES,MD5``.
"""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from boinc_gahp.api.types import InlineFile, LocalFile, RemoteFile, StagedFile
from boinc_gahp.errors import BadRequest
from boinc_gahp.secret import hide_logins
from boinc_gahp.text import nearest, quoted

if TYPE_CHECKING:
    from boinc_gahp.submit.types import File, Input

#: What may stand before a colon.
KINDS = ("file", "staged", "inline", "remote", "http", "https")

_PREFIX = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)
_MD5 = re.compile(r"[0-9A-Fa-f]{32}")
_NUMBER = re.compile(r"[0-9]{1,18}")
#: Characters that a shell treats specially.
_NOT_PLAIN = re.compile(r"['\"\\]")
_WORD = re.compile(r"[^ \t\r\n]+")
#: What Path() leaves out of a path, and the beginning of an absolute one.
_UNTIDY = re.compile(r"(?:^|/)\.?(?:/|$)")
#: A word this similar is probably what was meant.
_ALIKE = 0.75


def read_file(text: str) -> Input:
    """Return the input file that a text describes; does not look at the file.

    Raises:
        BadRequest: the text does not describe a file.
    """
    if not text:
        raise BadRequest(f"an input file is empty: expected {_expected()}")
    found = _PREFIX.fullmatch(text)
    kind, rest = (found[1].lower(), found[2]) if found else ("", "")
    if kind in {"http", "https"}:
        raise BadRequest(
            f"input file {quoted(hide_logins(text))}: a project needs its size and MD5, too: write "
            "remote:URL,NBYTES,MD5 (wc -c and md5sum tell these)"
        )
    if kind == "remote":
        return _remote(text, rest)
    if kind in {"file", "staged", "inline"}:
        if not rest:
            raise BadRequest(
                f"input file {quoted(text)} has nothing after the colon: expected {_expected()}; "
                "an empty file has to be one on disk"
            )
        if kind == "inline":
            return InlineFile(rest)
        return LocalFile(rest) if kind == "file" else StagedFile(rest)
    if kind and _means_something_else(kind, rest):
        raise BadRequest(
            f"input file {quoted(text)}: {kind}: is not a known kind of file; expected "
            f"{_expected()}{_did_you_mean(kind)}"
        )
    return LocalFile(text)


def path_of(file: LocalFile | str | os.PathLike[str]) -> str:
    """Return a local file's path as a string."""
    return os.fspath(file.path if isinstance(file, LocalFile) else file)


def template_text(path: str | os.PathLike[str]) -> str:
    """Return the text of a template file; raises BadRequest if it cannot be read."""
    try:
        return Path(path).read_text("utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BadRequest(
            f"template {os.fspath(path)!r} cannot be read: {reason}; check its path"
        ) from error


def relative_to(directory: str | os.PathLike[str], file: File) -> File:
    """Return ``file``; a local one with a relative path becomes relative to ``directory``."""
    if not isinstance(file, (LocalFile, str, os.PathLike)):
        return file
    path = path_of(file)
    if isinstance(directory, Path) and directory.name and not _UNTIDY.search(path):
        return LocalFile(f"{directory}/{path}")  # the same as below, ten times as fast
    return LocalFile(str(Path(directory, path)))


def read_named(text: str) -> tuple[str, Input]:
    """Return the open name and the file of a text ``NAME=FILE``.

    Raises:
        BadRequest: the text is not of that form.
    """
    name, file = split_named(text)
    return name, read_file(file)


def split_named(text: str) -> tuple[str, str]:
    """Return the open name and the text of the file of a text ``NAME=FILE``; raises BadRequest."""
    name, equals, file = text.partition("=")
    if not equals or not name:
        raise BadRequest(
            f"input {quoted(text)}: expected NAME=FILE, where NAME is what the app calls the file "
            "(its open name)"
        )
    return name, file


def split_args(text: str) -> tuple[str, ...]:
    """Return the words of a command line, split as a shell would.

    Raises:
        BadRequest: a quote is not closed, or the text ends with a backslash.
    """
    if _NOT_PLAIN.search(text) is None:
        return tuple(_WORD.findall(text))  # same result as shlex, thirty times as fast
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        reason = str(error).lower().replace("no closing quotation", "a quote is not closed")
        reason = reason.replace("no escaped character", "there is nothing after its last backslash")
        raise BadRequest(
            f"arguments {quoted(text)} cannot be split as a shell would: {reason}"
        ) from error


def _remote(text: str, rest: str) -> RemoteFile:
    url, nbytes, md5 = rest.rsplit(",", 2) if rest.count(",") >= 2 else ("", "", "")
    if not _NUMBER.fullmatch(nbytes):
        raise BadRequest(
            f"input file {quoted(text)}: expected remote:URL,NBYTES,MD5, where NBYTES is a number "
            "of bytes"
        )
    if not _MD5.fullmatch(md5):
        raise BadRequest(
            f"input file {quoted(text)}: expected an MD5 of 32 hexadecimal digits at its end, "
            f"found {quoted(md5)}"
        )
    return RemoteFile(_url(url, text), int(nbytes), md5)


def _url(url: str, text: str) -> str:
    if not re.match(r"https?://[^/?#\s]", url, re.IGNORECASE):
        raise BadRequest(f"input file {quoted(text)}: expected a URL http(s)://HOST/…")
    return url


def _means_something_else(kind: str, rest: str) -> bool:
    """Tell whether a text that begins with a word and a colon was probably not meant as a path."""
    return rest.startswith("//") or nearest(kind, KINDS, alike=_ALIKE) is not None


def _did_you_mean(kind: str) -> str:
    meant = nearest(kind, KINDS, alike=_ALIKE)
    return f"; did you mean {meant}:?" if meant else ""


def _expected() -> str:
    return (
        "PATH, staged:PHYSICAL_NAME, remote:URL,NBYTES,MD5, inline:TEXT, or file:PATH "
        "for a path that looks like one of these"
    )
