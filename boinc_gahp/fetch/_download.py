"""Downloads one uploaded file completely into temporary files."""

from __future__ import annotations

import itertools
import logging
import zlib
from typing import TYPE_CHECKING, Protocol

from boinc_gahp.backoff import Backoff
from boinc_gahp.errors import OutputError, ProtocolError, TransportError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from boinc_gahp.fetch._uploaded import Output, Uploaded
    from boinc_gahp.fetch.context import FetchContext

log = logging.getLogger("boinc_gahp.fetch")

#: How often a file is asked for if its transfer breaks off.
_ATTEMPTS = 3
_BACKOFF = Backoff(0.5)

_CHUNK = 1 << 20
#: Bytes that are unpacked at a time: for each member in them, the rest after it is copied.
_PIECE = 1 << 14
_GZIP = b"\x1f\x8b"


class Writable(Protocol):
    """What an output's contents are written into."""

    def write(self, data: bytes) -> object:
        """Append ``data``."""

    def empty(self) -> None:
        """Start again."""


def download(
    context: FetchContext,
    uploaded: Uploaded,
    output: Output,
    files: Sequence[Writable],
    count: Callable[[int], object],
) -> bool:
    """Write an output's contents into each of ``files``; they are complete, but not committed.

    Args:
        context: the project, and the settings.
        uploaded: where it comes from.
        output: the output.
        files: where it goes.
        count: called now and then with the number of bytes that have arrived; bytes that are
            repeated after a failure are counted again.

    Returns:
        False if the instance did not upload it.

    Raises:
        OutputError: it cannot be written or unpacked, is too large, or the project has deleted it.
        RpcError: the project could not be reached, or broke off again and again.
    """
    what = f"output {output.name!r} of job {uploaded.job_name!r}"
    unpack = output.gzip and context.settings.jobs.gunzip_outputs
    limit, too_large = _limit(output, what, context.settings.jobs.max_output_bytes)
    for attempt in range(_ATTEMPTS):
        stream = uploaded.open(output)
        if stream is None:
            return False
        with stream:
            try:
                # gzip makes data that cannot be compressed a little larger.
                sent = limit + limit // 100 + _CHUNK if unpack else limit
                if stream.length is not None and stream.length > sent:
                    raise too_large
                chunks = _at_most(sent, stream.chunks(_CHUNK), too_large, count)
                if unpack:
                    chunks = _at_most(limit, gunzip(chunks, what), too_large)
                for data in chunks:
                    for file in files:
                        file.write(data)
            except (TransportError, ProtocolError) as error:
                if attempt == _ATTEMPTS - 1:
                    raise
                log.info("The download is repeated: %s", error)
            else:
                return True
        for file in files:
            file.empty()
        _BACKOFF.wait(attempt)
    raise AssertionError  # pragma: no cover  (the loop returns or raises)


def _limit(output: Output, what: str, setting: int) -> tuple[int, OutputError]:
    """Return the most bytes that an output may have, and the error for one that has more."""
    if output.max_bytes is not None and output.max_bytes <= setting:
        return output.max_bytes, OutputError(
            f"{what} is larger than the {output.max_bytes} bytes that it may have (max_nbytes in "
            "its output template, or what the project tells), so it is not kept"
        )
    return setting, OutputError(
        f"{what} is larger than {setting} bytes, so it is not kept: have max_output_bytes raised "
        "in the section [jobs] if that is what the app makes"
    )


def _at_most(
    limit: int,
    chunks: Iterator[bytes],
    too_large: OutputError,
    count: Callable[[int], object] = lambda _: None,
) -> Iterator[bytes]:
    for data in chunks:
        count(len(data))
        limit -= len(data)
        if limit < 0:
            raise too_large
        yield data


def gunzip(chunks: Iterator[bytes], what: str) -> Iterator[bytes]:
    """Yield the contents of gzip data; data that are not gzip are passed through unchanged.

    The client leaves a file as it is when it cannot compress it.

    Raises:
        OutputError: the data are damaged, or end too soon.
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
    pieces = (
        data[at : at + _PIECE]
        for data in itertools.chain((head,), chunks)
        for at in range(0, len(data), _PIECE)
    )
    yield from _inflate(pieces, what)


def _inflate(chunks: Iterator[bytes], what: str) -> Iterator[bytes]:
    member = zlib.decompressobj(zlib.MAX_WBITS | 16)
    rest = b""
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
            if data:
                yield data
    except zlib.error as error:
        raise OutputError(
            f"{what} cannot be unpacked, its gzip data are damaged: {error}"
        ) from error
    if not member.eof:
        raise OutputError(f"{what} cannot be unpacked, its gzip data end too soon")
