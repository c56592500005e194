"""The container engine of tests: it works, and has nothing to do with the machine's own."""

import pytest

from tests.containers_engine import IMAGE

pytestmark = [pytest.mark.containers, pytest.mark.processes]


def test_a_container_runs_and_nothing_is_left_of_it(engine):
    assert (
        engine("run", "--rm", "--network", "none", IMAGE, "sh", "-c", "echo $((6 * 7))") == "42\n"
    )
    assert (engine.containers(), engine.images()) == (set(), {f"{IMAGE}:latest"})


def test_the_store_is_the_tests_own(engine):
    assert engine("info", "--format", "{{.Store.GraphRoot}}").startswith(
        str(engine.directory.parent)
    )
    assert engine.archive().stat().st_size > 0
