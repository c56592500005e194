"""The common commands of all GAHP servers (``gahp.rst``, "Common commands").

Each command has its request, and its row in :data:`TABLE`.
"""

from __future__ import annotations

from dataclasses import dataclass

from boinc_gahp.gahp.command import Command, Request
from boinc_gahp.gahp.grammar import Text


class Commands(Request):
    """COMMANDS."""

    command = "COMMANDS"


class Version(Request):
    """VERSION."""

    command = "VERSION"


class Quit(Request):
    """QUIT."""

    command = "QUIT"


class Results(Request):
    """RESULTS."""

    command = "RESULTS"


class AsyncModeOn(Request):
    """ASYNC_MODE_ON."""

    command = "ASYNC_MODE_ON"


class AsyncModeOff(Request):
    """ASYNC_MODE_OFF."""

    command = "ASYNC_MODE_OFF"


@dataclass(frozen=True, slots=True)
class ResponsePrefix(Request):
    """RESPONSE_PREFIX; an empty prefix means none."""

    command = "RESPONSE_PREFIX"
    prefix: str


TABLE: tuple[Command, ...] = (
    Command(
        AsyncModeOff,
        summary="do not print R when results are ready",
        help="""\
From now on no R is printed; RESULTS shows whether there are results.""",
    ),
    Command(
        AsyncModeOn,
        summary="print R when results are ready",
        help="""\
From now on a line R is printed when a new result can be fetched with RESULTS. It is printed once
until the next RESULTS, and not for results that exist already.
The console does not need this: it prints results as they come.""",
    ),
    Command(
        Commands,
        returns="command...",
        summary="list the commands",
        help="""\
You can also type command names in small letters.""",
    ),
    Command(
        Quit,
        summary="exit at once",
        help="""\
Unfinished requests are dropped; those that reached the project continue there.""",
    ),
    Command(
        ResponsePrefix,
        (Text("prefix", "the prefix, starting with the next line; NULL: none"),),
        summary="set a prefix for all printed lines",
        help="""\
A gridmanager sets it to tell answers from stray output. It also tells boinc_gahp that the requests
come from a gridmanager. Then an error to BOINC_SUBMIT guarantees that none of the jobs exists, and
answers to BOINC_QUERY_BATCHES leave out jobs that were aborted here.""",
    ),
    Command(
        Results,
        returns="n, then n lines",
        summary="print the results so far",
        help="""\
Prints the number of results, then the results, one per line, in the order in which they came. Each
result is printed once. The console prints results as they come, and keeps none for RESULTS.""",
    ),
    Command(
        Version,
        returns="$GahpVersion: ... $",
        summary="print the version",
        help="""\
It is the text that was printed at the start.""",
    ),
)
