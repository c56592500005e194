"""Request bodies: multipart, read in blocks from memory and from disk.

Multipart instead of urlencoded, because the server's limit counts bytes on the wire, and
urlencoding makes XML three times as long. requests' own ``files=`` would read every file into
memory; here only small ones are.
"""

from __future__ import annotations

import hashlib
import io
from contextlib import closing
from typing import TYPE_CHECKING, BinaryIO, TypeVar

from urllib3 import encode_multipart_formdata

from boinc_gahp.errors import StagingError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from requests_toolbelt import MultipartEncoder

    from boinc_gahp.rpc.types import UploadFile


T = TypeVar("T")

_FORM, _FORM_TYPE = encode_multipart_formdata([("request", b"\0")])
#: What is around the document in a request without files. It is made once, since making it takes
#: ten times as long as joining the three.
_BEFORE, _, _AFTER = _FORM.partition(b"\0")

_BINARY = "application/octet-stream"
#: Files that have no more bytes together are read before the request is sent.
_IN_MEMORY = 1 << 18


class FormBody:
    """The form of a request: the field ``request``, then the files in the order of its names.

    Closing it closes the files. ``sent`` is called with the size of each block before it is sent,
    and can raise to stop.
    """

    def __init__(
        self,
        xml: bytes,
        files: Sequence[UploadFile] = (),
        sent: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._sent = sent
        self._files: list[_Checked] = []
        self._source: io.BytesIO | MultipartEncoder
        self.content_type: str
        if sum(file.nbytes for file in files) <= _IN_MEMORY:
            # Most requests; the encoder takes ten times as long.
            if files:
                parts: dict[str, bytes | tuple[str, bytes, str]] = {"request": xml, **_whole(files)}
                body, self.content_type = encode_multipart_formdata(parts)
            else:
                body, self.content_type = b"".join((_BEFORE, xml, _AFTER)), _FORM_TYPE
            self._source, self._size = io.BytesIO(body), len(body)
            return
        from requests_toolbelt import MultipartEncoder  # noqa: PLC0415  (few requests have them)

        self._files = [_Checked(file) for file in files]
        fields: list[tuple[str, object]] = [("request", _Memory(xml))]
        fields += [
            (f"file_{index}", (file.name, file, _BINARY)) for index, file in enumerate(self._files)
        ]
        try:
            for file in self._files:
                file.begin()
        except BaseException:
            self.close()
            raise
        self._source = MultipartEncoder(fields=fields)
        self.content_type = self._source.content_type
        self._size = int(self._source.len)

    @property
    def len(self) -> int:
        """The number of bytes on the wire."""
        return self._size

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes.

        Raises:
            StagingError: a file cannot be read, or has changed.
        """
        block: bytes = self._source.read(size)
        self._sent(len(block))
        return block

    def close(self) -> None:
        """Close the files."""
        for file in self._files:
            file.close()


def size_of(xml: bytes) -> int:
    """Return the number of bytes that ``xml`` has on the wire."""
    return len(_BEFORE) + len(xml) + len(_AFTER)


def _whole(files: Sequence[UploadFile]) -> dict[str, tuple[str, bytes, str]]:
    """Return the fields for small files; one at a time is open."""
    fields = {}
    for index, file in enumerate(files):
        with closing(_Checked(file)) as checked:
            checked.begin()
            fields[f"file_{index}"] = (file.physical_name, checked.read(), _BINARY)
    return fields


class _Memory:
    """Bytes that know how many of them are left, as the encoder expects."""

    def __init__(self, data: bytes) -> None:
        self._file = io.BytesIO(data)
        self.len = len(data)

    def read(self, size: int = -1) -> bytes:
        block = self._file.read(size)
        self.len -= len(block)
        return block


class _Checked:
    """A file that is checked while it is sent.

    Its last bytes are held back until its size and MD5 are verified: a request that breaks off
    before its end has no effect on the project (``web-rpcs.rst``, "Lost answers").
    """

    def __init__(self, file: UploadFile) -> None:
        self.name = file.physical_name
        self.len = file.nbytes
        self._wanted = file
        self._md5 = hashlib.md5(usedforsecurity=False)
        self._open: BinaryIO | None = None

    def begin(self) -> None:
        """Check an empty file now, since it will never be read."""
        if not self.len:
            self._reading(self._check_end)

    def read(self, size: int = -1) -> bytes:
        if size < 0 or size > self.len:
            size = self.len
        block = self._reading(lambda: self._file().read(size)) if size else b""
        if len(block) < size:
            raise self._changed(f"it ended {self.len - len(block)} bytes early")
        self._md5.update(block)
        self.len -= len(block)
        if size and not self.len:
            self._reading(self._check_end)
        return block

    def close(self) -> None:
        if self._open is not None:
            self._open.close()

    def _file(self) -> BinaryIO:
        if self._open is None:
            self._open = open(self._wanted.path, "rb")  # noqa: PTH123, SIM115  (see close())
        return self._open

    def _check_end(self) -> None:
        if self._file().read(1):
            raise self._changed("it is longer now")
        if self._md5.hexdigest() != self._wanted.md5.lower():
            raise self._changed("its MD5 is different now")

    def _reading(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except OSError as error:
            raise StagingError(
                f"cannot read input file {self._wanted.path!r}: {error.strerror or error}",
                path=self._wanted.path,
                errno=error.errno or 0,
            ) from error

    def _changed(self, how: str) -> StagingError:
        return StagingError(
            f"input file {self._wanted.path!r} changed while it was sent: {how}; submit again when "
            "no program writes to it any more",
            path=self._wanted.path,
        )
