r"""``transfer_output_remaps``: which output goes where, ``"name = path; name = path"``.

HTCondor does not apply remaps to a job of ``grid_resource = batch`` (``gridmanager-batch.rst``,
"Life of a job"), so this program does, and reads them as HTCondor would: white space around names
and paths does not count, tabs and newlines do not count anywhere, ``\=`` and ``\;`` stand for the
characters themselves, any other backslash for itself, and the first entry for a name counts.
"""

from __future__ import annotations

import re

from boinc_gahp.secret import hide_logins

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
#: Up to a ``;``, or to a ``=``, without a backslash before it; no character can match in two ways.
_ENTRY = re.compile(r"((?:\\[=;]|\\(?![=;])|[^;\\])*)(?:;|\Z)")
_NAME = re.compile(r"((?:\\[=;]|\\(?![=;])|[^=\\])*)=(.*)", re.DOTALL)
_ESCAPED = re.compile(r"\\([=;])")


def read_remaps(text: str) -> tuple[tuple[str, str], ...]:
    """Return the (output, path) pairs in ``text``.

    A path may be relative to the job's directory, and may name a directory: then the output keeps
    its name there.

    Raises:
        ValueError: an entry is not such a pair, or goes to a URL; says which.
    """
    remaps: dict[str, str] = {}
    for entry in _ENTRY.finditer(text.replace("\t", "").replace("\n", "")):
        if entry[1].strip():
            name, path = _pair(entry[1].strip())
            remaps.setdefault(name, path)
    return tuple(remaps.items())


def _pair(entry: str) -> tuple[str, str]:
    found = _NAME.fullmatch(entry)
    if found is None:
        raise ValueError(f"{entry!r} has no =; name = path is expected, and ; between such pairs")
    name, path = (_ESCAPED.sub(r"\1", each.strip()) for each in found.groups())
    if not (name and path):
        raise ValueError(
            f"{entry!r} lacks the {'path' if name else 'name'}; name = path is expected"
        )
    if _URL.match(path):
        raise ValueError(
            f"{name!r} goes to {hide_logins(path)!r}; outputs can only be put into files here"
        )
    return name, path
