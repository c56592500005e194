"""Filling templates in: the XML documents that BOINC keeps with a workunit and with a result.

Laid out as the real server's ``create_work`` and ``transitioner`` lay them out (the queries quoted
in ``wire/submit_batch__dup_job_name_within_request.rep.xml`` show one), but with ``&`` and ``<``
escaped, so that every document can be read again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from .markup import Fields, children, parse
from .types import (
    DOCUMENT_LIMIT,
    UPLOAD_URL,
    InputFileInfo,
    InputTemplate,
    OutputFileInfo,
    OutputTemplate,
    Problem,
    TemplateError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from lxml import etree


@dataclass(frozen=True, slots=True)
class JobFile:
    """A file given for one job; size in bytes, MD5 in hex. ``urls`` are whole file URLs."""

    physical_name: str
    nbytes: int
    md5: str
    urls: tuple[str, ...]
    gzipped_nbytes: int | None = None


@dataclass(frozen=True, slots=True)
class WorkunitFile:
    """An input file as a volunteer sees it."""

    name: str
    open_name: str
    copy_file: bool
    urls: tuple[str, ...] = ()
    md5_cksum: str | None = None
    nbytes: int | None = None
    generated_locally: bool = False
    sticky: bool = False
    no_delete: bool = False


@dataclass(frozen=True, slots=True)
class WorkunitDocument:
    """What ``workunit.xml_doc`` says."""

    files: tuple[WorkunitFile, ...]
    command_line: str


@dataclass(frozen=True, slots=True)
class ResultFile:
    """An output file as a volunteer sees it, and, once it is uploaded, its size and MD5."""

    name: str
    open_name: str
    max_nbytes: float | None = None
    gzip_when_done: bool = False
    copy_file: bool = False
    optional: bool = False
    no_validate: bool = False
    no_delete: bool = False


def fill_input(
    template: InputTemplate, files: Sequence[JobFile] = (), *, command_line: str | None = None
) -> str:
    """Return ``workunit.xml_doc`` for one job.

    ``files`` are the job's own, in the template's order. A remote file for which the template gives
    no physical name takes its name from there too, if there is one more for each of those.
    ``command_line``, if not None, replaces the template's.

    Raises:
        TemplateError: the number of files does not fit, or the document would be too large.
    """
    given = iter(_expect(template, files))
    infos, refs = [], []
    for file in template.files:
        named = file.physical_name is None and not file.generate_locally
        job_file = next(given) if named else None
        info, ref = _input_elements(file, job_file)
        infos.append(info)
        refs.append(ref)
    line = template.command_line if command_line is None else command_line
    command = f"<command_line>\n{escape(line or '')}\n</command_line>\n"
    body = f"<workunit>\n{command}{''.join(refs)}</workunit>"
    parts = {
        f"{len(infos)} <file_info>": "".join(infos),
        f"{len(refs)} <file_ref>": "".join(refs),
        "<command_line>": command,
    }
    return _limited("workunit.xml_doc", "".join(infos) + body, parts)


def fill_output(template: OutputTemplate, result_name: str, upload_url: str, suffix: str) -> str:
    """Return ``result.xml_doc_in``; file n is named ``<result_name>_<suffix>_<n>``.

    BOINC's suffix is ``r`` and a random number, so that names cannot be guessed.

    Raises:
        TemplateError: the document would be too large.
    """
    infos, refs = [], []
    for file in template.files:
        name = file.file_name
        if file.number is not None:
            name = f"{result_name}_{suffix}_{file.number}"
        urls = tuple(upload_url if url == UPLOAD_URL else url for url in file.urls)
        info, ref = output_elements(file, escape(name), tuple(map(escape, urls)))
        infos.append("".join(info))
        refs.append("".join(ref))
    immediately = "    <report_immediately/>\n" if template.report_immediately else ""
    body = f"<result>\n{''.join(refs)}{immediately}</result>\n"
    parts = {
        f"{len(infos)} <file_info>": "".join(infos),
        f"{len(refs)} <file_ref>": "".join(refs),
    }
    return _limited("result.xml_doc_in", "".join(infos) + body, parts)


def _joined(
    infos: Mapping[str, etree._Element], body: etree._Element, problems: list[Problem]
) -> Iterator[tuple[str, Fields]]:
    """Yield each file's name, and the fields of its file_info and file_ref taken together."""
    for ref in _file_refs(body):
        name = Fields(problems, ref).text("file_name") or ""
        info = infos.get(name)
        yield name, Fields(problems, ref) if info is None else Fields(problems, info, ref)


def read_workunit(document: str) -> WorkunitDocument:
    """Read what :func:`fill_input` wrote.

    Raises:
        TemplateError: it is no such document.
    """
    infos, body = _document(document, "workunit.xml_doc", "workunit")
    problems: list[Problem] = []
    files = []
    for name, fields in _joined(infos, body, problems):
        files.append(
            WorkunitFile(
                name=name,
                open_name=fields.text("open_name") or "",
                copy_file=fields.flag("copy_file"),
                urls=fields.texts("url"),
                md5_cksum=fields.text("md5_cksum"),
                nbytes=fields.integer("nbytes"),
                generated_locally=fields.flag("generated_locally"),
                sticky=fields.flag("sticky"),
                no_delete=fields.flag("no_delete"),
            )
        )
    if problems:
        raise TemplateError("workunit.xml_doc", problems)
    # The command line stands between two newlines; white space of its own is part of it.
    element = body.find("command_line")
    line = (element.text or "") if element is not None else ""
    return WorkunitDocument(tuple(files), line[1:-1] if len(line) >= 2 else "")


def read_result(document: str) -> tuple[ResultFile, ...]:
    """Read what :func:`fill_output` wrote; a file's place is its number.

    Raises:
        TemplateError: it is no such document.
    """
    infos, body = _document(document, "result.xml_doc_in", "result")
    problems: list[Problem] = []
    files = []
    for name, fields in _joined(infos, body, problems):
        files.append(
            ResultFile(
                name=name,
                open_name=fields.text("open_name") or "",
                max_nbytes=fields.real("max_nbytes"),
                gzip_when_done=fields.flag("gzip_when_done"),
                copy_file=fields.flag("copy_file"),
                optional=fields.flag("optional"),
                no_validate=fields.flag("no_validate"),
                no_delete=fields.flag("no_delete"),
            )
        )
    if problems:
        raise TemplateError("result.xml_doc_in", problems)
    return tuple(files)


def output_elements(
    file: OutputFileInfo, name: str, urls: tuple[str, ...]
) -> tuple[list[str], list[str]]:
    """Return the lines of an output file's file_info and file_ref; texts are given as XML."""
    info = ["<file_info>\n", f"    <name>{name}</name>\n"]
    info += [
        f"    <{flag}/>\n"
        for flag in ("generated_locally", "upload_when_present")
        if getattr(file, flag)
    ]
    if file.max_nbytes is not None:
        info.append(f"    <max_nbytes>{number(file.max_nbytes)}</max_nbytes>\n")
    info += [f"    <url>{url}</url>\n" for url in urls]
    if file.gzip_when_done:
        info.append("    <gzip_when_done/>\n")
    info.append("</file_info>\n")
    ref = [
        "    <file_ref>\n",
        f"        <file_name>{name}</file_name>\n",
        f"        <open_name>{escape(file.open_name)}</open_name>\n",
    ]
    ref += [
        f"        <{flag}/>\n"
        for flag in ("copy_file", "optional", "no_validate", "no_delete")
        if getattr(file, flag)
    ]
    ref.append("    </file_ref>\n")
    return info, ref


def number(value: float) -> str:
    """Write a number so that reading it gives the same: whole ones without a point."""
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


def _expect(template: InputTemplate, files: Sequence[JobFile]) -> Sequence[JobFile | None]:
    """Return one entry for each file whose name is not in the template."""
    unnamed = [f for f in template.files if f.physical_name is None and not f.generate_locally]
    own = len(template.per_job_files)
    if len(files) == len(unnamed):
        return files
    if len(files) == own:
        missing = ", ".join(repr(file.open_name) for file in unnamed if file.remote)
        text = f"remote file {missing} has no <physical_name>: expected one, or a name with the job"
    else:
        text = f"{len(files)} files are given for the job: expected {own}"
    raise TemplateError("input template", [Problem(0, text)])


def _input_elements(file: InputFileInfo, given: JobFile | None) -> tuple[str, str]:
    name = escape(given.physical_name if given else file.physical_name or file.open_name)
    urls, md5, nbytes = file.urls, file.md5_cksum, file.nbytes
    gzipped_nbytes = file.gzipped_nbytes
    if file.remote:
        urls = tuple(f"{url}{given.physical_name if given else file.physical_name}" for url in urls)
    elif given is not None:
        urls, md5, nbytes = given.urls, given.md5, given.nbytes
        gzipped_nbytes = given.gzipped_nbytes or gzipped_nbytes
    lines = [f"    <name>{name}</name>\n"]
    if file.generate_locally:
        lines.append("    <generated_locally/>\n")
    for url in urls:
        lines.append(f"    <url>{escape(url)}</url>\n")
        if file.gzip:
            lines.append(f"    <gzipped_url>{escape(url)}.gz</gzipped_url>\n")
    if md5 is not None:
        lines.append(f"    <md5_cksum>{escape(md5)}</md5_cksum>\n")
    if nbytes is not None:
        lines.append(f"    <nbytes>{nbytes}</nbytes>\n")
    if file.gzip and gzipped_nbytes is not None:
        lines.append(f"    <gzipped_nbytes>{gzipped_nbytes}</gzipped_nbytes>\n")
    lines += [
        f"    <{flag}/>\n"
        for flag in ("sticky", "no_delete", "report_on_rpc")
        if getattr(file, flag)
    ]
    copy = "    <copy_file/>\n" if file.copy_file else ""
    ref = (
        f"<file_ref>\n    <file_name>{name}</file_name>\n"
        f"    <open_name>{escape(file.open_name)}</open_name>\n{copy}</file_ref>\n"
    )
    return f"<file_info>\n{''.join(lines)}</file_info>\n", ref


def _limited(what: str, document: str, parts: dict[str, str]) -> str:
    size = len(document.encode())
    if size < DOCUMENT_LIMIT:
        return document
    sizes = sorted(((len(part.encode()), name) for name, part in parts.items()), reverse=True)
    largest = ", ".join(f"{name} {nbytes:,} bytes" for nbytes, name in sizes)
    text = (
        f"it would have {size:,} bytes and must have fewer than {DOCUMENT_LIMIT:,} ({largest}): "
        "use fewer files (a zip can hold many), shorter names or a shorter command line"
    )
    raise TemplateError(what, [Problem(0, text)])


def _document(
    document: str, what: str, tag: str
) -> tuple[dict[str, etree._Element], etree._Element]:
    root = parse(document, what)
    body = root.find(tag)
    if body is None:
        raise TemplateError(what, [Problem(0, f"expected a <{tag}>")])
    infos = {Fields([], info).text("name") or "": info for info in root.findall("file_info")}
    return infos, body


def _file_refs(body: etree._Element) -> Iterator[etree._Element]:
    return (child for child in children(body) if child.tag == "file_ref")
