"""What commands read and print: arguments, tables, progress, colours, and words for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boinc_gahp.lazy import exports

if TYPE_CHECKING:
    from boinc_gahp.terminal.live import Live as Live, Work as Work, remark as remark
    from boinc_gahp.terminal.output import (
        bar as bar,
        coloured as coloured,
        command_line as command_line,
        complain as complain,
        is_live as is_live,
        width_of as width_of,
    )
    from boinc_gahp.terminal.parsing import (
        PROGRAM as PROGRAM,
        Group as Group,
        Parser as Parser,
        arguments_of as arguments_of,
        ended as ended,
        kind_of as kind_of,
        not_empty as not_empty,
    )
    from boinc_gahp.terminal.table import Cell as Cell, Column as Column
    from boinc_gahp.terminal.words import (
        at as at,
        moment as moment,
        now as now,
        one_line as one_line,
    )

__getattr__, __dir__ = exports(
    __name__,
    {
        "live": ["Live", "Work", "remark"],
        "output": ["bar", "coloured", "command_line", "complain", "is_live", "width_of"],
        "parsing": ["Group", "PROGRAM", "Parser", "arguments_of", "ended", "kind_of", "not_empty"],
        "table": ["Cell", "Column"],
        "words": ["at", "moment", "now", "one_line"],
    },
)
