"""Names: how the real server compares them, and which can be those of files."""

from __future__ import annotations

import re
import unicodedata

#: ``job_file.name``, ``workunit.name`` and ``result.name`` are varchar(191).
MAX_NAME = 191

_PHYSICAL = re.compile(r"[A-Za-z0-9_.\- ]{1,255}")


def name_key(name: str) -> str:
    """Return a key that is equal for names that MariaDB's utf8mb4_unicode_ci considers equal.

    Case, accents and trailing spaces are ignored (``web-rpcs.rst``, "create_batch").
    """
    decomposed = unicodedata.normalize("NFKD", name)
    plain = "".join(char for char in decomposed if not unicodedata.combining(char))
    return plain.casefold().rstrip(" ")


def is_file_name(name: str) -> bool:
    """Whether a name can only mean a file in the directory in which it is looked up."""
    return "/" not in name and "\0" not in name and name not in {"", ".", ".."}


def valid_physical_name(name: str) -> bool:
    """Whether job_file.php accepts a name (``web-rpcs.rst``, "Files"); not if it is a directory."""
    return _PHYSICAL.fullmatch(name) is not None and name.strip(". ") != ""
