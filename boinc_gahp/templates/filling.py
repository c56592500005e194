"""Fills templates in: makes the XML documents that BOINC keeps for a workunit and a result.

Their layout is that of the real server's ``create_work`` and ``transitioner`` (the queries quoted
in ``wire/submit_batch__dup_job_name_within_request.rep.xml`` show one). Names and URLs are escaped,
so that every document can be read again. A job's command line is not: create_work inserts it
unchanged, and the caller has escaped it (``web-rpcs.rst``, "Command lines").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from boinc_gahp.templates.types import (
    DOCUMENT_LIMIT,
    UPLOAD_URL,
    InputFileInfo,
    InputTemplate,
    OutputFileInfo,
    OutputTemplate,
    wrong,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


#: Elements of a workunit that are only for clients (``containers.rst``, "What the wrapper does").
FOR_CLIENT = ("avg_ncpus", "flops")
#: The element for the scheduler: it adds the files of this BUDA app.
BUDA_APP_NAME = "buda_app_name"


@dataclass(frozen=True, slots=True)
class JobFile:
    """A file that volunteers download; sizes in bytes, MD5 in hex. ``urls`` are whole file URLs.

    ``gzipped_nbytes`` is the size of the compressed copy beside a file that was staged with
    ``--gzip``, named like the file with ``.gz`` added; None: there is no such copy.
    """

    physical_name: str
    nbytes: int
    md5: str
    urls: tuple[str, ...]
    gzipped_nbytes: int | None = None

    @classmethod
    def remote(cls, url: str, nbytes: int, md5: str) -> JobFile:
        """Return the value of ``--remote_file URL nbytes MD5`` (``templates.rst``)."""
        return cls(f"js_{md5}", nbytes, md5, (url,))


def fill_input(
    template: InputTemplate,
    files: Sequence[JobFile] = (),
    *,
    command_line: str | None = None,
    staged: Callable[[str], JobFile] | None = None,
    any_size: bool = False,
) -> str:
    """Return ``workunit.xml_doc`` for one job.

    Args:
        template: the input template.
        files: the job's own, in the template's order. If there is one more for each remote file
            without a physical name in the template, these give such files their names.
        command_line: if not None, it replaces the template's and goes into the document unchanged:
            the caller has escaped ``&`` and ``<``, once.
        staged: looks up a constant file by its physical name. Without it only the name is known,
            and no volunteer could fetch the file. Its exceptions are passed on.
        any_size: whether it may be too large.

    Raises:
        TemplateError: the number of files does not fit, or the document would be too large.
    """
    given = iter(_expect(template, files))
    infos = refs = ""
    for file in template.files:
        job_file = None
        if file.physical_name is None and not file.generate_locally:
            job_file = next(given)
        elif file.constant and staged is not None:
            job_file = staged(file.physical_name or "")
        info, ref = _input_elements(file, job_file)
        infos += info
        refs += ref
    line = escape(template.command_line or "") if command_line is None else command_line
    command = f"<command_line>\n{line}\n</command_line>\n"
    text = f"{infos}<workunit>\n{command}{refs}{_for_client(template)}</workunit>"
    return text if any_size else _checked("workunit.xml_doc", text)


def fill_output(
    template: OutputTemplate,
    result_name: str,
    upload_url: str,
    suffix: str,
    *,
    any_size: bool = False,
) -> str:
    """Return ``result.xml_doc_in``; file n is named ``<result_name>_<suffix>_<n>``.

    BOINC's suffix is ``r`` and a random number, so that nobody can guess the names.

    Raises:
        TemplateError: the document would be too large, unless it may have ``any_size``.
    """
    infos = refs = ""
    for file in template.files:
        name = file.name
        if file.number is not None:
            name = f"{result_name}_{suffix}_{file.number}"
        urls = tuple(escape(upload_url if url == UPLOAD_URL else url) for url in file.urls)
        info, ref = output_elements(file, escape(name), urls)
        infos += "".join(info)
        refs += "".join(ref)
    immediately = "    <report_immediately/>\n" if template.report_immediately else ""
    text = f"{infos}<result>\n{refs}{immediately}</result>\n"
    return text if any_size else _checked("result.xml_doc_in", text)


def _checked(what: str, text: str) -> str:
    """Return a document.

    Raises:
        TemplateError: it is too large for the database.
    """
    nbytes = nbytes_of(text)
    if nbytes < DOCUMENT_LIMIT:
        return text
    problem = (
        f"it would have {nbytes:,} bytes and must have fewer than {DOCUMENT_LIMIT:,}: use fewer "
        "files (a zip can hold many), shorter names or a shorter command line"
    )
    raise wrong(what, problem, "document-size")


def nbytes_of(text: str) -> int:
    """Return the size of a document."""
    return len(text.encode("utf-8", "surrogatepass"))


def output_elements(
    file: OutputFileInfo, name: str, urls: tuple[str, ...], *, terse: bool = False
) -> tuple[list[str], list[str]]:
    """Return the lines of an output file's file_info and file_ref; the texts are XML.

    ``no_delete`` goes into both: BOINC describes it in the file_ref, but today's file deleter looks
    for it in the file_info only (``templates.rst``, "Output templates"); with ``terse`` only there.
    """
    info = ["<file_info>\n", f"    <name>{name}</name>\n"]
    info += _flags(file, ("generated_locally", "upload_when_present"), 4)
    if file.max_nbytes is not None:
        nbytes = number(file.max_nbytes)
        short = f"{file.max_nbytes:g}"
        if terse and float(short) == file.max_nbytes and len(short) < len(nbytes):
            nbytes = short
        info.append(f"    <max_nbytes>{nbytes}</max_nbytes>\n")
    info += [f"    <url>{url}</url>\n" for url in urls]
    info += _flags(file, ("gzip_when_done", "no_delete", "sticky"), 4)
    info.append("</file_info>\n")
    ref = [
        "    <file_ref>\n",
        f"        <file_name>{name}</file_name>\n",
        f"        <open_name>{escape(file.open_name)}</open_name>\n",
        *_flags(file, ("copy_file", "optional", "no_validate"), 8),
        *_flags(file, () if terse else ("no_delete",), 8),
        "    </file_ref>\n",
    ]
    return info, ref


def number(value: float) -> str:
    """Write a number so that reading it gives the same; whole numbers have no point."""
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


def _for_client(template: InputTemplate) -> str:
    """Return the elements that create_work passes on without reading them."""
    given = ((name, getattr(template, name)) for name in FOR_CLIENT)
    elements = "".join(f"<{name}>{number(value)}</{name}>\n" for name, value in given if value)
    if template.buda_app_name is not None:
        elements += f"<{BUDA_APP_NAME}>{escape(template.buda_app_name)}</{BUDA_APP_NAME}>\n"
    return elements


def _flags(file: object, names: tuple[str, ...], indent: int) -> list[str]:
    return [f"{' ' * indent}<{name}/>\n" for name in names if getattr(file, name)]


def _expect(template: InputTemplate, files: Sequence[JobFile]) -> Sequence[JobFile | None]:
    """Return one entry for each file that the template does not name."""
    unnamed = [f for f in template.files if f.physical_name is None and not f.generate_locally]
    own = len(template.per_job_files)
    if len(files) == len(unnamed):
        return files
    if len(files) == own:
        missing = ", ".join(repr(file.open_name) for file in unnamed if file.remote)
        text = f"remote file {missing} has no <physical_name>: expected one, or a name with the job"
    else:
        text = f"{len(files)} files are given for the job: expected {own}"
    raise wrong("input template", text, "file-count")


def _input_elements(file: InputFileInfo, given: JobFile | None) -> tuple[str, str]:
    """Return the file_info and the file_ref of an input file."""
    physical_name = given.physical_name if given else file.physical_name or file.open_name
    plain, md5, nbytes, gzipped_nbytes = _content(file, physical_name, given)
    name = escape(physical_name)
    # A compressed copy of unknown size counts as missing: create_work would refuse the job.
    gzipped = file.gzip and gzipped_nbytes is not None
    urls = [f"    <url>{escape(url)}</url>\n" for url in plain]
    if gzipped:
        urls += [f"    <gzipped_url>{escape(url)}.gz</gzipped_url>\n" for url in plain]
        urls.append(f"    <gzipped_nbytes>{gzipped_nbytes}</gzipped_nbytes>\n")
    lines = [
        *_flags(file, ("sticky", "no_delete", "report_on_rpc"), 4),
        f"    <name>{name}</name>\n",
        *(["    <generated_locally/>\n"] if file.generate_locally else []),
        *urls,
    ]
    if md5 is not None:
        lines.append(f"    <md5_cksum>{escape(md5)}</md5_cksum>\n")
    if nbytes is not None:
        lines.append(f"    <nbytes>{nbytes}</nbytes>\n")
    ref = (
        f"<file_ref>\n    <file_name>{name}</file_name>\n"
        f"    <open_name>{escape(file.open_name)}</open_name>\n"
        f"{''.join(_flags(file, ('copy_file',), 4))}</file_ref>\n"
    )
    return f"<file_info>\n{''.join(lines)}</file_info>\n", ref


def _content(
    file: InputFileInfo, physical_name: str, given: JobFile | None
) -> tuple[tuple[str, ...], str | None, int | None, int | None]:
    """Return a file's URLs, MD5, size, and the size of its compressed copy."""
    if given is not None and not file.remote:
        return given.urls, given.md5, given.nbytes, given.gzipped_nbytes or file.gzipped_nbytes
    here = () if file.generate_locally else file.urls
    urls = tuple(f"{url}{physical_name}" for url in here)
    return urls, file.md5_cksum, file.nbytes, file.gzipped_nbytes
