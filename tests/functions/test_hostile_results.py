"""A host returns what it likes: nothing is executed, and the call fails with words."""

import io
import json
import os
import pickle
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from boinc_gahp.functions.runner import DEEPEST, MOST_BYTES, RESULT, RETURNED
from boinc_gahp.functions.values import MOST_FILE_BYTES, WrongResult, read_result
from tests.functions.calls import CALL, forged, forged_bytes
from tests.helpers import ran

ARRAY = {"!": "array", "of": "0.npy"}


class Bomb:
    """Makes a file when it is unpickled."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return (Path.touch, (self.mark,))


def test_a_pickle_is_not_loaded(tmp_path):
    mark = tmp_path / "executed"
    with pytest.raises(WrongResult, match="not the JSON that was expected"):
        forged_bytes(tmp_path, pickle.dumps(Bomb(mark)))
    assert not mark.exists()


def test_an_array_with_a_pickle_is_not_loaded(tmp_path):
    mark = tmp_path / "executed"
    saved, archived = io.BytesIO(), io.BytesIO()
    np.save(saved, np.array([Bomb(mark)], object), allow_pickle=True)
    with zipfile.ZipFile(archived, "w") as archive:
        archive.writestr("a.npy", saved.getvalue())
    for data, words in (
        (saved.getvalue(), "pickled objects"),
        (pickle.dumps(Bomb(mark)), "no array"),
        (archived.getvalue(), "no array"),
    ):
        with pytest.raises(WrongResult, match=words):
            forged(tmp_path, {"value": ARRAY}, {"0.npy": data})
    assert not mark.exists()


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000, 1000000)}", "bytes of num"),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (-1, -1)}", "impossible shape"),
        ("{'descr': '<U0', 'fortran_order': False, 'shape': (9223372036854775807,)}", "impossible"),
        ("{'descr': '<U99999999', 'fortran_order': False, 'shape': (3,)}", "bytes of numbers"),
        ("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", "pickled objects"),
        ("{'descr': [('a', '|O')], 'fortran_order': False, 'shape': (1,)}", "pickled objects"),
        ("__import__('os').system('touch executed')", "no array"),
        ("(" * 9000, "no array"),
        ("{}", "no array"),
    ],
    ids=["terabytes", "negative", "empty", "wide", "objects", "hidden", "code", "deep", "no"],
)
def test_an_array_that_claims_what_it_is_not_is_refused(header, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    raw = header.encode() + b"\n"
    data = b"\x93NUMPY\x01\x00" + len(raw).to_bytes(2, "little") + raw + bytes(8)
    with pytest.raises(WrongResult, match=words):
        forged(tmp_path, {"value": ARRAY}, {"0.npy": data})
    assert not (tmp_path / "executed").exists()


def test_the_result_of_another_call_is_refused(tmp_path):
    for other in ("0" * 32, None, 0, [CALL], ""):
        with pytest.raises(WrongResult, match="the result of another call"):
            forged(tmp_path, {"value": 1}, call=other)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not the JSON"),
        (b"\xff\xfe", "not the JSON"),
        (b"[]", "not an object"),
        (b"[" * 1_000_000, "too deep"),
        pytest.param(b"[" + b"[]," * 3_200_000 + b"[]]", "too many lists", marks=pytest.mark.long),
        (b'{"format": 1, "call": "c0ffee", "value": ' + b"1" * 1_000_000 + b"}", "1,000,000 digi"),
        (b'{"format": 1, "call": "c0ffee", "value": NaN}', "NaN is no number"),
        (b'{"format": 1, "call": "c0ffee"}', "no value"),
        (b'{"format": 2, "call": "c0ffee", "value": 1}', "this version reads 1"),
        (b'{"format": "' + b"x" * 5000 + b'"}', "this version reads 1"),
        (b" " * (MOST_BYTES + 1), "no more than 10 MB are read"),
    ],
)
def test_json_that_is_too_much_or_wrong_is_refused(content, words, tmp_path):
    with pytest.raises(WrongResult, match=words) as found:
        forged_bytes(tmp_path, content)
    assert len(str(found.value)) < 400


WRONG: dict[str, list[Any]] = {
    "tuple": [3],
    "set": [[[1]]],
    "dict": [[[1]], [[[1], 2]]],
    "int": ["0xg", 1],
    "float": ["1e400", ["nan"]],
    "complex": [["a", 1]],
    "bytes": ["no base64!", "ü"],
    "str": ["//79"],
    "date": ["2020-13-01"],
    "datetime": [5],
    "timedelta": [[10**12, 0, 0], ["a", 0, 0]],
    "array": [5, "link", "pipe"],
    "table": ["0.csv"],
    "path": ["/etc/passwd", "../result.json", "..", ".", "", "a\0b", "link", "pipe"],
}
WITHOUT_A_KIND = ["nothing", ["list"], None, {"!": "dict", "of": []}]


@pytest.mark.parametrize(
    "value",
    [{"!": kind} for kind in WITHOUT_A_KIND]
    + [{"!": kind, "of": of} for kind, several in WRONG.items() for of in several],
    ids=json.dumps,
)
def test_a_value_of_a_wrong_form_is_refused(value, tmp_path):
    files = tmp_path / RETURNED
    files.mkdir(exist_ok=True)
    (files / "link").symlink_to("/etc/passwd")
    os.mkfifo(files / "pipe")
    with pytest.raises(WrongResult):
        forged(tmp_path, {"value": [value]})


def test_a_result_that_is_a_link_or_a_pipe_is_not_opened(tmp_path):
    for each in ("link", "pipe", "directory", "nothing"):
        (tmp_path / each).mkdir()
    (tmp_path / "link" / RESULT).symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "pipe" / RESULT)
    (tmp_path / "directory" / RESULT).mkdir()
    for name in ("link", "pipe", "directory", "nothing", "not-even-this"):
        with pytest.raises(WrongResult, match=r"result\.json"):
            read_result(tmp_path / name, CALL)


def test_a_file_beyond_a_gigabyte_is_not_read_into_memory(tmp_path):
    """The file is sparse: it takes no room here."""
    content = io.BytesIO()
    np.save(content, np.arange(3))
    forged(tmp_path, {"value": ARRAY}, {"0.npy": content.getvalue()})
    (path,) = tmp_path.rglob("0.npy")
    os.truncate(path, MOST_FILE_BYTES + 1)
    with pytest.raises(WrongResult, match="no more than 1 GB are read into memory"):
        read_result(path.parent, CALL)


COLUMN: dict[str, Any] = {"name": "a", "type": "int64", "missing": []}
SHAPE = {"columns": [COLUMN], "rows": 1, "index": False, "series": False}
WRONG_COLUMNS: list[Any] = [{**COLUMN, "type": kind} for kind in ("object", "O", "bool")]
WRONG_COLUMNS += [{**COLUMN, "missing": [0]}, {**COLUMN, "type": "str", "missing": [7]}]
WRONG_COLUMNS += [{**COLUMN, "name": 5}, "a"]
TABLE = {"!": "table", "of": "0.csv", **SHAPE}


@pytest.mark.parametrize(
    ("content", "changes"),
    [
        (b'"a"\n"1"\n"2"\n', {}),
        (b'"a"\n', {}),
        (b'"b"\n"1"\n', {}),
        (b'"a"\n"one"\n', {}),
        (b'"a"\n"' + b"1" * 500_000 + b'"\n', {}),
        (b'"a"\n"\xff"\n', {}),
        (b'"a"\n"1\n', {}),
        (b'"a"' + b",a" * 1_000_000, {}),
        (b'"a"\n"1"\n', {"rows": 10**12}),
        (b'"a"\n"1"\n', {"rows": -1}),
        (b'"a"\n"1"\n', {"columns": [COLUMN] * 20_000}),
        *((b'"a"\n"1"\n', {"columns": [each]}) for each in WRONG_COLUMNS),
        (b'"a"\n"1"\n', {"series": True, "columns": []}),
        (b"", {"series": True, "columns": [], "rows": 0}),
    ],
)
def test_a_table_of_a_wrong_form_is_refused(content, changes, tmp_path):
    value, _ = forged(tmp_path, {"value": TABLE}, {"0.csv": b'"a"\n"1"\n'})
    assert value["a"].tolist() == [1]
    with pytest.raises(WrongResult):
        forged(tmp_path, {"value": {**TABLE, **changes}}, {"0.csv": content})


def test_an_error_from_there_cannot_move_a_cursor_or_fill_a_screen(tmp_path):
    evil = "\x1b[2J\u202e\x07" + "x" * 1_000_000
    told = {"type": evil, "message": f"line\n{evil}", "traceback": evil}
    for outcome in ({"raised": told}, {"problem": evil}, {"problem": evil, "raised": told}):
        _, raised = forged(tmp_path, outcome)
        assert raised is not None
        for text in (raised.type_name, raised.message, raised.traceback):
            assert "\x1b" not in text
            assert "\u202e" not in text
            assert len(text) < 200_000


@pytest.mark.parametrize("told", [5, [], "x", {"type": 5, "message": [], "traceback": {}}], ids=str)
def test_an_error_of_a_wrong_form_is_an_error_nevertheless(told, tmp_path):
    assert forged(tmp_path, {"raised": told})[1] is not None


KINDS = ["tuple", "set", "dict", "int", "float", "complex", "bytes", "str", "date", "datetime"]
KINDS += ["time", "timedelta", "array", "scalar", "table", "path"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.text() | st.sampled_from(["!", "of", "columns", "rows"]), inner)
        | st.fixed_dictionaries({"!": st.sampled_from(KINDS), "of": inner})
    ),
)


@given(JSON)
def test_any_json_is_a_value_or_a_wrong_result(value):
    with tempfile.TemporaryDirectory() as directory:
        try:
            forged(Path(directory), {"value": value})
        except WrongResult as error:
            assert str(error)  # noqa: PT017


@given(st.binary(max_size=200))
def test_any_bytes_of_an_array_are_an_array_or_a_wrong_result(content):
    good = io.BytesIO()
    np.save(good, np.arange(3))
    raw = bytearray(good.getvalue())
    raw[6 : 6 + len(content)] = content
    with tempfile.TemporaryDirectory() as directory:
        for each in (bytes(raw), content, good.getvalue()[: len(content)]):
            try:
                forged(Path(directory), {"value": ARRAY}, {"0.npy": each})
            except WrongResult as error:
                assert str(error)  # noqa: PT017


READER = f"""
import resource, sys
from pathlib import Path
import boinc_gahp.functions.values as values
sys.setrecursionlimit(10**6)
resource.setrlimit(resource.RLIMIT_AS, ({1_500_000_000}, {1_500_000_000}))
try:
    values.read_result(Path("."), {CALL!r})
except values.WrongResult as error:
    print("refused:", error)
"""


@pytest.mark.processes
@pytest.mark.parametrize(
    "content",
    [
        b"[" * (MOST_BYTES - 1),
        b"[" + b"[]," * (MOST_BYTES // 3 - 2) + b"[]]",
        b'{"format": 1, "call": "c0ffee", "value": '
        + b"[" * (3 * DEEPEST - 1)
        + b"{}," * 900_000
        + b"{}"
        + b"]" * (3 * DEEPEST - 1)
        + b', "x": NaN}',
    ],
    ids=["deep", "many", "allowed"],
)
def test_the_memory_for_a_result_is_bounded_however_deep_calls_may_be(content, tmp_path):
    (tmp_path / RESULT).write_bytes(content)
    done = ran(sys.executable, "-c", READER, cwd=tmp_path, timeout=100)
    assert done.stdout.startswith("refused:"), done.stderr


@pytest.mark.parametrize("kind", ["set", "frozenset", "dict"])
@pytest.mark.parametrize("is_tuple", [False, True])
def test_keys_with_the_same_hash_are_refused(kind, is_tuple, tmp_path):
    # A set compares each with all the others: of 400,000 this takes a quarter of an hour.
    alike = [number * sys.hash_info.modulus for number in range(20_000)]
    if is_tuple:
        alike = [{"!": "tuple", "of": [each]} for each in alike]
    content = [[each, 0] for each in alike] if kind == "dict" else alike
    with pytest.raises(WrongResult, match="with the same hash"):
        forged(tmp_path, {"value": {"!": kind, "of": content}})


@pytest.mark.parametrize("told", [{"raised": 0}, {"raised": {"message": " "}}, {"problem": [1]}])
def test_a_failure_without_words_gets_some(told, tmp_path):
    value, raised = forged(tmp_path, told)
    assert value is None
    assert raised is not None
    assert raised.message == "the volunteer's computer did not say why"


@pytest.mark.parametrize("rows", [10**18, 10**30])
def test_a_table_without_columns_has_no_endless_index(rows, tmp_path):
    with pytest.raises(WrongResult, match="too large"):
        forged(tmp_path, {"value": {**TABLE, "columns": [], "rows": rows}}, {"0.csv": b"\n"})
