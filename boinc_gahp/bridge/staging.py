"""Input files reach the project by content: each once, streamed, associated with its batch.

What makes this longer than it should be is in ``web-rpcs.md``, "Files": query_files and
upload_files die when a row that they insert is there already, so a failure says little about the
files themselves; PHP drops files past its limits; several clients may send the same file at once.
So the rule is: after any failure ask what is absent, and go on with that.
"""

from __future__ import annotations

import logging
import random
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

from boinc_gahp.errors import (
    NotFound,
    PermissionDenied,
    ProjectDown,
    ProjectError,
    RpcError,
    StagingError,
    TransportError,
)
from boinc_gahp.rpc import UploadFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from boinc_gahp.bridge.digests import LocalFile
    from boinc_gahp.config import Staging as StagingSettings
    from boinc_gahp.rpc import Project

log = logging.getLogger("boinc_gahp.bridge")

#: Rounds of uploads in a row that brought nothing, after which the last error is passed on.
_FRUITLESS_ROUNDS = 5
#: Calls of query_files that may go into finding out which associations are still to be made.
_ASSOCIATION_CALLS = 64
#: What a file adds to a POST besides its bytes: part headers, and its name in the request.
_PART_OVERHEAD = 512
_TOO_MANY = re.compile(r"# of uploaded files \((\d+)\) doesn't agree with request \((\d+)\)")


class Uploads:
    """Physical names that some thread of this process is sending, so that no two send one file."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._flying: dict[str, threading.Event] = {}

    @contextmanager
    def claim(self, names: Iterable[str]) -> Iterator[list[str]]:
        """Yield those of ``names`` that nobody is sending; they are the caller's until the end."""
        done = threading.Event()
        with self._lock:
            mine = [name for name in names if name not in self._flying]
            self._flying.update(dict.fromkeys(mine, done))
        try:
            yield mine
        finally:
            with self._lock:
                for name in mine:
                    del self._flying[name]
            done.set()

    def wait(self, names: Iterable[str], timeout: float) -> None:
        """Wait until those of ``names`` that another thread is sending are through."""
        deadline = time.monotonic() + timeout
        with self._lock:
            events = {self._flying[name] for name in names if name in self._flying}
        for event in events:
            event.wait(max(0.0, deadline - time.monotonic()))


class Staging:
    """Brings a batch's files to the project.

    Args:
        project: its RPCs end by ``deadline``.
        settings: how many files and bytes a POST may have, and how many POSTs go at a time.
        files: by physical name.
        batch_id: the batch that uses them.
        uploads: shared by all of a process that use this project and account.
        deadline: ``time.monotonic()`` after which nothing more is sent, or None.
    """

    def __init__(
        self,
        project: Project,
        settings: StagingSettings,
        files: Mapping[str, LocalFile],
        batch_id: int,
        *,
        uploads: Uploads,
        deadline: float | None = None,
    ) -> None:
        self._project = project
        self._settings = settings
        self._files = files
        self._batch_id = batch_id
        self._uploads = uploads
        self._deadline = deadline
        self._files_per_post = settings.files_per_post
        self._bytes_per_post = settings.bytes_per_post
        self._absent: list[str] = []
        self._arrived: set[str] = set()

    def run(self) -> None:
        """Return when every file is on the project.

        Raises:
            StagingError: a file changed, is too large for the project, or time is up.
            RpcError: the project could not be asked, or refuses the files.
        """
        try:
            self._run()
        except RpcError as error:
            if self._time_is_up():
                raise self._out_of_time() from error
            raise

    def _run(self) -> None:
        if not self._files:
            return
        self._absent = self._associate(list(self._files))
        fruitless = 0
        while self._absent:
            if self._time_is_up():
                raise self._out_of_time()
            before = len(self._absent)
            error = self._round()
            if not self._absent:
                return
            fruitless = fruitless + 1 if len(self._absent) >= before else 0
            if fruitless >= _FRUITLESS_ROUNDS:
                raise error or self._vanishing()
            if fruitless:
                self._pause(fruitless)

    def _round(self) -> RpcError | None:
        """Send what is absent and not being sent, then ask again; return the last trouble."""
        absent = self._absent
        with self._uploads.claim(absent) as mine:
            sent, error = self._send(mine)
        if len(mine) < len(absent):
            self._uploads.wait(absent, self._time_left())
        if error is None and len(sent) == len(absent):
            self._absent = []
            return None
        self._absent = self._still_absent(absent)
        missing = set(self._absent)
        others = [name for name in absent if name not in missing and name not in sent]
        if others:
            self._associate(others)
        return error

    # -- what is there

    def _still_absent(self, names: Sequence[str]) -> list[str]:
        return [names[index] for index in self._project.query_files(names)]

    def _associate(self, names: Sequence[str]) -> list[str]:
        """Associate what is there of ``names`` with the batch; return what is absent."""
        try:
            absent = self._project.query_files(names, batch_id=self._batch_id)
        except (PermissionDenied, ProjectDown):
            raise
        except RpcError as error:
            log.info("query_files with batch %d failed (%s): asking without", self._batch_id, error)
            missing = self._still_absent(names)
            gone = set(missing)
            self._associate_the_rest([name for name in names if name not in gone])
            return missing
        return [names[index] for index in absent]

    def _associate_the_rest(self, names: list[str]) -> None:
        """Make the associations that a failed query_files did not get to.

        It goes through its list in order and dies at the first association that is there already:
        so the front of the list is done, and where that front ends is found by halving.
        """
        calls = _ASSOCIATION_CALLS
        while names and calls > 0:
            low, high = 0, len(names)
            while low < high and calls > 0:
                middle = (low + high) // 2
                calls -= 1
                if self._associates(names[middle : middle + 1]):
                    high = middle
                else:
                    low = middle + 1
            names = names[high + 1 :]
            calls -= 1
            if not names or self._associates(names):
                return
        if names:
            log.warning(
                "Batch %d: up to %d files may not be associated with it; the project keeps them "
                "until their own delete time",
                self._batch_id,
                len(names),
            )

    def _associates(self, names: Sequence[str]) -> bool:
        try:
            self._project.query_files(names, batch_id=self._batch_id)
        except (PermissionDenied, ProjectDown):
            raise
        except RpcError:
            return False
        return True

    # -- sending

    def _send(self, names: Sequence[str]) -> tuple[set[str], RpcError | None]:
        """Upload ``names``; return those that surely arrived, and the last passing trouble."""
        groups = self._groups(names)
        sent: set[str] = set()
        trouble: RpcError | None = None
        if not groups:
            return sent, None
        workers = max(1, min(self._settings.concurrent_posts, len(groups)))
        with ThreadPoolExecutor(workers, thread_name_prefix="upload") as pool:
            futures = [pool.submit(self._post, group) for group in groups]
            try:
                for group, future in zip(groups, futures, strict=True):
                    try:
                        future.result()
                    except RpcError as error:
                        self._learn(error, group)
                        trouble = error
                    else:
                        sent.update(group)
            except BaseException:
                pool.shutdown(wait=True, cancel_futures=True)
                raise
        return sent, trouble

    def _post(self, group: Sequence[str]) -> None:
        if self._time_is_up():
            raise self._out_of_time()
        self._project.upload_files(
            [
                UploadFile(name, file.path, file.nbytes, file.md5)
                for name, file in ((name, self._files[name]) for name in group)
            ],
            batch_id=self._batch_id,
            delete_time=time.time() + self._settings.keep,
        )
        self._arrived.update(group)

    def _groups(self, names: Sequence[str]) -> list[list[str]]:
        """Split ``names`` so that no POST has more files or bytes than the project takes."""
        groups: list[list[str]] = []
        room = files = 0
        for name in names:
            size = self._files[name].nbytes + _PART_OVERHEAD
            if not groups or size > room or files == 0:
                groups.append([])
                room, files = self._bytes_per_post, self._files_per_post
            groups[-1].append(name)
            room -= size
            files -= 1
        return groups

    def _learn(self, error: RpcError, group: Sequence[str]) -> None:
        """Take a limit out of a refusal; raise if sending again cannot help.

        The texts are PHP's and the server's own (``web-rpcs.md``, "Files").
        """
        if isinstance(error, (PermissionDenied, NotFound)):
            raise error
        too_large = isinstance(error, TransportError) and " 413 " in f" {error} "
        if not too_large and not isinstance(error, ProjectError):
            return
        words = error.words if isinstance(error, ProjectError) else ""
        if isinstance(error, ProjectDown):
            return
        many = _TOO_MANY.search(words)
        if many and int(many[1]) < int(many[2]):
            self._files_per_post = max(1, int(many[1]))
        elif "exceeds upload_max_filesize" in words or "exceeds MAX_FILE_SIZE" in words:
            name = next((name for name in group if name in words), group[0])
            raise self._too_large(name, "upload_max_filesize") from error
        elif too_large or words.startswith("can't parse request message:"):
            if len(group) == 1:
                raise self._too_large(group[0], "post_max_size") from error
            size = sum(self._files[name].nbytes + _PART_OVERHEAD for name in group)
            self._bytes_per_post = max(1, min(self._bytes_per_post, size) // 2)
        elif "file immutability violation" in words:
            name = next((name for name in group if name in words), group[0])
            raise StagingError(
                f"{error.host} holds a file {name} with other contents than "
                f"{self._files[name].path!r}, although that name is the MD5 of the contents: the "
                "project's admin has to remove the damaged file from its download directory"
            ) from error

    def _too_large(self, name: str, limit: str) -> StagingError:
        file = self._files[name]
        return StagingError(
            f"input file {file.path!r} has {file.nbytes} bytes, more than {self._project.host} "
            f"takes: the project's admin can raise {limit} (and post_max_size above it) in the web "
            "server's php.ini"
        )

    def _vanishing(self) -> StagingError:
        name = self._absent[0]
        return StagingError(
            f"{self._project.host} took input file {self._files[name].path!r} {_FRUITLESS_ROUNDS} "
            f"times and still says that {name} is absent: the project's admin should look at its "
            "download directory and at delete_job_files"
        )

    # -- time

    def _time_left(self) -> float:
        return 3600.0 if self._deadline is None else self._deadline - time.monotonic()

    def _time_is_up(self) -> bool:
        return self._time_left() <= 0

    def _pause(self, fruitless: int) -> None:
        seconds = min(15.0, 0.25 * 2**fruitless) * random.uniform(0.5, 1.5)  # noqa: S311
        threading.Event().wait(max(0.0, min(seconds, self._time_left())))

    def _out_of_time(self) -> StagingError:
        total = len(self._files)
        missing = len(set(self._absent) - self._arrived)
        return StagingError(
            f"still staging, {total - missing} of {total} files sent to "
            f"{self._project.host}; release the jobs to go on (or raise [timeouts] submit together "
            "with HTCondor's GRIDMANAGER_GAHP_CALL_TIMEOUT)"
        )
