"""What signals do that end a command from outside."""

from __future__ import annotations

import signal
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


@contextmanager
def until_stopped() -> Iterator[threading.Event]:
    """Give an event that Ctrl-C or SIGTERM sets; what is under way then ends in order."""
    stop = threading.Event()
    with _handled((signal.SIGINT, signal.SIGTERM), lambda *_: stop.set()):
        yield stop


@contextmanager
def orderly() -> Iterator[None]:
    """Make a signal that ends the command clean up the terminal and directories, as Ctrl-C does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ends = (signal.SIGTERM, signal.SIGHUP)
    # Signals that were ignored at the start stay ignored: nohup and a shell's jobs rely on it.
    mine = [each for each in ends if signal.getsignal(each) is not signal.SIG_IGN]
    with _handled(mine, lambda number, _: sys.exit(128 + number)):
        yield


@contextmanager
def _handled(
    numbers: Sequence[signal.Signals], handler: Callable[[int, object], object]
) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)
