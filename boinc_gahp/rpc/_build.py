"""Builds requests: the XML documents that the project's PHP reads.

They are text that is put together, a job at a time: element trees would take three times as long,
and 100,000 jobs only need the memory of their text. Elements have the order that BOINC's own
clients use. They are sent as multipart, read in blocks from memory and from disk.

Multipart instead of urlencoded, because the server's limit counts bytes on the wire, and
urlencoding makes XML three times as long. requests' own ``files=`` would read every file into
memory.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import math
import re
from typing import TYPE_CHECKING

from lxml import etree
from urllib3 import encode_multipart_formdata

from boinc_gahp.errors import BadRequest, StagingError
from boinc_gahp.quantities import SIZES
from boinc_gahp.rpc.command_lines import check_stored
from boinc_gahp.rpc.types import JobSubmission
from boinc_gahp.text import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

    from boinc_gahp.rpc.types import BatchSubmission, InputFile, UploadFile
    from boinc_gahp.secret import Authenticator

_DECLARATION = re.compile(r"<\?xml\b.*?\?>", re.DOTALL)
#: Doubles above this have no digits after the point.
_EXACT_INTEGERS = 2.0**53
#: Characters that no XML document can hold.
_NOT_IN_XML = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
#: These, and those that have to be escaped: a CR would be read as LF. Few texts have one.
_SPECIAL = re.compile(r"[&<>\x00-\x08\x0b-\x1f\ud800-\udfff\ufffe\uffff]")

#: The fields of a job from its priority on, and what they are in most jobs.
_RARE = slice(JobSubmission._fields.index("priority"), None)
_NO_RARE = JobSubmission()[_RARE]

_FORM, _FORM_TYPE = encode_multipart_formdata([("request", b"\0")])
#: What is around the document in a request without files. It is made once, since making it takes
#: ten times as long as joining the three.
_BEFORE, _, _AFTER = _FORM.partition(b"\0")
#: The line before each field.
_BOUNDARY = _BEFORE.partition(b"\r\n")[0].decode()
#: What a file's name in a form cannot hold, as web browsers write it.
_IN_HEAD = {10: "%0A", 13: "%0D", 34: "%22"}
#: The most bytes that are sent at a time.
_BLOCK = 65536


def document(rpc: str, authenticator: Authenticator | None, parts: Iterable[str] = ()) -> bytes:
    """Return the request ``rpc`` with the elements ``parts``, as UTF-8.

    Without an authenticator (ping) it contains a space, because the project rejects an element
    without children or text (``web-rpcs.rst``, "Transport and framing").

    Raises:
        BadRequest: the authenticator contains a character that XML cannot hold.
    """
    begin = " " if authenticator is None else _secret(authenticator)
    return f"<{rpc}>{begin}{''.join(parts)}</{rpc}>".encode()


def submission_document(rpc: str, authenticator: Authenticator, batch: BatchSubmission) -> bytes:
    """Return the request ``rpc`` (submit_batch or estimate_batch) for ``batch``.

    Raises:
        BadRequest: XML cannot hold a text, a number is not finite, or a job's template is not
            well-formed; names the job and the field.
    """
    jobs = _Jobs()
    out = io.BytesIO()
    out.write(f"<{rpc}>{_secret(authenticator)}<batch>{''.join(_head(batch))}".encode())
    for index, job in enumerate(batch.jobs):
        where = f"job {job.name!r}: " if job.name else f"job {index}: "
        out.write(jobs.element(job, where).encode())
    out.write(f"</batch></{rpc}>".encode())
    return out.getvalue()


def _secret(authenticator: Authenticator) -> str:
    """Return the ``<authenticator>`` element: one of the two places where it is revealed."""
    text = authenticator.reveal()
    if _NOT_IN_XML.search(text):
        raise BadRequest(
            "the authenticator contains a character that XML does not allow: copy it again"
        )
    return leaf("authenticator", text)


def leaf(tag: str, value: str, where: str = "") -> str:
    """Return an element with the text ``value``; ``where`` begins the error message.

    Raises:
        BadRequest: ``value`` contains a character that XML cannot hold.
    """
    if _SPECIAL.search(value):
        value = _escaped(tag, value, where)
    return f"<{tag}>{value}</{tag}>"


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


def numbers(tag_values: Iterable[tuple[str, float | None]], where: str) -> Iterator[str]:
    """Return an element for each value that is not None."""
    for tag, value in tag_values:
        if value is not None:
            yield leaf(tag, number(value, f"{where}{tag}"))


def check_text(value: str, what: str) -> str:
    """Return ``value`` if XML and URLs can hold it; raise BadRequest otherwise."""
    _check("", value, f"{what}: ")
    return value


def _check(tag: str, value: str, where: str) -> None:
    bad = _NOT_IN_XML.search(value)
    if not bad:
        return
    what = (
        "bytes that are not UTF-8"
        if 0xD800 <= ord(bad[0]) <= 0xDFFF
        else f"the character U+{ord(bad[0]):04X}"
    )
    raise BadRequest(
        f"{where}{tag}{' ' if tag else ''}{quoted(value)} contains {what}, which a request to a "
        "project cannot contain"
    )


def _escaped(tag: str, value: str, where: str) -> str:
    _check(tag, value, where)
    value = value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return value.replace("\r", "&#13;")


def _head(submission: BatchSubmission) -> Iterator[str]:
    if submission.batch_id is not None:
        yield leaf("batch_id", str(submission.batch_id))
    yield leaf("app_name", submission.app_name)
    yield from numbers([("app_version_num", submission.app_version_num)], "batch: ")
    params = ((size.element, submission.job_params.get(size.element)) for size in SIZES)
    bounds = list(numbers(params, "job_params: "))
    if bounds:
        yield f"<job_params>{''.join(bounds)}</job_params>"
    yield from numbers([("priority", submission.priority)], "batch: ")
    if submission.batch_id is None and submission.batch_name is not None:
        yield leaf("batch_name", submission.batch_name)
    if submission.input_template_filename is not None:
        yield leaf("input_template_filename", submission.input_template_filename)
    if submission.output_template_filename is not None:
        yield leaf("output_template_filename", submission.output_template_filename)


class _Jobs:
    """Makes the elements of a batch's jobs; what jobs share is made once."""

    def __init__(self) -> None:
        self._templates: dict[tuple[str, str], str] = {}
        # Those of the job before: many jobs in a row may have the same.
        self._input_files: tuple[InputFile, ...] = ()
        self._input_file_elements = ""

    def element(self, job: JobSubmission, where: str) -> str:
        parts = ["<job>"]
        if job.name:
            parts.append(leaf("name", job.name, where))
        if job.rsc_fpops_est is not None:
            parts += numbers([("rsc_fpops_est", job.rsc_fpops_est)], where)
        if job.command_line:
            parts.append(leaf("command_line", check_stored(job.command_line, where), where))
        if job.input_files is not self._input_files:
            files = [_input_file(file, where) for file in job.input_files]
            self._input_files, self._input_file_elements = job.input_files, "".join(files)
        parts.append(self._input_file_elements)
        if job[_RARE] != _NO_RARE:
            parts += self._rare(job, where)
        parts.append("</job>")
        return "".join(parts)

    def _rare(self, job: JobSubmission, where: str) -> Iterator[str]:
        if job.priority is not None:
            yield leaf("priority", str(job.priority), where)
        for tag, text in (
            ("input_template", job.input_template),
            ("output_template", job.output_template),
        ):
            if text is not None:
                if (tag, text) not in self._templates:
                    self._templates[tag, text] = _template(tag, text, where)
                yield self._templates[tag, text]


def _input_file(file: InputFile, where: str) -> str:
    mode = leaf("mode", file.mode, where)
    if file.mode == "remote":
        what = (
            leaf("url", file.url, where)
            + leaf("nbytes", str(file.nbytes), where)
            + leaf("md5", file.md5, where)
        )
    else:
        what = leaf("source", file.source, where)
    return f"<input_file>{mode}{what}</input_file>"


def _template(tag: str, text: str, where: str) -> str:
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
        return etree.tostring(element, encoding="unicode", with_tail=False)
    raise BadRequest(f"{where}{tag} is not well-formed XML: {trouble}")


def named(batch_id: int | None, batch_name: str | None) -> str:
    """Return how error messages refer to the batch."""
    return f"batch {batch_name!r}" if batch_id is None else f"batch {batch_id}"


def batch_element(batch_id: int | None, batch_name: str | None) -> str:
    """Return the element that identifies the batch; raise BadRequest without an id or name."""
    if batch_id is not None:
        return leaf("batch_id", str(batch_id))
    if batch_name is None:
        raise BadRequest("neither batch_id nor batch_name is given")
    return leaf("batch_name", batch_name)


def flags(**wanted: bool) -> Iterable[str]:
    """Return an element for each flag that is set."""
    return (leaf(name, "1") for name, on in wanted.items() if on)


def files(
    names: Sequence[str], batch_id: int | None, delete_time: float | None = None
) -> Iterable[str]:
    """Return the elements for files in query_files and upload_files."""
    if batch_id is not None:
        yield leaf("batch_id", str(batch_id))
    if delete_time is not None:
        yield leaf("delete_time", number(int(delete_time), "delete_time"))
    for name in names:
        yield leaf("phys_name", name)


class FormBody:
    """The form of a request: the field ``request``, then the files in the order of its names.

    It is iterated over once, in blocks. Closing it closes the file that is open. ``sent`` is called
    with the size of each block before it is sent, and can raise to stop.

    Attributes:
        len: the number of bytes on the wire.
        content_type: the header.
    """

    def __init__(
        self,
        xml: bytes,
        files: Sequence[UploadFile] = (),
        sent: Callable[[int], None] = lambda _: None,
    ) -> None:
        self.content_type = _FORM_TYPE
        heads = [_file_head(index, file.physical_name) for index, file in enumerate(files)]
        self.len = size_of(xml) + sum(map(len, heads)) + sum(file.nbytes for file in files)
        self._blocks = _blocks(_pieces(xml, zip(heads, files, strict=True)), sent)

    def __iter__(self) -> Iterator[bytes]:
        """Return the blocks.

        They raise StagingError if a file cannot be read, or has changed.
        """
        return self._blocks

    def close(self) -> None:
        """Close the file that is open."""
        self._blocks.close()


def size_of(xml: bytes) -> int:
    """Return the number of bytes that ``xml`` has on the wire."""
    return len(_BEFORE) + len(xml) + len(_AFTER)


def _file_head(index: int, name: str) -> bytes:
    """Return what is before a file's contents in a form."""
    return (
        f'\r\n{_BOUNDARY}\r\nContent-Disposition: form-data; name="file_{index}"; '
        f'filename="{name.translate(_IN_HEAD)}"\r\nContent-Type: application/octet-stream\r\n\r\n'
    ).encode()


def _blocks(pieces: Iterator[bytes], sent: Callable[[int], None]) -> Generator[bytes, None, None]:
    """Yield pieces in blocks: small ones together."""
    block: list[bytes] = []
    size = 0
    for piece in itertools.chain(pieces, [b""]):
        if block and (not piece or size + len(piece) > _BLOCK):
            sent(size)
            yield b"".join(block)
            block, size = [], 0
        block.append(piece)
        size += len(piece)


def _pieces(xml: bytes, files: Iterable[tuple[bytes, UploadFile]]) -> Iterator[bytes]:
    yield _BEFORE
    for at in range(0, len(xml), _BLOCK):
        yield xml[at : at + _BLOCK]
    for head, file in files:
        yield head
        yield from _checked(file)
    yield _AFTER


def _checked(file: UploadFile) -> Iterator[bytes]:
    """Yield a file's contents, the last of them only when its size and MD5 are verified.

    A request that breaks off before its end has no effect on the project (``web-rpcs.rst``, "Lost
    answers").
    """
    last, left = b"", file.nbytes
    md5 = hashlib.md5(usedforsecurity=False)
    try:
        with open(file.path, "rb", buffering=0) as opened:  # noqa: PTH123
            while data := opened.read(min(_BLOCK, left + 1)):
                left -= len(data)
                if left < 0:
                    raise _changed(file, "it is longer now")
                md5.update(data)
                if last:
                    yield last
                last = data
    except OSError as error:
        raise StagingError(
            f"cannot read input file {file.path!r}: {error.strerror or error}",
            path=file.path,
            errno=error.errno or 0,
        ) from error
    if left:
        raise _changed(file, f"it ended {left} bytes early")
    if md5.hexdigest() != file.md5.lower():
        raise _changed(file, "its MD5 is different now")
    if last:
        yield last


def _changed(file: UploadFile, how: str) -> StagingError:
    return StagingError(
        f"input file {file.path!r} changed while it was sent: {how}; submit again when no program "
        "writes to it any more",
        path=file.path,
        passes=True,
    )
