"""How the web server takes requests in: bodies go to the project's spool, never to memory."""

from __future__ import annotations

import logging
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING

from waitress.channel import HTTPChannel
from waitress.parser import HTTPRequestParser
from waitress.utilities import InternalServerError

if TYPE_CHECKING:
    from pathlib import Path

log = logging.getLogger("boinc_gahp.localproject")

#: A body that is not larger stays in memory.
_IN_MEMORY = 512 << 10


class Body:
    """A request's body, in an unnamed file of the spool when it is large.

    Of one that is larger than ``most`` bytes only the size is kept, because nobody reads it: PHP
    empties a form that is larger than its post_max_size (``web-rpcs.md``, "Transport and framing").
    """

    def __init__(self, spool: Path, most: int | None) -> None:
        self._file = SpooledTemporaryFile(_IN_MEMORY, dir=str(spool))  # noqa: SIM115
        self._most = most
        self._length = 0

    def append(self, data: bytes) -> None:
        """Add what has come."""
        self._length += len(data)
        if self._most is None or self._length <= self._most:
            self._file.write(data)

    def __len__(self) -> int:
        return self._length

    def getfile(self) -> SpooledTemporaryFile[bytes]:
        """Return the body, to be read from its beginning."""
        self._file.seek(0)
        return self._file

    def close(self) -> None:
        """Remove the file."""
        self._file.close()


def channel_class(spool: Path, most: int | None) -> type[HTTPChannel]:
    """Return a class of connections whose requests are kept in :class:`Body`."""

    class Parser(HTTPRequestParser):  # type: ignore[misc]
        def parse_header(self, header_plus: bytes) -> None:
            super().parse_header(header_plus)
            if self.body_rcv is not None:
                # The page's own forms are none of PHP's.
                self.body_rcv.buf = Body(spool, most if self.path.endswith(".php") else None)

        def received(self, data: bytes) -> int:
            try:
                taken: int = super().received(data)
            except OSError as error:
                log.error("a request cannot be kept in %s: %s", spool, error)
                self.error = InternalServerError(f"the request cannot be kept: {error.strerror}")
                self.completed = True
                return len(data)
            return taken

    class Channel(HTTPChannel):  # type: ignore[misc]
        parser_class = Parser

        def handle_close(self) -> None:
            if self.request is not None:  # one that has not come to its end
                self.request.close()
            super().handle_close()

    return Channel
