"""Interrupts the loop's wait: for new results, and for signals to stop."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

#: All of them mean: stop now (the gridmanager sends SIGTERM, a terminal the others).
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Wakeup:
    """A pipe from the process to itself.

    Signals only set a flag and make the pipe readable: an exception from a signal handler could
    strike anywhere, even in the middle of a write.
    """

    def __init__(self) -> None:
        self.fd, self._write_fd = os.pipe()
        os.set_blocking(self.fd, False)
        os.set_blocking(self._write_fd, False)
        self.stopped = False
        self._notified = False

    def notify(self) -> None:
        """Make the loop look for results; any thread may call it, after it has left its result."""
        if self._notified:
            return  # the loop has not looked yet: it will find this result, too
        self._notified = True
        with suppress(BlockingIOError):  # the pipe is full: then the loop will look anyway
            os.write(self._write_fd, b"\0")

    def clear(self) -> None:
        """Remember that the loop looks now; it looks after this call."""
        with suppress(BlockingIOError):
            os.read(self.fd, 4096)
        self._notified = False

    def catch_signals(self) -> None:
        """Make the signals that mean "stop" end the loop; call it in the main thread."""
        for number in STOP_SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup sets it
                signal.signal(number, self._on_signal)
        signal.set_wakeup_fd(self._write_fd, warn_on_full_buffer=False)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self.stopped = True
