"""The protocol, without I/O: bytes to requests, results to lines, state of a conversation.

Modules, in the order of a request's way: ``lines`` (bytes to Request Lines), ``words`` (lines to
arguments), ``commands`` (all commands, arguments to typed requests), ``conversation`` (Return
Lines, RESULTS, ``R``, the prefix), ``results`` (Result Lines). ``common_commands``,
``boinc_commands`` and ``blah_commands`` have each command's request, syntax and help; they are made
of ``command`` and ``grammar``. ``banner`` comes first: before it is out, nothing else may load, so
nothing is imported here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from boinc_gahp.lazy import exports

if TYPE_CHECKING:
    from boinc_gahp.gahp.banner import BANNER as BANNER
    from boinc_gahp.gahp.command import (
        AsyncRequest as AsyncRequest,
        Request as Request,
        help_text as help_text,
    )
    from boinc_gahp.gahp.commands import (
        COMMANDS as COMMANDS,
        PREFIXES as PREFIXES,
        parse_request as parse_request,
    )
    from boinc_gahp.gahp.conversation import BUSY as BUSY, Conversation as Conversation
    from boinc_gahp.gahp.grammar import is_number as is_number
    from boinc_gahp.gahp.lines import LineSplitter as LineSplitter, TooLong as TooLong
    from boinc_gahp.gahp.results import NO_AD as NO_AD, fitting as fitting, seconds as seconds
    from boinc_gahp.gahp.words import (
        decode as decode,
        encode as encode,
        join as join,
        split as split,
    )

__getattr__, __dir__ = exports(
    __name__,
    {
        "banner": ["BANNER"],
        "command": ["AsyncRequest", "Request", "help_text"],
        "commands": ["COMMANDS", "PREFIXES", "parse_request"],
        "conversation": ["BUSY", "Conversation"],
        "grammar": ["is_number"],
        "lines": ["LineSplitter", "TooLong"],
        "results": ["NO_AD", "fitting", "seconds"],
        "words": ["decode", "encode", "join", "split"],
    },
)
