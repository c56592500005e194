"""A volunteer: one job at a time, in a slot directory, as BOINC's client runs it.

It misbehaves as was set when it got the result (``hosts.KINDS``), and says so at the end of the
job's stderr. It reports each job as soon as its outputs are sent, with or without
``report_immediately`` in the output template.
"""

from __future__ import annotations

import logging
import os
import signal
import sqlite3
import threading
import time
from collections import deque
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, BinaryIO, TypeVar

from boinc_gahp.client_exits import ERR_RESULT_START
from boinc_gahp.localproject.backend.new_job import split_command_line
from boinc_gahp.localproject.backend.scheduler import Report, Scheduler, Task
from boinc_gahp.localproject.core import fill_in
from boinc_gahp.localproject.errors import JobFailed, no_space
from boinc_gahp.localproject.hosts.docker_wrapper import DockerWrapper
from boinc_gahp.localproject.hosts.engine import CLIENTS, WITH, WITHOUT
from boinc_gahp.localproject.hosts.execution import LimitWatch, ProcessEnd, ProcessFamily, execute
from boinc_gahp.localproject.hosts.hosts import Behaviour
from boinc_gahp.localproject.hosts.slot import Slot
from boinc_gahp.localproject.hosts.transfers import bring, upload, upload_first
from boinc_gahp.localproject.hosts.wrapper_commands import ContainerJob
from boinc_gahp.localproject.states import Outcome
from boinc_gahp.templates.documents import read_result, read_workunit
from boinc_gahp.templates.types import TemplateError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from boinc_gahp.localproject.core import Core
    from boinc_gahp.localproject.hosts.engine import Containers
    from boinc_gahp.templates.documents import WorkunitDocument
    from boinc_gahp.templates.types import OutputFileInfo

    T = TypeVar("T")

log = logging.getLogger("boinc_gahp.localproject")

_STDERR_TAIL = 64 << 10
_IDLE = 1.0
#: Seconds until a host tries again when the disk is full.
_RETRY = 5.0
#: A host that is to be late without a given time reports this many seconds after the deadline.
_AFTER_DEADLINE = 1.0
#: With more jobs whose uploads hang a host asks for no work: twice its processors, of which it has
#: one (``containers.rst``, "What the client does with outputs").
_MOST_HANGING = 2


class Volunteer:
    """A host: asks for work, runs it, reports, until it is stopped."""

    def __init__(
        self, core: Core, scheduler: Scheduler, host_id: int, slot: Path, containers: Containers
    ) -> None:
        self._core = core
        self._scheduler = scheduler
        self._host_id = host_id
        self._containers = containers
        self._usual = slot
        self._slot = Slot(slot)
        self._stop = threading.Event()
        self._late: list[tuple[float, Task, Report]] = []
        self._hanging = 0
        self._asking = threading.Lock()
        self._paused = False

    def stop(self) -> None:
        """End soon; a running job is killed, and run again after a restart.

        So is a job whose report is held back. A container job finds its files again.
        """
        self._stop.set()

    def pause(self, paused: bool) -> None:
        """Ask for no more work from now on, or ask again."""
        with self._asking:
            self._paused = paused

    def run(self) -> None:
        """Work until stopped."""
        left = deque(self._scheduler.all_unfinished(self._host_id))
        while not self._stop.is_set():
            seen = self._core.wake.rings
            self._report_late()
            if self._containers.needed():
                self._containers.engine()
            task = left.popleft() if left else None
            if task is None and self._hanging <= _MOST_HANGING:
                task = self._kept(self._request_work)
            if task is None:
                self._core.wake.wait(seen, self._pause())
                continue
            report = self.compute(task)
            if report is not None:
                self._hand_in(task, report)
            if report is not None or not self._stop.is_set():
                _remove(self._slot)
        _remove(Slot(self._usual))

    def _request_work(self) -> Task | None:
        with self._asking:
            if self._paused:
                return None
            return self._scheduler.request_work(self._host_id, time.time())

    def compute(self, task: Task) -> Report | None:
        """Run one job; None if this host was stopped meanwhile, or will never report it.

        While the disk is full the job is tried again: it is not the job's fault.
        """
        if "vanish" in task.behaviours:
            log.info(
                "host %d vanishes with %s, as its behaviour says", self._host_id, task.result_name
            )
            return None
        if "detach" in task.behaviours:
            return Report(Outcome.CLIENT_DETACHED, 0, 0.0, 0.0, "")
        while True:
            try:
                return self._attempt(task)
            except OSError as error:
                log.warning("%s is tried again: %s", task.result_name, error)
            if self._stop.wait(_RETRY):
                return None

    def _kept(self, do: Callable[[], T]) -> T | None:
        """Do something with the database; repeat it while the database cannot be written."""
        while True:
            try:
                return do()
            except sqlite3.OperationalError as error:
                log.warning("host %d tries again: %s", self._host_id, error)
            if self._stop.wait(_RETRY):
                return None

    def _pause(self) -> float:
        due = min((due for due, _, _ in self._late), default=time.time() + _IDLE)
        return min(max(due - time.time(), 0.0), _IDLE)

    def _hand_in(self, task: Task, report: Report) -> None:
        seconds = task.behaviours.get("late")
        if seconds is None or report.outcome is Outcome.CLIENT_DETACHED:
            self._report(task, report)
        else:
            due = time.time() + seconds if seconds else task.deadline + _AFTER_DEADLINE
            self._late.append((due, task, report))

    def _report_late(self) -> None:
        now = time.time()
        for due, task, report in self._late:
            if due <= now:
                self._report(task, report)
        self._late = [entry for entry in self._late if entry[0] > now]

    def _report(self, task: Task, report: Report) -> None:
        self._kept(lambda: self._scheduler.report(self._host_id, task, report, time.time()))

    def _attempt(self, task: Task) -> Report | None:
        """Run one job; raises OSError if there is no space left for it.

        None: this host was stopped, or an upload hangs.
        """
        ended, document = ProcessEnd(), ""
        status, message = 0, ""
        with ExitStack() as stack:
            stderr: BinaryIO | None = None
            try:
                kept = self._kept_slot(task)
                self._slot = Slot(kept if kept.exists() else self._usual)
                if not self._goes_on:
                    self._slot.renew()
                stderr = stack.enter_context((self._slot.directory / "stderr.txt").open("a+b"))
                files = read_result(task.xml_doc_in)
                result = self._run_app(task, stderr, files)
                if result is None:
                    return None
                ended = result
                if ended.status:
                    document = upload_first(self._core, self._slot, files, task.result_name)
                _check_end(ended)
                sent = upload(self._core, self._slot, files, task.result_name, task.behaviours)
                if sent is None:
                    log.warning("host %d never reports %s", self._host_id, task.result_name)
                    self._hanging += 1
                    return None
                document = sent
                status = int(task.behaviours.get("exit", 0))
            except JobFailed as failed:
                status, message = failed.status, str(failed)
            except (OSError, TemplateError, ValueError) as error:
                if isinstance(error, OSError) and no_space(error):
                    raise
                log.warning("%s: %s", task.result_name, error)
                status, message = ERR_RESULT_START, f"couldn't start app: {error}"
            return Report(
                Outcome.CLIENT_ERROR if message else Outcome.SUCCESS,
                status,
                ended.elapsed_time,
                ended.cpu_time,
                _stderr(stderr, message, task, self._client_version),
                document,
            )

    def _kept_slot(self, task: Task) -> Path:
        """Return the slot in which a container job has its inputs, and goes on after a restart."""
        return self._usual.with_name(kept_name(task.result_id))

    @property
    def _goes_on(self) -> bool:
        return self._slot.directory != self._usual

    @property
    def _client_version(self) -> str:
        return CLIENTS[WITHOUT if self._containers.found is None else WITH]

    def _run_app(
        self, task: Task, stderr: BinaryIO, files: Sequence[OutputFileInfo]
    ) -> ProcessEnd | None:
        """Bring the inputs and run the app."""
        workunit = read_workunit(task.xml_doc)
        if "<" in workunit.stored_command_line:
            # A real client refuses the scheduler's whole reply, and the job hangs for good.
            raise JobFailed(
                ERR_RESULT_START,
                "Can't parse workunit in scheduler reply: the command line contains a <",
            )
        if self._goes_on:
            linked = sum(file.nbytes or 0 for file in workunit.files if not file.copy_file)
        else:
            linked = sum(bring(self._core, file, self._slot) for file in workunit.files)
        watch = LimitWatch(task, self._slot, linked)
        crash_in = [file.open_name for file in files] if "crash" in task.behaviours else []
        command = self._command(task, workunit.command_line)
        if task.in_container:
            ended = self._in_container(
                task, workunit, command[1:], outputs=files, stderr=stderr, watch=watch
            )
        else:
            ended = execute(command, self._slot, stderr, watch, stop=self._stop, crash_in=crash_in)
        return None if ended is None else self._made_wrong(ended, task, watch)

    def _in_container(
        self,
        task: Task,
        workunit: WorkunitDocument,
        arguments: Sequence[str],
        *,
        outputs: Sequence[OutputFileInfo],
        stderr: BinaryIO,
        watch: LimitWatch,
    ) -> ProcessEnd | None:
        """Run a job in a container; what is only linked into the slot is not in there."""
        engine = self._containers.engine()
        if engine is None:
            raise JobFailed(ERR_RESULT_START, "couldn't start app: there is no container engine")
        if not self._goes_on:
            for file in workunit.files:
                if not file.copy_file:
                    self._slot.link_file(file.open_name, f"../../projects/{file.name}")
            self._slot.directory = self._slot.directory.rename(self._kept_slot(task))
        wrapper = DockerWrapper(
            self._containers,
            engine,
            ContainerJob(
                engine.name,
                self._containers.project,
                task.result_name.rpartition("_")[0],
                task.result_name,
                workunit.avg_ncpus or 1.0,
            ),
            self._slot,
            stderr=stderr,
            watch=watch,
            stop=self._stop,
            cancelled=lambda: self._scheduler.is_cancelled(task.result_id),
        )
        ended = wrapper.run(arguments)
        if ended is not None:
            for output in outputs:
                made = self._slot.output(output.open_name)
                if made is not None and not output.copy_file:
                    # It is elsewhere than where the client looks for it.
                    self._slot.put_aside(made, output.name)
        return ended

    def _made_wrong(self, ended: ProcessEnd, task: Task, watch: LimitWatch) -> ProcessEnd | None:
        """Change how the app ended, if that was set; None if this host is stopped meanwhile."""
        wrong = task.behaviours
        if ended.exceeded is None and "slow" in wrong:
            # A moment over the limit is enough.
            elapsed = min(ended.elapsed_time * wrong["slow"], task.time_limit + 1e-3)
            if self._stop.wait(max(elapsed - ended.elapsed_time, 0.0)):
                return None
            ended = replace(ended, elapsed_time=elapsed, exceeded=watch.check_time(elapsed))
        if ended.status == ended.signal == 0:
            # An app may have written its outputs and ended before anybody looks.
            crashes = signal.SIGSEGV if "crash" in wrong else 0
            ended = replace(ended, signal=int(crashes), status=int(wrong.get("fail", 0)))
        return ended

    def _command(self, task: Task, command_line: str) -> list[str]:
        words = [fill_in(word, self._core.directory) for word in task.command]
        return words + split_command_line(command_line)


def kept_name(result_id: int) -> str:
    """Return the name of the slot of a container job that goes on after a restart."""
    return f"result-{result_id}"


def clean_up(slots: Path, unfinished: Iterable[int] = ()) -> None:
    """End the processes that a killed project has left running in its slots; remove the slots.

    ``unfinished`` are the ids of results that hosts have: slots in which one can go on stay.
    """
    kept = set(map(kept_name, unfinished))
    for directory in slots.iterdir():
        ProcessFamily(directory.resolve()).kill()
        if directory.name not in kept:
            _remove(Slot(directory))


def _remove(slot: Slot) -> None:
    try:
        slot.remove()
    except OSError as error:
        log.warning("%s cannot be removed: %s", slot.directory, error)


def _check_end(ended: ProcessEnd) -> None:
    if ended.exceeded is not None:
        raise ended.exceeded
    if ended.signal:
        raise JobFailed(ended.signal, f"process got signal {ended.signal}")
    if ended.status:
        # The client shows the status unchanged, in hex, and as a signed byte.
        raise JobFailed(
            ended.status,
            f"process exited with code {ended.status} (0x{ended.status:x}, {ended.status - 256})",
        )


def _stderr(file: BinaryIO | None, message: str, task: Task, client_version: str) -> str:
    """Return the end of the job's stderr, wrapped as the client sends it.

    It is read from the file that the app was given: the one in the slot may now be a link.
    """
    tail = b""
    if file is not None:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _STDERR_TAIL))
        tail = file.read()
    text = tail.decode("utf-8", "replace").replace("\0", "?")
    told = ", ".join(str(Behaviour(kind, value)) for kind, value in task.behaviours.items())
    if told:
        text += f"\nthis host was told: {told}\n"
    said = f"<message>\n{message}\n</message>\n" if message else ""
    return (
        f"<core_client_version>{client_version}</core_client_version>\n<![CDATA[\n{said}"
        f"<stderr_txt>\n{text}\n</stderr_txt>\n]]>\n"
    )
