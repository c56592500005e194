"""What query_batch2 relies on: each change of a workunit is dated when it is made."""

import time

import pytest

from boinc_gahp.localproject.backend import batches


def _cancel(bench):
    with bench.core.db.write() as connection:
        batches.cancel_jobs(connection, "id = ?", (1,))


def _sent(bench):
    bench.made()
    assert bench.send() is not None


def _answered(bench):
    bench.made()
    bench.compute(b"out")


def _to_be_validated(bench):
    _answered(bench)
    bench.transition()


def _to_be_assimilated(bench):
    _to_be_validated(bench)
    bench.validate()


def _without_version(bench):
    bench.made(app_version_num=999)


def _ready(bench):
    bench.made()


@pytest.mark.parametrize(
    ("before", "change"),
    [
        pytest.param(lambda bench: bench.workunit(), lambda b: b.transition(), id="transitioner"),
        pytest.param(_ready, lambda b: b.send(), id="sent"),
        pytest.param(_without_version, lambda b: b.send(), id="could not be sent"),
        pytest.param(_ready, lambda b: b.compute(b"out"), id="reported"),
        pytest.param(_to_be_validated, lambda b: b.validate(), id="validator"),
        pytest.param(_to_be_assimilated, lambda b: b.assimilate(), id="assimilator"),
        pytest.param(_sent, _cancel, id="cancelled"),
    ],
)
def test_a_change_is_dated_when_it_is_made_not_when_its_pass_began(bench, before, change):
    before(bench)
    bench.set("workunit", mod_time=0)
    begin = time.time()
    change(bench)
    assert begin <= bench.wu["mod_time"] <= time.time()
