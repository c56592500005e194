"""Files of a job on their way: inputs into its slot, outputs to the server.

A real server fetches inputs of the mode ``semilocal`` from anywhere, and so lets every submitter
reach its inner network (``web-rpcs.rst``, "Input files"); this one only goes to 127.0.0.1. Hosts
keep no files: a sticky one comes from the server for each job, and no job finds what another has
generated (``templates.rst``, "Input templates").
"""

from __future__ import annotations

import gzip
import hashlib
import http.client
import logging
import os
import shutil
import stat
import zlib
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit
from xml.sax.saxutils import escape

from boinc_gahp.backoff import Backoff
from boinc_gahp.client_exits import (
    ERR_FILE_TOO_BIG,
    ERR_FOPEN,
    ERR_NOT_FOUND,
    ERR_RESULT_DOWNLOAD,
    ERR_RESULT_UPLOAD,
)
from boinc_gahp.localproject.errors import JobFailed, no_space
from boinc_gahp.localproject.store import md5_file

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Sequence
    from pathlib import Path

    from boinc_gahp.localproject.core import Core
    from boinc_gahp.localproject.hosts.slot import Slot
    from boinc_gahp.localproject.store import StoredFile
    from boinc_gahp.templates.documents import WorkunitFile
    from boinc_gahp.templates.types import OutputFileInfo

log = logging.getLogger("boinc_gahp.localproject")

_TIMEOUT = 20.0
_CHUNK = 1 << 20
#: The most bytes that are fetched, or that a compressed file of unknown size may unpack to.
_MAX_BYTES = 1 << 30
_HOSTS = ("127.0.0.1", "localhost")
_MOVED = frozenset({301, 302, 303, 307, 308})
#: Each redirect has to stay on this machine.
_REDIRECTS = 5
#: A client pauses for two minutes to six hours, and gives up after 90 days (``web-rpcs.rst``,
#: "Remote files").
_ATTEMPTS = 5
_BACKOFF = Backoff(0.25, 1.0)


def fetch(url: str, write: Callable[[bytes], object], begin: int = 0) -> None:
    """Fetch a file and pass its bytes to ``write``; redirects on this machine are followed.

    Args:
        url: its address.
        write: takes the bytes.
        begin: how many bytes of it are here already.

    Raises:
        ValueError: it is not on this machine, not there, or larger than 1 GiB.
        ConnectionError: it may come with another attempt.
    """
    for _ in range(_REDIRECTS + 1):
        elsewhere = _fetched(url, write, begin)
        if elsewhere is None:
            return
        url = elsewhere
    raise ValueError(f"more than {_REDIRECTS} redirects")


def _fetched(url: str, write: Callable[[bytes], object], begin: int) -> str | None:
    """Fetch a file; return None, or the address to which its server redirects."""
    parts = urlsplit(url)
    if parts.scheme != "http" or parts.hostname not in _HOSTS:
        raise ValueError("only http://127.0.0.1 is allowed here")
    try:
        target = parts.path or "/"
        if parts.query:
            target += f"?{parts.query}"
        connection = http.client.HTTPConnection("127.0.0.1", parts.port, timeout=_TIMEOUT)
        try:
            wanted = {"Range": f"bytes={begin}-"} if begin else {}
            connection.request("GET", target, headers={"Host": parts.netloc, **wanted})
            response = connection.getresponse()
            location = response.getheader("Location")
            if location is not None and response.status in _MOVED:
                return urljoin(url, location)
            if response.status not in (http.client.OK, http.client.PARTIAL_CONTENT):
                passes = response.status >= http.client.INTERNAL_SERVER_ERROR
                kind = ConnectionError if passes else ValueError
                raise kind(f"HTTP {response.status} {response.reason}")
            # A server that knows no ranges sends all of it.
            received = begin if response.status == http.client.PARTIAL_CONTENT else 0
            while chunk := response.read(_CHUNK):
                here = max(begin - received, 0)
                received += len(chunk)
                if received > _MAX_BYTES:
                    raise ValueError(f"more than {_MAX_BYTES:,} bytes")
                write(chunk[here:])
            if response.length:
                raise ConnectionError(f"cut off after {received:,} bytes")
            return None
        finally:
            connection.close()
    except (OSError, http.client.HTTPException) as error:
        raise ConnectionError(str(error)) from error


def bring(core: Core, file: WorkunitFile, slot: Slot) -> int:
    """Put a file into the slot under its open name; return its size if it is only linked.

    Raises:
        JobFailed: it is not available, or differs from the workunit's description.
        ValueError: the open name leads out of the slot.
    """
    path = slot.inside(file.open_name)
    if file.generated_locally:
        return 0
    compressed = core.download.find(f"{file.name}.gz") if file.gzipped_urls else None
    stored = core.download.find(file.name) if compressed is None else None
    if stored is None:
        _transfer(core, file, path, compressed)
        return 0
    problem = _difference(file, stored.md5, stored.nbytes)
    if problem:
        raise _not_had(file, problem)
    if file.copy_file:
        shutil.copyfile(stored.path, path)
        return 0
    path.symlink_to(stored.path.resolve())
    return stored.nbytes


def _transfer(core: Core, file: WorkunitFile, path: Path, compressed: StoredFile | None) -> None:
    """Write a file that has to be unpacked, or is not on the project's server.

    As a client does: the next URL is tried after any failure, and after the last one all of them
    again, where the file broke off, if one failed in a way that may pass (``web-rpcs.rst``,
    "Remote files").
    """
    ways: list[Callable[[], None]] = []
    if compressed is not None:
        ways.append(lambda: _unpack(compressed.path, path, file.nbytes))
    else:
        ways.extend(partial(_fetch_packed, core, url, path, file) for url in file.gzipped_urls)
        ways.extend(partial(_fetch, url, path) for url in file.urls)
    problem = "no such file"
    for attempt in range(_ATTEMPTS):
        passes = False
        for way in ways:
            try:
                way()
                problem = _difference(file, *md5_file(path))
            except ConnectionError as error:
                problem, passes = str(error), True
                continue
            except ValueError as error:
                problem = str(error)
            if not problem:
                return
            path.unlink(missing_ok=True)
        if not passes or attempt == _ATTEMPTS - 1:
            break
        _BACKOFF.wait(attempt)
    raise _not_had(file, problem)


def _fetch_packed(core: Core, url: str, path: Path, file: WorkunitFile) -> None:
    incoming = core.download.incoming()
    try:
        fetch(url, incoming.write)
        incoming.finish()
        _unpack(incoming.path, path, file.nbytes)
    finally:
        incoming.discard()


def _difference(file: WorkunitFile, md5: str, nbytes: int) -> str:
    """Return how a file differs from the workunit's description; '' if it does not."""
    if file.nbytes not in (None, nbytes):
        return f"file has the wrong size: expected {file.nbytes:,} bytes, got {nbytes:,}"
    if file.md5_cksum not in (None, md5):
        return f"MD5 check failed: expected {file.md5_cksum}, got {md5}"
    return ""


def _fetch(url: str, path: Path) -> None:
    with path.open("ab") as target:
        fetch(url, target.write, target.tell())


def _unpack(source: Path, path: Path, nbytes: int | None) -> None:
    """Unpack a gzip file; no more is written than it should contain."""
    limit = _MAX_BYTES if nbytes is None else nbytes
    written = 0
    try:
        with gzip.open(source) as packed, path.open("xb") as target:
            while chunk := packed.read(_CHUNK):
                written += len(chunk)
                if written > limit:
                    raise ValueError(f"it has more than {limit:,} bytes when unpacked")
                target.write(chunk)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"cannot be unpacked: {error}") from error


def _not_had(file: WorkunitFile, problem: str) -> JobFailed:
    return JobFailed(ERR_RESULT_DOWNLOAD, f"WU download error: couldn't get {file.name}: {problem}")


def upload(
    core: Core,
    slot: Slot,
    files: Sequence[OutputFileInfo],
    result_name: str,
    wrong: Container[str] = (),
) -> str | None:
    """Send a job's outputs; return ``xml_doc_out``, which describes them.

    None: instead of a file there is a directory or a pipe, which can be neither sent nor given up
    (``containers.rst``, "What the client does with outputs"). The host never reports the job.

    Nothing is sent unless all required files are there and none is too large. Whatever URL the
    template names, they go to the project: its hosts are on its own machine. ``wrong`` are the
    kinds of ``hosts.KINDS`` that were set for the host.

    Raises:
        JobFailed: a file is missing, is too large, or cannot be read or sent.
        OSError: there is no space to store it.
    """
    found = [(file, path) for file in files if (path := _find(slot, file)) is not None]
    for file, path in found:
        size = path.stat().st_size
        if file.max_nbytes is not None and size > file.max_nbytes:
            raise JobFailed(
                ERR_FILE_TOO_BIG,
                f"upload failure: {file.open_name}: file size too big: {size} > "
                f"{file.max_nbytes:.0f} bytes",
            )
    for file, path in found:
        if not path.is_file():
            slot.put_aside(path, file.name)
            log.warning("%s is a directory or a pipe, and can never be sent", file.open_name)
            return None
    if "differ" in wrong:
        for file, path in found:
            _change(path, result_name, file.max_nbytes)
    largest = max(found, key=lambda pair: pair[1].stat().st_size, default=None)
    return "".join(
        _send(core, file, path, cut="truncate" in wrong and (file, path) == largest)
        for file, path in found
    )


def upload_first(core: Core, slot: Slot, files: Sequence[OutputFileInfo], result_name: str) -> str:
    """Send what is sent of a job whose program has failed; return ``xml_doc_out``.

    A client sends files until it reports the failure (``client/cs_apps.cpp``, app_finished), so not
    all come (``containers.rst``, "What the wrapper does"): only the first file that is there does,
    if it can be sent.
    """
    for file in files:
        try:
            if _find(slot, file) is not None and (sent := upload(core, slot, [file], result_name)):
                return sent
        except JobFailed:
            continue
    return ""


def _find(slot: Slot, file: OutputFileInfo) -> Path | None:
    try:
        path = slot.output(file.open_name)
    except ValueError as error:
        raise JobFailed(ERR_NOT_FOUND, str(error)) from error
    if path is None and not file.optional:
        raise JobFailed(ERR_NOT_FOUND, f"upload failure: {file.open_name}: output file is missing")
    if path is not None:
        mode = path.stat().st_mode
        if stat.S_ISSOCK(mode) or (stat.S_ISREG(mode) and not mode & stat.S_IRUSR):
            # Whoever this project runs as: a client is not root.
            raise JobFailed(ERR_FOPEN, f"upload failure: {file.open_name}: cannot be read")
    return path


def _change(path: Path, result_name: str, max_nbytes: float | None) -> None:
    """Make a file differ from any other instance's, but not too large."""
    digest = hashlib.md5(result_name.encode(), usedforsecurity=False).hexdigest()
    text = f"changed by the host: {digest}\n".encode()
    path.chmod(0o600)
    size = path.stat().st_size
    room = len(text) if max_nbytes is None else int(max_nbytes) - size
    with path.open("r+b") as file:
        file.seek(0 if room < len(text) else size)
        file.write(text if room >= len(text) else text[-min(len(text), size) :])


def _send(core: Core, file: OutputFileInfo, path: Path, *, cut: bool) -> str:
    try:
        nbytes, md5 = _store(core, file, path, cut=cut)
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and no_space(error):
            raise
        raise JobFailed(ERR_RESULT_UPLOAD, f"upload failure: {file.open_name}: {error}") from error
    return (
        f"<file_info>\n    <name>{escape(file.name)}</name>\n"
        f"    <nbytes>{nbytes}</nbytes>\n    <md5_cksum>{md5}</md5_cksum>\n"
        "    <status>1</status>\n</file_info>\n"
    )


def _store(core: Core, file: OutputFileInfo, path: Path, *, cut: bool) -> tuple[int, str]:
    incoming = core.upload.incoming()
    try:
        with path.open("rb") as source:
            incoming.copy(source, packed=file.gzip_when_done)
        md5 = incoming.finish()
        if cut:
            os.truncate(incoming.path, incoming.nbytes // 2)
        # A job that runs again after a restart may have sent this file before.
        core.upload.remove(file.name)
        core.upload.add(file.name, incoming)
    finally:
        incoming.discard()
    return incoming.nbytes, md5
