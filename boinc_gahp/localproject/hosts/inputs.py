"""Brings a job's input files into its slot.

Hosts keep no files: a sticky one comes from the server for each job, and no job finds what another
has generated (``templates.rst``, "Input templates").
"""

from __future__ import annotations

import gzip
import shutil
import zlib
from functools import partial
from typing import TYPE_CHECKING

from boinc_gahp.client_exits import ERR_RESULT_DOWNLOAD
from boinc_gahp.localproject.hosts.client_errors import JobFailed
from boinc_gahp.localproject.hosts.fetch import FetchError, fetch
from boinc_gahp.localproject.store import md5_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from boinc_gahp.localproject.core import Core
    from boinc_gahp.localproject.hosts.slot import Slot
    from boinc_gahp.localproject.store import StoredFile
    from boinc_gahp.templates.documents import WorkunitFile

_CHUNK = 1 << 20
#: The most bytes that a compressed file of unknown size may unpack to.
_LARGEST = 1 << 30


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
    """Write a file that has to be unpacked, or is not on the project's server."""
    ways: list[Callable[[], None]] = []
    if compressed is not None:
        ways.append(lambda: _unpack(compressed.path, path, file.nbytes))
    else:
        ways.extend(partial(_fetch_packed, core, url, path, file) for url in file.gzipped_urls)
        ways.extend(partial(_fetch, url, path) for url in file.urls)
    problem = "no such file"
    for way in ways:
        try:
            way()
            problem = _difference(file, *md5_file(path))
        except FetchError as error:
            problem = str(error)
        if not problem:
            return
        path.unlink(missing_ok=True)
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
    with path.open("xb") as target:
        fetch(url, target.write)


def _unpack(source: Path, path: Path, nbytes: int | None) -> None:
    """Unpack a gzip file; no more is written than it should contain."""
    limit = _LARGEST if nbytes is None else nbytes
    written = 0
    try:
        with gzip.open(source) as packed, path.open("xb") as target:
            while chunk := packed.read(_CHUNK):
                written += len(chunk)
                if written > limit:
                    raise FetchError(f"it has more than {limit:,} bytes when unpacked")
                target.write(chunk)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise FetchError(f"cannot be unpacked: {error}") from error


def _not_had(file: WorkunitFile, problem: str) -> JobFailed:
    return JobFailed(ERR_RESULT_DOWNLOAD, f"WU download error: couldn't get {file.name}: {problem}")
