"""HTCondor's V2 syntax of arguments and environments: words, with single quotes."""

from __future__ import annotations

import re

#: A stretch between quotes, a stretch without quotes, or a quote that is not closed.
_STRETCH = re.compile(r"'((?:[^']|'')*)'|([^' \t\n\r]+)|(')")
_SPACE = re.compile(r"[ \t\n\r]+")


def split_v2(text: str) -> tuple[str, ...]:
    """Return the words in ``text``.

    Raises:
        ValueError: a quote is not closed; says where it is.
    """
    words = []
    place = 0
    while place < len(text):
        space = _SPACE.match(text, place)
        if space:
            place = space.end()
            continue
        word = []
        while stretch := _STRETCH.match(text, place):
            if stretch[3]:
                raise ValueError(f"the ' in front of {text[place + 1 :][:40]!r} is not closed")
            quoted, bare = stretch[1], stretch[2]
            word.append(bare if quoted is None else quoted.replace("''", "'"))
            place = stretch.end()
        words.append("".join(word))
    return tuple(words)
