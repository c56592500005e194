"""The line that submit_batch passes to ``create_work`` for each job, and its parsing there.

The real server puts names and command lines into the line without quoting, so a space in a name or
a ``"`` in a command line changes the meaning (``web-rpcs.rst``, "Command lines").
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from boinc_gahp.localproject.backend.new_job import NewJob, RemoteInput
from boinc_gahp.localproject.hosts.command_line import split_command_line
from boinc_gahp.localproject.server.replies import RpcFailed
from boinc_gahp.localproject.server.request import as_integer, php_float

if TYPE_CHECKING:
    from collections.abc import Callable

#: fgets() reads 4,096 bytes with the final zero; a line that fills them is refused.
_MAX_LINE = 4094
#: create_work has room for so many words of a line, and a mark of their end; with more it writes
#: over its own memory.
_MAX_WORDS = 99

_BACKSLASHES = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}
_IN_SQL = re.compile(r"\\(?P<escaped>.?)|(?P<doubled>'')|(?P<end>')", re.DOTALL)


#: Options with a number, and how create_work reads it.
_NUMBERS: dict[str, Callable[[str], float]] = {
    "priority": lambda text: as_integer(php_float(text)),
    "target_host": lambda text: as_integer(php_float(text)),
    "target_user": lambda text: as_integer(php_float(text)),
}
#: Options with a text, and the field for it.
_TEXTS = {
    "wu_name": "name",
    "command_line": "command_line",
    "wu_template": "input_template",
    "result_template": "output_template",
}


def read_job_line(text: str) -> list[NewJob]:
    """Read a job's line like create_work; if it contains a newline, it is several lines.

    Raises:
        RpcFailed: create_work would refuse it.
    """
    if len(text.encode("utf-8", "surrogateescape")) > _MAX_LINE and any(
        len(line.encode("utf-8", "surrogateescape")) > _MAX_LINE for line in text.split("\n")
    ):
        raise RpcFailed("create_work failed: fgets() buffer was too small\n")
    lines = text.split("\n")
    return [_read(f"{line}\n") for line in lines if line]


def _read(line: str) -> NewJob:
    found = split_command_line(line)
    if len(found) > _MAX_WORDS:
        raise RpcFailed("create_work failed: ")
    words = iter(found)
    files: list[str | RemoteInput] = []
    own: dict[str, Any] = {}
    for word in words:
        option = word[2:]
        if not word.startswith("--"):
            files.append(word)
        elif option in _TEXTS:
            own[_TEXTS[option]] = next(words, "")
        elif option in _NUMBERS:
            own[option] = _NUMBERS[option](next(words, ""))
        elif option == "remote_file":
            files.append(RemoteInput(next(words, ""), php_float(next(words, "")), next(words, "")))
        else:
            raise RpcFailed(f"create_work failed: create_work: bad stdin argument '{word}'\n")
    return NewJob(files=tuple(files), **own)


def through_sql(text: str) -> str:
    """Return what the database stores of a text that is put into SQL unescaped.

    Raises:
        RpcFailed: a ``'`` ends the SQL string; nothing is executed here.
    """

    def read(match: re.Match[str]) -> str:
        if match["end"]:
            raise RpcFailed(
                "create_work failed: Database error: You have an error in your SQL syntax; check "
                "the manual that corresponds to your MariaDB server version for the right syntax "
                f"to use near '{text[match.end() :][:80]}' at line 1\nwu.insert_batch() failed: 1\n"
            )
        if match["doubled"]:
            return "'"
        return _BACKSLASHES.get(match["escaped"], match["escaped"])

    return _IN_SQL.sub(read, text)
