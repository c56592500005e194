"""One question at a time."""

import threading
import time
from functools import partial

import pytest

from boinc_gahp.submit.singleflight import SingleFlight
from tests.helpers import wait_for


class RequestedSizes:
    """Counts questions; each waits until it is let go."""

    def __init__(self):
        self.count = 0
        self.go = threading.Event()

    def __call__(self):
        self.count += 1
        number = self.count
        assert self.go.wait(60)
        return number


def always(_):
    return True


def never(_):
    return False


def in_threads(count, work):
    answers = []

    def run():
        try:
            answers.append(work())
        except ZeroDivisionError as error:
            answers.append(error)

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    return threads, answers


def join(threads):
    for thread in threads:
        thread.join(60)


def test_threads_that_want_the_same_ask_once():
    flight = SingleFlight(10)
    asked = RequestedSizes()
    threads, answers = in_threads(20, lambda: flight.get("key", asked, always))
    wait_for(lambda: asked.count, "a question")
    asked.go.set()
    join(threads)
    assert answers == [1] * 20


def test_an_answer_that_was_asked_for_before_is_not_good_enough_for_a_later_call():
    flight = SingleFlight(10)
    asked = RequestedSizes()
    asked.go.set()
    assert [flight.get("key", asked, never) for _ in range(3)] == [1, 2, 3]
    assert flight.get("key", asked, always) == 3


def test_those_who_come_while_it_is_asked_share_the_next_question():
    flight = SingleFlight(10)
    asked = RequestedSizes()
    first, one = in_threads(1, lambda: flight.get("key", asked, never))
    wait_for(lambda: asked.count == 1, "the first question")
    others, rest = in_threads(10, lambda: flight.get("key", asked, never))
    wait_for(lambda: flight._clock >= 12, "the others")
    asked.go.set()
    join(first + others)
    assert one == [1]
    assert rest == [2] * 10


def test_an_error_is_everybodys_who_waited_and_nobodys_after():
    flight = SingleFlight(10)
    asked = RequestedSizes()

    def fail():
        asked()
        raise ZeroDivisionError

    threads, answers = in_threads(10, lambda: flight.get("key", fail, always))
    wait_for(lambda: flight._clock >= 11, "the others")
    asked.go.set()
    join(threads)
    assert [type(answer) for answer in answers] == [ZeroDivisionError] * 10
    assert asked.count == 1
    with pytest.raises(ZeroDivisionError):
        flight.get("key", fail, always)
    assert flight.get("key", lambda: 7, never) == 7


def test_nobody_fails_because_another_had_less_time():
    flight = SingleFlight(10)
    now = time.monotonic()
    short, others = RequestedSizes(), [RequestedSizes() for _ in range(10)]

    def fail():
        short()
        raise ZeroDivisionError

    first, one = in_threads(1, lambda: flight.get("key", fail, never, now + 100))
    wait_for(lambda: short.count, "the first question")
    threads, answers = [], []
    for number, asked in enumerate(others):
        more, answer = in_threads(1, partial(flight.get, "key", asked, never, now + 200 + number))
        threads += more
        answers.append(answer)
    wait_for(lambda: flight._clock >= 12, "the others")
    for asked in others:
        asked.go.set()
    short.go.set()
    join(first + threads)
    assert [type(answer) for answer in one] == [ZeroDivisionError]
    assert answers == [[1]] * 10
    # One more question for all, by the one that has most time.
    assert [asked.count for asked in others] == [0] * 9 + [1]


def test_an_error_is_shared_with_those_who_had_no_more_time():
    flight = SingleFlight(10)
    now = time.monotonic()
    asked = RequestedSizes()

    def fail():
        asked()
        raise ZeroDivisionError

    threads, answers = in_threads(1, lambda: flight.get("key", fail, never, now + 200))
    wait_for(lambda: asked.count, "the first question")
    more, others = in_threads(5, lambda: flight.get("key", lambda: 7, never, now + 200))
    wait_for(lambda: flight._clock >= 7, "the others")
    asked.go.set()
    join(threads + more)
    assert [type(answer) for answer in answers + others] == [ZeroDivisionError] * 6


def test_who_has_less_time_does_not_wait_for_another():
    flight = SingleFlight(10)
    asked = RequestedSizes()
    threads, answers = in_threads(1, lambda: flight.get("key", asked, never))
    wait_for(lambda: asked.count, "the first question")

    def fail():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        flight.get("key", fail, never, time.monotonic() + 0.05)
    asked.go.set()
    join(threads)
    assert answers == [1]


def test_what_was_least_recently_used_is_dropped():
    flight = SingleFlight(10, lambda weight: weight)
    for key, weight in ((1, 4), (2, 4)):
        flight.get(key, lambda weight=weight: weight, always)
    flight.get(1, lambda: 0, always)
    flight.get(3, lambda: 5, always)
    assert flight.find(lambda weight: weight == 4) == 1
    assert flight.get(2, lambda: 9, always) == 9
    assert flight.find(lambda weight: weight == 4) is None


def test_an_answer_larger_than_the_room_is_kept_alone():
    flight = SingleFlight(10, lambda weight: weight)
    flight.get(1, lambda: 5, always)
    flight.get(2, lambda: 50, always)
    assert flight.find(always) == 2
    assert flight.get(2, lambda: 0, always) == 50


def test_what_is_forgotten_is_asked_again():
    flight = SingleFlight(10)
    flight.get(1, lambda: 1, always)
    flight.forget(1)
    flight.forget(2)
    assert flight.get(1, lambda: 2, always) == 2
