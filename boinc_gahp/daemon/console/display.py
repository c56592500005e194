"""The console's texts: results, errors and help in words; uses no terminal."""

from __future__ import annotations

import re
import textwrap
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from boinc_gahp.gahp import (
    COMMANDS,
    PREFIXES,
    AsyncRequest,
    blah_commands,
    boinc_commands,
    help_text,
)
from boinc_gahp.states import HTCondorState
from boinc_gahp.text import count, quoted, visible

if TYPE_CHECKING:
    from collections.abc import Iterator

#: The most jobs of a batch to list one by one; for more, only the number per status is shown.
LISTED_JOBS = 20

_ATTRIBUTE = re.compile(r'(\w+)\s*=\s*((?:"(?:[^"\\]|\\.)*"|[^";])*)(?:;|$)')

#: A longer line of a help text is continued on the next one.
BROKEN_AT = 85

#: The style of a line; the terminal's side chooses the colours.
Style = Literal["plain", "good", "bad", "faint"]


@dataclass(frozen=True, slots=True)
class ConsoleMessage:
    """Some lines for the person at the keyboard; the style is that of the first line.

    Attributes:
        head: how the first line begins, in ``style``.
        lines: the rest of the first line, then whole lines.
    """

    style: Style
    head: str
    lines: list[str] = field(default_factory=list)


def folded(text: str, width: int) -> str:
    """Return ``text`` in lines of at most ``width`` columns; no word is split."""
    return "\n".join(
        textwrap.wrap(text, max(width, 20), break_long_words=False, break_on_hyphens=False)
    )


def result(request: AsyncRequest, line: bytes) -> ConsoleMessage:
    """Return the meaning of a Result Line.

    Args:
        request: the request that it answers.
        line: the Result Line, without prefix and end.
    """
    error, values = COMMANDS[request.command].form.read(line)
    head = f"{request.command} {request.request_id}:"
    if error is not None:
        return ConsoleMessage("bad", head, [f"error: {visible(error)}"])
    lines = list(_success(request, values))
    lines[0] = f"ok{lines[0]}"
    return ConsoleMessage("good", head, [visible(one) for one in lines])


def _success(request: AsyncRequest, values: list[str]) -> Iterator[str]:
    match request:
        case boinc_commands.Submit(batch=batch, jobs=jobs):
            yield f", {count(len(jobs), 'job')} in batch {batch}"
        case boinc_commands.QueryBatches(batches=batches):
            yield from _statuses(batches, values)
        case boinc_commands.FetchOutput(directory=directory):
            status, elapsed, cpu = values
            yield f", exit status {status}; {elapsed} s elapsed, {cpu} s CPU"
            yield f"  outputs in {directory}"
        case boinc_commands.AbortJobs(jobs=names):
            yield f", {count(len(names), 'job')} aborted"
        case boinc_commands.RetireBatch(batch=batch):
            yield f", batch {batch} is retired"
        case boinc_commands.SetLease(batch=batch, unix_time=until):
            yield f", batch {batch} is kept until {_moment(until)}"
        case boinc_commands.Ping():
            yield ", the project answers"
        case blah_commands.BlahRequest():
            yield from _blah_success(request, values)
        case _:
            yield f" {' '.join(values)}".rstrip()


def _statuses(batches: tuple[str, ...], values: list[str]) -> Iterator[str]:
    """Describe the statuses of BOINC_QUERY_BATCHES: server_time {njobs {job status}...}..."""
    server_time, *rest = values
    yield f", server_time {server_time}"
    at = 0
    for batch in batches:
        njobs = int(rest[at])
        end = at + 1 + 2 * njobs
        names, statuses = rest[at + 1 : end : 2], rest[at + 2 : end : 2]
        at = end
        counts = Counter(statuses)
        summary = ", ".join(f"{number} {status}" for status, number in sorted(counts.items()))
        yield f"  {batch}: {count(njobs, 'job')}{': ' if summary else ''}{summary}"
        if njobs <= LISTED_JOBS:
            wide = max(map(len, names), default=0)
            for name, status in zip(names, statuses, strict=True):
                yield f"    {name:<{wide}}  {status}"


def _blah_success(request: blah_commands.BlahRequest, values: list[str]) -> Iterator[str]:
    match request:
        case blah_commands.Ping():
            yield ", jobs can be accepted"
        case blah_commands.JobSubmit():
            yield f", the job is {values[0]}"
        case blah_commands.JobStatus(job_id=job_id):
            status, ad = values
            yield f", {job_id} is {_htcondor_words(status)}"
            yield from (f"  {line}" for line in _attributes(ad))
        case blah_commands.JobCancel(job_id=job_id):
            yield f", {job_id} is cancelled"
        case blah_commands.JobRefreshProxy():
            yield ", there was nothing to do"


def _htcondor_words(status: str) -> str:
    """Return the meaning of a status of BLAH_JOB_STATUS."""
    try:
        return HTCondorState(int(status)).words
    except ValueError:
        return f"in status {status}"


def _attributes(ad: str) -> Iterator[str]:
    """Yield the attributes of a ClassAd, one per line."""
    inner = ad.strip().removeprefix("[").removesuffix("]").strip()
    for name, value in _ATTRIBUTE.findall(inner):
        yield f"{name} = {value.strip()}"


def _moment(unix_time: str) -> str:
    """Return the local time of day, or the text unchanged if it is not a time."""
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S %z", time.localtime(float(unix_time)))
    except (ValueError, OverflowError, OSError):
        return unix_time


def greeting(version: str, project: str | None, log_path: str | None, width: int) -> str:
    """Return the console's first words: one line, folded between its parts if it is too long.

    Args:
        version: of boinc_gahp.
        project: the selected project's URL, if one is selected.
        log_path: the log's path, if one is written.
        width: of the terminal, in columns.
    """
    parts = [
        f"boinc_gahp {version}",
        f"project {project}" if project else "no project: BOINC_SELECT_PROJECT url authenticator",
        f"log {log_path}" if log_path else "no log",
        "type help",
    ]
    lines = [parts[0]]
    for part in parts[1:]:
        if len(lines[-1]) + 3 + len(part) <= width:
            lines[-1] += f" | {part}"
        else:
            lines.append(part)
    return "\n".join(map(visible, lines))


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
        "TAB completes, Ctrl-C discards the line, Ctrl-D leaves.",
    ]
    return "\n".join(lines)


def help_on(word: str, width: int) -> ConsoleMessage:
    """Return the answer to ``help word``, folded at ``width`` columns."""
    name = word.upper()
    short = (COMMANDS.get(f"{prefix}{name}") for prefix in PREFIXES)
    command = next((found for found in short if found), None)
    if command is None:
        return ConsoleMessage("bad", "help:", [f"there is no command {quoted(word)}"])
    folded: list[str] = []
    for line in _paragraphs(help_text(command)):
        folded += textwrap.wrap(
            line,
            max(width - 1, 40),
            subsequent_indent=" " * _continued_at(line),
            break_long_words=False,
            break_on_hyphens=False,
        ) or [""]
    return ConsoleMessage("plain", "", folded)


def _paragraphs(text: str) -> Iterator[str]:
    """Yield the lines of a help text; lines that were broken only for their length are joined."""
    whole = ""
    long = False
    for line in text.splitlines():
        if long and line.strip() and not line.lstrip().startswith("Example"):
            whole += f" {line.strip()}"
        else:
            if whole:
                yield whole
            whole = line
            if not line:
                yield ""
        long = len(line) > BROKEN_AT
    if whole:
        yield whole


def _continued_at(line: str) -> int:
    """Return the column at which a folded line of a help text continues."""
    argument = re.match(r" +\S+ {2,}(?=\S)", line)
    if argument:
        return argument.end()
    indent = len(line) - len(line.lstrip())
    code = line.lstrip().partition(" ")[0].rstrip(":,") in {*COMMANDS, "Example"}
    return indent + 4 if code else indent
