"""What interrupts the loop's wait: results that are there, and signals to stop."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

#: All of them mean: stop now (the gridmanager sends SIGTERM; a terminal the others).
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Wakeup:
    """A pipe to oneself.

    Signals set a flag and make the pipe readable, nothing more: an exception out of a signal's
    handler would strike anywhere, in the middle of a write too.
    """

    def __init__(self) -> None:
        self.fd, self._write_fd = os.pipe()
        os.set_blocking(self.fd, False)
        os.set_blocking(self._write_fd, False)
        self.stopped = False

    def notify(self) -> None:
        """Make the loop look for results; for any thread."""
        with suppress(BlockingIOError):  # the pipe is full: then it will look anyway
            os.write(self._write_fd, b"\0")

    def clear(self) -> None:
        """Take note that the loop looks."""
        with suppress(BlockingIOError):
            os.read(self.fd, 4096)

    def catch_signals(self) -> None:
        """Make the signals that mean "stop" end the loop; for the main thread."""
        for number in STOP_SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup sets it
                signal.signal(number, self._on_signal)
        signal.set_wakeup_fd(self._write_fd, warn_on_full_buffer=False)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self.stopped = True
