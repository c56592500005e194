"""The web server's connections: limits on their number and time, and reading requests.

All clients (hosts, users, attackers) have the same address, so it does not tell them apart. But an
honest client sends its request at once. Connections without a proper beginning of a request share a
part of all places; if there is one too many, the oldest is closed. If there are too many in all,
the one whose client has been silent longest is closed.
"""

from __future__ import annotations

import logging
import math
import shutil
from dataclasses import dataclass
from functools import partial
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING

from waitress.channel import HTTPChannel
from waitress.parser import HTTPRequestParser, ParsingError
from waitress.task import ErrorTask, WSGITask
from waitress.utilities import InternalServerError, RequestEntityTooLarge

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from waitress.adjustments import Adjustments
    from waitress.utilities import Error

    #: Decides how much of a request's body is accepted, from its path and headers.
    Allow = Callable[[str, Mapping[str, str]], "Allowance"]

log = logging.getLogger("boinc_gahp.localproject")

#: With a file for each and the project's own open files, they fit into 1,024 descriptors.
CONNECTIONS = 400
#: This many of them may be without the whole head of a request, the first one.
_HEADS = 200
#: A body may take as long as a head, and another second for each of this many received bytes:
#: Apache's mod_reqtimeout, which Debian switches on, allows the same.
_SLOWEST = 500
#: No client's lines between chunks are longer.
_CHUNK_LINE = 4096
#: Bodies up to this size stay in memory.
_IN_MEMORY = 256 << 10

#: What every answer tells browsers, unless it sets its own: nothing in it runs, no frame shows it,
#: and its type is as declared. Outputs, names and messages may come from anybody.
_TO_BROWSERS = (
    (
        "Content-Security-Policy",
        "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox",
    ),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "same-origin"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)


@dataclass(frozen=True, slots=True)
class Allowance:
    """How many bytes of a body are kept, and how many are read; None: all.

    Bytes that are read and not kept are read only for the sender, who would not read an answer
    before all is sent. The application gets the body's true length, and none of the body.
    """

    kept: int | None = None
    read: int | None = None


class RequestBody:
    """A request's body, in an unnamed file of the spool if it is large.

    If it is larger than ``most`` bytes, only the size is kept, because nobody reads it: PHP empties
    a form that is larger than its post_max_size (``web-rpcs.rst``, "Transport and framing").
    """

    def __init__(self, spool: Path, most: int | None) -> None:
        self._file = SpooledTemporaryFile(_IN_MEMORY, dir=str(spool))  # noqa: SIM115
        self._most = most
        self._length = 0

    def append(self, data: bytes) -> None:
        """Add bytes that have arrived."""
        self._length += len(data)
        if self._most is None or self._length <= self._most:
            self._file.write(data)
        elif self._file.tell():
            self._file.seek(0)
            self._file.truncate()

    def __len__(self) -> int:
        return self._length

    def getfile(self) -> SpooledTemporaryFile[bytes]:
        """Return the body, positioned at its beginning."""
        self._file.seek(0)
        return self._file

    def close(self) -> None:
        """Remove the file."""
        self._file.close()


class UnfinishedHeads:
    """The connections that wait for the head of a request. Only for the thread that does the I/O.

    Args:
        head_timeout: how many seconds a head may take.
        clock: seconds, as :func:`time.monotonic`.
    """

    def __init__(self, head_timeout: float, clock: Callable[[], float]) -> None:
        self._head_timeout = head_timeout
        self.clock = clock
        self._awaited: dict[Channel, float] = {}

    def await_head(self, channel: Channel) -> None:
        """Note that a client still has to send a head; its time runs from the first such call."""
        self._awaited.setdefault(channel, self.clock())
        if len(self._awaited) > _HEADS:
            next(iter(self._awaited)).handle_close()

    def let_go(self, channel: Channel) -> None:
        """Stop waiting for a connection's head, because it has arrived or is no longer needed."""
        self._awaited.pop(channel, None)

    def make_room(self, channels: list[Channel]) -> None:
        """If there are too many connections, close the one that has been silent longest."""
        if len(channels) > CONNECTIONS:
            waiting = [channel for channel in channels if not channel.requests]
            min(waiting, key=lambda channel: channel.last_activity).handle_close()

    def end_late(self, channels: list[Channel]) -> None:
        """Close the connections whose head or body takes too long."""
        now = self.clock()
        late = [each for each, since in self._awaited.items() if now > since + self._head_timeout]
        for channel in channels:
            request = channel.request
            if request is not None and request.headers_finished:
                allowed = self._head_timeout + request.body_bytes_received / _SLOWEST
                if now > request.began + allowed:
                    late.append(channel)
        for channel in late:
            channel.handle_close()


class _Parser(HTTPRequestParser):  # type: ignore[misc]
    """A request while it is received."""

    def __init__(self, channel: Channel, adjustments: Adjustments) -> None:
        super().__init__(adjustments)
        self._channel = channel
        self._allowed = Allowance()
        self.began = math.inf

    def parse_header(self, header_plus: bytes) -> None:
        """Read the head; its last line tells the body's size, and too large a body is refused."""
        try:
            super().parse_header(header_plus)
        except ValueError as error:
            # waitress does not expect this from lengths of thousands of digits, or half an IPv6.
            raise ParsingError(str(error)) from error
        self.began = self._channel.crowd.clock()
        self._channel.crowd.let_go(self._channel)
        if self.body_rcv is None:
            return
        if self.chunked:
            # A length beside it is invalid, and must not be used.
            self.headers.pop("CONTENT_LENGTH", None)
        self._allowed = self._channel.allow(self.path, self.headers)
        spool = self._channel.spool
        self.body_rcv.buf = RequestBody(spool, self._allowed.kept)
        kept = self._allowed.kept
        fits = kept is None or self.content_length <= kept
        if fits and self.content_length > shutil.disk_usage(spool).free:
            self._refuse(RequestEntityTooLarge("the project's disk has no room for the body"))
        self._check(self.content_length)

    def received(self, data: bytes) -> int:
        try:
            taken: int = super().received(data)
        except OSError as error:
            log.error("a request's body cannot be written to %s: %s", self._channel.spool, error)
            self.error = InternalServerError(f"the request cannot be stored: {error.strerror}")
            self.completed = True
            return len(data)
        self._check(self.body_bytes_received)
        if self.chunked and self.body_rcv is not None:
            line = len(self.body_rcv.control_line) + len(self.body_rcv.trailer)
            if line > _CHUNK_LINE:
                self._refuse(RequestEntityTooLarge("a line between two chunks is too long"))
        return taken

    def _check(self, nbytes: int) -> None:
        most = self._allowed.read
        if most is not None and nbytes > most:
            self._refuse(RequestEntityTooLarge("the body is too large"))

    def _refuse(self, error: Error) -> None:
        """Have it answered at once; the connection ends with the answer."""
        if self.error is None:
            self.error = error
        self.completed = True
        self.expect_continue = False


class _ToBrowsers:
    """Adds the headers for browsers that every answer has."""

    response_headers: list[tuple[str, str]]

    def build_response_header(self) -> bytes:
        given = {name.lower() for name, _ in self.response_headers}
        self.response_headers += [each for each in _TO_BROWSERS if each[0].lower() not in given]
        head: bytes = super().build_response_header()  # type: ignore[misc]
        return head


class _HttpAnswer(_ToBrowsers, WSGITask):  # type: ignore[misc]
    """The application's answer."""


class _Refusal(_ToBrowsers, ErrorTask):  # type: ignore[misc]
    """The server's own answer to invalid or too large requests."""


class Channel(HTTPChannel):  # type: ignore[misc]
    """A connection. Each server has a subclass, with what all its connections share."""

    task_class = _HttpAnswer
    error_task_class = _Refusal
    crowd: UnfinishedHeads
    spool: Path
    allow: Allow

    def __init__(self, *arguments: object, **more: object) -> None:
        super().__init__(*arguments, **more)
        self.parser_class = partial(_Parser, self)
        self.crowd.await_head(self)
        self.crowd.make_room(list(self.server.active_channels.values()))

    def received(self, data: bytes) -> bool:
        """Take in received data; if a head has only begun, wait for the rest."""
        taken: bool = super().received(data)
        if self.request is not None and not self.request.headers_finished:
            self.crowd.await_head(self)
        return taken

    def handle_close(self) -> None:
        """End the connection and its unfinished request."""
        self.crowd.let_go(self)
        if self.request is not None:
            self.request.close()
        super().handle_close()


def channel_class(crowd: UnfinishedHeads, spool: Path, allow: Allow) -> type[Channel]:
    """Return the class of a server's connections."""
    shared = {"crowd": crowd, "spool": spool, "allow": staticmethod(allow)}
    return type("Channel", (Channel,), shared)
