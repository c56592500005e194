"""A job's stderr without the client's wrapper, its lines, and the line that says most."""

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
#: Lines of BOINC's own library and wrappers (``api/boinc_api.cpp``, boinc_msg_prefix and
#: boinc_finish_message; ``samples/docker_wrapper``).
_OWN = re.compile(
    r"(?:\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d \(\d+\):|called boinc_finish\(|stderr end$"
    r"|build_image\(\) failed"
)
_LINE_END = re.compile(r"\r\n|\n|\r")


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


def lines_of(text: str) -> list[str]:
    """Return the lines of a stderr; what a program wrote over with a carriage return is a line."""
    lines = _LINE_END.split(text)
    return lines[:-1] if lines[-1] == "" else lines


def last_line(text: str) -> str:
    """Return the last line of a stderr that is not BOINC's own, else its last one; "": none."""
    lines = [line.strip() for line in lines_of(text) if line.strip()]
    theirs = (line for line in reversed(lines) if not _OWN.match(line))
    return next(theirs, lines[-1] if lines else "")
