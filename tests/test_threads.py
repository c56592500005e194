"""Work on threads: on one, task by task, in turns of projects, on many things at once."""

import os
import signal
import threading
import time

import pytest

from boinc_gahp.threads import Workers, in_order, in_parallel, start
from tests.helpers import wait_for


class Gate:
    """Tasks that wait until they are let through."""

    def __init__(self):
        self.inside = threading.Semaphore(0)
        self.open = threading.Event()

    def task(self):
        self.inside.release()
        self.open.wait(60)

    def start(self, pool, tasks, **more):
        for _ in range(tasks):
            pool.start(self.task, **more)

    def await_inside(self, tasks):
        for _ in range(tasks):
            assert self.inside.acquire(timeout=60)


def count(name):
    return sum(thread.name.startswith(name) for thread in threading.enumerate())


def test_threads_are_started_when_they_are_needed_and_used_again():
    pool = Workers("thrifty", size=lambda: 10)
    done = threading.Semaphore(0)
    for _ in range(20):
        pool.start(done.release)
        assert done.acquire(timeout=60)
        wait_for(lambda: pool._idle == len(pool._threads), "the thread is idle")
    assert count("thrifty-") == 1
    pool.close(20)
    assert count("thrifty-") == 0


def test_a_project_holds_half_of_what_the_others_leave_and_always_one():
    pool = Workers("shared", size=lambda: 8)
    gates = [Gate() for _ in range(6)]
    for project, gate in enumerate(gates):
        gate.start(pool, 20, slot=project)
    for gate, share in zip(gates, [8, 4, 2, 1, 1, 1], strict=True):
        gate.await_inside(share)
        assert not gate.inside.acquire(blocking=False)
    assert count("shared-") == 17
    for gate in gates:
        gate.open.set()
    pool.close(20, drop=False)
    assert sum(gate.inside._value for gate in gates) == 6 * 20 - 17
    assert count("shared-") == 0


def test_a_thread_that_comes_free_goes_to_who_holds_fewest():
    pool = Workers("fair", size=lambda: 2)
    first, other = Gate(), Gate()
    order = []
    first.start(pool, 2, slot="first")
    other.start(pool, 1, slot="other")
    first.await_inside(2)
    other.await_inside(1)
    for name in ("other", "first"):
        for _ in range(3):
            pool.start(lambda name=name: order.append(name), slot=name)
    other.open.set()
    wait_for(lambda: len(order) == 3, "the other's tasks")
    assert order == ["other"] * 3
    first.open.set()
    wait_for(lambda: len(order) == 6, "all tasks")
    pool.close(20)


def test_tasks_that_no_thread_has_begun_are_dropped_at_the_end():
    pool = Workers("closing", size=lambda: 1)
    gate = Gate()
    begun = threading.Event()
    gate.start(pool, 1)
    gate.await_inside(1)
    pool.start(begun.set)
    pool.close(0)
    gate.open.set()
    wait_for(lambda: count("closing-") == 0, "the thread has ended")
    assert not begun.is_set()


def test_a_task_is_not_begun_twice_and_one_that_fails_keeps_no_other_from_it():
    ended, hold = threading.Event(), threading.Event()
    workers = Workers("t", ended.set)

    def task():
        assert hold.wait(60)
        raise ValueError("a fault")

    assert workers.start(task, 1, "send")
    assert not workers.start(task, 1, "send")
    assert workers.start(task, 2, "send")
    assert workers.is_running(1)
    assert workers.count("send") == 2
    assert workers.count("fetch") == 0
    assert not workers.wait(time.monotonic() + 0.01)
    hold.set()
    assert workers.wait(time.monotonic() + 60)
    assert ended.wait(60)
    assert workers.start(lambda: None, 1)
    assert workers.wait(time.monotonic() + 60)


def test_what_a_thread_raises_goes_into_the_log(caplog):
    def work():
        raise ValueError("a fault")

    start(work, "faulty").join(60)
    workers = Workers("flawed")
    assert workers.start(work)
    assert workers.wait(time.monotonic() + 60)
    workers.close(60)
    assert ["'faulty'" in caplog.messages[0], "'flawed'" in caplog.messages[1]] == [True, True]
    assert caplog.text.count("ValueError: a fault") == 2


def test_a_thread_that_has_nothing_to_do_ends(monkeypatch):
    monkeypatch.setattr("boinc_gahp.threads._IDLE", 0.01)
    workers, done = Workers("resting"), threading.Semaphore(0)
    for _ in range(3):
        assert workers.start(done.release)
        assert done.acquire(timeout=60)
        wait_for(lambda: not count("resting-"), "the thread has ended")
    workers.close(60)


def test_a_task_waits_where_the_system_gives_no_thread(monkeypatch):
    workers = Workers("t")
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refused)
        assert not workers.start(lambda: None, 1)
    assert not workers.is_running(1)
    assert workers.start(lambda: None, 1)
    assert workers.wait(time.monotonic() + 60)


def test_no_more_threads_than_allowed_or_needed_are_started():
    names = set()
    barrier = threading.Barrier(3, timeout=60)

    def work(_):
        names.add(threading.current_thread().name)
        barrier.wait()

    in_parallel(work, range(3), threads=8, name="few")
    assert len(names) == 3
    assert all(name.startswith("few") for name in names)


def test_the_first_error_stops_what_runs_and_what_has_not_begun():
    stop = threading.Event()
    begun = []

    def work(item):
        begun.append(item)
        if item == 0:
            # Others are in the midst of their work: they have to be told.
            assert stop.wait(60)
            raise ValueError("broken off")
        raise KeyError(item)

    with pytest.raises(KeyError):
        in_parallel(work, range(100), threads=2, name="t", stop=stop)
    assert set(begun) <= {0, 1}


@pytest.mark.parametrize("given", [0, 2])
def test_with_a_limit_on_threads_all_is_done_by_those_there_are(given, monkeypatch):
    starts = iter([threading.Thread.start] * given)

    def limited(thread):
        next(starts, refused)(thread)

    monkeypatch.setattr(threading.Thread, "start", limited)
    done = in_parallel(lambda item: item + 1, range(20), threads=8, name="t")
    assert sorted(done) == [(item, item + 1) for item in range(20)]


def test_ctrl_c_is_told_to_what_runs_and_not_kept_waiting():
    stop, ended = threading.Event(), threading.Event()

    def work(_):
        os.kill(os.getpid(), signal.SIGINT)
        assert stop.wait(60)
        ended.set()

    with pytest.raises(KeyboardInterrupt):
        in_parallel(work, range(9), threads=1, name="t", stop=stop)
    assert ended.wait(60)


def test_in_order_a_few_are_worked_on_at_a_time_and_told_in_turn():
    barrier = threading.Barrier(3, timeout=60)
    read = []

    def items():
        for item in range(6):
            read.append(item)
            yield item

    def work(item):
        barrier.wait()  # three are under way at once
        return item * item

    done = in_order(work, items(), threads=3, name="t")
    assert next(done) == 0
    assert len(read) == 3
    assert list(done) == [1, 4, 9, 16, 25]


def test_in_order_an_error_is_raised_in_its_turn_and_nothing_more_begun():
    begun = []

    def work(item):
        begun.append(item)
        if item == 2:
            raise KeyError(item)
        return item

    done = in_order(work, range(100), threads=2, name="t")
    assert [next(done), next(done)] == [0, 1]
    with pytest.raises(KeyError):
        next(done)
    assert max(begun) <= 3


def refused(_thread):
    raise RuntimeError("can't start new thread")


def test_in_order_works_without_threads(monkeypatch):
    monkeypatch.setattr(threading.Thread, "start", refused)
    assert list(in_order(str, range(5), threads=3, name="t")) == ["0", "1", "2", "3", "4"]
