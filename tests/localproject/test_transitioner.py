"""The transitioner where no history shows it (``back-end.rst``), and what it cannot handle."""

from boinc_gahp.localproject.states import NEVER, AssimilateState, ErrorMask, Outcome
from tests.localproject.bench import IN_PROGRESS, NO_REPLY, NOW, OVER
from tests.localproject.on_host import out

# Rule 4: error bits.


def test_a_canonical_result_whose_row_is_gone_is_an_error(bench):
    bench.workunit()
    bench.canonical()
    with bench.core.db.write() as connection:
        connection.execute("DELETE FROM result")
    bench.settle()
    assert bench.wu["error_mask"] == ErrorMask.NO_CANONICAL_RESULT
    assert bench.wu["assimilate_state"] == AssimilateState.DONE
    assert bench.results("id") == []


def test_error_bits_add_up(bench):
    bench.workunit(max_error_results=0, max_total_results=1, error_mask=ErrorMask.CANCELLED)
    bench.result(OVER, Outcome.CLIENT_ERROR)
    bench.result(OVER, Outcome.COULDNT_SEND)
    bench.transition()
    assert bench.wu["error_mask"] == (
        ErrorMask.CANCELLED
        | ErrorMask.COULDNT_SEND_RESULT
        | ErrorMask.TOO_MANY_ERROR_RESULTS
        | ErrorMask.TOO_MANY_TOTAL_RESULTS
    )


# Rule 5: new results, or none any more.


def test_the_number_in_a_name_is_one_more_than_the_largest_so_far(bench):
    bench.workunit()
    bench.result(OVER, NO_REPLY, name="w_7")
    bench.transition()
    assert bench.results("name") == ["w_7", "w_8"]


def test_output_files_have_names_that_cannot_be_guessed(bench):
    bench.workunit()
    bench.made("v")
    first, second = bench.results("random")
    assert first != second
    assert f"<name>w_0_r{first}_0</name>" in bench.results("xml_doc_in")[0]


def test_a_new_result_has_what_the_scheduler_needs_to_know(bench):
    bench.made(priority=4, app_version_num=7, batch=9)
    wanted = "priority, app_version_num, batch, appid"
    assert [*bench.rows(f"SELECT {wanted} FROM result")[0]] == [4, 7, 9, 1]


def test_the_output_template_is_read_when_a_result_is_made(bench):
    bench.made(target_nresults=1)
    bench.outputs(out("renamed"))
    bench.set("workunit", target_nresults=2, transition_time=NOW)
    bench.transition()
    first, second = bench.results("xml_doc_in")
    assert "<open_name>out</open_name>" in first
    assert "<open_name>renamed</open_name>" in second


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
