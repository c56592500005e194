"""Brings one uploaded file into temporary files, whole."""

from __future__ import annotations

import logging
import threading
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from boinc_gahp.errors import OutputError, ProtocolError, TransportError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from boinc_gahp.bridge.context import Context
    from boinc_gahp.bridge.temporary import TemporaryFile
    from boinc_gahp.bridge.uploaded import Uploaded

log = logging.getLogger("boinc_gahp.bridge")

#: Times that a file is asked for whose transfer broke off, and the seconds between.
_ATTEMPTS = 3
_PAUSE = 0.5

_CHUNK = 1 << 20
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class Output:
    """One output of an app.

    Attributes:
        name: its logical name (open_name).
        number: its number in the output template.
        numbered: whether the project's name for it ends in that number.
        optional: whether an instance may do without it.
        gzip: whether the volunteer compresses it (gzip_when_done).
    """

    name: str
    number: int
    numbered: bool = True
    optional: bool = False
    gzip: bool = False


def download(
    context: Context, uploaded: Uploaded, output: Output, sinks: Sequence[TemporaryFile]
) -> None:
    """Write an output's contents into each of ``sinks``; they are complete, and not committed.

    Raises:
        Absent: the instance did not upload it.
        OutputError: it cannot be written or unpacked, or the project has deleted it.
        RpcError: the project could not be asked, or broke off again and again.
    """
    jobs = context.settings.jobs
    for attempt in range(_ATTEMPTS):
        with uploaded.open(output.number, numbered=output.numbered) as stream:
            try:
                chunks: Iterator[bytes] = stream.chunks(_CHUNK)
                if output.gzip and jobs.gunzip_outputs:
                    chunks = gunzip(chunks, f"output {output.name!r}", jobs.unzip_max_bytes)
                for data in chunks:
                    for sink in sinks:
                        sink.write(data)
            except (TransportError, ProtocolError) as error:
                if attempt == _ATTEMPTS - 1:
                    raise
                log.info("Asked for again: %s", error)
            else:
                return
        for sink in sinks:
            sink.empty()
        threading.Event().wait(_PAUSE * 2**attempt)


def gunzip(chunks: Iterator[bytes], what: str, max_bytes: int) -> Iterator[bytes]:
    """Yield what gzip data hold; data that are no gzip are passed through as they are.

    The client leaves a file as it is when it cannot compress it.

    Raises:
        OutputError: the data are damaged, end too soon, or hold more than ``max_bytes``.
    """
    head = b""
    for data in chunks:
        head += data
        if len(head) >= len(_GZIP):
            break
    if not head.startswith(_GZIP):
        if head:
            yield head
        yield from chunks
        return
    yield from _inflate(head, chunks, what, max_bytes)


def _inflate(head: bytes, chunks: Iterator[bytes], what: str, max_bytes: int) -> Iterator[bytes]:
    member = zlib.decompressobj(zlib.MAX_WBITS | 16)
    left, rest = max_bytes, head
    try:
        while True:
            if not rest and not (rest := next(chunks, b"")):
                break
            if member.eof:
                rest = rest.lstrip(b"\0")  # padding, as gzip allows after a member
                if not rest:
                    continue
                member = zlib.decompressobj(zlib.MAX_WBITS | 16)
            data = member.decompress(rest, _CHUNK)
            rest = member.unused_data if member.eof else member.unconsumed_tail
            left -= len(data)
            if left < 0:
                raise OutputError(
                    f"{what} is not unpacked: it holds more than {max_bytes} bytes "
                    "(unzip_max_bytes in the section [jobs])"
                )
            if data:
                yield data
    except zlib.error as error:
        raise OutputError(
            f"{what} cannot be unpacked, its gzip data are damaged: {error}"
        ) from error
    if not member.eof:
        raise OutputError(f"{what} cannot be unpacked, its gzip data end too soon")
