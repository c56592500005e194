"""Bodies of requests: kept in the project's spool, as much of each as its sender may send."""

from __future__ import annotations

from dataclasses import dataclass
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    #: Decides how much of a request's body is accepted, from its path and headers.
    Allow = Callable[[str, Mapping[str, str]], "Allowance"]

#: Bodies up to this size stay in memory.
_IN_MEMORY = 256 << 10


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
