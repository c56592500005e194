"""The line that submit_batch hands to ``create_work`` for each job, and how that reads it.

The real server puts names and command lines into the line without quoting, so a space in a name or
a ``"`` in a command line changes what is read (``web-rpcs.md``, "submit_batch"). Clients have to
know, so this is not among the quirks that can be switched off.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from .replies import RpcFailed
from .request import php_float

#: fgets() reads 4,096 bytes with the final zero; a line that fills them is refused.
_MAX_LINE = 4094

# create_work's splitter does not look at the character right after an opening quote, and takes a
# quote that is never closed for the rest of the line (wire/submit_batch__cmdline_empty_dq).
_TOKEN = re.compile(r"""\s*(?:"((?:.[^"]*)?)"?|'((?:.[^']*)?)'?|(\S+))""", re.DOTALL)

_BACKSLASHES = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}
_IN_SQL = re.compile(r"\\(?P<escaped>.?)|(?P<doubled>'')|(?P<end>')", re.DOTALL)


@dataclass(slots=True)
class JobLine:
    """What create_work has read for one job.

    ``files`` are physical names; an entry of ``remote`` is (url, nbytes, md5).
    """

    name: str = ""
    command_line: str | None = None
    priority: int | None = None
    rsc_fpops_est: float = 0.0
    input_template: str = ""
    output_template: str = ""
    files: list[str | tuple[str, float, str]] = field(default_factory=list)


def read_job_line(text: str) -> list[JobLine]:
    """Read a job's line as create_work does; with a newline in it, it is several.

    Raises:
        RpcFailed: create_work would refuse it.
    """
    if len(text.encode("utf-8", "surrogateescape")) > _MAX_LINE and any(
        len(line.encode("utf-8", "surrogateescape")) > _MAX_LINE for line in text.split("\n")
    ):
        raise RpcFailed("create_work failed: fgets() buffer was too small\n")
    lines = text.split("\n")
    return [_read(f"{line}\n") for line in lines if line]


def _read(line: str) -> JobLine:
    words = iter([quoted or single or plain for quoted, single, plain in _TOKEN.findall(line)])
    job = JobLine()
    for word in words:
        if not word.startswith("--"):
            job.files.append(word)
        elif word == "--wu_name":
            job.name = next(words, "")
        elif word == "--command_line":
            job.command_line = next(words, "")
        elif word == "--priority":
            job.priority = int(php_float(next(words, "")))
        elif word == "--rsc_fpops_est":
            job.rsc_fpops_est = php_float(next(words, ""))
        elif word == "--wu_template":
            job.input_template = next(words, "")
        elif word == "--result_template":
            job.output_template = next(words, "")
        elif word == "--remote_file":
            job.files.append((next(words, ""), php_float(next(words, "")), next(words, "")))
        else:
            raise RpcFailed(f"create_work failed: create_work: bad stdin argument '{word}'\n")
    return job


def through_sql(text: str) -> str:
    """Return what is stored of a text that was put into SQL as it is.

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
