"""Which waiting jobs go together, and when."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given, strategies as st

from boinc_gahp.config.settings import HTCondor
from boinc_gahp.htcondor._batching import due_batches

NOW = 1_800_000_000.0
SETTINGS = HTCondor(send_after=2.0, longest_wait=10.0, batch_jobs=100)


def most_bytes(group_key):
    return 500 if group_key == "x" else 10_000


def job(number, group_key, age, size):
    """Return what is needed of a job in the ledger."""
    return SimpleNamespace(id=number, group_key=group_key, accepted=NOW - age, size=size)


def waiting(*ages, group_key="a", size=10, first=1):
    """Return jobs that were accepted so many seconds ago."""
    return [job(number, group_key, age, size) for number, age in enumerate(ages, first)]


@pytest.mark.parametrize(
    ("ages", "ripe_now", "next_"),
    [
        pytest.param((2.5,), True, None, id="quiet"),
        pytest.param((5.0, 1.5), False, 0.5, id="one has just come"),
        pytest.param((10.5, 0.1), True, None, id="the oldest has waited long enough"),
        pytest.param((9.5, 0.1), False, 0.5, id="the oldest has nearly"),
        pytest.param((-3600.0,), True, None, id="the clock was set back"),
    ],
)
def test_a_group_goes_when_no_new_job_comes_and_at_the_latest_after_the_longest_wait(
    ages, ripe_now, next_
):
    jobs = waiting(*ages)
    batches, at = due_batches(jobs, NOW, SETTINGS, most_bytes)
    assert batches == ([jobs] if ripe_now else [])
    assert at == (None if next_ is None else pytest.approx(NOW + next_))


def test_groups_wait_each_for_itself():
    old, new = waiting(3.0, 2.5), waiting(1.0, group_key="b", first=3)
    assert due_batches([*old, *new], NOW, SETTINGS, most_bytes) == ([old], NOW + 1.0)


def test_full_batches_go_at_once_and_the_rest_waits():
    jobs = waiting(*[0.0] * 250)
    batches, at = due_batches(jobs, NOW, SETTINGS, most_bytes)
    assert [len(batch) for batch in batches] == [100, 100]
    assert at == NOW + 2.0
    assert due_batches(jobs[:100], NOW, SETTINGS, most_bytes) == ([jobs[:100]], None)


@given(
    st.lists(
        st.tuples(st.sampled_from("xyz"), st.floats(0, 30), st.integers(1, 20_000)), max_size=40
    ),
    st.integers(1, 7),
)
def test_each_job_is_in_one_batch_at_most_in_order_and_no_batch_is_too_large(given_jobs, most):
    settings = replace(SETTINGS, batch_jobs=most)
    jobs = [job(number, *each) for number, each in enumerate(given_jobs)]
    batches, at = due_batches(jobs, NOW, settings, most_bytes)
    planned = [job.id for batch in batches for job in batch]
    assert len(planned) == len(set(planned))
    for batch in batches:
        ids = [job.id for job in batch]
        assert ids == sorted(ids)
        assert len({job.group_key for job in batch}) == 1
        assert len(batch) <= most
        limit = 500 if batch[0].group_key == "x" else 10_000
        assert len(batch) == 1 or sum(job.size for job in batch) <= limit
    # What is left is due some time; then everything goes.
    assert (at is None) == (len(planned) == len(jobs))
    rest, _ = due_batches(jobs, NOW + 10.1, settings, most_bytes)
    assert sum(map(len, rest)) == len(jobs)
