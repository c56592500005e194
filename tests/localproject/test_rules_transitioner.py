"""Rules of ``back-end.rst``, "Transitioner", that no history shows (``test_histories.py``)."""

from boinc_gahp.localproject.states import AssimilateState, ErrorMask
from tests.localproject.bench import NO_REPLY, NOW, OVER
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
