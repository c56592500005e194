"""Reads filled-in templates: the XML documents of a workunit and of a result.

Returns everything that volunteers, validators and the file deleter need. A document is read as
tolerantly as a template, for it may come from a job's own template.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from boinc_gahp.templates._markup import Fields, parse
from boinc_gahp.templates.reading import file_refs
from boinc_gahp.templates.types import OutputFileInfo, TemplateError, wrong

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lxml import etree

    from boinc_gahp.templates.types import Problem

_WORKUNIT = "workunit.xml_doc"
_RESULT = "result.xml_doc_in"

_REFERENCE = re.compile(r"&(?:(lt|gt|amp|quot|apos)|#([0-9]{1,7}));")
_NAMED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}


@dataclass(frozen=True, slots=True)
class WorkunitFile:
    """An input file as a volunteer sees it; sizes in bytes, MD5 in hex.

    ``gzipped_urls`` are the addresses of a compressed copy with ``gzipped_nbytes``; MD5 and
    ``nbytes`` are those of the file itself. ``generated_locally``: there is nothing to fetch.
    """

    name: str
    open_name: str
    copy_file: bool
    urls: tuple[str, ...] = ()
    md5_cksum: str | None = None
    nbytes: int | None = None
    generated_locally: bool = False
    sticky: bool = False
    no_delete: bool = False
    report_on_rpc: bool = False
    gzipped_urls: tuple[str, ...] = ()
    gzipped_nbytes: int | None = None


@dataclass(frozen=True, slots=True)
class WorkunitDocument:
    """The content of ``workunit.xml_doc``.

    Attributes:
        files: the input files, in order.
        command_line: as the client has it after unescaping it once.
        stored_command_line: as it stands in the document, possibly not escaped.
        avg_ncpus: the processors that it reserves; None: the app version's.
    """

    files: tuple[WorkunitFile, ...]
    command_line: str
    stored_command_line: str = ""
    avg_ncpus: float | None = None


def read_workunit(document: str) -> WorkunitDocument:
    """Read ``workunit.xml_doc``.

    Raises:
        TemplateError: it is not such a document.
    """
    document, line = _without_command_line(document)
    infos, body = _document(document, _WORKUNIT, "workunit")
    problems: list[Problem] = []
    files = tuple(
        WorkunitFile(
            name,
            fields.text("open_name") or "",
            urls=fields.texts("url"),
            generated_locally=fields.flag("generate_locally", "generated_locally"),
            gzipped_urls=fields.texts("gzipped_url"),
            **fields.values(WorkunitFile, "generated_locally"),
        )
        for name, fields in _joined(infos, body, problems)
    )
    avg_ncpus = Fields(problems, body).real("avg_ncpus")
    if problems:
        raise TemplateError(_WORKUNIT, problems)
    return WorkunitDocument(files, _REFERENCE.sub(_character, line), line, avg_ncpus)


def _without_command_line(document: str) -> tuple[str, str]:
    """Return the rest of a document, and its command line, which need not be XML.

    It stands between two newlines; other white space is part of it.
    """
    before, begin, rest = document.partition("<command_line>")
    line, end, after = rest.rpartition("</command_line>")
    if not (begin and end):
        return document, ""
    return before + after, line.removeprefix("\n").removesuffix("\n")


def _character(reference: re.Match[str]) -> str:
    """Return what a client reads for a reference; it takes any number as one byte."""
    if reference[1]:
        return _NAMED[reference[1]]
    return bytes([int(reference[2]) % 256]).decode("ascii", "replace")


def read_result(document: str) -> tuple[OutputFileInfo, ...]:
    """Return the files of ``result.xml_doc_in`` as a volunteer sees them, by their numbers.

    Their ``urls`` are upload handlers.

    Raises:
        TemplateError: it is not such a document.
    """
    infos, body = _document(document, _RESULT, "result")
    problems: list[Problem] = []
    files = tuple(
        OutputFileInfo(
            fields.text("open_name") or "",
            name,
            urls=fields.texts("url"),
            **fields.values(OutputFileInfo),
        )
        for name, fields in _joined(infos, body, problems)
    )
    if problems:
        raise TemplateError(_RESULT, problems)
    return files


def _document(
    document: str, what: str, tag: str
) -> tuple[Sequence[etree._Element], etree._Element]:
    root = parse(document, what)
    body = root.find(tag)
    if body is None:
        raise wrong(what, f"expected a <{tag}>", "no-body")
    return root.findall("file_info"), body


def _joined(
    infos: Sequence[etree._Element], body: etree._Element, problems: list[Problem]
) -> Iterator[tuple[str, Fields]]:
    """Yield each file's name, and the fields of its file_info and file_ref together.

    Two inputs with the same content can have the same name; then their places tell them apart.
    """
    names = [Fields([], info).text("name") or "" for info in infos]
    by_name = dict(zip(names, infos, strict=True))
    for place, ref in enumerate(file_refs(body)):
        name = Fields(problems, ref).text("file_name") or ""
        here = place < len(names) and names[place] == name
        info = infos[place] if here else by_name.get(name)
        yield name, Fields(problems, ref) if info is None else Fields(problems, info, ref)
