"""What query_batch2 relies on: each change of a workunit is dated when it is made."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from boinc_gahp.localproject.backend import batches

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
