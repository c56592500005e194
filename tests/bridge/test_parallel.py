"""Work by a few threads: all of it, or a prompt end."""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING

import pytest

from boinc_gahp.bridge.parallel import in_order, in_parallel

if TYPE_CHECKING:
    from collections.abc import Iterator


def test_each_item_is_worked_on_once() -> None:
    done = in_parallel(lambda item: item * item, range(100), threads=4, name="t")
    assert sorted(done) == [(item, item * item) for item in range(100)]


def test_no_more_threads_than_allowed_or_needed_are_started() -> None:
    names: set[str] = set()
    barrier = threading.Barrier(3, timeout=60)

    def work(_: int) -> None:
        names.add(threading.current_thread().name)
        barrier.wait()

    in_parallel(work, range(3), threads=8, name="few")
    assert len(names) == 3
    assert all(name.startswith("few") for name in names)


def test_nothing_is_nothing() -> None:
    assert in_parallel(str, [], threads=4, name="t") == []


def test_the_first_error_stops_what_runs_and_what_has_not_begun() -> None:
    stop = threading.Event()
    begun: list[int] = []

    def work(item: int) -> None:
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
def test_with_a_limit_on_threads_all_is_done_by_those_there_are(
    given: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = threading.Thread.start
    left = iter(range(given))

    def limited(thread: threading.Thread) -> None:
        if next(left, None) is None:
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", limited)
    done = in_parallel(lambda item: item + 1, range(20), threads=8, name="t")
    assert sorted(done) == [(item, item + 1) for item in range(20)]


def test_ctrl_c_is_told_to_what_runs_and_not_kept_waiting() -> None:
    stop, ended = threading.Event(), threading.Event()

    def work(_: int) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        assert stop.wait(60)
        ended.set()

    with pytest.raises(KeyboardInterrupt):
        in_parallel(work, range(9), threads=1, name="t", stop=stop)
    assert ended.wait(60)


def test_in_order_a_few_are_worked_on_at_a_time_and_told_in_turn() -> None:
    barrier = threading.Barrier(3, timeout=60)
    read: list[int] = []

    def items() -> Iterator[int]:
        for item in range(6):
            read.append(item)
            yield item

    def work(item: int) -> int:
        barrier.wait()  # three are under way at once
        return item * item

    done = in_order(work, items(), threads=3, name="t")
    assert next(done) == 0
    assert len(read) == 3
    assert list(done) == [1, 4, 9, 16, 25]


def test_in_order_an_error_is_raised_in_its_turn_and_nothing_more_begun() -> None:
    begun: list[int] = []

    def work(item: int) -> int:
        begun.append(item)
        if item == 2:
            raise KeyError(item)
        return item

    done = in_order(work, range(100), threads=2, name="t")
    assert [next(done), next(done)] == [0, 1]
    with pytest.raises(KeyError):
        next(done)
    assert max(begun) <= 3


def test_in_order_works_without_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    assert list(in_order(str, range(5), threads=3, name="t")) == ["0", "1", "2", "3", "4"]
