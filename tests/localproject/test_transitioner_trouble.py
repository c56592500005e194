"""What the transitioner does when it cannot handle a workunit, or the database."""

from boinc_gahp.localproject.states import NEVER
from tests.localproject.bench import IN_PROGRESS, NO_REPLY, NOW, OVER


def test_a_workunit_that_cannot_be_handled_costs_the_others_nothing(bench):
    bench.workunit("first")
    bench.result(OVER, NO_REPLY, name="first_odd")
    bench.workunit("second")
    assert bench.transition() == 2
    assert bench.results("name") == ["first_odd", "second_0"]
    assert bench.column("workunit", "transition_time")[0] == NOW + 10
    assert "ValueError" in bench.trouble("transitioner")
    assert "workunit first, tried again after 10 s" in bench.trouble("transitioner")


def test_a_workunit_is_left_as_it_was_when_its_transaction_fails(bench):
    bench.workunit(target_nresults=3, min_quorum=1)
    bench.result(IN_PROGRESS, report_deadline=NOW - 1)
    bench.workunit("other")
    bench.result(OVER, NO_REPLY, name="w_2")
    bench.set("workunit", "name = 'other'", transition_time=NEVER)
    bench.transition()
    # The third result's name is taken: neither the time-out nor the first two are there.
    assert bench.results("name") == ["w_0", "w_2"]
    assert bench.results("server_state")[0] == IN_PROGRESS


def test_without_its_output_template_a_workunit_waits_and_all_else_is_noted(bench):
    template = bench.core.templates / "uppercase_out"
    text = template.read_text()
    template.unlink()
    bench.workunit()
    bench.result(IN_PROGRESS, report_deadline=NOW - 1)
    bench.transition()
    assert bench.results("outcome") == [NO_REPLY]
    assert "uppercase_out" in bench.trouble("transitioner")
    template.write_text(text)
    assert bench.transition() == 0
    bench.now += 10
    bench.transition()
    assert bench.results("name") == ["w_0", "w_1"]
