"""Batches of people do not end while somebody watches them, nor soon when nobody does."""

import itertools
import math
import time
from dataclasses import replace

import pytest

from boinc_gahp.localproject.backend import cleaning
from boinc_gahp.submit.types import Parameters
from boinc_gahp.templates.writing import write_input_template
from tests.api.conftest import QUICK, inline
from tests.faultproxy import status

_A_DAY = 86400.0


def left(batch):
    """Return for how many days the project keeps a batch from now."""
    end = batch.refresh().expire_time
    return math.inf if end is None else (end - time.time()) / _A_DAY


def leased(site, seconds, jobs=1):
    """Return a batch that the project keeps for so long."""
    batch = site.batch(jobs)
    site.project.rpc.set_expire_time(time.time() + seconds, batch_id=batch.id)
    return batch.refresh()


class Enough(Exception):
    """A batch was looked at often enough."""


def wait_a_while(batch):
    """Wait for a batch until it was looked at three times."""
    looks = itertools.count(1)

    def see(_):
        if next(looks) == 3:
            raise Enough

    with pytest.raises(Enough):
        batch.wait(poll=QUICK, progress=see)


def test_a_batch_is_kept_for_two_weeks_at_least_and_for_all_deadlines_and_retries(site):
    plain = site.submit(1)
    assert left(plain) == pytest.approx(14, abs=0.1)
    template = site.project.app("uppercase").input_template
    slow = write_input_template(
        type(template)(
            template.files, delay_bound=20 * _A_DAY, max_error_results=3, max_total_results=10
        )
    )
    own = [replace(inline()[0], input_template=slow)]
    batch = site.submit(own, name="slow")
    assert left(batch) == pytest.approx(20 * (3 + 1 + 1), abs=0.1)
    # What is asked for is filled into the template, and counts.
    needs = Parameters(delay_bound=40 * _A_DAY)
    assert site.plan(own, parameters=needs).lease == 200 * _A_DAY
    assert site.plan([*inline(), replace(inline()[0], delay="60d")]).lease > 100 * _A_DAY
    assert site.plan(inline()).lease == 14 * _A_DAY


def test_a_batch_that_is_waited_for_does_not_end(site):
    batch = leased(site, 60)
    wait_a_while(batch)
    assert left(batch) == pytest.approx(14, abs=0.1)
    # Once a day is enough.
    assert site.proxy.count("set_expire_time") == 2


def test_a_batch_that_is_fetched_from_does_not_end(site, tmp_path):
    batch = leased(site, 60)
    batch.fetch(tmp_path / "out")
    assert left(batch) == pytest.approx(14, abs=0.1)
    other = leased(site, 60)
    other.fetch_zip(tmp_path / "out.zip")
    assert left(other) == pytest.approx(14, abs=0.1)


@pytest.mark.parametrize("days", [13.5, 60, math.inf])
def test_a_renewal_makes_no_lease_shorter(site, tmp_path, days):
    batch = leased(site, 60)
    other = site.project.batch(batch.id)
    other.extend(time.time() + days * _A_DAY)
    # The first handle knows nothing of that.
    batch.fetch(tmp_path / "out")
    wait_a_while(batch)
    assert left(batch) == pytest.approx(days, abs=0.1)


def test_a_submit_that_finds_its_batch_there_renews_its_lease(site):
    batch = site.submit(1, lease=60)
    assert left(batch) < 1
    assert site.submit(1).existed
    assert left(batch) == pytest.approx(14, abs=0.1)


def test_a_project_that_renews_no_lease_is_waited_for_all_the_same(site):
    batch = leased(site, 60)
    site.proxy.fail("set_expire_time", status(500), times=1000)
    wait_a_while(batch)
    assert batch.trouble is None
    assert left(batch) < 1
    # Once by the test; then by one attempt, and what it was repeated.
    asked = site.proxy.count("set_expire_time")
    wait_a_while(batch)
    assert site.proxy.count("set_expire_time") == asked


def test_what_ended_a_batch_is_reported(site):
    batch = leased(site, 60)
    site.project.rpc.set_expire_time(time.time() - 60, batch_id=batch.id)
    cleaning.expire_batches(site.local.core, time.time())
    assert batch.refresh().state.name == "RETIRED"
    assert batch.lease_is_over
    with pytest.raises(TimeoutError):
        # What is over is not kept.
        leased(site, 60).wait(timeout=0, poll=QUICK)
    other = leased(site, 60)
    other.retire()
    assert not other.lease_is_over
