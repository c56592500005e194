"""A volunteer: one job at a time, in a slot directory, as BOINC's client runs it."""

from __future__ import annotations

import gzip
import logging
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from ..templates import ResultFile, TemplateError, WorkunitFile, read_result, read_workunit
from .command_line import split_command_line
from .core import APPS
from .fetch import FetchError, fetch
from .names import safe_open_name
from .scheduler import Report, Scheduler, Task
from .states import Outcome
from .store import md5_file

if TYPE_CHECKING:
    from pathlib import Path

    from .core import Core
    from .store import IncomingFile

log = logging.getLogger("boinc_gahp.localproject")

_CLIENT_VERSION = "7.20.5"
_STDERR_TAIL = 64 << 10
_CHUNK = 1 << 20
_IDLE = 1.0
#: Client error numbers (lib/error_numbers.h of the real client).
_FILE_TOO_BIG = -131
_NOT_FOUND = -161
_INPUT_FAILED = -119
_TIME_LIMIT_EXCEEDED = 197


class JobFailed(Exception):
    """The job is a client error, with a status other than the app's own."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class _Run:
    """How the app ended; times in seconds. ``signal`` 0: by itself."""

    status: int
    signal: int
    elapsed_time: float
    cpu_time: float


def _check_exit(run: _Run) -> None:
    if run.signal:
        raise JobFailed(run.signal, f"process got signal {run.signal}")
    if run.status:
        # The client shows the status as it is, in hex, and as a signed byte.
        raise JobFailed(
            run.status,
            f"process exited with code {run.status} (0x{run.status:x}, {run.status - 256})",
        )


class Volunteer:
    """A host: asks for work, runs it, reports, until it is stopped."""

    def __init__(self, core: Core, scheduler: Scheduler, host_id: int, slot: Path) -> None:
        self._core = core
        self._scheduler = scheduler
        self._host_id = host_id
        self._slot = slot
        self._stop = threading.Event()
        self.paused = threading.Event()

    def stop(self) -> None:
        """End soon; a running job is killed, and run again after a restart."""
        self._stop.set()

    def run(self) -> None:
        """Work until stopped."""
        task = self._scheduler.unfinished(self._host_id)
        while not self._stop.is_set():
            seen = self._core.wake.count()
            if task is None and not self.paused.is_set():
                task = self._scheduler.request_work(self._host_id, time.time())
            if task is None:
                self._core.wake.wait(seen, _IDLE)
                continue
            report = self.compute(task)
            if report is not None:
                self._scheduler.report(self._host_id, task, report, time.time())
            task = None
        self._empty_slot()

    def compute(self, task: Task) -> Report | None:
        """Run one job; None if this host was stopped meanwhile."""
        run = _Run(0, 0, 0.0, 0.0)
        try:
            self._empty_slot()
            self._slot.mkdir(parents=True, exist_ok=True)
            workunit = read_workunit(task.xml_doc)
            for file in workunit.files:
                self._bring(file)
            command = self._command(task, workunit.command_line)
            ended = self._execute(command, task.time_limit)
            if ended is None:
                return None
            run = ended
            _check_exit(run)
            uploads = [
                self._upload(file) for file in read_result(task.xml_doc_in) if self._is_there(file)
            ]
        except JobFailed as failed:
            stderr = self._stderr(str(failed))
            return Report(
                Outcome.CLIENT_ERROR, failed.status, run.elapsed_time, run.cpu_time, stderr
            )
        except (OSError, TemplateError) as error:
            log.warning("%s: %s", task.result_name, error)
            stderr = self._stderr(f"couldn't start app: {error}")
            return Report(
                Outcome.CLIENT_ERROR, _INPUT_FAILED, run.elapsed_time, run.cpu_time, stderr
            )
        return Report(
            Outcome.SUCCESS, 0, run.elapsed_time, run.cpu_time, self._stderr(), "".join(uploads)
        )

    def _empty_slot(self) -> None:
        shutil.rmtree(self._slot, ignore_errors=True)

    def _inside(self, open_name: str) -> Path:
        if not safe_open_name(open_name):
            raise JobFailed(_INPUT_FAILED, f"the open name {open_name!r} leads out of the slot")
        path = self._slot / open_name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def _bring(self, file: WorkunitFile) -> None:
        """Put an input file into the slot under its open name."""
        if file.generated_locally:
            return
        path = self._inside(file.open_name)
        stored = self._core.download.find(file.name)
        if stored is None:
            self._fetch(file, path)
        elif file.copy_file:
            shutil.copyfile(stored.path, path)
        else:
            path.symlink_to(stored.path.resolve())

    def _fetch(self, file: WorkunitFile, path: Path) -> None:
        problem = "no such file"
        for url in file.urls:
            try:
                with path.open("wb") as target:
                    fetch(url, target.write)
                if file.md5_cksum in (None, md5_file(path)[0]):
                    return
                problem = "MD5 check failed"
            except FetchError as error:
                problem = str(error)
        raise JobFailed(_INPUT_FAILED, f"WU download error: couldn't get {file.name}: {problem}")

    def _command(self, task: Task, command_line: str) -> list[str]:
        places = {
            "{python}": sys.executable,
            "{apps}": str(APPS),
            "{project}": str(self._core.directory.resolve()),
        }
        words = []
        for word in task.command:
            for place, value in places.items():
                word = word.replace(place, value)  # noqa: PLW2901
            words.append(word)
        return words + split_command_line(command_line)

    def _execute(self, command: list[str], time_limit: float) -> _Run | None:
        """Run the app; it is killed, with all it has started, when this host is stopped."""
        environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self._slot.resolve()),
            "TMPDIR": str(self._slot.resolve()),
            "LANG": "C.UTF-8",
        }
        begin = time.monotonic()
        with (
            (self._slot / "stdout.txt").open("wb") as stdout,
            (self._slot / "stderr.txt").open("wb") as stderr,
        ):
            process = subprocess.Popen(
                command,
                cwd=self._slot,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                env=environment,
                start_new_session=True,
            )
        timed_out = False
        pause = 0.004
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            timed_out = time.monotonic() - begin > time_limit
            if self._stop.wait(pause) or timed_out:
                os.killpg(process.pid, signal.SIGKILL)
                _, status, usage = os.wait4(process.pid, 0)
                break
            pause = min(pause * 1.3, 0.1)
        process.returncode = os.waitstatus_to_exitcode(status)
        _kill_group(process.pid)
        if self._stop.is_set() and process.returncode < 0:
            return None
        if timed_out:
            raise JobFailed(_TIME_LIMIT_EXCEEDED, "exceeded elapsed time limit")
        return _Run(
            status=max(process.returncode, 0),
            signal=max(-process.returncode, 0),
            elapsed_time=time.monotonic() - begin,
            cpu_time=usage.ru_utime + usage.ru_stime,
        )

    def _is_there(self, file: ResultFile) -> bool:
        if not safe_open_name(file.open_name):
            raise JobFailed(_NOT_FOUND, f"the open name {file.open_name!r} leads out of the slot")
        path = self._slot / file.open_name
        if path.is_file() and not path.is_symlink():
            return True
        if file.optional:
            return False
        raise JobFailed(_NOT_FOUND, f"upload failure: {file.open_name}: output file is missing")

    def _upload(self, file: ResultFile) -> str:
        """Send an output file; return what ``xml_doc_out`` says about it."""
        path = self._slot / file.open_name
        size = path.stat().st_size
        if file.max_nbytes is not None and size > file.max_nbytes:
            raise JobFailed(
                _FILE_TOO_BIG,
                f"upload failure: {file.open_name}: file size too big: {size} > "
                f"{file.max_nbytes:.0f} bytes",
            )
        incoming = self._core.upload.incoming()
        try:
            _copy_into(path, incoming, compress=file.gzip_when_done)
            md5 = incoming.finish()
            # A job that runs again after a restart may have sent this file before.
            self._core.upload.remove(file.name)
            self._core.upload.add(file.name, incoming)
        finally:
            incoming.discard()
        return (
            f"<file_info>\n    <name>{escape(file.name)}</name>\n"
            f"    <nbytes>{incoming.nbytes}</nbytes>\n    <md5_cksum>{md5}</md5_cksum>\n"
            "    <status>1</status>\n</file_info>\n"
        )

    def _stderr(self, message: str = "") -> str:
        """Return the end of the job's stderr, wrapped as the client sends it."""
        tail = b""
        try:
            with (self._slot / "stderr.txt").open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - _STDERR_TAIL))
                tail = file.read()
        except OSError:
            message = message or "no stderr"
        text = tail.decode("utf-8", "replace").replace("\0", "?")
        said = f"<message>\n{message}\n</message>\n" if message else ""
        return (
            f"<core_client_version>{_CLIENT_VERSION}</core_client_version>\n<![CDATA[\n{said}"
            f"<stderr_txt>\n{text}\n</stderr_txt>\n]]>\n"
        )


def _kill_group(group: int) -> None:
    """End what the app has left running."""
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return
    except PermissionError:
        log.warning("processes of group %s cannot be ended", group)


class _Writer:
    """A file object that gzip can write to."""

    def __init__(self, incoming: IncomingFile) -> None:
        self._incoming = incoming

    def write(self, data: bytes) -> int:
        self._incoming.write(bytes(data))
        return len(data)

    def flush(self) -> None:
        """Do nothing: the file is flushed when it is finished."""


def _copy_into(path: Path, incoming: IncomingFile, *, compress: bool) -> None:
    with path.open("rb") as source:
        if compress:
            with gzip.GzipFile(
                filename="", mode="wb", fileobj=_Writer(incoming), mtime=0
            ) as target:
                shutil.copyfileobj(source, target, _CHUNK)
        else:
            while chunk := source.read(_CHUNK):
                incoming.write(chunk)
