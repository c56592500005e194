"""What query_batch2 relies on: each change of a workunit is dated when it is made."""

import time

from boinc_gahp.localproject.backend import batches


def _dated(bench, change):
    """Check that a change dates the first workunit with the clock, not with its pass's time."""
    bench.set("workunit", mod_time=0)
    begin = time.time()
    done = change()
    assert begin <= bench.wu["mod_time"] <= time.time(), change
    return done


def test_each_change_is_dated_when_it_is_made_not_when_its_pass_began(bench):
    bench.workunit()
    _dated(bench, bench.transition)
    task = _dated(bench, bench.send)
    _dated(bench, lambda: bench.answer(task))
    bench.transition()
    _dated(bench, bench.validate)
    _dated(bench, bench.assimilate)


def test_a_workunit_that_cannot_be_sent_or_is_cancelled_is_dated_then(bench):
    def cancel():
        with bench.core.db.write() as connection:
            batches.cancel_jobs(connection, "id = ?", (1,))

    bench.made(app_version_num=999)
    _dated(bench, bench.send)
    _dated(bench, cancel)
