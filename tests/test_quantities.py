"""Sizes, time spans and numbers of operations, with units and without."""

import pytest
from hypothesis import given, strategies as st

from boinc_gahp.errors import BadRequest
from boinc_gahp.quantities import DELAY, DISK, LEASE, LONGEST, MEMORY, OPERATIONS, SPAN

ALL = (MEMORY, DISK, OPERATIONS, SPAN, DELAY, LEASE)


@pytest.mark.parametrize(
    ("kind", "given", "amount"),
    [
        (MEMORY, "500kB", 500_000),
        (MEMORY, "2GB", 2e9),
        (MEMORY, "2 gb", 2e9),
        (DISK, "2G", 2e9),
        (DISK, "1.5GiB", 1.5 * 2**30),
        (MEMORY, "3e6", 3e6),
        (MEMORY, "2000000", 2e6),
        (MEMORY, 5e8, 5e8),
        (MEMORY, "2B", 2),
        (DISK, "1PiB", 2**50),
        (OPERATIONS, "2e12", 2e12),
        (OPERATIONS, "2T", 2e12),
        (OPERATIONS, "5 GFLOP", 5e9),
        (OPERATIONS, "1.5tflops", 1.5e12),
        (DELAY, "86400", 86400),
        (DELAY, "30min", 1800),
        (DELAY, "30 s", 30),
        (DELAY, "1.5 days", 129600),
        (LEASE, "2w", 14 * 86400),
        (SPAN, "0", 0),
        (SPAN, 5, 5),
    ],
)
def test_a_quantity_has_a_unit_or_its_usual_one(kind, given, amount):
    assert kind.read(given) == amount


def test_whole_numbers_stay_whole():
    assert [repr(DELAY.read(given)) for given in (86400, "86400", "1d")] == ["86400"] * 3


@pytest.mark.parametrize(
    ("kind", "given", "said"),
    [
        (MEMORY, "2", "2 bytes of memory: did you mean 2MB or 2GB? (2B is taken as it is)"),
        (MEMORY, 2.0, "2 bytes of memory: did you mean 2MB or 2GB?"),
        (DISK, "999999", "999999 bytes of disk space: did you mean"),
        (DELAY, "7", "7 s for a volunteer to finish a job: did you mean 7h or 7d? (7s is taken"),
        (LEASE, 30, "a lease of 30 s: did you mean 30h or 30d?"),
        (OPERATIONS, "5", "5 floating-point operations: did you mean 5G or 5T? (5flop is taken"),
    ],
)
def test_a_number_that_is_far_too_small_is_a_slip(kind, given, said):
    with pytest.raises(BadRequest) as caught:
        kind.read(given)
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize(
    "given",
    ["", "GB", "-1", "2QB", "1e999", "1_000", "٣", "inf", "nan", -1, float("nan"), True, None],
    ids=repr,
)
def test_what_is_no_quantity_is_reported(kind, given):
    with pytest.raises(BadRequest) as caught:
        kind.read(given)
    assert f"{given!r} is not a {kind.noun}: {kind.form}" in str(caught.value)


@pytest.mark.parametrize("kind", [SPAN, DELAY, LEASE])
def test_nothing_takes_longer_than_a_hundred_years(kind):
    assert kind.read(LONGEST) == LONGEST
    with pytest.raises(BadRequest, match="longer than a hundred years"):
        kind.read("36526d")


@given(st.sampled_from(ALL), st.text() | st.integers() | st.floats())
def test_anything_is_a_good_amount_or_a_refusal_on_one_line(kind, given):
    said = ""
    amount = 0
    try:
        amount = kind.read(given)
    except BadRequest as error:
        said = str(error)
    assert "\n" not in said
    assert 0 <= amount < float("inf")
    assert type(amount) in (int, float)
