"""A job that is to be made: as a value, as create_work's line, and with templates of its own.

submit_batch passes a line to create_work for each job. The real server puts names and command lines
into it without quoting, so a space in a name or a ``"`` in a command line changes the meaning
(``web-rpcs.rst``, "Command lines").
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from boinc_gahp.files import write_whole
from boinc_gahp.localproject.errors import RpcFailed
from boinc_gahp.localproject.server.messages import as_integer, php_float

if TYPE_CHECKING:
    from pathlib import Path

    from boinc_gahp.localproject.core import Core
    from boinc_gahp.templates.types import TemplateError

#: A token that begins with a quote extends to the same quote, or to the end; the character after
#: the opening quote is not examined. Elsewhere quotes are ordinary characters, and there are no
#: escapes. White space is C's (``web-rpcs.rst``, "What clients make of it", and
#: ``wire/submit_batch__cmdline_empty_dq``, where create_work reads with the same function).
_TOKEN = re.compile(
    r"""\s*(?:"((?:.[^"]*)?)"?|'((?:.[^']*)?)'?|([^\s"']\S*))""", re.DOTALL | re.ASCII
)
#: fgets() reads 4,096 bytes with the final zero; a line that fills them is refused.
_MAX_LINE = 4094
#: create_work has room for so many words of a line, and a mark of their end; with more it writes
#: over its own memory.
_MAX_WORDS = 99

_BACKSLASHES = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}
_IN_SQL = re.compile(r"\\(?P<escaped>.?)|(?P<doubled>'')|(?P<end>')", re.DOTALL)
#: Options with a number.
_NUMBERS = ("priority", "target_host", "target_user")
#: Options with a text, and the field for it.
_TEXTS = {
    "wu_name": "name",
    "command_line": "command_line",
    "wu_template": "input_template",
    "result_template": "output_template",
}
#: How create_work ends if a template and the options do not go together.
XML_PARSE = "process_input_template(): unexpected XML tag or syntax\ncreate_work() failed: -112\n"
#: By the problem that we find in the template.
_SAID = {
    "no-body": "process_input_template: bad WU template - no <workunit>",
    "no-open-name": "No open name found and copy_file not specified",
}


class RemoteInput(NamedTuple):
    """An input file on another server than the project's; size in bytes, MD5 in hex.

    Volunteers know it as ``js_<md5>`` (``templates.rst``, "Input templates").
    """

    url: str
    nbytes: float
    md5: str


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job to be made; fields are named as in ``templates.rst`` and create_work's options.

    None, or an empty value, means BOINC's default. For the fields from ``rsc_fpops_est`` to
    ``size_class``, the input template wins: they are used where it has no value.

    Attributes:
        name: unique in the project; empty: one is generated.
        command_line: as it is stored, ``&`` and ``<`` escaped: hosts unescape it once.
        files: physical names of staged files, or remote files, in the input template's order.
        rsc_fpops_est, rsc_fpops_bound: floating-point operations.
        rsc_memory_bound, rsc_disk_bound: bytes.
        rsc_bandwidth_bound: bytes a second.
        delay_bound: seconds.
        app_version_num: the only version of the app that may be used; 0: the newest.
        input_template, output_template: paths below the project's directory.
        target_host, target_user: ids; the job goes to nobody else.
    """

    name: str = ""
    command_line: str | None = None
    files: tuple[str | RemoteInput, ...] = ()
    priority: int | None = None
    rsc_fpops_est: float | None = None
    rsc_fpops_bound: float | None = None
    rsc_memory_bound: float | None = None
    rsc_disk_bound: float | None = None
    rsc_bandwidth_bound: float | None = None
    delay_bound: float | None = None
    min_quorum: int | None = None
    target_nresults: int | None = None
    max_error_results: int | None = None
    max_total_results: int | None = None
    max_success_results: int | None = None
    size_class: int | None = None
    app_version_num: int | None = None
    input_template: str = ""
    output_template: str = ""
    target_host: int | None = None
    target_user: int | None = None

    def over(self, defaults: NewJob) -> NewJob:
        """Return this job with its missing values taken from ``defaults``."""
        own = {
            field.name: value
            for field in fields(self)
            if (value := getattr(self, field.name)) not in (None, "", ())
        }
        return replace(defaults, **own)


def split_command_line(text: str) -> list[str]:
    """Return the words that create_work and clients find in a text."""
    return [quoted or single or bare for quoted, single, bare in _TOKEN.findall(text)]


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
            own[option] = as_integer(php_float(next(words, "")))
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


def refused_by_create_work(error: TemplateError) -> str:
    """Return create_work's message for an input template; '' if even PHP cannot read it.

    PHP only checks the XML and counts the files.
    """
    problem = error.problems[0]
    if problem.code == "file-count":
        # "1 <file_info> but 0 <file_ref>: ..."
        infos, _, _, refs, *_ = problem.text.split()
        return "too many <file_ref>s" if int(refs) > int(infos) else "#file refs != #file infos"
    return _SAID.get(problem.code, "")


@lru_cache(maxsize=64)
def template_name(xml: str) -> str:
    """Return the name of the file for a job's own template."""
    return hashlib.md5(xml.encode(), usedforsecurity=False).hexdigest()


def keep_template(core: Core, xml: str) -> str:
    """Write a job's own template into ``templates/tmp`` and return its path there."""
    path: Path = core.templates / "tmp" / template_name(xml)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, xml)
    return str(path.relative_to(core.directory))
