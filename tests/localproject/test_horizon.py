"""What query_batch2 relies on: no change is dated before a moment at which it was not yet seen."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from boinc_gahp.localproject import Quirks
from boinc_gahp.localproject.backend import batches
from boinc_gahp.localproject.backend.create_work import NewJob, create_work
from boinc_gahp.localproject.core import Core

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.localproject.bench import Bench


def _cancel(bench: Bench) -> None:
    with bench.core.db.write() as connection:
        batches.cancel_jobs(connection, "id = ?", (1,))


def _sent(bench: Bench) -> None:
    bench.made()
    assert bench.send() is not None


def _answered(bench: Bench) -> None:
    bench.made()
    bench.compute(b"out")


def _to_be_validated(bench: Bench) -> None:
    _answered(bench)
    bench.transition()


def _to_be_assimilated(bench: Bench) -> None:
    _to_be_validated(bench)
    bench.validate()


def _without_version(bench: Bench) -> None:
    bench.made(app_version_num=999)


def _ready(bench: Bench) -> None:
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
def test_a_change_is_dated_when_it_is_made_not_when_its_pass_began(
    bench: Bench, before: Callable[[Bench], object], change: Callable[[Bench], object]
) -> None:
    before(bench)
    bench.set("workunit", mod_time=0)
    begin = time.time()
    change(bench)
    assert begin <= bench.wu["mod_time"] <= time.time()


def test_the_horizon_is_not_after_the_begin_of_a_change_that_is_not_yet_seen(bench: Bench) -> None:
    with bench.core.db.write() as connection:
        horizon = bench.core.db.horizon()
        (dated,) = connection.execute("SELECT clock()").fetchone()
        assert bench.core.db.horizon() == horizon <= dated
    assert bench.core.db.horizon() >= dated


def test_jobs_that_another_process_makes_are_dated_anew_once_they_can_be_seen(
    bench: Bench,
) -> None:
    bench.core.download.add_bytes("in.txt", b"x")
    other = Core(bench.directory, Quirks())
    with closing(other.db):
        create_work(other, "uppercase", [NewJob(name="j", files=("in.txt",))])
    # Of a query between the moment at which the other one dated them and its commit.
    horizon = bench.core.db.horizon()
    bench.now = time.time()
    assert bench.transition() == 1
    assert bench.wu["mod_time"] >= horizon
