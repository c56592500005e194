"""How BOINC's client splits a command line into arguments; placeholders in an app's command."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from boinc_gahp.localproject.core import APPS

if TYPE_CHECKING:
    from pathlib import Path

#: A token that begins with a quote extends to the same quote, or to the end; the character after
#: the opening quote is not examined. Elsewhere quotes are ordinary characters, and there are no
#: escapes. White space is C's (``web-rpcs.rst``, "What clients make of it", and
#: ``wire/submit_batch__cmdline_empty_dq``, where create_work reads with the same function).
_TOKEN = re.compile(
    r"""\s*(?:"((?:.[^"]*)?)"?|'((?:.[^']*)?)'?|([^\s"']\S*))""", re.DOTALL | re.ASCII
)


def split_command_line(text: str) -> list[str]:
    """Return the words that create_work and clients find in a text."""
    return [quoted or single or bare for quoted, single, bare in _TOKEN.findall(text)]


def fill_in(word: str, directory: Path) -> str:
    """Return a word of an app's command with its placeholders filled in.

    ``{python}`` is this interpreter, ``{apps}`` the directory of the supplied apps, ``{project}``
    the project's ``directory``.
    """
    word = word.replace("{python}", sys.executable).replace("{apps}", str(APPS))
    # Resolving asks the system about each part of the path.
    return word.replace("{project}", str(directory.resolve())) if "{project}" in word else word
