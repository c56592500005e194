"""The client of a GAHP conversation: starts the daemon and talks to it as a gridmanager does."""

from __future__ import annotations

import queue
import subprocess
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from boinc_gahp.errors import GahpError
from boinc_gahp.gahp import LineSplitter, decode, join, split
from boinc_gahp.logs import redact
from boinc_gahp.text import shorten
from boinc_gahp.threads import start

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

PREFIX = "GAHP:"

#: Seconds within which a gridmanager needs a Return Line (``gahp.rst``, "Aborts", 2).
RETURN_LINE_TIMEOUT = 20.0
#: Seconds within which a daemon has to end after its stdin was closed.
STOP_TIMEOUT = 5.0


class ConversationError(GahpError):
    """The daemon did not answer according to the protocol, or not at all."""

    code = "BG-CONVERSATION"


@dataclass(frozen=True, slots=True)
class ConversationLine:
    """One line of the conversation; an authenticator in it is masked."""

    who: Literal["client", "daemon"]
    line: str


@dataclass(slots=True)
class _Unread:
    """What the reading thread has received and nobody has taken yet."""

    lines: queue.Queue[bytes | None] = field(default_factory=queue.Queue)
    ready: threading.Event = field(default_factory=threading.Event)


class Gahp:
    """A daemon on pipes; a context manager that stops it.

    Args:
        command: the program and its arguments.
        environment: its environment variables.
        directory: its working directory.

    Attributes:
        conversation: all lines in both directions.
    """

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], directory: str
    ) -> None:
        self.conversation: list[ConversationLine] = []
        self._next_id = 2  # a gridmanager begins with it, too
        self._prefix = ""
        self._unread = _Unread()
        self._stopped = False
        try:
            # A session of its own: Ctrl-C at the keyboard goes to us, and we stop the daemon.
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=dict(environment),
                cwd=directory,
                start_new_session=True,
            )
        except OSError as error:
            raise ConversationError(f"{command[0]} cannot be started: {error.strerror}") from error
        self._errors = bytearray()
        self._readers = [
            start(self._read_lines, "daemon's stdout"),
            start(self._read_errors, "daemon's stderr"),
        ]

    def __enter__(self) -> Gahp:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop the daemon as a gridmanager does: by closing its stdin."""
        self.stop()

    def begin(self) -> None:
        """Read the banner, and send a gridmanager's first commands.

        Raises:
            ConversationError: there is no daemon, or no banner.
        """
        banner = self._line(RETURN_LINE_TIMEOUT)
        if not banner.startswith(b"$"):
            raise ConversationError(f"the daemon's banner is {decode(banner)!r}")
        self.ask("COMMANDS")
        self.ask("RESPONSE_PREFIX", PREFIX)
        self._prefix = PREFIX
        self.ask("ASYNC_MODE_ON")

    def ask(self, *words: str) -> list[str]:
        """Send a command; return the arguments of its Return Line.

        Raises:
            ConversationError: the Return Line does not come in time, or is not ``S``.
        """
        self._send(words)
        answer = split(self._return_line())
        if answer[0] != "S":
            raise ConversationError(f"{words[0]} was answered with {' '.join(answer)}")
        return answer[1:]

    def request(self, command: str, *words: str) -> int:
        """Send an asynchronous command; return its request id, with which the result will begin."""
        request_id = self._next_id
        self._next_id += 1
        self.ask(command, str(request_id), *words)
        return request_id

    def results(self, timeout: float) -> list[list[str]]:
        """Return the new results, each beginning with its request id.

        Waits up to ``timeout`` seconds for the daemon to announce some.
        """
        deadline = time.monotonic() + timeout
        while not self._unread.ready.is_set():
            left = deadline - time.monotonic()
            if left <= 0:
                return []
            if not self._unread.ready.wait(min(left, 0.5)) and self._process.poll() is not None:
                raise ConversationError(f"the daemon has ended{self._last_words()}")
        self._unread.ready.clear()
        [count] = self.ask("RESULTS")
        return [split(self._return_line()) for _ in range(int(count))]

    def stop(self) -> None:
        """End the conversation; kill a daemon that does not end."""
        if self._stopped:
            return
        self._stopped = True
        process = self._process
        if process.stdin is not None:
            with suppress(OSError):
                process.stdin.close()
        for harder in (process.terminate, process.kill):
            try:
                process.wait(STOP_TIMEOUT)
            except subprocess.TimeoutExpired:
                harder()
        process.wait()
        for reader in self._readers:
            reader.join(STOP_TIMEOUT)
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()

    def _send(self, words: Sequence[str]) -> None:
        line = join(words)
        self.conversation.append(ConversationLine("client", redact(decode(line))))
        if self._process.stdin is None:
            raise ConversationError("the daemon has no stdin")
        try:
            self._process.stdin.write(line + b"\r\n")
            self._process.stdin.flush()
        except OSError:
            raise ConversationError(f"the daemon has ended{self._last_words()}") from None

    def _return_line(self) -> bytes:
        line = self._line(RETURN_LINE_TIMEOUT)
        if not line.startswith(self._prefix.encode()):
            raise ConversationError(f"a line without the prefix came: {shorten(decode(line))}")
        return line[len(self._prefix) :]

    def _line(self, timeout: float) -> bytes:
        try:
            line = self._unread.lines.get(timeout=timeout)
        except queue.Empty:
            raise ConversationError(f"the daemon did not answer within {timeout:g} s") from None
        if line is None:
            self._unread.lines.put(None)
            raise ConversationError(f"the daemon has ended{self._last_words()}")
        return line

    def _read_lines(self) -> None:
        splitter = LineSplitter()
        pipe = self._process.stdout
        while pipe is not None and (data := pipe.read1()):  # type: ignore[attr-defined]
            for line in splitter.feed(data):
                if not isinstance(line, bytes):
                    continue
                self.conversation.append(ConversationLine("daemon", redact(decode(line))))
                if line in {b"R", f"{PREFIX}R".encode()}:
                    self._unread.ready.set()
                else:
                    self._unread.lines.put(line)
        self._unread.lines.put(None)

    def _read_errors(self) -> None:
        pipe = self._process.stderr
        while pipe is not None and (data := pipe.read1()):  # type: ignore[attr-defined]
            self._errors += data

    def _last_words(self) -> str:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(STOP_TIMEOUT)
        self._readers[1].join(STOP_TIMEOUT)
        words = shorten(redact(decode(bytes(self._errors[-4000:]))))
        return f": {words}" if words else f" (status {self._process.returncode})"
