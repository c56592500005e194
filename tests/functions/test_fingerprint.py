"""The same function and arguments have the same fingerprint in each interpreter; others do not."""

import importlib
import sys

import pytest
from hypothesis import given, strategies as st

from boinc_gahp.errors import BadRequest
from boinc_gahp.functions._fingerprint import fingerprint
from boinc_gahp.functions.payload import pack_call, pack_function
from tests.helpers import ran

PROGRAM = """\
import enum, math
from dataclasses import dataclass
NAMES = {"alpha", "beta", "gamma", "delta", "two words"}
SCALE = "two words"
class Point:
    '''A point.'''
    kinds = frozenset(NAMES)
    def __init__(self, x):
        self.x = x
        self.yy = self.zz = self.ww = x
@dataclass
class Other:
    a: int = 1
class Colour(enum.Enum):
    RED = 1
def helper(n):
    return 1 if n < 2 else n * helper(n - 1)
def make(k):
    def inner(x, *, scale=SCALE):
        return x in {"a", "b", "c"}, k
    return inner
def f(x, names=NAMES):
    '''Says something.'''
    p = Point(x)
    def g(y):
        return math.sin(y) + p.x
    return [g(n) for n in range(3)], helper(3), SCALE, Other(), Colour.RED, make(2)(x), "two words"
"""
PRINT = """
from boinc_gahp.functions.payload import pack_call, pack_function
sent = pack_function(f)
call = pack_call(sent, ({"x", "y", "z", "two words"}, Point(3), make(1)), {"k": SCALE})
print(sent.fingerprint, call.key)
"""


def run(path, text, seed, *arguments):
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    done = ran(sys.executable, *(arguments or (path,)), environ={"PYTHONHASHSEED": str(seed)})
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.processes
def test_fingerprints_are_the_same_in_other_interpreters_files_and_cells(tmp_path):
    text = PROGRAM + PRINT
    cells = f"for cell in {[PROGRAM, PRINT]!r}: exec(compile(cell, f'<cell {{id(cell)}}>', 'exec'))"
    found = {
        run(tmp_path / "one.py", text, 1),
        run(tmp_path / "b" / "other.py", "# one line more\n" + text, 2),
        run(tmp_path / "three.py", text.replace("def f(", "# and here\n\n\ndef f("), 3),
        run(tmp_path / "four.py", "", 4, "-c", cells),
    }
    assert len(found) == 1, found


@pytest.mark.processes
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("range(3)", "range(4)"),
        ("math.sin", "math.cos"),
        ("n * helper", "n + helper"),
        ("self.x = x", "self.x = -x"),
        ('"delta"', '"epsilon"'),
        ("a: int = 1", "a: int = 2"),
        ("RED = 1", "RED = 2"),
        ("make(2)", "make(2.0)"),
        ("return x in", "return x not in"),
        ('{"a", "b", "c"}', '{"a", "b", "d"}'),
        ("def f(x, ", "def f(x=0, "),
    ],
)
def test_another_function_has_another_fingerprint(old, new, tmp_path):
    assert old in PROGRAM
    first = run(tmp_path / "one.py", PROGRAM + PRINT, 1).split()
    second = run(tmp_path / "one.py", PROGRAM.replace(old, new) + PRINT, 1).split()
    assert first[0] != second[0]
    assert first[1] != second[1]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
)


@given(VALUES, VALUES)
def test_values_have_the_same_fingerprint_if_they_print_the_same(one, other):
    assert (fingerprint(one) == fingerprint(other)) == (repr(one) == repr(other))


def test_it_does_not_matter_whether_equal_texts_are_one_object():
    word = "two words"
    copy = "".join(["two ", "words"])
    assert word is not copy
    assert fingerprint([word, word]) == fingerprint([word, copy])


def test_sets_that_share_sets_are_pickled_once_each():
    shared = frozenset({1})
    for _ in range(60):
        shared = frozenset({(shared, 0), (shared, 1)})
    assert fingerprint(shared) == fingerprint(shared)


class _Node:
    def __init__(self):
        self.children = {self}


def test_a_set_that_contains_itself_is_refused():
    with pytest.raises(BadRequest, match="cannot be sent: ValueError: a set contains itself"):
        pack_call(pack_function(abs), [_Node()])


def test_a_module_is_known_by_its_contents_and_not_by_its_place(tmp_path, monkeypatch):
    def of_module(place, factor):
        place.mkdir()
        (place / "own_module.py").write_text(f"def twice(x):\n    return {factor} * x\n")
        monkeypatch.syspath_prepend(place)
        sys.modules.pop("own_module", None)
        own = importlib.import_module("own_module")
        return pack_function(lambda x: own.twice(x) + 1, [own]).fingerprint

    first = of_module(tmp_path / "a", 2)
    assert of_module(tmp_path / "b", 2) == first
    assert of_module(tmp_path / "c", 3) != first
