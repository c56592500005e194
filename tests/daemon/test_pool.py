from __future__ import annotations

import threading

from boinc_gahp.daemon.pool import Pool
from tests.helpers import wait_for


class Gate:
    """Tasks that wait until they are let through."""

    def __init__(self) -> None:
        self.inside = threading.Semaphore(0)
        self.open = threading.Event()

    def task(self) -> None:
        self.inside.release()
        self.open.wait(60)


def workers(name: str) -> int:
    return sum(thread.name.startswith(name) for thread in threading.enumerate())


def test_threads_are_started_when_they_are_needed_and_used_again() -> None:
    pool = Pool("thrifty", lambda: 10)
    done = threading.Semaphore(0)
    for _ in range(20):
        pool.submit(done.release)
        assert done.acquire(timeout=60)
        wait_for(lambda: pool._idle == len(pool._threads), "the thread is idle")
    assert workers("thrifty-") == 1
    pool.close(20)
    assert workers("thrifty-") == 0


def test_there_are_never_more_threads_than_the_size() -> None:
    pool = Pool("bounded", lambda: 3)
    gate = Gate()
    done = threading.Semaphore(0)
    for _ in range(3):
        pool.submit(gate.task)
    for _ in range(10):
        pool.submit(done.release)
    for _ in range(3):
        assert gate.inside.acquire(timeout=60)
    assert workers("bounded-") == 3
    assert not done.acquire(blocking=False)
    gate.open.set()
    for _ in range(10):
        assert done.acquire(timeout=60)
    pool.close(20)
    assert workers("bounded-") == 0


def test_a_project_holds_half_of_what_the_others_leave_and_always_one() -> None:
    pool = Pool("shared", lambda: 8)
    gates = [Gate() for _ in range(6)]
    for project, gate in enumerate(gates):
        for _ in range(20):
            pool.submit(gate.task, project)
    for gate, share in zip(gates, [8, 4, 2, 1, 1, 1], strict=True):
        for _ in range(share):
            assert gate.inside.acquire(timeout=20)
        assert not gate.inside.acquire(blocking=False)
    assert workers("shared-") == 17
    for gate in gates:
        gate.open.set()
    pool.close(20, drop=False)
    assert sum(gate.inside._value for gate in gates) == 6 * 20 - 17
    assert workers("shared-") == 0


def test_a_thread_that_comes_free_goes_to_who_holds_fewest() -> None:
    pool = Pool("fair", lambda: 2)
    first, other = Gate(), Gate()
    order: list[str] = []
    for _ in range(2):
        pool.submit(first.task, "first")
    pool.submit(other.task, "other")
    for _ in range(2):
        assert first.inside.acquire(timeout=20)
    assert other.inside.acquire(timeout=20)
    for name in ("other", "first"):
        for _ in range(3):
            pool.submit(lambda name=name: order.append(name), name)  # type: ignore[misc]
    other.open.set()
    wait_for(lambda: len(order) == 3, "the other's tasks")
    assert order == ["other"] * 3
    first.open.set()
    wait_for(lambda: len(order) == 6, "all tasks")
    pool.close(20)


def test_tasks_that_no_thread_has_begun_are_dropped_at_the_end() -> None:
    pool = Pool("closing", lambda: 1)
    gate = Gate()
    begun = threading.Event()
    pool.submit(gate.task)
    assert gate.inside.acquire(timeout=60)
    pool.submit(begun.set)
    pool.close(0)
    gate.open.set()
    wait_for(lambda: workers("closing-") == 0, "the thread has ended")
    assert not begun.is_set()


def test_tasks_are_all_done_at_the_end_where_none_may_be_dropped() -> None:
    pool = Pool("thorough", lambda: 2)
    done: list[int] = []
    for number in range(100):
        pool.submit(lambda number=number: done.append(number))  # type: ignore[misc]
    pool.close(20, drop=False)
    assert sorted(done) == list(range(100))
    assert workers("thorough-") == 0
