"""Job templates as values, and the problems that one can have.

Fields are named after the elements in BOINC's documents JobTemplates and JobIn, which
``templates.rst`` sums up. Sizes are bytes, durations seconds.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from boinc_gahp.errors import GahpError

if TYPE_CHECKING:
    from collections.abc import Iterable

#: ``workunit.xml_doc`` and ``result.xml_doc_in`` are MySQL blobs; a document must stay under this
#: (``templates.rst``, "Size limits").
DOCUMENT_LIMIT = 65_535

#: What an output template writes where BOINC fills in the project's upload handler.
UPLOAD_URL = "<UPLOAD_URL/>"

#: The values that ``create_work`` uses where a template has none: floating-point operations, bytes,
#: seconds (its options' defaults), and the counts of ``back-end.rst``, "Transitioner": one attempt.
#: target_nresults is min_quorum's value, and the last two are at least that.
DEFAULTS = {
    "rsc_fpops_est": 3600e9,
    "rsc_fpops_bound": 86400e9,
    "rsc_memory_bound": 5e8,
    "rsc_disk_bound": 1e9,
    "rsc_bandwidth_bound": 0.0,
    "delay_bound": 7 * 86400.0,
    "min_quorum": 1,
    "max_error_results": 1,
    "max_total_results": 1,
    "max_success_results": 1,
}

_OUTFILE = re.compile(r"<OUTFILE_([0-9]{1,4})/>")


class Severity(Enum):
    """How bad a problem is."""

    ERROR = "error"
    """No job can be made with the template, or no such job can ever finish."""
    WARNING = "warning"
    """It can be used, but something will not work as its author would expect."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem with a template.

    Attributes:
        line: where, from 1; 0 if there is no such place.
        text: what is wrong, what is expected and why.
        code: a short name for this kind of problem; it never changes.
    """

    line: int
    text: str
    code: str
    severity: Severity = Severity.ERROR

    def __str__(self) -> str:
        return f"line {self.line}: {self.text}" if self.line else self.text


class TemplateError(GahpError):
    """A job template that cannot be used.

    Attributes:
        what: which template or document, for example ``input template``.
        problems: all problems found, in the order of the lines.
    """

    code = "BG-TEMPLATE"
    concerns = "app"

    def __init__(self, what: str, problems: Iterable[Problem]) -> None:
        self.what = what
        self.problems = tuple(problems)
        super().__init__(f"{what}: " + "; ".join(map(str, self.problems)))


def wrong(what: str, text: str, code: str, line: int = 0) -> TemplateError:
    """Return the error for a template or document with one problem."""
    return TemplateError(what, [Problem(line, text, code)])


@dataclass(frozen=True, slots=True)
class InputFileInfo:
    """An input file: its ``<file_info>`` and the ``<file_ref>`` at the same place."""

    open_name: str
    copy_file: bool = False
    gzip: bool = False
    gzipped_nbytes: int | None = None
    sticky: bool = False
    no_delete: bool = False
    report_on_rpc: bool = False
    physical_name: str | None = None
    """Given only for a constant file, which is the same for all jobs."""
    urls: tuple[str, ...] = ()
    md5_cksum: str | None = None
    nbytes: int | None = None
    generate_locally: bool = False
    line: int = field(default=0, compare=False, repr=False)
    """Where its ``<file_info>`` begins."""

    @property
    def remote(self) -> bool:
        """Whether volunteers fetch it from a server other than the project's."""
        return bool(self.urls)

    @property
    def constant(self) -> bool:
        """Whether it is the same for all jobs, and staged on the project's server."""
        return self.physical_name is not None and not (self.remote or self.generate_locally)

    @property
    def per_job(self) -> bool:
        """Whether each job names its own: the file is not constant, remote or generated."""
        return not (self.physical_name or self.urls or self.generate_locally)


@dataclass(frozen=True, slots=True)
class InputTemplate:
    """An input template; None stands for a missing element."""

    files: tuple[InputFileInfo, ...] = ()
    command_line: str | None = None
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
    priority: int | None = None
    batch: int | None = None
    avg_ncpus: float | None = None
    """Not for the server: it goes to the client, which reserves as many processors."""
    flops: float | None = None
    """Likewise: the speed that the client expects, in floating-point operations per second."""
    buda_app_name: str | None = None
    """For the scheduler: the BUDA app whose files it adds (``containers.rst``, "BUDA apps")."""
    line: int = field(default=0, compare=False, repr=False)
    """Where its ``<workunit>`` begins."""

    @property
    def per_job_files(self) -> tuple[InputFileInfo, ...]:
        """The files that each job has to name, in this order."""
        return tuple(file for file in self.files if file.per_job)

    @property
    def counts(self) -> dict[str, int]:
        """How many results a job may have, as create_work fills in what is missing."""
        quorum = int(self.min_quorum or DEFAULTS["min_quorum"])
        target = self.target_nresults or quorum
        return {
            "min_quorum": quorum,
            "target_nresults": target,
            "max_error_results": int(self.max_error_results or DEFAULTS["max_error_results"]),
            "max_success_results": max(self.max_success_results or 0, target),
            "max_total_results": max(self.max_total_results or 0, target),
        }


#: The elements of a workunit that are numbers.
PARAMETERS = tuple(
    name
    for name in InputTemplate.__dataclass_fields__
    if name not in {"files", "command_line", "buda_app_name", "line"}
)


@dataclass(frozen=True, slots=True)
class OutputFileInfo:
    """An output file: its ``<file_info>`` and the ``<file_ref>`` of the same name.

    In a template ``name`` is ``<OUTFILE_n/>``, or a name that is the same for all jobs.
    """

    open_name: str
    name: str
    generated_locally: bool = True
    upload_when_present: bool = True
    max_nbytes: float | None = None
    urls: tuple[str, ...] = (UPLOAD_URL,)
    gzip_when_done: bool = False
    copy_file: bool = False
    optional: bool = False
    no_validate: bool = False
    no_delete: bool = False
    sticky: bool = False
    line: int = field(default=0, compare=False, repr=False)
    """Where its ``<file_info>`` begins."""

    @property
    def number(self) -> int | None:
        """The n of ``<OUTFILE_n/>``; None if the name is fixed."""
        return outfile_number(self.name)


@dataclass(frozen=True, slots=True)
class OutputTemplate:
    """An output template; a file's place in ``files`` is its number on the server."""

    files: tuple[OutputFileInfo, ...] = ()
    report_immediately: bool = False
    line: int = field(default=0, compare=False, repr=False)
    """Where its ``<result>`` begins."""


def outfile_number(name: str) -> int | None:
    """Return the n of ``<OUTFILE_n/>``, or None for any other name."""
    match = _OUTFILE.fullmatch(name)
    return int(match[1]) if match else None


def safe_open_name(name: str) -> bool:
    """Whether an open name stays inside the job's directory, also on Windows."""
    parts = name.replace("\\", "/").split("/")
    absolute = parts[0] == "" or (len(parts[0]) > 1 and parts[0][1] == ":")
    return not absolute and ".." not in parts and "\0" not in name and set(parts) != {"."}
