"""One request at a time: threads that want the same answer share one request for it."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

K = TypeVar("K", bound="Hashable")
V = TypeVar("V")


@dataclass(slots=True, eq=False)
class _Flight:
    """A request that is under way, or that would follow if the one it waits for failed.

    Attributes:
        until: the time at which it ends, on ``time.monotonic()``.
        sent_at: when it was sent, on the cache's own clock.
        landed: whether it has its answer, or its error.
        error: why it has no answer.
        waiting: the requests of the callers that wait for this one.
        successor: the one of them that is sent instead, if this one has failed.
    """

    until: float
    sent_at: int = 0
    landed: bool = False
    error: BaseException | None = None
    waiting: list[_Flight] = field(default_factory=list)
    successor: _Flight | None = None


class SingleFlight(Generic[K, V]):
    """A cache of answers; one thread at a time asks for each, and the least recently used go.

    Args:
        capacity: the largest sum of the answers' weights (the newest answer is always kept).
        weight: returns an answer's weight, which never changes.
    """

    def __init__(self, capacity: int, weight: Callable[[V], int] = lambda _: 1) -> None:
        self._capacity = capacity
        self._weight = weight
        self._changed = threading.Condition()
        #: Answers, and when each was sent, on the cache's own clock.
        self._answers: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._flights: dict[K, _Flight] = {}
        self._clock = 0
        self._total = 0

    def get(
        self, key: K, ask: Callable[[], V], good: Callable[[V], bool], until: float = math.inf
    ) -> V:
        """Return an answer that is ``good``, or one that was asked for after this call began.

        An error of ``ask`` is raised in every thread that waited for that answer, so that they do
        not all ask a project that is down, one after the other. But no caller fails because another
        had less time: of the callers with more time, the one with the most asks again, for all.

        Args:
            key: the key of the answer.
            ask: gets an answer; returns or raises by ``until``.
            good: tells whether an older answer will do.
            until: ``time.monotonic()`` up to which this caller can wait.
        """
        mine = _Flight(until)
        with self._changed:
            arrived = self._tick()
            while True:
                answer = self._answers.get(key)
                if answer is not None and (answer[1] > arrived or good(answer[0])):
                    self._answers.move_to_end(key)
                    return answer[0]
                flight = self._flights.setdefault(key, mine)
                while flight is not mine and self._wait(flight, mine):
                    if flight.error is None:
                        break
                    if flight.successor is None or until <= flight.until:
                        raise flight.error
                    flight = flight.successor
                if flight is mine or not flight.landed:
                    break
            mine.sent_at = self._tick()
        if flight is not mine:
            return ask()  # this caller's time is up: this raises the error that says so
        try:
            value = ask()
        except BaseException as error:
            mine.error = error
            self._land(key, mine)
            raise
        with self._changed:
            self._keep(key, value, mine.sent_at)
        self._land(key, mine)
        return value

    def find(self, wanted: Callable[[V], bool]) -> K | None:
        """Return the key of a kept answer that is ``wanted``, the most recently used first."""
        with self._changed:
            for key in reversed(self._answers):
                if wanted(self._answers[key][0]):
                    return key
        return None

    def forget(self, key: K) -> None:
        """Drop an answer."""
        with self._changed:
            self._drop(key)

    def _tick(self) -> int:
        self._clock += 1
        return self._clock

    def _wait(self, flight: _Flight, mine: _Flight) -> bool:
        """Wait for a request's answer or error; return whether it came in time."""
        left = None if math.isinf(mine.until) else max(0.0, mine.until - time.monotonic())
        flight.waiting.append(mine)
        try:
            return self._changed.wait_for(lambda: flight.landed, left)
        finally:
            flight.waiting.remove(mine)

    def _land(self, key: K, flight: _Flight) -> None:
        with self._changed:
            flight.landed = True
            del self._flights[key]
            longest = max(flight.waiting, key=lambda waiting: waiting.until, default=flight)
            if flight.error is not None and longest.until > flight.until:
                # The thread of that request will find that it is its turn.
                flight.successor = self._flights[key] = longest
            self._changed.notify_all()

    def _keep(self, key: K, value: V, sent_at: int) -> None:
        self._drop(key)
        self._answers[key] = value, sent_at
        self._total += self._weight(value)
        while self._total > self._capacity and len(self._answers) > 1:
            self._drop(next(iter(self._answers)))

    def _drop(self, key: K) -> None:
        answer = self._answers.pop(key, None)
        if answer is not None:
            self._total -= self._weight(answer[0])
