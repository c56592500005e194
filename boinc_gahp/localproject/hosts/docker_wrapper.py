"""What BOINC's docker_wrapper does, in place of a program: runs a job in a container.

It builds the image if it is not there, creates a container with the slot mounted in it, starts it,
waits, keeps its log, and removes it (``containers.rst``, "What the wrapper does"). The real one
looks every 10 seconds whether the container has ended; this one waits for it.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import IO, TYPE_CHECKING, BinaryIO

from boinc_gahp.backoff import Backoff
from boinc_gahp.client_exits import EXIT_ABORTED_BY_PROJECT
from boinc_gahp.localproject.errors import JobFailed
from boinc_gahp.localproject.hosts.engine import remove_container
from boinc_gahp.localproject.hosts.execution import ProcessEnd
from boinc_gahp.localproject.hosts.wrapper_commands import (
    ContainerJob,
    image_is_listed,
    read_config,
    read_options,
)

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Sequence

    from boinc_gahp.localproject.hosts.engine import Containers, Engine
    from boinc_gahp.localproject.hosts.execution import LimitWatch
    from boinc_gahp.localproject.hosts.slot import Slot

_BACKOFF = Backoff(0.01, 0.1, factor=1.3)
#: Seconds between two questions whether the job was cancelled.
_ASK_EVERY = 1.0
#: Seconds that an interrupted build has for its end.
_TIDY = 5.0
#: How podman looks whether a container has ended; docker waits without looking.
_WAIT = {"podman": ("wait", "--interval", "50ms"), "docker": ("wait",)}
#: The wrapper's last words about a command that has failed; its exit status is 1.
_FAILED = {
    "build": "build_image() failed: -1",
    "create": "create_container() failed: -1",
    "start": "start failed: -1",
}
#: What the project's server says to a client that has a job of a cancelled workunit.
_ABORTED = "aborted by project - no longer usable"


class _Ended(Exception):
    """The job is ended before its container.

    ``failure`` None: the host is stopped; the job begins anew in its slot when it starts again.
    """

    def __init__(self, failure: JobFailed | None = None) -> None:
        super().__init__(failure)
        self.failure = failure


@dataclass(slots=True)
class DockerWrapper:
    """Runs one job in a container.

    Attributes:
        containers: what all hosts share.
        engine: that of the machine.
        job: names, and what the client has reserved; ``job.toml`` and options are read here.
        slot: with the job's files.
        stderr: gets what the wrapper, the engine and the container write.
        watch: the job's bounds; that of memory is not enforced.
        stop: ends the container; :meth:`run` then returns None.
        cancelled: asks the server whether it no longer wants the job.
    """

    containers: Containers
    engine: Engine
    job: ContainerJob
    slot: Slot
    stderr: BinaryIO
    watch: LimitWatch
    stop: threading.Event
    cancelled: Callable[[], bool]
    _begin: float = field(default_factory=time.monotonic)
    _ask: float = field(default_factory=lambda: time.monotonic() + _ASK_EVERY)

    def run(self, arguments: Sequence[str]) -> ProcessEnd | None:
        """Run the job; None if the host was stopped before its end.

        Args:
            arguments: the wrapper's command line.
        """
        status = 0
        exceeded: JobFailed | None = None
        self._say("docker_wrapper (imitated) starting")
        try:
            options = read_options(arguments)
            path = self.slot.directory / options.config
            config = read_config(path.read_bytes() if path.is_file() else b"")
            self.job = replace(self.job, config=config, options=options)
            self._get_image()
            status = self._in_container()
        except _Ended as ended:
            exceeded = ended.failure
            if exceeded is None:
                return None
        except JobFailed as error:
            status = error.status
            self._say(str(error))
        return ProcessEnd(
            status=status,
            elapsed_time=time.monotonic() - self._begin,
            exceeded=exceeded or self.watch.check_disk(),
        )

    def _get_image(self) -> None:
        self._say(f"creating container {self.job.container}")
        with self.containers.building(self.job.image, self.stop) as mine:
            if not mine:
                raise _Ended
            listing = self._command("images", "image_exists() failed: -1")
            if not image_is_listed(listing, self.job.image):
                self._say("building image")
                self.containers.built(self.job.image)
                self._checked("build", self.job.build())

    def _in_container(self) -> int:
        """Make the container, run it, and clean up; return the job's exit status."""
        try:
            try:
                self._checked("create", self.job.create())
                self._say("starting container")
                self._checked("start", f"start {self.job.container}")
                status = self._end_of_container()
            except JobFailed as error:
                self._say(str(error))
                status = error.status
            self._clean_up()
        except BaseException:
            remove_container(self.engine, self.job.container)
            if not (self.job.config.image_name or self.stop.is_set()):
                self.engine.run("image", "rm", self.job.image)
            raise
        return status

    def _end_of_container(self) -> int:
        """Wait for the container's end; return its exit status."""
        with tempfile.TemporaryFile() as output:
            command = [self.engine.name, *_WAIT[self.engine.name], self.job.container]
            self._wait(self._started(command, output))
            output.seek(0)
            words = output.read().split()
        try:
            return int(words[-1])
        except (IndexError, ValueError) as error:
            raise JobFailed(1, f"the container is gone: {words!r}") from error

    def _clean_up(self) -> None:
        """Write the container's log, which the real one, too, has twice; remove what was made."""
        with tempfile.TemporaryFile() as log:
            self._run(f"logs {self.job.container}", log)
            self._say("stderr from container:")
            log.seek(0)
            shutil.copyfileobj(log, self.stderr)
            self._say("stderr end")
        commands = [f"container rm {self.job.container}"]
        if not self.job.config.image_name:
            commands.append(f"image rm {self.job.image}")
        for command in commands:
            with tempfile.TemporaryFile() as output:
                self._run(command, output)

    def _checked(self, name: str, command: str) -> None:
        """Run a command of the engine's; it fails as the wrapper sees it.

        Raises:
            JobFailed: its exit status is not 0, or it has written the word Error.
        """
        output = self._command(command, f"{name} command failed: -1\n{_FAILED[name]}")
        if "Error" in output:
            lines = "".join(f"   {line}" for line in output.splitlines(keepends=True))
            raise JobFailed(1, f"Error output from '{name}' command:\n{lines}{_FAILED[name]}")

    def _command(self, command: str, failed: str) -> str:
        """Run a command of the engine's, and return its output.

        Raises:
            JobFailed: its exit status is not 0.
        """
        with tempfile.TemporaryFile() as output:
            if self._run(command, output):
                raise JobFailed(1, failed)
            output.seek(0)
            return output.read().decode("utf-8", "replace")

    def _run(self, command: str, output: IO[bytes]) -> int:
        """Run a command of the engine's in the host's shell, in the slot; return its status.

        As with the real one, what the engine has said is in the job's stderr only if the command
        succeeds; what the shell says always is.
        """
        self._say(f"running docker command: {command}\nprogram: {self.engine.name}")
        process = self._started(["sh", "-c", self.job.in_shell(command)], output)
        if command.startswith("build "):
            status = self._wait(process)
        else:
            # What is killed in the middle of these leaves something that nothing removes.
            status = process.wait()
            self._check()
        if status:
            self._say("command failed: Error -1")
        else:
            self._say("command output:")
            output.seek(0)
            shutil.copyfileobj(output, self.stderr)
            self.stderr.flush()
        return status

    def _started(self, command: Sequence[str], output: IO[bytes]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            command,
            cwd=self.slot.directory,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=self.stderr,
            start_new_session=True,
        )

    def _wait(self, process: subprocess.Popen[bytes]) -> int:
        """Wait for a command; return its status.

        Raises:
            _Ended: the host is stopped, or the job exceeds a bound, or was cancelled.
        """
        looks = 0
        try:
            while process.poll() is None:
                self._check()
                if not _BACKOFF.wait(looks, stop=self.stop):
                    raise _Ended
                looks += 1
        finally:
            if process.poll() is None:
                _end(process)
        return process.returncode

    def _check(self) -> None:
        if self.stop.is_set():
            raise _Ended
        now = time.monotonic()
        exceeded = self.watch.check_slot(now - self._begin)
        if exceeded is None and now >= self._ask:
            self._ask = now + _ASK_EVERY
            if self.cancelled():
                exceeded = JobFailed(EXIT_ABORTED_BY_PROJECT, _ABORTED)
        if exceeded is not None:
            raise _Ended(exceeded)

    def _say(self, text: str) -> None:
        self.stderr.write(f"{text}\n".encode("utf-8", "replace"))
        self.stderr.flush()


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a command and what it has started; it gets some time to tidy up."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_TIDY)
            return
    process.wait()
