"""The console's texts: results and help in words; uses no terminal."""

from __future__ import annotations

import textwrap
from collections import Counter
from typing import TYPE_CHECKING

from boinc_gahp.gahp import boinc_commands
from boinc_gahp.gahp.command import AsyncRequest, help_text
from boinc_gahp.gahp.commands import COMMANDS, PREFIXES
from boinc_gahp.states import HTCondorState
from boinc_gahp.text import count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: The most jobs of a batch to list one by one; for more, only the number per status is shown.
LISTED_JOBS = 20


def told(request: AsyncRequest, values: Sequence[str]) -> list[str]:
    """Return the values of a request's success in lines for people."""
    if isinstance(request, boinc_commands.QueryBatches):
        return list(_statuses(request.batches, values))
    names = COMMANDS[request.command].returns.split()
    return [
        f"{name}: {_meaning(name, word)}"
        for name, word in zip(names[len(names) - len(values) :], values, strict=True)
    ]


def _meaning(name: str, word: str) -> str:
    known = name == "status" and word in {str(state.value) for state in HTCondorState}
    return f"{word} ({HTCondorState(int(word)).words})" if known else word


def _statuses(batches: tuple[str, ...], words: Sequence[str]) -> Iterator[str]:
    """Describe the values of BOINC_QUERY_BATCHES: server_time {njobs {job status}...}..."""
    server_time, *rest = words
    yield f"server_time: {server_time}"
    for batch in batches:
        njobs = int(rest[0])
        names, statuses = rest[1 : 1 + 2 * njobs : 2], rest[2 : 2 + 2 * njobs : 2]
        rest = rest[1 + 2 * njobs :]
        counts = Counter(statuses)
        summary = ", ".join(f"{number} {status}" for status, number in sorted(counts.items()))
        yield f"{batch}: {count(njobs, 'job')}{': ' if summary else ''}{summary}"
        if njobs <= LISTED_JOBS:
            wide = max(map(len, names), default=0)
            for name, status in zip(names, statuses, strict=True):
                yield f"  {name:<{wide}}  {status}"


def help_overview() -> str:
    """Return the answer to ``help``: each command on a line, and how to write lines."""
    wide = max(map(len, COMMANDS))
    lines = [f"{name:<{wide}}  {command.summary}" for name, command in COMMANDS.items()]
    lines += [
        f"{'HELP [COMMAND]':<{wide}}  this, or all about a command",
        "",
        "An id is your number for a request, above 0; its result is printed with it.",
        r"Within an argument, write \ before a space or a backslash. NULL: none.",
        "BLAH_*: single jobs (HTCondor 10 and later). BOINC_*: batches of jobs.",
        "TAB completes commands, Ctrl-C discards the line, Ctrl-D leaves.",
    ]
    return "\n".join(lines)


def help_on(word: str, width: int) -> str | None:
    """Return the answer to ``help word``, in lines of ``width`` columns; None: no such command.

    The beginning of a command's name may be left out: PING is BOINC_PING.
    """
    found = (COMMANDS.get(f"{prefix}{word.upper()}") for prefix in PREFIXES)
    command = next(filter(None, found), None)
    return None if command is None else folded(help_text(command), width)


def folded(text: str, width: int) -> str:
    """Return ``text`` in lines of at most ``width`` columns; no word is split."""
    return "\n".join(
        textwrap.fill(
            line,
            max(width, 40),
            subsequent_indent=" " * (len(line) - len(line.lstrip())),
            break_long_words=False,
            break_on_hyphens=False,
        )
        for line in text.split("\n")
    )
