"""How BOINC's client splits a command line into arguments."""

from __future__ import annotations

import re

# A token that begins with a quote goes on to the same quote; elsewhere quotes are characters like
# any other, and nothing is an escape (lib/str_util.cpp of the real client).
_TOKEN = re.compile(r"""\s*(?:"([^"]*)"?|'([^']*)'?|(\S+))""")


def split_command_line(text: str) -> list[str]:
    """Return the arguments that a command line stands for."""
    return [
        match[1] if match[1] is not None else match[2] if match[2] is not None else match[3]
        for match in _TOKEN.finditer(text)
    ]
