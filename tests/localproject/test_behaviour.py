"""Hosts that are told to misbehave: how it is written, kept, counted, and what comes of it."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from boinc_gahp.localproject.hosts.behaviour import (
    KINDS,
    Behaviour,
    clear,
    of_host,
    parse_behaviour,
    set_behaviours,
)


@pytest.mark.parametrize(
    ("text", "behaviour"),
    [
        ("fail=3", Behaviour("fail", 3)),
        ("fail=255x2", Behaviour("fail", 255, 2)),
        ("exit=3x1", Behaviour("exit", 3, 1)),
        ("crash", Behaviour("crash")),
        ("vanishx10", Behaviour("vanish", 0, 10)),
        ("slow=2.5", Behaviour("slow", 2.5)),
        ("detach", Behaviour("detach")),
        ("late", Behaviour("late")),
        ("late=86400x1", Behaviour("late", 86400, 1)),
        ("differ", Behaviour("differ")),
        ("truncate", Behaviour("truncate")),
    ],
)
def test_a_behaviour_is_read_as_it_is_written(text, behaviour):
    assert parse_behaviour(f" {text} ") == behaviour
    assert str(behaviour) == text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "'' is not a behaviour: expected fail=STATUS"),
        ("explode", "'explode' is not a behaviour"),
        ("fail", "expected fail=STATUS with a status from 1 to 255"),
        ("fail=0", "a status from 1 to 255"),
        ("fail=256", "a status from 1 to 255"),
        ("exit", "expected exit=STATUS with a status from 1 to 255"),
        ("fail=1.5", "a status from 1 to 255"),
        ("fail=-1", "is not a behaviour"),
        ("fail=3x0", "'fail=3x0': xN: expected a whole number from 1"),
        ("crashx9999999999", "'crashx9999999999': xN: expected a whole number from 1"),
        ("slow", "expected slow=FACTOR with a factor from 1"),
        ("slow=0.5", "a factor from 1"),
        ("slow=1.2.3", "a factor from 1"),
        ("late=0", "expected late=SECONDS with a positive number"),
        ("crash=11", "expected crash without a value"),
        ("vanish x2", "is not a behaviour"),
    ],
)
def test_what_is_no_behaviour_is_told_with_what_is_expected(text, words):
    with pytest.raises(ValueError, match=words):
        parse_behaviour(text)


def test_the_error_names_every_kind():
    with pytest.raises(ValueError, match="expected") as caught:
        parse_behaviour("?")
    assert all(kind in str(caught.value) for kind in KINDS)


def _told(bench, host=1):
    task = bench.send(host)
    assert task is not None
    return dict(task.behaviours)


def _jobs(bench, *names):
    for name in names:
        bench.made(name)


def test_a_behaviour_is_for_the_host_that_was_told(bench):
    _jobs(bench, "a", "b")
    set_behaviours(bench.core.db, [Behaviour("fail", 3), Behaviour("slow", 2)], host="h2")
    assert _told(bench, 1) == {}
    assert _told(bench, 2) == {"fail": 3, "slow": 2}
    assert bench.results("behaviour") == ["", "fail=3 slow=2"]


def test_a_behaviour_without_a_host_is_for_all(bench):
    _jobs(bench, "a", "b")
    set_behaviours(bench.core.db, [Behaviour("crash")])
    assert (_told(bench, 1), _told(bench, 2)) == ({"crash": 0}, {"crash": 0})
    assert of_host(bench.core.db.connection(), 5) == [Behaviour("crash")]


def test_a_behaviour_for_a_job_goes_before_one_for_the_host(bench):
    bench.workunit("Job", name_key="job")
    _jobs(bench, "other")
    set_behaviours(bench.core.db, [Behaviour("fail", 1), Behaviour("differ")], host="h1")
    set_behaviours(bench.core.db, [Behaviour("fail", 2)], job="job")
    assert _told(bench) == {"fail": 2, "differ": 0}
    assert _told(bench) == {"fail": 1, "differ": 0}
    assert of_host(bench.core.db.connection(), 1) == [Behaviour("fail", 1), Behaviour("differ")]


def test_a_behaviour_for_a_host_and_a_job_goes_before_all_others(bench):
    bench.workunit("a", target_nresults=2)
    _jobs(bench, "b")
    set_behaviours(bench.core.db, [Behaviour("fail", 1)], host="h1", job="a")
    set_behaviours(bench.core.db, [Behaviour("fail", 2)], job="a")
    assert (_told(bench, 1), _told(bench, 2), _told(bench, 1)) == ({"fail": 1}, {"fail": 2}, {})


def test_a_count_is_used_up_result_by_result(bench):
    _jobs(bench, *"abcd")
    set_behaviours(bench.core.db, [Behaviour("fail", 3, 2), Behaviour("differ")], host="h1")
    assert [_told(bench).get("fail") for _ in range(3)] == [3, 3, None]
    assert of_host(bench.core.db.connection(), 1) == [Behaviour("differ")]


def test_a_count_that_another_behaviour_covers_is_not_used(bench):
    _jobs(bench, "a")
    set_behaviours(bench.core.db, [Behaviour("fail", 1, 1)], host="h1")
    set_behaviours(bench.core.db, [Behaviour("fail", 2)], job="a")
    assert _told(bench) == {"fail": 2}
    assert of_host(bench.core.db.connection(), 1) == [Behaviour("fail", 1, 1)]


def test_a_count_is_not_used_twice_by_hosts_that_ask_at_once(bench):
    _jobs(bench, *(f"j{number}" for number in range(30)))
    set_behaviours(bench.core.db, [Behaviour("fail", 3, 7)])
    told = []

    def work(host):
        while (task := bench.send(host)) is not None:
            told.append("fail" in task.behaviours)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, (1, 2, 3)))
    assert (len(told), sum(told)) == (30, 7)


def test_what_is_set_replaces_what_was(bench):
    connection = bench.core.db.connection()
    set_behaviours(bench.core.db, [Behaviour("fail", 3)], host="h1")
    set_behaviours(bench.core.db, [Behaviour("differ")], host="h2")
    set_behaviours(bench.core.db, [Behaviour("crash")], host="h1")
    assert (of_host(connection, 1), of_host(connection, 2)) == (
        [Behaviour("crash")],
        [Behaviour("differ")],
    )
    clear(bench.core.db, host="h1")
    assert (of_host(connection, 1), of_host(connection, 2)) == ([], [Behaviour("differ")])


def test_clearing_without_a_name_takes_back_everything(bench):
    _jobs(bench, "a")
    for place in ({"host": "h1"}, {"job": "a"}, {"host": "h2", "job": "a"}, {}):
        set_behaviours(bench.core.db, [Behaviour("crash")], **place)
    clear(bench.core.db)
    assert bench.column("behaviour", "kind") == []


def test_clearing_a_host_takes_back_what_it_does_with_single_jobs(bench):
    _jobs(bench, "a")
    set_behaviours(bench.core.db, [Behaviour("crash")], host="h2", job="a")
    set_behaviours(bench.core.db, [Behaviour("differ")], job="a")
    clear(bench.core.db, host="h2")
    assert bench.column("behaviour", "kind") == ["differ"]


def test_a_job_may_be_named_before_it_is_made(bench):
    set_behaviours(bench.core.db, [Behaviour("crash")], job="Job1")
    _jobs(bench, "job1")
    assert _told(bench) == {"crash": 0}


def test_unknown_hosts_are_told_with_those_that_there_are(bench):
    with pytest.raises(ValueError, match=r"no host 'h9'; the hosts are h1, .*, h6$"):
        set_behaviours(bench.core.db, [Behaviour("crash")], host="h9")
    bench.set("host", active=0)
    with bench.core.db.write() as connection:
        connection.execute("DELETE FROM host")
    with pytest.raises(ValueError, match="a project makes its hosts when it runs"):
        clear(bench.core.db, host="h1")
