"""Jobs, instances and their output files as values, for validators, assimilators and pages.

They are copies: changing them has no effect, and they stay as they were when read.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from lxml import etree

from boinc_gahp.localproject.states import (
    ErrorMask,
    FileDeleteState,
    Outcome,
    ServerState,
    ValidateState,
)
from boinc_gahp.templates.documents import read_result
from boinc_gahp.templates.types import TemplateError

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

    from boinc_gahp.localproject.core import Core


@dataclass(frozen=True, slots=True)
class UploadedFile:
    """An output file that a volunteer has uploaded; size in bytes, MD5 in hex."""

    name: str
    nbytes: int
    md5: str


def uploaded_files(result: sqlite3.Row) -> list[UploadedFile]:
    """Return the files listed in ``result.xml_doc_out``, in the order of the output template."""
    if not result["xml_doc_out"]:
        return []
    root = etree.fromstring(f"<files>{result['xml_doc_out']}</files>".encode())
    return [
        UploadedFile(
            name=info.findtext("name", ""),
            nbytes=int(info.findtext("nbytes", "0")),
            md5=info.findtext("md5_cksum", ""),
        )
        for info in root.findall("file_info")
    ]


@dataclass(frozen=True, slots=True)
class OutputFile:
    """A received output file; size in bytes, MD5 in hex, both the server's own.

    With ``gzip_when_done`` in the output template the file is compressed, as the volunteer sent it.
    """

    open_name: str
    path: Path
    nbytes: int
    md5: str
    no_validate: bool = False


@dataclass(frozen=True, slots=True)
class Workunit:
    """A workunit; fields are named after BOINC's columns, times are seconds since the epoch."""

    id: int
    name: str
    app_name: str
    batch: int
    error_mask: ErrorMask
    canonical_resultid: int
    min_quorum: int
    target_nresults: int
    max_success_results: int


@dataclass(frozen=True, slots=True)
class Result:
    """A result; times of day are seconds since the epoch, other times seconds.

    Attributes:
        files: the existing output files, in the order of the output template, without optional ones
            that were not made.
        problem: how the files differ from the host's report; empty if they do not.
    """

    id: int
    name: str
    host_id: int
    server_state: ServerState
    outcome: Outcome
    validate_state: ValidateState
    exit_status: int
    sent_time: float
    report_deadline: float
    received_time: float
    elapsed_time: float
    cpu_time: float
    stderr_out: str
    files: tuple[OutputFile, ...] = ()
    problem: str = ""

    def file(self, open_name: str) -> OutputFile | None:
        """Return the output file with an open name, or None if it was not made."""
        return next((file for file in self.files if file.open_name == open_name), None)


def job(workunit: sqlite3.Row, app_name: str) -> Workunit:
    """Return a row of ``workunit`` (all columns) as a value."""
    names = [field.name for field in fields(Workunit) if field.name != "app_name"]
    values = {
        **{name: workunit[name] for name in names},
        "app_name": app_name,
        "error_mask": ErrorMask(workunit["error_mask"]),
    }
    return Workunit(**values)


def instance(core: Core, result: sqlite3.Row) -> Result:
    """Return a row of ``result`` (all columns) as a value, with its current files."""
    names = [field.name for field in fields(Result) if field.name in result.keys()]  # noqa: SIM118
    files, problem = _outputs(core, result)
    values = {
        **{name: result[name] for name in names},
        "host_id": result["hostid"],
        "server_state": ServerState(result["server_state"]),
        "outcome": Outcome(result["outcome"]),
        "validate_state": ValidateState(result["validate_state"]),
    }
    return Result(**values, files=files, problem=problem)


def _outputs(core: Core, result: sqlite3.Row) -> tuple[tuple[OutputFile, ...], str]:
    """Return the output files that are there, and the first problem with them."""
    if result["outcome"] not in (Outcome.SUCCESS, Outcome.VALIDATE_ERROR):
        return (), ""
    try:
        declared = read_result(result["xml_doc_in"])
        reported = {file.name: file for file in uploaded_files(result)}
    except (TemplateError, etree.XMLSyntaxError, ValueError) as error:
        return (), f"the list of its output files cannot be read: {error}"
    files, problems = [], []
    for file in declared:
        report = reported.get(file.name)
        if report is None:
            if not file.optional:
                problems.append(f"{file.open_name}: the host did not report this file")
            continue
        stored = core.upload.find(file.name)
        if stored is None:
            deleted = result["file_delete_state"] == FileDeleteState.DONE
            what = "was deleted" if deleted else "has not arrived"
            problems.append(f"{file.open_name}: the file {file.name} {what}")
            continue
        problems += _differences(file.open_name, report, stored.nbytes, stored.md5)
        files.append(
            OutputFile(file.open_name, stored.path, stored.nbytes, stored.md5, file.no_validate)
        )
    return tuple(files), problems[0] if problems else ""


def _differences(open_name: str, report: UploadedFile, nbytes: int, md5: str) -> list[str]:
    if report.nbytes != nbytes:
        return [f"{open_name}: the host reported {report.nbytes} bytes, but the file has {nbytes}"]
    if report.md5.lower() != md5:
        return [f"{open_name}: the host reported MD5 {report.md5!r}, but the file has {md5}"]
    return []
