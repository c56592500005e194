"""Input files are sent to the project by content: each once, streamed, associated with its batch.

``web-rpcs.rst``, "Files", explains why this is long: query_files and upload_files die when a row
that they insert is there already, so a failure says little about the files themselves; PHP drops
files past its limits; several clients may send the same file at once. So the rule is: after any
failure ask which files are absent, and go on with those.

A file that is there after its POST failed is not believed: a full disk cuts it off under its final
name. It is sent again, alone. The project compares contents before anything that PHP can die of.
"""

from __future__ import annotations

import errno
import logging
import math
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from boinc_gahp.backoff import Backoff
from boinc_gahp.errors import (
    OF_ALL,
    DuplicateJob,
    FileDiffers,
    FileTooLarge,
    NotFound,
    PermissionDenied,
    ProjectError,
    ProtocolError,
    RequestTooLarge,
    RpcError,
    StagingError,
    TransportError,
)
from boinc_gahp.rpc.retry import dropped
from boinc_gahp.submit.association import Association, absent_names
from boinc_gahp.submit.journal import Interrupted, Meter, WantedFiles
from boinc_gahp.threads import in_parallel

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from boinc_gahp.config.settings import StagingSettings
    from boinc_gahp.rpc.client import WebRpcs
    from boinc_gahp.rpc.types import UploadFile
    from boinc_gahp.submit.context import Context, Uploads
    from boinc_gahp.submit.types import OnProgress

log = logging.getLogger("boinc_gahp.submit")

#: Rounds of uploads in a row without progress, after which the last error is raised.
_FRUITLESS_ROUNDS = 5
#: Pauses between such rounds, and between queries for files that the project still works on.
_BACKOFF = Backoff(0.25, 15.0, jitter=(0.5, 1.5))
#: Bytes that a file adds to a POST besides its own: part headers, and its name in the request.
_PART_OVERHEAD = 512
#: Which limit to raise for a file that is too large, by which part refused it (``web-rpcs.rst``,
#: "Files").
_UPLOAD_LIMIT = "upload_max_filesize, and post_max_size above it, in the web server's php.ini"
_POST_LIMIT = "post_max_size, and upload_max_filesize with it, in the web server's php.ini"
_WEB_SERVER_LIMIT = (
    "the web server's limit on a request (LimitRequestBody, client_max_body_size), and "
    "upload_max_filesize and post_max_size in its php.ini"
)
#: HTTP's status if a front end has not waited for the answer.
_GATEWAY_TIMEOUT = 504


def out_of_time(what: str) -> StagingError:
    """Return the error for a submit that has to be answered before everything is sent."""
    return StagingError(
        f"still staging, {what}; release the jobs to go on (or raise [timeouts] submit together "
        "with HTCondor's GRIDMANAGER_GAHP_CALL_TIMEOUT)"
    )


def physical_names(
    context: Context, paths: Iterable[str], progress: OnProgress | None = None
) -> dict[str, str]:
    """Return the names that local files have on projects; reads files that are not cached.

    They are ``<md5><extension>`` (``web-rpcs.rst``, "The RPCs").

    Raises:
        StagingError: a file cannot be read, or changed meanwhile.
        Exception: what ``progress`` raises.
    """
    try:
        files = context.digests.of(paths, meter=Meter(progress))
    except Interrupted as interrupted:
        raise interrupted.error from None
    return {path: file.physical_name for path, file in files.items()}


@dataclass(slots=True)
class _Round:
    """One round of uploads: the names claimed for it, and its results."""

    mine: dict[str, object] = field(default_factory=dict)
    trouble: RpcError | None = None
    limit_learned: bool = False
    #: Files that were sent completely, but without an answer in time; seconds waited for it.
    late: set[str] = field(default_factory=set)
    awaited: float = 0.0


class Staging:
    """Brings a batch's files to the project.

    Args:
        project: its RPCs end by ``deadline``.
        settings: how many files and bytes a POST may have, and how many POSTs run at a time.
        files: by physical name.
        batch_id: the batch that uses them.
        uploads: shared by everything in this process that uses this project and account.
        deadline: ``time.monotonic()`` after which nothing more is sent, or None.
        meter: gets the bytes of the files that are sent.
        needs: which of the files are still needed; others are not sent. None: all are.
    """

    def __init__(
        self,
        project: WebRpcs,
        settings: StagingSettings,
        files: Mapping[str, UploadFile],
        batch_id: int,
        *,
        uploads: Uploads,
        deadline: float | None = None,
        meter: Meter | None = None,
        needs: WantedFiles | None = None,
    ) -> None:
        self._needs = needs or WantedFiles(lambda: None)
        self._meter = meter or Meter()
        self._project = project
        self._settings = settings
        self._files = files
        self._batch_id = batch_id
        self._uploads = uploads
        self._deadline = deadline
        self._association = Association(project, batch_id, settings.concurrent_posts)
        self._limits = threading.Lock()
        self._files_per_post = settings.files_per_post
        self._bytes_per_post = settings.bytes_per_post
        # Until the project is asked, no file is known to be there.
        self._absent = list(files)
        self._asked_at = -math.inf
        self._arrived: set[str] = set()
        #: Files whose POST failed; and those of them that are there, perhaps only in part.
        self._doubtful: set[str] = set()
        self._unproven: set[str] = set()
        self._broken_off = threading.Event()
        self._late_rounds = 0

    def run(self) -> None:
        """Return when every file that is still needed is on the project.

        Raises:
            StagingError: a file changed, is too large for the project, or time is up.
            RpcError: the project could not be reached, or refuses the files.
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
        self._asked_at = time.monotonic()
        self._absent = self._association.associate(self._absent)
        self._meter.begin("staging", sum(self._files[n].nbytes for n in self._absent), "bytes")
        fruitless = 0
        while self._absent and (needed := self._needs.of(self._absent)):
            self._absent = needed
            if self._time_is_up():
                raise self._out_of_time()
            before = len(self._absent)
            sending = _Round()
            self._round(sending)
            # A round that taught a new limit is not fruitless: the next one sends other POSTs.
            without_progress = len(self._absent) >= before and not sending.limit_learned
            fruitless = fruitless + 1 if without_progress else 0
            if fruitless >= _FRUITLESS_ROUNDS:
                raise sending.trouble or self._vanishing()
            if fruitless:
                _BACKOFF.wait(fruitless, until=self._deadline)
        self._meter.finish()

    def _round(self, sending: _Round) -> None:
        """Send the absent files that nobody else is sending, several POSTs at a time; ask again."""
        absent = self._absent
        with self._uploads.claim(absent, self._asked_at) as sending.mine:
            mine = set(sending.mine)
            in_parallel(
                lambda group: self._post(group, sending),
                self._groups(list(sending.mine)),
                threads=self._settings.concurrent_posts,
                name="upload",
                stop=self._broken_off,
            )
        if len(mine) < len(absent):
            self._uploads.wait(absent, self._time_left())
        elif sending.trouble is None:
            self._absent = []
            return
        self._asked_at = time.monotonic()
        self._absent = absent_names(self._project, absent)
        self._await_late(sending)
        missing = set(self._absent)
        turned_up = [name for name in absent if name not in missing and name not in self._arrived]
        self._unproven = self._doubtful.intersection(turned_up)
        self._absent += self._unproven
        turned_up = [name for name in turned_up if name not in self._unproven]
        # Other threads have sent their files for their own batches. Of our POST that failed, only
        # the files before the one that another client had sent are associated.
        self._association.associate([name for name in turned_up if name not in mine])
        self._association.associate([name for name in turned_up if name in mine], mixed=True)

    def _await_late(self, sending: _Round) -> None:
        """Look for files that the project may still be working on, before they are sent again.

        PHP may need longer for a large file than clients wait for an answer. These queries take at
        most as long again as the wait for the answer; the next time, twice as long.
        """
        if not sending.late:
            return
        end = time.monotonic() + sending.awaited * 2.0**self._late_rounds
        self._late_rounds += 1
        tries = 0
        while not sending.late.isdisjoint(self._absent) and time.monotonic() < end:
            _BACKOFF.wait(tries, until=self._deadline)
            if self._time_is_up():
                return
            tries += 1
            self._asked_at = time.monotonic()
            self._absent = absent_names(self._project, self._needs.of(self._absent))

    # -- sending

    def _post(self, group: Sequence[str], sending: _Round) -> None:
        if sending.limit_learned:
            return  # the rest goes in the next round, in smaller POSTs
        if self._time_is_up():
            raise self._out_of_time()
        group = self._needs.of(group)
        if not group:
            return
        # Of the files alone, without headers: they are what the meter counts.
        left = nbytes = sum(self._files[name].nbytes for name in group)
        last = time.monotonic()

        def sent(count: int) -> None:
            nonlocal last, left
            last = time.monotonic()
            # Another upload may have shown that this batch cannot be staged.
            if self._broken_off.is_set() or not self._needs.of(group, now=False):
                raise StagingError("stopped: another file of the batch cannot be sent")
            count = min(count, left)
            left -= count
            self._meter.add(count)

        try:
            self._project.upload_files(
                [self._files[name] for name in group],
                batch_id=self._batch_id,
                delete_time=time.time() + self._settings.keep,
                sent=sent,
            )
        except StagingError:
            if self._needs.of(group, now=False):
                raise
            self._meter.add(left - nbytes)
        except RpcError as error:
            is_late = not left and _is_late(error)
            self._meter.add(left - nbytes)
            with self._limits:
                learned = self._learn(error, group)
                sending.limit_learned |= learned
                if self._unproven.issuperset(group) and _already_there(error):
                    self._doubtful.difference_update(group)
                elif not learned and (error.may_be_running or _is_partial(error)):
                    self._doubtful.update(group)
                if is_late:
                    sending.late.update(group)
                    sending.awaited = max(sending.awaited, time.monotonic() - last)
            sending.trouble = error
        else:
            self._arrived.update(group)
            self._doubtful.difference_update(group)
            self._uploads.release(sending.mine, group)

    def _groups(self, names: Sequence[str]) -> list[list[str]]:
        """Split ``names`` so that no POST has more files or bytes than the project accepts."""
        groups: list[list[str]] = []
        room = files = 0
        for name in names:
            size = self._files[name].nbytes + _PART_OVERHEAD
            alone = name in self._unproven
            if not groups or size > room or files == 0 or alone:
                groups.append([])
                room, files = self._bytes_per_post, 1 if alone else self._files_per_post
            groups[-1].append(name)
            room -= size
            files -= 1
        return groups

    def _learn(self, error: RpcError, group: Sequence[str]) -> bool:
        """Learn a limit from a refusal, if it tells one; raise if sending again cannot help.

        The texts are from PHP and the server (``web-rpcs.rst``, "Files").
        """
        if isinstance(error, (PermissionDenied, NotFound)):
            raise error
        too_large = isinstance(error, TransportError) and error.status == 413
        if isinstance(error, RequestTooLarge) and error.named:
            most = int(error.named)
            if most < min(len(group), self._files_per_post):
                self._files_per_post = max(1, most)
                return len(group) > 1
        if isinstance(error, FileTooLarge):
            name = error.named if error.named in group else group[0]
            raise self._too_large(name, _UPLOAD_LIMIT) from error
        if too_large or (isinstance(error, RequestTooLarge) and not error.named):
            if len(group) == 1:
                limit = _WEB_SERVER_LIMIT if too_large else _POST_LIMIT
                raise self._too_large(group[0], limit) from error
            # Several POSTs of one size may be refused at the same time: each halves its own size.
            size = sum(self._files[name].nbytes + _PART_OVERHEAD for name in group)
            self._bytes_per_post = min(self._bytes_per_post, size // 2)
            return True
        if isinstance(error, FileDiffers):
            name = error.named if error.named in group else group[0]
            raise StagingError(
                f"{error.host} holds a file {name} with other contents than "
                f"{self._files[name].path!r}, although that name is the MD5 of the contents: the "
                f"project's admin has to remove the damaged file and {name}.md5 from its download "
                "directory, and to see whether its disk is full",
                path=self._files[name].path,
                errno=errno.EEXIST,
            ) from error
        return False

    def _too_large(self, name: str, limit: str) -> StagingError:
        file = self._files[name]
        return StagingError(
            f"input file {file.path!r} has {file.nbytes} bytes, more than {self._project.host} "
            f"takes: the project's admin can raise {limit}; or split the file, or let volunteers "
            "fetch it from a web server of yours (publish_directory in the settings, or a URL)",
            path=file.path,
            errno=errno.EFBIG,
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

    def _out_of_time(self) -> StagingError:
        total = len(self._files)
        missing = len(set(self._absent) - self._arrived)
        return out_of_time(f"{total - missing} of {total} files sent to {self._project.host}")


def _already_there(error: RpcError) -> bool:
    """Tell whether a POST of one file failed only because the project has its contents already."""
    return isinstance(error, DuplicateJob) or (
        isinstance(error, ProtocolError) and (error.php_fatal or error.cut)
    )


def _is_partial(error: RpcError) -> bool:
    """Tell whether the project may have refused a POST after it kept some of its files."""
    return isinstance(error, ProjectError) and error.concerns not in OF_ALL


def _is_late(error: RpcError) -> bool:
    """Tell whether the project may still be working on a request that it got."""
    if not isinstance(error, TransportError) or not error.may_be_running:
        return False
    if error.status is not None:
        return error.status == _GATEWAY_TIMEOUT
    return not dropped(error)
