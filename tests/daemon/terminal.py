"""The console on a pseudo-terminal."""

import os
import time

import pexpect

from boinc_gahp.daemon.console import PROMPT
from tests.cli.conftest import COMMAND
from tests.daemon.screen import WIDTH, Screen
from tests.helpers import hang_up

TIMEOUT = 60.0

_CURSOR_POSITION_WANTED = "\x1b[6n"


class Terminal:
    """A person's terminal with the console in it; a context manager.

    Attributes:
        raw: everything that the console has printed, with escapes.
        screen: what that looks like.
        greeting: what was printed before the first prompt, for whoever waits for it to set.
    """

    greeting = ""

    def __init__(self, arguments, environ):
        self.raw = ""
        self.screen = Screen()
        self._seen = 0
        self._child = pexpect.spawn(
            COMMAND,
            arguments,
            dimensions=(24, WIDTH),
            env={**os.environ, "TERM": "xterm", **environ},
            encoding="utf-8",
            timeout=TIMEOUT,
        )

    def __enter__(self):
        return self

    def __exit__(self, *_exc):
        hang_up(self._child)

    @property
    def text(self):
        """What stands on the screen from the line on at which the last thing was seen."""
        return self.screen.text(self._seen)

    def see(self, *texts):
        """Wait until all of ``texts`` stand there; return all that does, and go past it."""
        deadline = time.monotonic() + TIMEOUT
        while not all(text in self.text for text in texts):
            assert time.monotonic() < deadline, f"{texts} not in {self.text!r}"
            assert self._read(), f"the console ended before {texts} came: {self.text!r}"
        text = self.text
        # The cursor may be further down at this moment, where the line below the prompt is painted.
        row = self.screen.row
        while row > self._seen and not all(text in self.screen.text(row) for text in texts):
            row -= 1
        self._seen = min(self.screen.row, row + 1)
        return text

    def see_prompt(self):
        """Wait for the prompt."""
        return self.see(PROMPT.strip())

    def type(self, text):
        """Press keys."""
        self._child.send(text)

    def enter(self, line):
        """Type a line, and the return key."""
        self.type(f"{line}\r")

    def leave(self):
        """Press Ctrl-D until the console ends: between two prompts nobody takes it."""
        deadline = time.monotonic() + TIMEOUT
        self.type("\x04")
        while all(self._read() for _ in range(5)):
            assert time.monotonic() < deadline, f"the console goes on: {self.text!r}"
            self.type("\x04")
        return self.end()

    def end(self):
        """Wait until the console ends by itself; return its exit status."""
        deadline = time.monotonic() + TIMEOUT
        while self._read():
            assert time.monotonic() < deadline, f"the console goes on: {self.text!r}"
        self._child.close()
        assert self._child.signalstatus is None
        return self._child.exitstatus

    def kill(self, number):
        """Send the console a signal."""
        self._child.kill(number)

    def _read(self):
        """Read what is there or comes soon; False at the end of output."""
        try:
            data = self._child.read_nonblocking(65536, 0.1)
        except pexpect.TIMEOUT:
            return True
        except pexpect.EOF:
            return False
        self.raw += data
        self.screen.feed(data)
        for _ in range(data.count(_CURSOR_POSITION_WANTED)):
            self.type("\x1b[1;1R")
        return True
