"""Outputs: files that get_output.php hands out, read as they arrive."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from boinc_gahp.errors import ProtocolError, RpcError
from boinc_gahp.rpc._caller import beginning
from boinc_gahp.rpc._pages import is_page, page_beginning
from boinc_gahp.text import shorten

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from typing_extensions import Self

    from boinc_gahp.rpc._reply_errors import ReplyErrors
    from boinc_gahp.rpc._transport import HttpReply

_FILENAME = re.compile(r"""filename\s*=\s*(?:"([^"]*)"|([^;]+))""", re.IGNORECASE)
_ERROR = re.compile(r"\s*ERROR:\s*(.*)", re.DOTALL | re.IGNORECASE)
#: A directory of the project's upload hierarchy, not a file in it.
_DIRECTORY = re.compile(r"[0-9a-f]{1,3}")
_CHUNK = 65536
#: The most digits of a file size.
_DIGITS = 19


class OutputStream:
    """An output being received; a context manager that releases the connection.

    Attributes:
        filename: the file's name on the project (its last part only), from Content-Disposition: for
            an output ``<result>_r<random>_<n>``, where ``n`` is its number in the output template
            (``web-rpcs.rst``, "get_output").
        length: the number of bytes; None if the project does not say.
    """

    def __init__(
        self,
        reply: HttpReply,
        errors: ReplyErrors,
        ended: Callable[[str, int], None],
    ) -> None:
        self._reply = reply
        self._errors = errors
        self._ended: Callable[[str, int], None] | None = ended
        self._read = 0
        self.filename = _filename(reply.headers.get("Content-Disposition", ""))
        self.length = _length(reply)
        self._check_beginning()

    def chunks(self, size: int = _CHUNK) -> Iterator[bytes]:
        """Yield the contents once, at most ``size`` bytes at a time.

        Raises:
            ProtocolError: fewer or more bytes came than announced.
            TransportError: the connection failed.
        """
        try:
            for chunk in self._errors.chunks(self._reply.chunks()):
                self._read += len(chunk)
                if self.length is not None and self._read > self.length:
                    raise self._wrong_length("more")
                for start in range(0, len(chunk), size):
                    yield chunk[start : start + size]
            if self.length is not None and self._read < self.length:
                raise self._wrong_length("fewer")
        except RpcError as error:
            self._end(f"failed ({type(error).__name__})")
            raise
        self._end("ok")

    def close(self) -> None:
        """Release the connection; may be called again."""
        self._reply.close()
        self._end("not read to its end")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _end(self, outcome: str) -> None:
        ended, self._ended = self._ended, None
        if ended is not None:
            ended(outcome, self._read)

    def _check_beginning(self) -> None:
        """Raise if this is not a file: errors arrive as pages with HTTP status 200."""
        content_type = self._reply.headers.get("Content-Type", "").lower()
        if self.filename is not None:
            if _DIRECTORY.fullmatch(self.filename):
                # The reply to a file number beyond the last one: Content-Length 4096, PHP warnings
                # or nothing in the body, and the connection held for 5 s.
                raise self._errors.refusal(
                    -1, f"no such file: the project sent its directory {self.filename} instead"
                )
            return
        if content_type and not content_type.startswith("text/"):
            return
        body = beginning(self._errors.chunks(self._reply.chunks()))
        page = page_beginning(body)
        error = _ERROR.match(page)
        if error:
            raise self._errors.refusal(-1, error[1].strip())
        if is_page(body):
            raise self._errors.page(page)
        shown = shorten(self._errors.redact(page), 120)
        what = repr(shown) if shown else "an empty answer"
        raise self._errors.protocol(f"{what} came instead of a file", cut=not shown)

    def _wrong_length(self, how: str) -> ProtocolError:
        return self._errors.protocol(
            f"{self._read} bytes came, {how} than the {self.length} announced; fetch it again",
            cut=True,
        )


def _filename(disposition: str) -> str | None:
    match = _FILENAME.search(disposition)
    if match is None:
        return None
    name = (match[1] if match[1] is not None else match[2]).strip()
    return re.split(r"[/\\]", name)[-1]


def _length(reply: HttpReply) -> int | None:
    text = reply.headers.get("Content-Length", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < _DIGITS else None
