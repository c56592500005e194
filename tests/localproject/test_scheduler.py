"""Which result goes to which host, on the database alone (``back-end.rst``, "Scheduler")."""

import pytest

from boinc_gahp.localproject.accounts import VOLUNTEERS
from boinc_gahp.localproject.backend.scheduler import Scheduler
from boinc_gahp.localproject.hosts import hosts
from boinc_gahp.localproject.hosts.hosts import Behaviour, set_behaviours
from boinc_gahp.localproject.states import ErrorMask, Outcome, ServerState
from tests.helpers import at_once

#: Outcomes of results that wait to be sent, and that never were.
WAITS, FELL_OFF = Outcome.INIT, Outcome.COULDNT_SEND


@pytest.mark.parametrize(
    ("column", "most"),
    [
        *(("rsc_memory_bound", 1e9), ("rsc_disk_bound", 1e9), ("rsc_bandwidth_bound", 1e9)),
        # It is done at the deadline.
        ("rsc_fpops_est", 1e11),
    ],
)
def test_a_result_goes_to_hosts_that_can_take_it(bench, column, most):
    for asked, sent in ((most * 1.01, False), (most, True)):
        bench.made(f"w{sent}", **{column: asked})
        assert (bench.send() is not None) is sent
        bench.set("result", server_state=ServerState.OVER)


def test_a_result_that_a_busy_host_could_take_waits_for_it(bench):
    bench.set("host", "id = 6", m_nbytes=1e10)
    bench.made(rsc_memory_bound=5e9)
    for _ in range(30):
        assert bench.send(1) is None
    assert bench.results("outcome") == [WAITS]
    assert bench.send(6) is not None


def test_what_no_host_could_take_is_given_up_when_one_asks_in_vain(bench):
    bench.set("host", "id = 6", m_nbytes=1e10)
    bench.made(rsc_memory_bound=5e9, min_quorum=2, target_nresults=2)
    assert bench.send(6) is not None
    assert bench.send(6) is None
    assert bench.results("outcome") == [WAITS] * 2
    assert bench.send(1) is None
    assert bench.results("outcome") == [WAITS, FELL_OFF]
    bench.settle()
    assert bench.wu["error_mask"] == ErrorMask.COULDNT_SEND_RESULT


def test_after_a_failure_a_host_that_can_take_it_goes_first(bench):
    bench.set("host", "id > 2", m_nbytes=1e5)
    bench.workunit(max_error_results=9)
    for host in (1, 2):
        bench.transition()
        bench.answer(bench.send(host), host, status=1)
        bench.transition()
        assert bench.send(3) is None
        if host == 1:
            assert bench.send(1) is None
    assert bench.send(1) is not None


def test_without_an_app_version_the_next_result_is_sent(bench):
    bench.workunit("pinned", app_version_num=7)
    bench.made("w")
    task = bench.send()
    assert task.result_name == "w_0"
    assert bench.results("outcome") == [FELL_OFF, WAITS]


@pytest.mark.parametrize(("wanted", "command"), [(0, "new"), (100, "old"), (101, "new")])
def test_a_job_runs_with_the_version_it_names_or_the_newest(bench, wanted, command):
    bench.set("app_version", "appid = 1", command='["old"]')
    new = {"version_num": 101, "command": '["new"]', "digest": ""}
    bench.insert("app_version", create_time=0, appid=1, **new)
    bench.made(app_version_num=wanted)
    task = bench.send()
    assert task.command == (command,)


def _assign(bench, kind, target, workunit):
    ids = {"target_type": kind, "target_id": target, "workunitid": workunit}
    bench.insert("assignment", create_time=0, **ids)


def test_an_assigned_job_goes_to_its_host_or_its_users_hosts_and_before_others(bench):
    bench.workunit("w", priority=9)
    assigned = bench.workunit("assigned")
    _assign(bench, 1, 3, assigned)
    _assign(bench, 1, 4, assigned)
    bench.set("host", "id IN (5, 6)", userid=8)
    _assign(bench, 2, 8, bench.workunit("users", target_nresults=2))
    bench.transition()
    sent = [bench.send(host) for host in (4, 5, 1, 2, 6, 3)]
    names = ["assigned_0", "users_0", "w_0", None, "users_1", None]
    assert [task and task.result_name for task in sent] == names


def test_hosts_that_ask_at_once_get_different_results_and_use_a_count_up_once(bench):
    for number in range(30):
        bench.made(f"w{number}")
    set_behaviours(bench.core.db, [Behaviour("fail", 3, 7)])
    given = []

    def work(host):
        while (task := bench.send(host)) is not None:
            given.append((task.result_name, "fail" in task.behaviours))

    at_once(work, range(1, 7))
    assert sorted(name for name, _ in given) == sorted(f"w{number}_0" for number in range(30))
    assert sum(fails for _, fails in given) == 7


def test_a_report_is_taken_from_the_host_that_has_the_result_only(bench):
    bench.made()
    bench.answer(bench.send(1), 2, status=9)
    assert bench.results("server_state") == [ServerState.IN_PROGRESS]


def test_what_a_host_had_is_given_again_but_not_what_it_vanished_with(bench):
    for name in ("a", "b", "c"):
        bench.workunit(name)
    set_behaviours(bench.core.db, [Behaviour("vanish")], job="b")
    set_behaviours(bench.core.db, [Behaviour("fail", 3, 1)], job="c")
    bench.transition()
    given = [bench.send(1) for _ in range(3)]
    bench.scheduler = Scheduler(bench.core)
    assert bench.scheduler.all_unfinished(1) == [given[0], given[2]]
    assert bench.scheduler.all_unfinished(2) == []
    assert given[2].behaviours == {"fail": 3}


# Hosts over several runs.


def _register(bench, count):
    with bench.core.db.write() as connection:
        connection.execute("DELETE FROM host WHERE domain_name LIKE 'h%'")
    return hosts.register(bench.core.db, count)


def test_what_a_host_had_that_is_gone_goes_to_others(bench):
    *_, last = _register(bench, 3)
    bench.workunit("kept")
    bench.workunit("lost")
    set_behaviours(bench.core.db, [Behaviour("vanish")], job="lost")
    bench.transition()
    assert (bench.send(last), bench.send(last)) != (None, None)
    assert len(_register(bench, 2)) == 2
    assert bench.results("server_state") == [ServerState.UNSENT, ServerState.IN_PROGRESS]
    assert bench.send(last) is None


def test_a_host_keeps_what_it_was_changed_to(bench):
    ids = _register(bench, 2)
    hosts.set_host(bench.core.db, "volunteer-1", speed=5e9, memory=6e9, disk=7e9, bandwidth=8e9)
    assert _register(bench, 1) == ids[:1]
    hosts.set_host(bench.core.db, "volunteer-1", memory=9e9)
    assert _register(bench, 3)[:2] == ids
    (row,) = bench.rows(
        "SELECT h.*, u.name AS owner FROM host h JOIN user u ON u.id = h.userid "
        "WHERE domain_name = 'volunteer-1'"
    )
    assert (row["p_fpops"], row["m_nbytes"], row["d_free"], row["n_bwdown"]) == (5e9, 9e9, 7e9, 8e9)
    assert row["owner"] == VOLUNTEERS


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")], ids=str)
def test_a_host_must_have_a_positive_speed(bench, value):
    with pytest.raises(ValueError, match="'h1': expected a positive number"):
        hosts.set_host(bench.core.db, "h1", speed=value)
