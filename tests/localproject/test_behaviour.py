"""Hosts that are told to misbehave: how it is written, kept, counted, and what comes of it."""

import pytest

from boinc_gahp.localproject.hosts.hosts import (
    KINDS,
    Behaviour,
    behaviours_of,
    clear_behaviours,
    parse_behaviour,
    set_behaviours,
)


@pytest.mark.parametrize(
    ("text", "behaviour"),
    [
        ("fail=255x2", Behaviour("fail", 255, 2)),
        ("exit=3", Behaviour("exit", 3)),
        ("crash", Behaviour("crash")),
        ("vanishx10", Behaviour("vanish", 0, 10)),
        ("slow=2.5", Behaviour("slow", 2.5)),
        ("late=86400x1", Behaviour("late", 86400, 1)),
        ("late", Behaviour("late")),
    ],
)
def test_a_behaviour_is_read_as_it_is_written(text, behaviour):
    assert parse_behaviour(f" {text} ") == behaviour
    assert str(behaviour) == text


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (("", "explode", "fail=-1", "vanish x2"), f"is not a behaviour: expected .*{[*KINDS][-1]}"),
        (("fail", "fail=0", "exit=256", "fail=1.5"), "expected (fail|exit)=STATUS with a status f"),
        (("fail=3x0", "crashx9999999999"), "xN: expected a whole number from 1"),
        (("slow", "slow=0.5", "slow=1.2.3"), "expected slow=FACTOR with a factor from 1"),
        (("late=0",), "expected late=SECONDS with a positive number"),
        (("crash=11",), "expected crash without a value"),
    ],
)
def test_what_is_no_behaviour_is_told_with_what_is_expected(texts, words):
    for text in texts:
        with pytest.raises(ValueError, match=words) as caught:
            parse_behaviour(text)
        assert repr(text) in str(caught.value)


def _set(bench, text, **place):
    set_behaviours(bench.core.db, [parse_behaviour(word) for word in text.split()], **place)


def _of(bench, *hosts):
    """Return the behaviours that hosts have for all jobs."""
    connection = bench.core.db.connection()
    return ["+".join(map(str, behaviours_of(connection, host))) for host in hosts]


def _told(bench, host=1):
    task = bench.send(host)
    return dict(task.behaviours)


def test_what_is_set_for_host_and_job_wins_then_for_the_job_the_host_and_all(bench):
    _set(bench, "slow=2 fail=1")
    _set(bench, "fail=2 differ", host="h1")
    _set(bench, "fail=3", job="JOB")
    _set(bench, "fail=4", host="h1", job="b")
    _set(bench, "fail=5", job="b")
    for name in ("Job", "b", "c", "d"):
        bench.made(name, name_key=name.lower())
    of_all = {"slow": 2, "differ": 0}
    assert [_told(bench) for _ in range(3)] == [{"fail": n, **of_all} for n in (3, 4, 2)]
    assert _told(bench, 2) == {"slow": 2, "fail": 1}
    assert _of(bench, 1, 2) == ["slow=2+fail=2+differ", "slow=2+fail=1"]


def test_a_count_is_used_up_result_by_result_unless_another_behaviour_covers_it(bench):
    _set(bench, "fail=3x2 differ", host="h1")
    _set(bench, "fail=2", job="b")
    for name in "abcd":
        bench.made(name)
    assert [_told(bench).get("fail") for _ in range(4)] == [3, 2, 3, None]
    assert _of(bench, 1) == ["differ"]


def test_what_is_set_replaces_what_was_until_it_is_taken_back(bench):
    _set(bench, "fail=3", host="h1")
    _set(bench, "differ", host="h2")
    _set(bench, "crash", host="h1")
    _set(bench, "crash", host="h1", job="a")
    _set(bench, "late", job="a")
    assert _of(bench, 1, 2) == ["crash", "differ"]
    # A host's are all of its own, with single jobs too.
    clear_behaviours(bench.core.db, host="h1")
    assert bench.column("behaviour", "kind") == ["differ", "late"]
    clear_behaviours(bench.core.db)
    assert bench.column("behaviour", "kind") == []


def test_unknown_hosts_are_told_with_those_that_there_are(bench):
    with pytest.raises(ValueError, match=r"no host 'h9'; the hosts are h1, .*, h6$"):
        _set(bench, "crash", host="h9")
    with bench.core.db.write() as connection:
        connection.execute("DELETE FROM host")
    with pytest.raises(ValueError, match="a project makes its hosts when it runs"):
        clear_behaviours(bench.core.db, host="h1")
