"""Names that a project or a volunteer gives to files, and which of them are used here.

All names from the network, of a job's outputs or of an archive's members, are checked here before a
file gets such a name.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING

from boinc_gahp.errors import OutputError
from boinc_gahp.fetch.types import OWN
from boinc_gahp.submit.checks import base_name

if TYPE_CHECKING:
    from collections.abc import Sequence

#: As the path for an output: it is not kept.
DEV_NULL = "/dev/null"

#: Bytes that one part of a path may have on common file systems, and parts that a path may have.
_LONGEST, _DEEPEST = 255, 100


def below(name: str) -> str | None:
    """Return a name as a path below a directory, without empty parts and dots; None if it is not.

    The empty path is the directory itself.
    """
    # Archives from Windows may have backslashes; as separators they could hide a "..".
    parts = name.replace("\\", "/").split("/")
    if not parts[0] or ".." in parts or "\0" in name:
        return None
    path = "/".join(part for part in name.split("/") if part not in ("", "."))
    return None if path.startswith("\\") else path


def new_file(name: str, whose: str, *, hidden: bool = False) -> str:
    """Return a name for a new file, as a path below the job's directory.

    Args:
        name: the name from the network.
        whose: what has this name, for an error.
        hidden: whether parts of it may begin with a dot.

    Raises:
        OutputError: a file may only have this name if the job asks for it.
    """
    path = below(name)
    parts = (path or "").split("/")
    if not path:
        why = "it leads out of the directory, or names no file"
    elif any(part.startswith(OWN) for part in parts):
        why = f"names that begin with {OWN} are reserved for boinc_gahp's own files"
    elif not hidden and is_hidden(path):
        why = "a part of it begins with a dot, as in names of configuration files"
    elif len(parts) > _DEEPEST or any(_size(part) > _LONGEST for part in parts):
        why = "it is too long"
    else:
        return path
    raise OutputError(
        f"{whose} has no valid name for a file in the job's directory ({why}): name it in "
        "transfer_output_files, or give it another name with transfer_output_remaps (in a "
        "BOINC_FETCH_OUTPUT with SOME, or with a pair of names)"
    )


def is_hidden(path: str) -> bool:
    """Return whether a part of a path begins with a dot."""
    return any(part.startswith(".") for part in path.split("/"))


def shown(name: str) -> str:
    """Return a name with ``%2E`` for the leading dots of its parts."""
    return "/".join(f"%2E{part[1:]}" if part.startswith(".") else part for part in name.split("/"))


def plain_names(outputs: Sequence[str]) -> dict[str, str]:
    """Return the default file names of outputs: their base names.

    Two outputs that share a base name keep the path that the app's template gives them.
    """
    bases = Counter(map(base_name, outputs))
    return {name: base_name(name) if bases[base_name(name)] == 1 else name for name in outputs}


def _size(part: str) -> int:
    try:
        return len(os.fsencode(part))
    except UnicodeEncodeError:
        return _LONGEST + 1
