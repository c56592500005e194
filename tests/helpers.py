"""What tests of every room share."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


def wait_for(condition: Callable[[], T], what: str, timeout: float = 20.0) -> T:
    """Return the first true value of ``condition()``; fail with ``what`` after ``timeout`` s."""
    pause = threading.Event()
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout:g} s: {what}")
        pause.wait(0.02)
