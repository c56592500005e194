"""How BOINC's client splits a command line into arguments, and what stands in an app's command."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from .core import APPS

if TYPE_CHECKING:
    from pathlib import Path

# A token that begins with a quote goes on to the same quote; elsewhere quotes are characters like
# any other, and nothing is an escape (lib/str_util.cpp of the real client).
_TOKEN = re.compile(r"""\s*(?:"([^"]*)"?|'([^']*)'?|(\S+))""")


def split_command_line(text: str) -> list[str]:
    """Return the arguments that a command line stands for."""
    return [
        match[1] if match[1] is not None else match[2] if match[2] is not None else match[3]
        for match in _TOKEN.finditer(text)
    ]


def fill_in(word: str, directory: Path) -> str:
    """Return a word of an app's command with its placeholders filled in.

    ``{python}`` is this interpreter, ``{apps}`` the directory of the supplied apps, ``{project}``
    the project's ``directory``.
    """
    for place, value in (
        ("{python}", sys.executable),
        ("{apps}", str(APPS)),
        ("{project}", str(directory.resolve())),
    ):
        word = word.replace(place, value)
    return word
