"""Retries: which errors are retried, how often, and with which pauses."""

from __future__ import annotations

import http.client
import logging
import time
from typing import TYPE_CHECKING, TypeVar

from boinc_gahp.backoff import Backoff
from boinc_gahp.errors import ProjectDown, ProtocolError, RpcError, TransportError
from boinc_gahp.rpc._foreign_errors import chain

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from boinc_gahp.rpc._table import Rpc

T = TypeVar("T")

log = logging.getLogger("boinc_gahp.rpc.retry")

#: The pauses between attempts of one RPC.
BACKOFF = Backoff(0.5, 20.0, jitter=(0.5, 1.0))
_MANY_RETRIES = 1_000
#: After HTTP 500, which is usually a PHP fatal error and would come again.
_FEW_RETRIES = 2


def allowed_retries(error: RpcError, rpc: Rpc) -> int:
    """Return how many more attempts to make after ``error``."""
    if not (rpc.repeatable or (isinstance(error, TransportError) and not error.may_be_running)):
        return 0
    if isinstance(error, TransportError):
        passing, mostly_not = error.passes, error.status == 500
    elif isinstance(error, ProtocolError):
        passing = error.cut and not (error.php_fatal and rpc.dies)
        mostly_not = error.php_fatal
    else:
        passing, mostly_not = isinstance(error, ProjectDown), False
    if not passing:
        return 0
    return _FEW_RETRIES if mostly_not else _MANY_RETRIES


def repeated(
    attempt: Callable[[], T],
    rpc: Rpc,
    total: float,
    until: float | None,
    closing: threading.Event,
) -> T:
    """Return the result of the first ``attempt()`` that succeeds; else raise the last error.

    Args:
        attempt: sends the RPC.
        rpc: decides which errors are retried.
        total: seconds for all attempts; 0: there is one.
        until: ``time.monotonic()`` until which to go on instead, if it is given.
        closing: ends a pause.
    """
    begun = time.monotonic()
    end = begun + total
    if until is not None and total:
        end = until
    tried = 0
    logged = False
    while True:
        try:
            return attempt()
        except RpcError as failed:
            error = failed
        pause = 0.0 if tried == 0 and dropped(error) else BACKOFF.seconds(tried)
        if tried >= allowed_retries(error, rpc):
            raise error
        if time.monotonic() + pause >= end:
            error.gave_up = total > 0
            raise error
        if pause and not logged:
            # For people who wait; the log has a line for every RPC anyway.
            log.debug("%s; trying again for up to %.0f s", error, end - begun)
            logged = True
        if closing.wait(pause):
            raise error
        tried += 1


def dropped(error: RpcError) -> bool:
    """Tell whether the server closed the connection instead of answering.

    This happens when the server closes an idle kept-alive connection just as a request is sent.
    """
    return isinstance(error, TransportError) and any(
        isinstance(link, (ConnectionResetError, BrokenPipeError, http.client.RemoteDisconnected))
        for link in chain(error)
    )
