"""One question at a time."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from boinc_gahp.submit.singleflight import SingleFlight
from tests.helpers import wait_for


class Question:
    """Counts how often it is asked; each time waits until it is let go, and then may fail."""

    def __init__(self, *, fails=False):
        self.count = 0
        self.go = threading.Event()
        self.fails = fails

    def __call__(self):
        self.count += 1
        number = self.count
        assert self.go.wait(60)
        if self.fails:
            raise ZeroDivisionError
        return number


def always(_):
    return True


def never(_):
    return False


@pytest.fixture
def flight():
    return SingleFlight(10)


@pytest.fixture
def begin(flight):
    """Ask on threads of their own; the question is under way, or waits for the one that is."""
    with ThreadPoolExecutor(30) as threads:

        def begin(count, question, will_do, *until):
            # The clock ticks when a call comes, and when one asks because no other does.
            until_all_came = flight._clock + count + (not flight._flights)
            asked = [
                threads.submit(flight.get, "key", question, will_do, *until) for _ in range(count)
            ]
            wait_for(lambda: flight._clock >= until_all_came, "the others")
            return asked

        yield begin


def answers(asked):
    return [type(error) if (error := each.exception(60)) else each.result() for each in asked]


def test_threads_that_want_the_same_ask_once(flight, begin):
    question = Question()
    asked = begin(20, question, always)
    question.go.set()
    assert answers(asked) == [1] * 20


def test_an_answer_that_was_asked_for_before_is_not_good_enough_for_a_later_call(flight):
    question = Question()
    question.go.set()
    assert [flight.get("key", question, never) for _ in range(3)] == [1, 2, 3]
    assert flight.get("key", question, always) == 3


def test_those_who_come_while_it_is_asked_share_the_next_question(begin):
    question = Question()
    first = begin(1, question, never)
    wait_for(lambda: question.count == 1, "the first question")
    rest = begin(10, question, never)
    question.go.set()
    assert answers(first) == [1]
    assert answers(rest) == [2] * 10


def test_an_error_is_everybodys_who_waited_and_nobodys_after(flight, begin):
    question = Question(fails=True)
    asked = begin(10, question, always)
    question.go.set()
    assert answers(asked) == [ZeroDivisionError] * 10
    assert question.count == 1
    with pytest.raises(ZeroDivisionError):
        flight.get("key", question, always)
    assert flight.get("key", lambda: 7, never) == 7


def test_nobody_fails_because_another_had_less_time(begin):
    now = time.monotonic()
    short, others = Question(fails=True), [Question() for _ in range(10)]
    first = begin(1, short, never, now + 100)
    wait_for(lambda: short.count, "the first question")
    rest = [
        asked
        for number, question in enumerate(others)
        for asked in begin(1, question, never, now + 200 + number)
    ]
    for question in (*others, short):
        question.go.set()
    assert answers(first) == [ZeroDivisionError]
    assert answers(rest) == [1] * 10
    # One more question for all, by the one that has most time.
    assert [question.count for question in others] == [0] * 9 + [1]


def test_who_has_less_time_does_not_wait_for_another(flight, begin):
    question, other = Question(), Question(fails=True)
    asked = begin(1, question, never)
    wait_for(lambda: question.count, "the first question")
    other.go.set()
    with pytest.raises(ZeroDivisionError):
        flight.get("key", other, never, time.monotonic() + 0.05)
    question.go.set()
    assert answers(asked) == [1]


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


def test_what_is_forgotten_is_asked_again(flight):
    flight.get(1, lambda: 1, always)
    flight.forget(1)
    flight.forget(2)
    assert flight.get(1, lambda: 2, always) == 2
