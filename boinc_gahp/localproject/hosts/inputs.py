"""Brings a job's input files into its slot, and keeps the files that stay on the host.

A host has a directory of its own, as a client has one for each project. Sticky files stay there for
the host's next jobs, whatever happens to them on the server; so do files that a job generated there
(``templates.rst``, "Input templates").
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
from boinc_gahp.localproject.names import is_file_name
from boinc_gahp.localproject.store import md5_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from boinc_gahp.localproject.core import Core
    from boinc_gahp.localproject.hosts.slot import Slot
    from boinc_gahp.localproject.store import StoredFile
    from boinc_gahp.templates.documents import WorkunitFile

_CHUNK = 1 << 20
#: The most bytes that a compressed file of unknown size may unpack to.
_LARGEST = 1 << 30


class Inputs:
    """Brings files to one host.

    Attributes:
        directory: the host's own, for files that stay there.
    """

    def __init__(self, core: Core, directory: Path) -> None:
        self._core = core
        self.directory = directory

    def bring(self, file: WorkunitFile, slot: Slot) -> int:
        """Put a file into the slot under its open name; return its size if it is only linked.

        A file that is generated on the host may be missing.

        Raises:
            JobFailed: it is not available, or differs from the workunit's description.
            ValueError: the open name leads out of the slot.
        """
        path = slot.inside(file.open_name)
        own = self._own(file.name)
        if file.generated_locally:
            return _place(own, path, copy=file.copy_file) if own.is_file() else 0
        if file.sticky and own.is_file() and not _difference(file, *md5_file(own)):
            return _place(own, path, copy=file.copy_file)
        compressed = self._core.download.find(f"{file.name}.gz") if file.gzipped_urls else None
        stored = self._core.download.find(file.name) if compressed is None else None
        if stored is None:
            self._transfer(file, path, compressed)
            if not file.sticky:
                return 0
            self._keep(path, own)
            return _place(own, path, copy=file.copy_file)
        problem = _difference(file, stored.md5, stored.nbytes)
        if problem:
            raise _not_had(file, problem)
        if not file.sticky:
            return _place(stored.path, path, copy=file.copy_file)
        self._take(stored.path, own)
        return _place(own, path, copy=file.copy_file)

    def keep_generated(self, files: Iterable[WorkunitFile], slot: Slot) -> None:
        """Keep the sticky files that a job has generated under the names of its inputs."""
        for file in files:
            made = slot.output(file.open_name)
            if file.generated_locally and file.sticky and made is not None:
                self._keep(made, self._own(file.name), writable=True)

    def _own(self, name: str) -> Path:
        if not is_file_name(name):
            raise JobFailed(ERR_RESULT_DOWNLOAD, f"WU download error: bad file name {name!r}")
        return self.directory / name

    def _keep(self, path: Path, own: Path, *, writable: bool = False) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        if not writable:
            path.chmod(0o444)
        path.replace(own)

    def _take(self, source: Path, own: Path) -> None:
        """Get a file from the server to the host."""
        self.directory.mkdir(parents=True, exist_ok=True)
        own.unlink(missing_ok=True)
        shutil.copyfile(source, own)
        own.chmod(0o444)

    def _transfer(self, file: WorkunitFile, path: Path, compressed: StoredFile | None) -> None:
        """Write a file that has to be unpacked, or is not on the project's server."""
        ways: list[Callable[[], None]] = []
        if compressed is not None:
            ways.append(lambda: _unpack(compressed.path, path, file.nbytes))
        else:
            ways.extend(partial(self._fetch_packed, url, path, file) for url in file.gzipped_urls)
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

    def _fetch_packed(self, url: str, path: Path, file: WorkunitFile) -> None:
        incoming = self._core.download.incoming()
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


def _place(source: Path, path: Path, *, copy: bool) -> int:
    if copy:
        shutil.copyfile(source, path)
        return 0
    path.symlink_to(source.resolve())
    return source.stat().st_size


def _not_had(file: WorkunitFile, problem: str) -> JobFailed:
    return JobFailed(ERR_RESULT_DOWNLOAD, f"WU download error: couldn't get {file.name}: {problem}")
