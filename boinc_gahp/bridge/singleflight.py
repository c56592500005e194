"""One question at a time: many threads that want the same answer ask for it once."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

K = TypeVar("K", bound="Hashable")
V = TypeVar("V")


@dataclass(slots=True)
class _Answer(Generic[V]):
    value: V
    asked: int
    weight: int


@dataclass(slots=True)
class _Flight:
    """A question that is under way; ``asked`` is when, on the cache's own clock."""

    asked: int
    landed: bool = False
    error: BaseException | None = None


class SingleFlight(Generic[K, V]):
    """Answers by key, each asked for by one thread at a time, the least recently used dropped.

    Args:
        capacity: sum of the answers' weights that is kept (the newest answer always is).
        weight: an answer's weight.
    """

    def __init__(self, capacity: int, weight: Callable[[V], int] = lambda _: 1) -> None:
        self._capacity = capacity
        self._weight = weight
        self._changed = threading.Condition()
        self._answers: OrderedDict[K, _Answer[V]] = OrderedDict()
        self._flights: dict[K, _Flight] = {}
        self._clock = 0
        self._total = 0

    def get(self, key: K, ask: Callable[[], V], good: Callable[[V], bool]) -> V:
        """Return an answer that is ``good``, or one that was asked for after this call began.

        An error of ``ask`` is raised in every thread that waited for that answer, so that a
        project that is down is not asked by each of them in turn.
        """
        with self._changed:
            arrived = self._tick()
            while True:
                answer = self._answers.get(key)
                if answer is not None and (answer.asked > arrived or good(answer.value)):
                    self._answers.move_to_end(key)
                    return answer.value
                flight = self._flights.get(key)
                if flight is None:
                    break
                while not flight.landed:
                    self._changed.wait()
                if flight.error is not None:
                    raise flight.error
            flight = self._flights[key] = _Flight(self._tick())
        try:
            value = ask()
        except BaseException as error:
            flight.error = error
            self._land(key, flight)
            raise
        with self._changed:
            self._keep(key, value, flight.asked)
        self._land(key, flight)
        return value

    def find(self, wanted: Callable[[V], bool]) -> K | None:
        """Return the key of a kept answer that is ``wanted``, the most recently used first."""
        with self._changed:
            for key in reversed(self._answers):
                if wanted(self._answers[key].value):
                    return key
        return None

    def forget(self, key: K) -> None:
        """Drop an answer."""
        with self._changed:
            self._drop(key)

    def _tick(self) -> int:
        self._clock += 1
        return self._clock

    def _land(self, key: K, flight: _Flight) -> None:
        with self._changed:
            flight.landed = True
            del self._flights[key]
            self._changed.notify_all()

    def _keep(self, key: K, value: V, asked: int) -> None:
        self._drop(key)
        weight = self._weight(value)
        self._answers[key] = _Answer(value, asked, weight)
        self._total += weight
        while self._total > self._capacity and len(self._answers) > 1:
            self._drop(next(iter(self._answers)))

    def _drop(self, key: K) -> None:
        answer = self._answers.pop(key, None)
        if answer is not None:
            self._total -= answer.weight
