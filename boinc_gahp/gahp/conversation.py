"""One conversation's state: the prefix, asynchronous mode, and results not yet asked for.

It has no lock: only the thread that owns stdout uses it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from boinc_gahp.errors import BadRequest
from boinc_gahp.gahp import commands
from boinc_gahp.gahp.banner import VERSION_TEXT
from boinc_gahp.gahp.lines import NULL, encode, join

if TYPE_CHECKING:
    from boinc_gahp.gahp.command import Request

#: The gridmanager's back-pressure: it lowers its number of requests under way and sends this
#: request again later (``gahp.rst``, "Back-pressure").
BUSY = "Threads limit reached"


class Conversation:
    """What the client has set, and the results it is owed. All returned bytes are whole lines."""

    def __init__(self) -> None:
        self.prefix = ""
        self.async_mode = False
        self.quitting = False
        self._results: list[bytes] = []
        self._announced = False

    @property
    def waiting(self) -> int:
        """Results that RESULTS has not fetched."""
        return len(self._results)

    def success(self, *values: str) -> bytes:
        """Return the Return Line ``S``, for a command carried out or a request accepted."""
        return self._line(join(["S", *values]))

    def busy(self) -> bytes:
        """Return the Return Line for a request that the client is to send again later."""
        return self._line(join(["F", BUSY]))

    def syntax_error(self) -> bytes:
        """Return the Return Line for a line that was not understood."""
        return self._line(b"E")

    def add_result(self, line: bytes) -> bytes:
        """Queue a Result Line; return the ``R`` line if one is due, else nothing.

        It is due for the first result since RESULTS, or since ASYNC_MODE_ON if that is later
        (``gahp.rst``, "Results").
        """
        self._results.append(line)
        if not self.async_mode or self._announced:
            return b""
        self._announced = True
        return self._line(b"R")

    def answer(self, request: Request) -> bytes:
        """Carry out a common command; return its Return Line (RESULTS: its lines).

        Raises:
            BadRequest: a prefix that would break lines.
            TypeError: the request is not for the conversation.
        """
        match request:
            case commands.Results():
                return self._take_results()
            case commands.ResponsePrefix(prefix=prefix):
                return self._set_prefix(prefix)
            case commands.Commands():
                return self.success(*commands.COMMANDS)
            case commands.Version():
                return self._line(b"S " + VERSION_TEXT.encode("ascii"))
            case commands.AsyncModeOn():
                self.async_mode = True
            case commands.AsyncModeOff():
                self.async_mode = False
            case commands.Quit():
                self.quitting = True
            case _:
                raise TypeError(f"{request.command} is not a synchronous command")
        return self.success()

    def _take_results(self) -> bytes:
        taken, self._results = self._results, []
        self._announced = False
        head = self._line(join(["S", str(len(taken))]))
        return head + b"".join(map(self._line, taken))

    def _set_prefix(self, prefix: str) -> bytes:
        if "\n" in prefix or "\r" in prefix:
            raise BadRequest("the prefix has a line end in it")
        answer = self.success()  # still with the old prefix (``gahp.rst``, "Common commands")
        self.prefix = "" if prefix == NULL else prefix
        return answer

    def _line(self, line: bytes) -> bytes:
        return encode(self.prefix) + line + b"\n"
