"""Outputs that the volunteer compressed."""

import gzip

import pytest
from hypothesis import given, strategies as st

from boinc_gahp.errors import OutputError
from boinc_gahp.fetch._download import gunzip


def cut(data, size):
    return (data[at : at + size] for at in range(0, len(data), size))


def unpacked(data, size=1000):
    return b"".join(gunzip(cut(data, size), "output 'out'"))


@given(st.binary(max_size=2000), st.integers(1, 50))
def test_gzip_data_are_unpacked_however_they_are_cut(data, size):
    assert unpacked(gzip.compress(data), size) == data


@given(st.lists(st.binary(max_size=50), min_size=1, max_size=4), st.integers(0, 3))
def test_members_follow_each_other_and_zeros_may_follow_them(members, padding):
    data = b"".join(map(gzip.compress, members)) + bytes(padding)
    assert unpacked(data, 7) == b"".join(members)


@given(st.binary().filter(lambda data: not data.startswith(b"\x1f\x8b")), st.integers(1, 9))
def test_data_that_are_no_gzip_pass_as_they_are(data, size):
    assert unpacked(data, size) == data


@given(st.binary(min_size=1, max_size=300), st.data())
def test_data_that_end_too_soon_are_an_error(data, draw):
    packed = gzip.compress(data)
    end = draw.draw(st.integers(2, len(packed) - 1))
    with pytest.raises(OutputError, match="its gzip data"):
        unpacked(packed[:end])


def test_damaged_data_are_an_error():
    packed = bytearray(gzip.compress(bytes(range(256)) * 10))
    packed[-6] ^= 1
    with pytest.raises(OutputError, match="its gzip data are damaged"):
        unpacked(bytes(packed))


def test_no_piece_is_larger_than_a_mebibyte():
    packed = gzip.compress(bytes(5_000_000))
    pieces = [len(data) for data in gunzip(cut(packed, 10**9), "output 'out'")]
    assert sum(pieces) == 5_000_000
    assert max(pieces) <= 1 << 20
