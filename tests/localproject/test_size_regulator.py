"""Size classes: results that are made INACTIVE, and let out bit by bit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boinc_gahp.localproject.backend.size_regulator import regulate_pass
from tests.localproject.bench import IN_PROGRESS, INACTIVE, UNSENT

if TYPE_CHECKING:
    from tests.localproject.bench import Bench


def test_results_of_an_app_with_size_classes_wait_for_the_size_regulator(bench: Bench) -> None:
    bench.set("app", "id = 1", n_size_classes=2)
    bench.workunit(size_class=0, target_nresults=3)
    bench.made("v", size_class=1, target_nresults=2)
    assert bench.results("server_state") == [INACTIVE] * 5
    assert regulate_pass(bench.core, low=1, high=2) == 4
    assert bench.results("server_state") == [UNSENT, UNSENT, INACTIVE, UNSENT, UNSENT]
    assert regulate_pass(bench.core, low=1, high=2) == 0
    bench.set("result", "id = 1", server_state=IN_PROGRESS)
    assert regulate_pass(bench.core, low=1, high=2) == 0
    bench.set("result", "id = 2", server_state=IN_PROGRESS)
    assert regulate_pass(bench.core, low=1, high=2) == 1
    assert bench.results("server_state")[2] == UNSENT


def test_the_size_regulator_lets_higher_priority_out_first(bench: Bench) -> None:
    bench.set("app", "id = 1", n_size_classes=2)
    bench.workunit("low", priority=1)
    bench.made("high", priority=5)
    regulate_pass(bench.core, low=1, high=1)
    assert bench.results("server_state") == [INACTIVE, UNSENT]


def test_results_that_were_made_for_size_classes_do_not_wait_for_ever(bench: Bench) -> None:
    bench.set("app", "id = 1", n_size_classes=2)
    bench.made(target_nresults=3)
    bench.set("app", "id = 1", n_size_classes=0)
    regulate_pass(bench.core, low=1, high=1)
    assert bench.results("server_state") == [UNSENT] * 3
