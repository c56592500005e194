"""Checks a template's values: numbers that do not go together, and traps for jobs and files.

What ``create_work`` refuses is an error. Where ``templates.rst`` and ``back-end.rst`` leave facts
open, those of BOINC's own ``create_work`` and ``file_deleter`` apply.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from boinc_gahp.templates.markup import Fields, children, inner
from boinc_gahp.templates.reading import file_refs
from boinc_gahp.templates.sizes import WorstCase, worst_input, worst_output
from boinc_gahp.templates.types import DEFAULTS, DOCUMENT_LIMIT, safe_open_name

if TYPE_CHECKING:
    from lxml import etree

    from boinc_gahp.templates.markup import Findings
    from boinc_gahp.templates.reading import Parts
    from boinc_gahp.templates.types import (
        InputFileInfo,
        InputTemplate,
        OutputFileInfo,
        OutputTemplate,
    )

_MD5 = re.compile(r"[0-9a-fA-F]{32}")
#: Each count must not exceed the one beside it; and why.
_COUNTS = (
    ("min_quorum", "target_nresults", "a quorum would never be reached"),
    ("target_nresults", "max_success_results", "create_work refuses this"),
    ("target_nresults", "max_total_results", "the job would fail before it begins"),
    ("max_success_results", "max_total_results", "create_work refuses this"),
    ("max_error_results", "max_total_results", "create_work refuses this"),
)
_NOT_ZERO = (
    "rsc_fpops_est",
    "rsc_fpops_bound",
    "rsc_disk_bound",
    "delay_bound",
    "max_error_results",
    "max_total_results",
    "max_success_results",
)
#: What every template should set itself.
_WANTED = ("rsc_fpops_est", "rsc_fpops_bound", "rsc_memory_bound", "rsc_disk_bound", "delay_bound")
#: A bound below this many bytes was probably meant in megabytes.
_SMALL = 1e6
#: Escaped neither for SQL nor for the XML that clients read (``containers.rst``, "On the server").
_NOT_IN_OPEN_NAMES = re.compile(r"[<&'\\]")


def check_input(template: InputTemplate, parts: Parts, found: Findings) -> None:
    """Note problems with an input template that could be read."""
    body = parts.body
    if body is None:
        return
    _Parameters(template, body, found).check()
    for file, info, ref in zip(template.files, parts.file_infos, file_refs(body), strict=True):
        _check_input_file(file, info, found)
        _check_open_name(file.open_name, ref, found)
    _check_size(worst_input(template), body, found)


def check_output(template: OutputTemplate, parts: Parts, found: Findings) -> None:
    """Note problems with an output template that could be read."""
    body = parts.body
    if body is None:
        return
    infos = {Fields([], info).text("name"): info for info in parts.file_infos}
    refs = {Fields([], ref).text("file_name"): ref for ref in file_refs(body)}
    for file in template.files:
        info, ref = infos[file.file_name], refs[file.file_name]
        _check_output_file(file, info, found)
        _check_output_no_delete(file, info, found)
        _check_open_name(file.open_name, ref, found)
    _check_size(worst_output(template), body, found)


class _Parameters:
    """The attributes of a job, with BOINC's defaults for missing ones."""

    def __init__(self, template: InputTemplate, body: etree._Element, found: Findings) -> None:
        self._template = template
        self._body = body
        self._found = found
        self._places = {str(child.tag): child for child in reversed(list(children(body)))}

    def check(self) -> None:
        for name in _NOT_ZERO:
            if self._given(name) == 0:
                self._error(
                    name, "zero", f"<{name}> is 0: expected more than 0; no job can be made"
                )
        for small, large, why in _COUNTS:
            if self._value(small) > self._value(large):
                text = (
                    f"{self._shown(small)} is more than {self._shown(large)}: expected at most as "
                    f"much; {why}"
                )
                self._error(small if self._given(small) is not None else large, "counts", text)
        self._check_bounds()
        missing = [name for name in _WANTED if name not in self._places]
        if missing:
            names = ", ".join(f"<{name}>" for name in missing)
            values = ", ".join(f"{DEFAULTS[name]:g}" for name in missing)
            self._found.warn(
                self._body,
                "default-bounds",
                f"the job's size is not given: expected {names}; without them BOINC uses {values}",
            )

    def _check_bounds(self) -> None:
        if self._value("rsc_fpops_bound") < self._value("rsc_fpops_est"):
            given = "rsc_fpops_bound" in self._places
            self._warn(
                "rsc_fpops_bound" if given else "rsc_fpops_est",
                "bound-below-estimate",
                f"{self._shown('rsc_fpops_bound')} is less than {self._shown('rsc_fpops_est')}: "
                "expected several times as much; clients abort a job that reaches its bound",
            )
        for name in ("rsc_memory_bound", "rsc_disk_bound"):
            value = self._given(name)
            if value is not None and 0 < value < _SMALL:
                self._warn(
                    name,
                    "small-bound",
                    f"<{name}> is {value:g} bytes: expected bytes, not megabytes; clients abort a "
                    "job that uses more",
                )
        self._check_disk()

    def _check_disk(self) -> None:
        total = sum(file.nbytes or 0 for file in self._template.files)
        if total > self._value("rsc_disk_bound"):
            self._warn(
                "rsc_disk_bound",
                "disk-below-files",
                f"{self._shown('rsc_disk_bound')} bytes is less than the template's remote files "
                f"have, {total:,}: expected room for inputs, temporary files and outputs",
            )

    def _given(self, name: str) -> float | None:
        value: float | None = getattr(self._template, name)
        return value

    def _value(self, name: str) -> float:
        """Return an attribute's value; one that could not be read compares false with anything."""
        value = self._given(name)
        if value is not None:
            return value
        if name in self._places:
            return math.nan
        return self._value("min_quorum") if name == "target_nresults" else DEFAULTS[name]

    def _shown(self, name: str) -> str:
        default = "" if self._given(name) is not None else " by default"
        return f"<{name}> {self._value(name):g}{default}"

    def _error(self, name: str, code: str, text: str) -> None:
        self._found.error(self._places.get(name, self._body), code, text)

    def _warn(self, name: str, code: str, text: str) -> None:
        self._found.warn(self._places.get(name, self._body), code, text)


def _check_input_file(file: InputFileInfo, info: etree._Element, found: Findings) -> None:
    staged = not (file.remote or file.generate_locally)
    if staged and not file.no_delete:
        found.warn(
            info,
            "no-delete-input",
            "an input file without <no_delete/>: expected it unless each job has a file of its "
            "own; when a job is assimilated, its inputs are deleted, also those that other jobs "
            "and batches still need",
        )
    _check_no_delete_form(info, found)
    _check_gzip(file, info, found)
    _check_remote(file, info, found)
    if file.report_on_rpc and not file.sticky:
        found.warn(
            info,
            "report-without-sticky",
            "<report_on_rpc/> without <sticky/>: expected both; only a file that stays on the "
            "host can be reported",
        )


def _check_gzip(file: InputFileInfo, info: etree._Element, found: Findings) -> None:
    if file.gzip and file.gzipped_nbytes is None:
        if file.remote:
            found.error(
                info,
                "gzip-without-size",
                "a remote file with <gzip/> but without <gzipped_nbytes>: expected the size of the "
                "compressed file; create_work refuses this",
            )
        else:
            found.warn(
                info,
                "gzip-without-size",
                "<gzip/> without <gzipped_nbytes>: expected that each file is staged with --gzip; "
                "create_work refuses other files, also those that are staged by web RPC",
            )
    elif file.gzipped_nbytes is not None and not file.gzip:
        found.warn(
            info,
            "size-without-gzip",
            "<gzipped_nbytes> without <gzip/>: it has no effect; expected both or neither",
        )


def _check_remote(file: InputFileInfo, info: etree._Element, found: Findings) -> None:
    if not file.remote and (file.md5_cksum is not None or file.nbytes is not None):
        found.error(
            info,
            "remote-incomplete",
            "<md5_cksum> or <nbytes> without <url>: expected all three for a remote file, and none "
            "of them for a file on the project's server",
        )
    if file.md5_cksum is not None and not _MD5.fullmatch(file.md5_cksum):
        found.error(
            info,
            "bad-md5",
            f"<md5_cksum> holds {file.md5_cksum!r}: expected 32 hexadecimal digits; no download "
            "could ever match",
        )
    for url in file.urls:
        if not url.endswith("/"):
            found.warn(
                info,
                "url-without-slash",
                f"<url> {url!r} does not end in a slash: expected a directory's URL, for the "
                "file's name is added as it is",
            )
    if file.remote and file.generate_locally:
        found.warn(
            info,
            "generated-and-remote",
            "<generate_locally/> and <url> in one <file_info>: expected one of them; what is "
            "generated on the host is not downloaded",
        )
    if file.remote and file.physical_name is not None:
        found.warn(
            info,
            "constant-and-remote",
            "<physical_name> and <url> in one <file_info>: expected one of them; today's "
            "create_work takes it for a constant file on the project's server",
        )


def _check_output_file(file: OutputFileInfo, info: etree._Element, found: Findings) -> None:
    if not file.generated_locally:
        found.warn(
            info,
            "not-generated-locally",
            "an output file without <generated_locally/>: expected it always; clients would try "
            "to download the file",
        )
    if not file.upload_when_present:
        found.warn(
            info,
            "not-uploaded",
            "an output file without <upload_when_present/>: expected it; clients before 7.0 do "
            "not upload the file",
        )
    if not file.max_nbytes:
        found.warn(
            info,
            "no-max-nbytes",
            "an output file without <max_nbytes>, or with 0: expected the most bytes that it can "
            "have; with upload certificates no instance can be made, or no file uploaded",
        )
    if not Fields([], info).texts("url"):
        found.error(
            info,
            "no-url",
            "an output file without <url>: expected <url><UPLOAD_URL/></url>; volunteers would "
            "not know where to send it",
        )
    if file.number is None:
        found.warn(
            info,
            "fixed-name",
            f"the output file is always called {file.file_name!r}: expected <OUTFILE_0/>, "
            "<OUTFILE_1/>, …; instances would overwrite each other's file on the server",
        )


def _check_output_no_delete(file: OutputFileInfo, info: etree._Element, found: Findings) -> None:
    _check_no_delete_form(info, found)
    if not file.no_delete:
        found.warn(
            info,
            "no-delete-output",
            "an output file without <no_delete/>: expected it where outputs are fetched from the "
            "server; they may be deleted before that",
        )
    elif not Fields([], info).flag("no_delete"):
        found.warn(
            info,
            "no-delete-place",
            "<no_delete/> stands in the output's <file_ref> alone: expected it in <file_info> as "
            "well; today's file deleter looks there only",
        )


def _check_no_delete_form(info: etree._Element, found: Findings) -> None:
    for child in children(info):
        if child.tag == "no_delete" and inner(child):
            found.warn(
                child,
                "no-delete-form",
                "<no_delete> with a value: expected <no_delete/>; the file deleter does not know "
                "other forms",
            )


def _check_open_name(name: str, ref: etree._Element, found: Findings) -> None:
    if name and not safe_open_name(name):
        found.warn(
            ref,
            "unsafe-open-name",
            f"the open name {name!r} leads out of the directory in which the job runs: expected a "
            "relative path without '..'; clients refuse it",
        )
        return
    bad = _NOT_IN_OPEN_NAMES.search(name)
    if bad:
        found.warn(
            ref,
            "open-name-characters",
            f"the open name {name!r} holds a {bad[0]}: expected a name without ' \\ & and <; "
            "the server's database or clients may change these",
        )


def _check_size(worst: WorstCase, body: etree._Element, found: Findings) -> None:
    if worst.fits:
        return
    if worst.fitting_chars < 1:
        found.error(
            body,
            "document-size",
            f"even with the shortest names the {worst.what} would not have fewer than "
            f"{DOCUMENT_LIMIT:,} bytes: expected fewer files (a zip can hold many)",
        )
        return
    found.warn(
        body,
        "document-size",
        f"{worst}: expected {worst.names} names of at most {worst.fitting_chars} characters, or "
        "fewer files (a zip can hold many)",
    )
