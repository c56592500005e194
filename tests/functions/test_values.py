"""Values come back exactly as the function returned them, or are refused in words."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from boinc_gahp.functions.runner import DEEPEST, Encoder, Problem
from tests.functions.calls import there_and_back

ZONES = st.none() | st.builds(
    datetime.timezone,
    st.timedeltas(min_value=datetime.timedelta(hours=-23), max_value=datetime.timedelta(hours=23)),
)
HASHABLE = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=2**70).map(lambda number: -number)
    | st.floats()
    | st.complex_numbers()
    | st.text(st.characters())
    | st.binary()
    | st.dates()
    | st.datetimes(timezones=ZONES)
    | st.times()
    | st.timedeltas()
)
VALUES = st.recursive(
    HASHABLE | st.binary().map(bytearray),
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.sets(HASHABLE)
        | st.frozensets(HASHABLE)
        | st.dictionaries(st.text(), inner)
        | st.dictionaries(st.just("!") | HASHABLE, inner)
    ),
    max_leaves=12,
)


def shown(value):
    """Return what tells values apart: types, too, and the sign of zero; NaN is as any other."""
    kind = type(value).__name__
    if isinstance(value, (list, tuple)):
        return kind, [*map(shown, value)]
    if isinstance(value, (set, frozenset)):
        return kind, sorted(map(repr, value))
    if isinstance(value, dict):
        return kind, shown([*value.items()])
    return kind, repr(value)


@given(VALUES)
def test_a_value_comes_back_as_it_was(value):
    with tempfile.TemporaryDirectory() as directory:
        found = there_and_back(value, Path(directory))
    assert shown(found) == shown(value)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6.0).reshape(2, 3),
        np.asfortranarray(np.arange(6, dtype="<i2").reshape(2, 3)),
        np.array(3 + 1j),
        np.zeros((0, 5)),
        np.array(["a", "ü"]),
        np.array(["2020-01-01", "NaT"], "datetime64[ns]"),
        np.array([(1, 2.5)], dtype=[("a", "i4"), ("b", ">f8")]),
        np.array([np.nan, np.inf, -0.0], "f4"),
    ],
    ids=lambda array: f"{array.dtype}-{array.shape}",
)
def test_an_array_comes_back_as_it_was(array, tmp_path):
    found = there_and_back({"array": [array]}, tmp_path)["array"][0]
    assert found.dtype == array.dtype
    assert found.shape == array.shape
    assert found.tobytes() == array.tobytes()


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (np.float64(0.1), 0.1),
        (np.float32(0.5), 0.5),
        (np.int8(-3), -3),
        (np.bool_(True), True),
        (np.complex128(1 + 2j), 1 + 2j),
        (np.datetime64("2020-01-01"), np.datetime64("2020-01-01")),
    ],
    ids=lambda each: type(each).__name__,
)
def test_a_number_of_numpy_is_one_of_python(number, expected, tmp_path):
    assert shown(there_and_back(number, tmp_path)) == shown(expected)


def test_a_table_comes_back_as_it_was(tmp_path):
    table = pd.DataFrame(
        {
            "whole": np.array([1, -(2**63)], "int64"),
            "unsigned": np.array([0, 2**64 - 1], "uint64"),
            "small": np.array([1, 2], "int8"),
            "real": [0.1, float("nan")],
            "single": np.array([0.1, np.inf], "float32"),
            "truth": [True, False],
            "words": ['two "words", ü\r\nlines', None],
            "NA": ["", "NA"],
            "time": np.array(["2020-01-01T00:00:00.000000001", "NaT"], "datetime64[ns]"),
        }
    )
    pd.testing.assert_frame_equal(there_and_back(table, tmp_path), table)


def test_a_table_keeps_its_index_and_a_series_its_name(tmp_path):
    grouped = pd.DataFrame({"g": ["a", "b", "a"], "x": [1.5, 2.5, 3.5]}).groupby("g").mean()
    series = pd.Series([1, 2], name="x", index=[5, 7])
    found = there_and_back((grouped, series), tmp_path)
    pd.testing.assert_frame_equal(found[0], grouped)
    pd.testing.assert_series_equal(found[1], series)


@pytest.mark.parametrize("table", [pd.DataFrame(), pd.DataFrame({"a": np.array([], "float64")})])
def test_an_empty_table_comes_back(table, tmp_path):
    found = there_and_back(table, tmp_path)
    assert found.shape == table.shape
    assert list(found.columns) == list(table.columns)


@given(st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.floats(), st.text())))
def test_the_cells_of_a_table_are_exact(rows):
    whole, real, words = zip(*rows, strict=True) if rows else ((), (), ())
    table = pd.DataFrame(
        {
            "whole": np.array(whole, "int64"),
            "real": np.array(real, "float64"),
            "words": pd.Series(words, dtype=object),
        }
    )
    with tempfile.TemporaryDirectory() as directory:
        found = there_and_back(table, Path(directory))
    assert found["whole"].tolist() == list(whole)
    assert shown(found["real"].tolist()) == shown([float(each) for each in real])
    assert found["words"].tolist() == list(words)


def test_a_file_and_a_directory_come_back_under_their_names(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "plot.png").write_bytes(b"one")
    (tmp_path / "plot.png").write_bytes(b"two")
    value = [tmp_path / "plot.png", tmp_path / "a" / "plot.png", tmp_path / "a"]
    one, other, directory = there_and_back(value, tmp_path)
    assert one.read_bytes() == b"two"
    assert other.read_bytes() == b"one"
    assert (directory / "plot.png").read_bytes() == b"one"
    assert one.name.endswith("plot.png")


@dataclasses.dataclass
class Point:
    x: int


Pair = collections.namedtuple("Pair", "one other")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (Point(1), r"Point, which cannot be sent back: return dataclasses\.asdict"),
        ({"p": [Point(1)]}, r"a value whose \['p'\]\[0\] has the type .*Point"),
        (Pair(1, 2), r"Pair, .*_asdict"),
        (collections.Counter("aa"), r"collections\.Counter, .* return dict\(\.\.\.\) of it"),
        (iter([1]), r"list_iterator, .* return list\(\.\.\.\) of it"),
        (len, "builtin_function_or_method, .*or the Path of a file"),
        (Path(), "the directory that it ran in"),
        (Path("nothing-here"), "there is no such file"),
        (np.array([1, "a", None], object), "array of objects"),
        (pd.DataFrame({"a": [[1]]}), "column 'a' has values of the type list"),
        (pd.DataFrame({1: [1]}), "column 1 is not called by a text"),
        (pd.DataFrame({"a": pd.Categorical(["x"])}), "column 'a' has the type category"),
    ],
    ids=lambda each: "" if isinstance(each, str) else type(each).__name__,
)
def test_what_cannot_come_back_is_named_with_a_remedy(value, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Problem, match=words):
        Encoder(tmp_path).encode(value)


def test_what_is_too_deep_or_contains_itself_is_refused(tmp_path):
    round_and_round = []
    round_and_round.append(round_and_round)
    with pytest.raises(Problem, match=f"more than {DEEPEST} deep"):
        Encoder(tmp_path).encode(round_and_round)


def test_what_is_as_deep_as_allowed_comes_back(tmp_path):
    value = 1
    for number in range(DEEPEST // 2 + 1):
        value = ({("k",): value},) if number % 2 else [value]
    assert there_and_back(value, tmp_path) == value
