"""Builds requests: the XML documents that the project's PHP reads.

They are written piece by piece, a job at a time, so 100,000 jobs only need the memory of their
text. Elements have the order that BOINC's own clients use.
"""

from __future__ import annotations

import io
import math
import re
from contextlib import contextmanager
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from lxml import etree

from boinc_gahp.errors import BadRequest
from boinc_gahp.rpc.command_lines import check_stored
from boinc_gahp.text import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from boinc_gahp.rpc.types import BatchSubmission, InputFile, JobSubmission
    from boinc_gahp.secret import Authenticator

_DECLARATION = re.compile(r"<\?xml\b.*?\?>", re.DOTALL)
#: Doubles above this have no digits after the point.
_EXACT_INTEGERS = 2.0**53


def document(
    rpc: str, authenticator: Authenticator | None, parts: Iterable[etree._Element] = ()
) -> bytes:
    """Return the request ``rpc`` with the elements ``parts``, as UTF-8.

    Without an authenticator (ping) it contains a space, because the project rejects an element
    without children or text (``web-rpcs.rst``, "Transport and framing").

    Raises:
        BadRequest: the authenticator contains a character that XML cannot hold.
    """
    with _writing(rpc) as (out, xml):
        if authenticator is None:
            xml.write(" ")
        else:
            xml.write(_secret(authenticator))
        for part in parts:
            xml.write(part)
    return out.getvalue()


def submission_document(rpc: str, authenticator: Authenticator, batch: BatchSubmission) -> bytes:
    """Return the request ``rpc`` (submit_batch or estimate_batch) for ``batch``.

    Raises:
        BadRequest: XML cannot hold a text, a number is not finite, or a job's template is not
            well-formed; names the job and the field.
    """
    templates: dict[str, etree._Element] = {}
    with _writing(rpc) as (out, xml):
        xml.write(_secret(authenticator))
        with xml.element("batch"):
            for part in _head(batch):
                xml.write(part)
            for index, job in enumerate(batch.jobs):
                where = f"job {job.name!r}: " if job.name else f"job {index}: "
                xml.write(_job(job, where, templates))
    return out.getvalue()


@contextmanager
def _writing(rpc: str) -> Iterator[tuple[io.BytesIO, Any]]:
    out = io.BytesIO()
    with etree.xmlfile(out, encoding="utf-8") as xml, xml.element(rpc):
        yield out, xml


def _secret(authenticator: Authenticator) -> etree._Element:
    """Return the ``<authenticator>`` element: one of the two places where it is revealed."""
    element = etree.Element("authenticator")
    try:
        element.text = authenticator.reveal()
    except ValueError:
        pass
    else:
        return element
    raise BadRequest(
        "the authenticator contains a character that XML does not allow: copy it again"
    )


def leaf(tag: str, value: str, where: str = "") -> etree._Element:
    """Return an element with the text ``value``; ``where`` begins the error message.

    Raises:
        BadRequest: ``value`` contains a character that XML cannot hold.
    """
    element = etree.Element(tag)
    _set(element, value, where)
    return element


def number(value: float, what: str) -> str:
    """Return ``value`` in the form in which the project reads numbers.

    Raises:
        BadRequest: it is not finite.
    """
    if isinstance(value, int):
        return str(value)
    if not math.isfinite(value):
        raise BadRequest(f"{what} is {value}: expected a finite number")
    if value == int(value) and abs(value) < _EXACT_INTEGERS:
        return str(int(value))
    return repr(value)


def numbers(tag_values: Iterable[tuple[str, float | None]], where: str) -> Iterator[etree._Element]:
    """Return an element for each value that is not None."""
    for tag, value in tag_values:
        if value is not None:
            yield leaf(tag, number(value, f"{where}{tag}"))


def check_text(value: str, what: str) -> str:
    """Return ``value`` if XML and URLs can hold it; raise BadRequest otherwise."""
    leaf("text", value, f"{what}: ")
    return value


def _set(element: etree._Element, value: str, where: str) -> None:
    try:
        element.text = value
    except ValueError:
        bad = next((char for char in value if not _sendable(char)), "")
    else:
        return
    tag = "" if element.tag == "text" else f"{element.tag} "
    what = (
        "bytes that are not UTF-8"
        if 0xD800 <= ord(bad or "\0") <= 0xDFFF
        else f"the character U+{ord(bad or chr(0)):04X}"
    )
    raise BadRequest(
        f"{where}{tag}{quoted(value)} contains {what}, which a request to a project cannot contain"
    )


def _sendable(char: str) -> bool:
    code = ord(char)
    return (
        char in "\t\n\r" or (0x20 <= code < 0xD800) or (code >= 0xE000 and code & 0xFFFE != 0xFFFE)
    )


def _head(submission: BatchSubmission) -> Iterator[etree._Element]:
    if submission.batch_id is not None:
        yield leaf("batch_id", str(submission.batch_id))
    yield leaf("app_name", submission.app_name)
    yield from numbers([("app_version_num", submission.app_version_num)], "batch: ")
    params = submission.job_params
    bounds = list(
        numbers(
            (
                ("rsc_disk_bound", params.rsc_disk_bound),
                ("rsc_fpops_est", params.rsc_fpops_est),
                ("rsc_fpops_bound", params.rsc_fpops_bound),
                ("rsc_memory_bound", params.rsc_memory_bound),
                ("delay_bound", params.delay_bound),
            ),
            "job_params: ",
        )
    )
    if bounds:
        element = etree.Element("job_params")
        element.extend(bounds)
        yield element
    yield from numbers([("priority", submission.priority)], "batch: ")
    if submission.allocation_priority:
        yield leaf("allocation_priority", "1")
    if submission.batch_id is None and submission.batch_name is not None:
        yield leaf("batch_name", submission.batch_name)
    if submission.input_template_filename is not None:
        yield leaf("input_template_filename", submission.input_template_filename)
    if submission.output_template_filename is not None:
        yield leaf("output_template_filename", submission.output_template_filename)


def _job(job: JobSubmission, where: str, templates: dict[str, etree._Element]) -> etree._Element:
    element = etree.Element("job")
    if job.name:
        _add(element, "name", job.name, where)
    if job.rsc_fpops_est is not None:
        _add(element, "rsc_fpops_est", number(job.rsc_fpops_est, f"{where}rsc_fpops_est"), where)
    if job.command_line:
        _add(element, "command_line", check_stored(job.command_line, where), where)
    for file in job.input_files:
        _input_file(etree.SubElement(element, "input_file"), file, where)
    if job.priority is not None:
        _add(element, "priority", str(job.priority), where)
    if job.target_team is not None:
        _add(element, "target_team", str(job.target_team), where)
    if job.target_user is not None:
        _add(element, "target_user", str(job.target_user), where)
    if job.target_host is not None:
        _add(element, "target_host", str(job.target_host), where)
    for tag, text in (
        ("input_template", job.input_template),
        ("output_template", job.output_template),
    ):
        if text is not None:
            if text not in templates:
                templates[text] = _template(tag, text, where)
            element.append(deepcopy(templates[text]))
    return element


def _input_file(element: etree._Element, file: InputFile, where: str) -> None:
    _add(element, "mode", file.mode, where)
    if file.mode == "remote":
        _add(element, "url", file.url, where)
        _add(element, "nbytes", str(file.nbytes), where)
        _add(element, "md5", file.md5, where)
    else:
        _add(element, "source", file.source, where)


def _add(parent: etree._Element, tag: str, value: str, where: str) -> None:
    _set(etree.SubElement(parent, tag), value, where)


def _template(tag: str, text: str, where: str) -> etree._Element:
    """Return a job's own template as the element ``tag``.

    The old form of a template file has several root elements without ``<input_template>`` around
    them; both forms are accepted.
    """
    parser = etree.XMLParser(resolve_entities=False, no_network=True, remove_comments=True)
    try:
        parser.feed("<template>")
        parser.feed(_DECLARATION.sub("", text))
        parser.feed("</template>")
        root = parser.close()
    except (etree.XMLSyntaxError, ValueError) as error:
        trouble = str(error)
    else:
        inner = root.find(tag)
        element = root if inner is None else inner
        element.tag = tag
        element.tail = None
        return element
    raise BadRequest(f"{where}{tag} is not well-formed XML: {trouble}")


def said(batch_id: int | None, batch_name: str | None) -> str:
    """Return how error messages refer to the batch."""
    return f"batch {batch_name!r}" if batch_id is None else f"batch {batch_id}"


def which(batch_id: int | None, batch_name: str | None) -> etree._Element:
    """Return the element that identifies the batch; raise BadRequest without an id or name."""
    if batch_id is not None:
        return leaf("batch_id", str(batch_id))
    if batch_name is None:
        raise BadRequest("neither batch_id nor batch_name is given")
    return leaf("batch_name", batch_name)


def flags(**wanted: bool) -> Iterable[etree._Element]:
    """Return an element for each flag that is set."""
    return (leaf(name, "1") for name, on in wanted.items() if on)


def files(
    names: Sequence[str], batch_id: int | None, delete_time: float | None
) -> Iterable[etree._Element]:
    """Return the elements for files in query_files and upload_files."""
    if batch_id is not None:
        yield leaf("batch_id", str(batch_id))
    if delete_time is not None:
        yield leaf("delete_time", number(int(delete_time), "delete_time"))
    for name in names:
        yield leaf("phys_name", name)
