"""A daemon at the other end of pipes."""

import os
import select
import subprocess
import sys
import time

from boinc_gahp.gahp.lines import LineSplitter

TIMEOUT = 60.0
STAND_IN = (sys.executable, "-W", "error", "-m", "tests.daemon.serve_stand_in")


class HasEnded(AssertionError):
    """The daemon has ended, and was expected to answer."""


class Daemon:
    """A process that talks GAHP; ended, by force if need be, at the end of the with block."""

    def __init__(self, command=STAND_IN, *, environ=None, cwd=None, timeout=TIMEOUT):
        self.started = time.monotonic()
        self._timeout = timeout
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=None if environ is None else dict(environ),
            cwd=cwd,
        )
        self.stdin = self.process.stdin.fileno()
        self.stdout = self.process.stdout.fileno()
        #: The end of what it has written.
        self.output = b""
        self._splitter = LineSplitter()
        self._lines = []

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate(timeout=TIMEOUT)

    def send(self, data):
        """Write all of ``data``."""
        left = memoryview(data)
        while left:
            try:
                left = left[os.write(self.stdin, left) :]
            except BrokenPipeError:
                raise HasEnded("end of input") from None

    def line(self):
        """Return the next line of output."""
        deadline = time.monotonic() + self._timeout
        while not self._lines:
            ready = select.select([self.stdout], [], [], max(0, deadline - time.monotonic()))[0]
            assert ready, f"no line within {self._timeout:g} s; so far: {self.output!r}"
            data = os.read(self.stdout, 65536)
            if not data:
                raise HasEnded(f"end of output; so far: {self.output!r}")
            self.output = (self.output + data)[-500:]
            self._lines = self._splitter.feed(data)
        return self._lines.pop(0)

    def ask(self, line):
        """Send a line; return the next line of output."""
        self.send(line + b"\r\n")
        return self.line()

    def results(self):
        """Ask for results; return the Result Lines. For a conversation without ``R``."""
        status, _, number = self.ask(b"RESULTS").rpartition(b" ")
        assert status.endswith(b"S")
        return [self.line() for _ in range(int(number))]

    def await_results(self, number):
        """Ask for results until there are so many."""
        results = []
        deadline = time.monotonic() + TIMEOUT
        while len(results) < number:
            assert time.monotonic() < deadline, f"only {results}"
            results += self.results()
        return results

    def end_input(self):
        """Close its stdin."""
        self.process.stdin.close()

    def end(self):
        """Wait until it has ended; return exit status, output not read by lines, and stderr."""
        stdin, self.process.stdin = self.process.stdin, None  # communicate would close it
        try:
            output, errors = self.process.communicate(timeout=TIMEOUT)
        finally:
            stdin.close()
        return self.process.returncode, output, errors
