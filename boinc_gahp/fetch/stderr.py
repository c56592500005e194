"""A job's stderr without the client's wrapper."""

from __future__ import annotations

import re

#: The client's text before a job's stderr: its version, the start of a CDATA section, perhaps a
#: message (wire/query_completed_job__success).
_HEAD = re.compile(
    r"\s*(?:<core_client_version>[^<]*</core_client_version>\s*)?(?:<!\[CDATA\[\s*)?"
    r"(?:<message>.*?</message>\s*)?",
    re.DOTALL,
)
_BEGIN = "<stderr_txt>"
_END = "</stderr_txt>"
_TAIL = "]]>"


def unwrap(text: str) -> str:
    """Return what the job itself wrote to stderr.

    A text without a wrapper is returned unchanged. A wrapper without stderr gives an empty text. If
    a text lost its end (the project's database cuts at 64 kB), the rest is returned.
    """
    head = _HEAD.match(text)
    start = head.end() if head is not None else 0
    if not text.startswith(_BEGIN, start):
        return "" if text[:start].strip() else text
    body = text[start + len(_BEGIN) :].removeprefix("\n")
    # The job's own text may contain the tag, too: the last one is the wrapper's.
    beginning, tag, _ = body.rpartition(_END)
    if tag:
        return beginning.removesuffix("\n")
    ended = body.rstrip()
    return ended.removesuffix(_TAIL).rstrip() if ended.endswith(_TAIL) else body
