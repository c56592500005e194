"""Large input files that volunteers fetch from a web server of ours, and not from the project.

``[project] publish_directory`` is a directory that a web server hands out as ``publish_url``. Each
user of this machine has a directory of their own in it, so that nobody has to trust another:
``ab/<md5>`` are the files, whole or not at all, and ``marks`` says which batch needs which of them,
and until when. A batch's mark is there before its files are, and before anything is made on the
project: a process may die at any moment, and no file that a job needs goes. What no mark names is
removed. Marks and removals happen under a lock, also between machines that share the directory.

Whether a batch still needs its files, its project tells: the list of the account's batches has
their states and the ends of their leases, whoever changed those.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import logging
import math
import os
import shlex
import tarfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path, PurePath
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from boinc_gahp.config.places import user_name
from boinc_gahp.config.urls import url_identity
from boinc_gahp.errors import ConfigError, RpcError, StagingError
from boinc_gahp.files import make_private_directory, open_private_file, whole_file
from boinc_gahp.rpc.client import WebRpcs
from boinc_gahp.rpc.options import ClientOptions
from boinc_gahp.states import BatchState
from boinc_gahp.submit.digests import Digest, changed, reason
from boinc_gahp.submit.types import RemoteFile

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from boinc_gahp.config.settings import ProjectSettings, Settings
    from boinc_gahp.rpc.types import BatchInfo

log = logging.getLogger("boinc_gahp.submit")

_CHUNK = 1 << 20
_FILES = "??/*"
#: ``ioctl_ficlone(2)``: the copy shares the blocks of the original until one of them is changed.
_FICLONE = 0x40049409
#: Seconds between two looks at what is no longer needed, for each project and process.
_EVERY = 3600.0
_OVER = {BatchState.COMPLETE, BatchState.ABORTED, BatchState.RETIRED}


class Published:
    """This user's published files, for the batches of one project and account; thread-safe.

    Args:
        settings: all settings.
        project: the project's own settings.
        account: 16 hex digits that identify the account.

    Attributes:
        url: the address of this user's directory.
        above: larger files are published: ``publish_above``, or less once the project has refused
            a file.

    Raises:
        ConfigError: only one of ``publish_directory`` and ``publish_url`` is set.
    """

    def __init__(self, settings: Settings, project: ProjectSettings, account: str) -> None:
        directory, url = project.publish_directory, project.publish_url
        if directory is None or url is None:
            raise ConfigError(
                f"the settings of {project.url} have only one of publish_directory and "
                "publish_url: set both, or none"
            )
        self._directory = Path(directory) / user_name()
        self._marks = self._directory / "marks"
        self.url = f"{url}{quote(user_name(), safe='')}/"
        self.above = project.publish_above
        self._never = project.publish_never.split()
        self._margin = settings.staging.keep
        self._options = ClientOptions.for_people(settings, project)
        self._place = f"{url_identity(project.url)} {account}"
        self._asked: set[str] = set()
        self._small = ""  # the file of a probe
        self._next_tidying = -math.inf

    @classmethod
    def of(cls, settings: Settings, project: ProjectSettings, account: str) -> Published | None:
        """Return the published files of a project; None if none are to be published."""
        is_set = project.publish_directory is not None or project.publish_url is not None
        return cls(settings, project, account) if is_set else None

    # -- which files

    def remote(self, path: str, nbytes: int, md5: str = "0" * 32) -> RemoteFile | None:
        """Return what a job has for a file that is to be published; None: it is not.

        Without its MD5, something as long.
        """
        if nbytes <= self.above:
            return None
        names = [path]
        if self._never:
            # Directories of container jobs travel in archives.
            with suppress(OSError, tarfile.TarError), tarfile.open(path, "r:") as archive:
                names += archive.getnames()
        if any(PurePath(name).match(pattern) for name in names for pattern in self._never):
            return None
        return RemoteFile(self.url + _name(md5), nbytes, md5)

    # -- they come

    def publish(
        self,
        batch_name: str,
        files: Collection[Digest],
        until: float,
        read: Callable[[int], None] = lambda _: None,
    ) -> None:
        """Put files where the web server hands them out, and make sure that it does.

        Args:
            batch_name: the batch that needs them.
            files: with their MD5s.
            until: seconds since the epoch until which they are kept, unless the project says more.
            read: called with the bytes of each piece that is read; raises to stop.

        Raises:
            StagingError: a file changed, cannot be written, or does not come from the web server.
        """
        with self._locked() as marks:
            path = self._mark(batch_name)
            old = marks.get(path, {"md5s": (), "until": until})
            md5s = sorted({*old["md5s"], *(file.md5 for file in files)})
            mark = {"place": self._place, "batch": batch_name, "at": time.time(), "md5s": md5s}
            _write(path, {**mark, "until": max(until, old["until"])})
        for file in files:
            try:
                self._put(file, read)
            except OSError as error:
                raise self._unwritten(error, file.path) from error
            self._ask(file)

    def _put(self, file: Digest, read: Callable[[int], None]) -> None:
        target = self._directory / _name(file.md5)
        if target.exists():
            return
        target.parent.mkdir(exist_ok=True)
        target.parent.chmod(0o711)
        digest = hashlib.md5(usedforsecurity=False)
        with (
            open(file.path, "rb", buffering=0) as source,  # noqa: PTH123  (not UTF-8)
            whole_file(target, 0o644, durable=True) as copy,
        ):
            os.fchmod(copy.fileno(), 0o644)  # whatever the umask is
            is_clone = False
            with suppress(OSError):  # not every file system can
                fcntl.ioctl(copy.fileno(), _FICLONE, source.fileno())
                is_clone = True
            while piece := source.read(_CHUNK):
                digest.update(piece)
                if not is_clone:
                    copy.write(piece)
                read(len(piece))
            if digest.hexdigest() != file.md5:
                raise changed(file.path)

    def _ask(self, file: Digest) -> None:
        """Ask for a file as volunteers will, once.

        Raises:
            StagingError: it does not come, or something else does.
        """
        if file.md5 in self._asked:
            return
        passes = False
        try:
            with WebRpcs(self.url, "", options=self._options) as server:
                length, beginning = server.beginning_of_file(_name(file.md5))
        except RpcError as error:
            passes, status = error.passes, getattr(error, "status", None)
            told = f"HTTP {status}" if status else str(error).split(": ", 1)[-1].split(": ")[0]
        else:
            with (self._directory / _name(file.md5)).open("rb") as own:
                here = own.read(len(beginning))
            is_same = beginning and (length, beginning) == (str(file.nbytes), here)
            told = "" if is_same else f"{length or 'an unknown number of'} bytes of another file"
        if told:
            what = self._called(file.path)
            raise StagingError(
                f"{what} does not come from {self.url}{_name(file.md5)}: {told}; publish_url has "
                f"to be the address of {str(self._directory.parent)!r} (publish_directory), "
                "which the web server has to be able to read",
                path=file.path,
                passes=passes,
            )
        self._asked.add(file.md5)

    def probe(self) -> None:
        """Publish a small file, ask for it and remove it; raises StagingError."""
        with NamedTemporaryFile() as file:
            file.write(os.urandom(1024))
            file.flush()
            self._small = file.name
            digest = hashlib.md5(Path(file.name).read_bytes(), usedforsecurity=False).hexdigest()
            try:
                self.publish(digest, [Digest(digest, file.name, 1024, digest)], time.time())
            finally:
                self.forget(digest)

    # -- they go

    def forget(self, batch_name: str) -> None:
        """Remove what only this batch needed; if that fails, a later :meth:`tidy` does it."""
        path = self._mark(batch_name)
        if path.exists():
            self._keep(lambda each, _: 0.0 if each == path else None)

    def tidy(self, batches: Callable[[], Iterable[BatchInfo]]) -> None:
        """Remove what no batch needs any more, once an hour.

        Args:
            batches: asks the project for the account's batches, without retired ones.
        """
        if not self._marks.exists() or time.monotonic() < self._next_tidying:
            return
        self._next_tidying = time.monotonic() + _EVERY
        try:
            listed = {batch.name: batch for batch in batches()}
        except RpcError as error:
            log.info("It is not known which published files are still needed: %s", error)
            return

        self._keep(
            lambda _, mark: (
                self._until(mark, listed.get(mark["batch"]))
                if mark["place"] == self._place
                else float(mark["until"])
            )
        )

    def _until(self, mark: dict[str, Any], batch: BatchInfo | None) -> float:
        """Return until when a batch's files are kept, by what its project says."""
        if batch is None:  # not made yet, or retired
            return mark["until"] if time.time() < mark["at"] + self._margin else 0.0
        if batch.state in _OVER:  # it may be sent again
            return float(min(mark["until"], time.time() + self._margin))
        return float(max(mark["until"], (batch.expire_time or math.inf) + self._margin))

    def _keep(self, until: Callable[[Path, dict[str, Any]], float | None]) -> None:
        """Change until when batches' files are kept (None: no change); remove what is not kept."""
        try:
            with self._locked() as marks:
                for path, mark in list(marks.items()):
                    end = until(path, mark)
                    if end is not None and end < time.time():
                        del marks[path]
                        path.unlink()
                    elif end not in (None, mark["until"]):
                        _write(path, {**mark, "until": end})
                needed = {md5 for mark in marks.values() for md5 in mark["md5s"]}
                for path in self._directory.glob(_FILES):
                    if path.name[:32] not in needed:  # also what a killed process began
                        path.unlink()
        except StagingError as error:
            log.warning("Published files that no job needs are not removed: %s", error)

    def _mark(self, batch_name: str) -> Path:
        text = f"{self._place} {batch_name}".encode("utf-8", "surrogatepass")
        return self._marks / f"{hashlib.sha256(text).hexdigest()[:40]}.json"

    @contextmanager
    def _locked(self) -> Iterator[dict[Path, dict[str, Any]]]:
        """Lend the marks, by their files, while no other process changes anything."""
        try:
            self._directory.parent.stat()  # somebody has to make it for the web server
            make_private_directory(self._marks)
            self._directory.chmod(0o711)  # others may get what they can name
            lock = open_private_file(self._directory / "lock", os.O_RDWR | os.O_CREAT)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX)
                yield {path: json.loads(path.read_bytes()) for path in self._marks.glob("*.json")}
            finally:
                os.close(lock)
        except (OSError, ValueError) as error:
            raise self._unwritten(error) from error

    def _called(self, path: str | None) -> str:
        small = "a small file" if path == self._small else f"input file {path!r}"
        return "files" if path is None else small

    def _unwritten(self, error: Exception, path: str | None = None) -> StagingError:
        number = getattr(error, "errno", None) or errno.EIO
        what, why, parent = self._called(path), reason(error), self._directory.parent
        if isinstance(error, FileNotFoundError) and not parent.exists():
            make = shlex.join(["install", "-d", "-m", "1777", str(parent)])
            why = f"there is no {str(parent)!r}; an admin makes it with {make}"
        return StagingError(
            f"{what} cannot be published in {str(self._directory)!r} (publish_directory): {why}",
            path=path or str(self._directory),
            errno=number,
            passes=number == errno.ENOSPC,
        )


def usage(*directories: str | None) -> tuple[int, int]:
    """Return how many files this user has in values of ``publish_directory``, and their bytes."""
    own = [Path(each) / user_name() for each in dict.fromkeys(directories) if each is not None]
    sizes: list[int] = []
    for path in (path for each in own for path in each.glob(_FILES)):
        with suppress(FileNotFoundError):  # it goes just now
            sizes.append(path.stat().st_size)
    return len(sizes), sum(sizes)


def _name(md5: str) -> str:
    return f"{md5[:2]}/{md5}"


def _write(path: Path, mark: dict[str, Any]) -> None:
    with whole_file(path, 0o600, durable=True) as file:
        file.write(json.dumps(mark).encode("utf-8"))
