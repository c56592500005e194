"""The loop between stdin and stdout: reads, answers, writes, and never waits for anything else."""

from __future__ import annotations

import errno
import os
import select
import time
from collections import deque
from typing import TYPE_CHECKING

from boinc_gahp.gahp.lines import LineSplitter

if TYPE_CHECKING:
    from boinc_gahp.daemon._engine import Engine
    from boinc_gahp.daemon.main import Wakeup

#: Bytes read from stdin at a time: what a pipe holds. For more, each read would map memory anew.
READ_SIZE = 1 << 16
#: With this many bytes of output waiting, no more lines are read: the client has to read first.
MAX_BACKLOG = 1 << 20
#: Seconds that a client has to read the last output after it has closed stdin.
LAST_OUTPUT = 5.0

_GONE = select.POLLERR | select.POLLHUP | select.POLLNVAL


class Loop:
    """Owns stdin and stdout: this thread alone touches them.

    Writes never block, although the pipe is not set to non-blocking (that would affect every
    process that has it open): a pipe that poll calls writable takes PIPE_BUF bytes. So when a
    client does not read its results, the loop only stops reading lines; it still sees results,
    signals and end of input.
    """

    def __init__(self, engine: Engine, wakeup: Wakeup, stdin_fd: int, stdout_fd: int) -> None:
        self._engine = engine
        self._wakeup = wakeup
        self._stdin = stdin_fd
        self._stdout = stdout_fd
        self._splitter = LineSplitter()
        self._output = bytearray()
        self._written = 0
        # Ended jobs, by the number of written bytes at which HTCondor has been told of them.
        self._marks: deque[tuple[int, tuple[str, ...]]] = deque()
        self._reading = True
        self._ended = False

    def run(self) -> None:
        """Answer lines until QUIT, end of input, a signal, or until nobody reads stdout."""
        poll = select.poll()
        poll.register(self._wakeup.fd, select.POLLIN)
        poll.register(self._stdin, select.POLLIN)
        while not (self._ended or self._wakeup.stopped):
            poll.register(self._stdout, select.POLLOUT if self._output else 0)
            self._watch_stdin(poll)
            self._turn(dict(poll.poll()))
        self._write_the_rest()

    def _watch_stdin(self, poll: select.poll) -> None:
        """Watch stdin unless output piles up; not after its end, which poll always reports."""
        reading = len(self._output) < MAX_BACKLOG
        if reading and not self._reading:
            poll.register(self._stdin, select.POLLIN)
        elif self._reading and not reading:
            poll.unregister(self._stdin)
        self._reading = reading

    def _turn(self, ready: dict[int, int]) -> None:
        if self._wakeup.fd in ready:
            self._wakeup.clear()
            self._output += self._engine.announce()
        if ready.get(self._stdout, 0):
            self._write(ready[self._stdout])
        if ready.get(self._stdin, 0):
            self._read()

    def _read(self) -> None:
        try:
            data = os.read(self._stdin, READ_SIZE)
        except BlockingIOError:
            return
        except OSError:  # a terminal that was closed
            data = b""
        if not data:
            # A line without its end is not carried out: the more important half may be missing.
            self._ended = True
            return
        self._splitter.max_line = self._engine.max_line
        for line in self._splitter.feed(data):
            reply = self._engine.handle(line)
            self._output += reply.output
            if reply.ended:
                self._marks.append((self._written + len(self._output), reply.ended))
            if self._engine.conversation.quitting or self._wakeup.stopped:
                self._ended = True
                return

    def _write(self, events: int) -> None:
        if events & _GONE:
            self._drop_output()
            return
        try:
            written = os.write(self._stdout, self._output[: select.PIPE_BUF])
        except BlockingIOError:
            return
        except OSError as error:
            if error.errno not in {errno.EPIPE, errno.EIO, errno.EBADF, errno.ECONNRESET}:
                raise
            self._drop_output()
            return
        del self._output[:written]
        self._written += written
        while self._marks and self._marks[0][0] <= self._written:
            self._engine.lines_written(self._marks.popleft()[1])

    def _drop_output(self) -> None:
        """Remember that nobody reads stdout any more."""
        self._output.clear()
        self._marks.clear()
        self._ended = True

    def _write_the_rest(self) -> None:
        """Write what is due to a client that has closed stdin; after a signal, what it takes."""
        deadline = time.monotonic() + (0.0 if self._wakeup.stopped else LAST_OUTPUT)
        poll = select.poll()
        poll.register(self._stdout, select.POLLOUT)
        poll.register(self._wakeup.fd, select.POLLIN)
        while self._output:
            left = deadline - time.monotonic()
            ready = dict(poll.poll(max(0, left) * 1000))
            if self._wakeup.fd in ready:
                self._wakeup.clear()
                deadline = 0.0 if self._wakeup.stopped else deadline
            if self._stdout in ready:
                self._write(ready[self._stdout])
            elif left <= 0:
                return
