"""Forms as PHP receives them: the ``request`` field, and files that go straight to the spool."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

from werkzeug.http import parse_options_header
from werkzeug.sansio.multipart import Data, Epilogue, Field, File, MultipartDecoder, NeedData

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import IO

    from boinc_gahp.localproject.core import Php
    from boinc_gahp.localproject.store import IncomingFile

log = logging.getLogger("boinc_gahp.localproject")

_CHUNK = 1 << 18
#: Fields are kept in memory; 256 MB is more than a million jobs.
_MAX_FIELD = 256 << 20
#: PHP's max_file_uploads.
_MAX_FILES = 20
#: Bytes of an urlencoded field to decode at a time.
_PIECE = 1 << 16


@dataclass(slots=True)
class FormFile:
    """A file part; ``incoming`` is None if PHP would refuse it, ``error`` says why."""

    field_name: str
    filename: str
    incoming: IncomingFile | None
    error: str = ""

    def refuse(self, error: str) -> None:
        """Drop the received part."""
        if self.incoming is not None:
            self.incoming.discard()
        self.incoming, self.error = None, error


@dataclass(slots=True)
class Form:
    """The values that PHP would have in ``$_POST`` and ``$_FILES``."""

    fields: dict[str, bytes] = field(default_factory=dict)
    files: list[FormFile] = field(default_factory=list)

    def discard(self) -> None:
        """Remove the remaining files from the spool."""
        for file in self.files:
            if file.incoming is not None:
                file.incoming.discard()


def read_form(
    stream: IO[bytes],
    content_type: str,
    content_length: int | None,
    php: Php,
    new_file: Callable[[], IncomingFile],
) -> Form:
    """Read a multipart or urlencoded form.

    As in PHP, a body larger than post_max_size gives an empty form, files after max_file_uploads
    are dropped, and a file larger than upload_max_filesize is marked.

    Raises:
        ValueError: the body cannot be read as its content type says.
    """
    form = Form()
    if content_length is not None and content_length > php.post_max_size:
        return form
    kind, options = parse_options_header(content_type)
    if kind == "application/x-www-form-urlencoded":
        body = stream.read(_MAX_FIELD + 1)
        if len(body) > _MAX_FIELD:
            raise ValueError("the form is too large")
        for pair in filter(None, body.split(b"&")):
            name, _, value = pair.partition(b"=")
            form.fields[_unquoted(name).decode("latin-1")] = _unquoted(value)
    elif kind == "multipart/form-data" and options.get("boundary"):
        try:
            _read_multipart(form, stream, options["boundary"].encode(), php, new_file)
        except BaseException:
            form.discard()
            raise
    return form


def _unquoted(text: bytes) -> bytes:
    """Decode a name or a value, in pieces: urllib takes 50 times the memory of what it gets."""
    pieces, begin = [], 0
    while begin < len(text):
        end = begin + _PIECE
        # Not between a % and its digits.
        cut = text.rfind(b"%", end - 2, end)
        end = end if cut < 0 else cut
        pieces.append(unquote_to_bytes(text[begin:end].replace(b"+", b" ")))
        begin = end
    return b"".join(pieces)


def _read_multipart(
    form: Form, stream: IO[bytes], boundary: bytes, php: Php, new_file: Callable[[], IncomingFile]
) -> None:
    """Read a multipart body into a form."""
    decoder = MultipartDecoder(boundary)
    name, value = "", bytearray()
    file: FormFile | None = None
    while True:
        event = decoder.next_event()
        if isinstance(event, NeedData):
            decoder.receive_data(stream.read(_CHUNK) or None)
        elif isinstance(event, Field):
            name, value, file = event.name or "", bytearray(), None
        elif isinstance(event, File):
            file = FormFile(event.name or "", event.filename or "", None)
            if len(form.files) < _MAX_FILES:
                form.files.append(file)
                with _on_disk(file):
                    file.incoming = new_file()
        elif isinstance(event, Data) and file is None:
            value.extend(event.data)
            if len(value) > _MAX_FIELD:
                raise ValueError("a field is too large")
            if not event.more_data:
                form.fields[name] = bytes(value)
        elif isinstance(event, Data) and file is not None and file.incoming is not None:
            if file.incoming.nbytes + len(event.data) > php.upload_max_filesize:
                file.refuse("The uploaded file exceeds upload_max_filesize of php.ini.")
                continue
            with _on_disk(file):
                file.incoming.write(event.data)
                if not event.more_data:
                    file.incoming.finish()
        elif isinstance(event, Epilogue):
            return


@contextmanager
def _on_disk(file: FormFile) -> Iterator[None]:
    """Refuse a file, as PHP does, if the body cannot be written."""
    try:
        yield
    except OSError as error:
        log.error("an uploaded file cannot be written: %s", error)
        file.refuse("Failed to write file to disk.")
