"""The runner calls the function in a directory that has nothing but what was sent."""

import ast
import functools
import operator
import os
import shutil
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from boinc_gahp import functions
from boinc_gahp.errors import BadRequest
from boinc_gahp.extras import MissingExtra
from boinc_gahp.functions.payload import (
    MOST_INLINE,
    PYTHON,
    pack_call,
    pack_function,
    shared_files,
    words,
)
from boinc_gahp.functions.runner import MOST_BYTES, MOST_MESSAGE, MOST_TRACEBACK, RESULT, RETURNED
from tests.functions.calls import Place

RUNNER = Path(functions.__file__).with_name("runner.py")


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


def power(number, exponent=2):
    return int(number**exponent)


class Adder:
    def __init__(self, number):
        self.number = number

    def __call__(self):
        return self.number + 5

    def value(self):
        return self.number


def helped(number):
    return power(number) + 1


class Unhappy(Exception):
    pass


def unhappy(number):
    raise Unhappy(f"no {number} \x1b[31m")


def writes():
    Path("result.json").write_text("mine")
    Path("a.txt").write_text("text")
    return [Path("result.json"), Path("a.txt")]


def total(array):
    return array.sum(), array * 2


def endless():
    endless()


@pytest.mark.processes
@pytest.mark.parametrize(
    ("function", "args", "value"),
    [
        (power, (3, 4), 81),
        (helped, (3,), 10),
        (Adder.value, (Adder(7),), 7),
        (functools.partial(power, exponent=3), (5,), 125),
        (lambda: 25, (), 25),
        (Adder(20), (), 25),
        (Adder(25).value, (), 25),
    ],
    ids=["function", "helped", "own class", "partial", "lambda", "callable", "method"],
)
def test_a_function_is_any_callable_and_brings_what_its_module_defines(
    function, args, value, place
):
    assert place.value(function, *args) == value


@pytest.mark.processes
def test_a_large_argument_is_a_file_and_a_small_one_is_a_word(place):
    array = np.arange(MOST_INLINE)
    for each in (array, array[:3]):
        added, twice = place.value(total, each)
        assert added == each.sum()
        assert (twice == 2 * each).all()
        assert place.call.is_file == (len(each) > 3)
        assert all(len(word) < 2 * MOST_INLINE for word in words(place.function, place.call))


@pytest.mark.processes
def test_what_is_raised_comes_back_with_its_traceback_and_source(place):
    raised = place.raised(unhappy, 3)
    assert raised.type_name.endswith("Unhappy")
    assert raised.message == r"no 3 \x1b[31m"
    assert 'raise Unhappy(f"no {number}' in raised.traceback
    assert "boinc_gahp_call.py" not in raised.traceback
    assert "\x1b" not in raised.traceback
    assert "Unhappy: no 3" in place.stderr


@pytest.mark.processes
@pytest.mark.parametrize(
    ("function", "args", "expected"),
    [
        (sys.exit, (3,), "SystemExit"),
        (__import__, ("nothing_like_this",), "ModuleNotFoundError"),
        (endless, (), "RecursionError"),
        (power, ("a", "b"), "TypeError"),
        (power, (), "TypeError"),
        (operator.getitem, ({}, "x" * 1_000_000), "KeyError"),
    ],
    ids=["exit", "no module", "recursion", "type", "arguments", "long"],
)
def test_whatever_is_raised_is_told_and_not_at_any_length(function, args, expected, place):
    raised = place.raised(function, *args)
    assert raised.type_name == expected
    assert expected in raised.traceback
    assert len(raised.traceback) < 2 * MOST_TRACEBACK
    assert len(raised.message) < 2 * MOST_MESSAGE


@pytest.mark.processes
def test_a_value_that_cannot_come_back_is_named(place):
    raised = place.raised(lambda: {"here": [threading.Lock()]})
    assert raised.type_name == ""
    assert "a value whose ['here'][0] has the type _thread.lock" in raised.message
    raised = place.raised(bytes, MOST_BYTES)
    assert "no more than 10,000,000 are read" in raised.message


@pytest.mark.processes
def test_a_process_that_vanishes_leaves_no_result_also_if_it_began_anew(place):
    place.value(power, 3)
    place.send(os._exit, 3)
    assert place.run() == 3
    assert not (place.directory / RETURNED / RESULT).exists()


@pytest.mark.processes
def test_files_of_the_function_come_back_also_under_our_own_names(place):
    for _ in range(2):  # switched off, and begun anew
        one, other = place.value(writes)
        assert one.read_text() == "mine"
        assert other.read_text() == "text"


PYTHONS = sorted(Path("~/.pyenv/versions").expanduser().glob("3.*/bin/python"))


@pytest.mark.processes
@pytest.mark.parametrize("python", PYTHONS, ids=lambda path: str(path.parent.parent.name))
def test_another_version_of_python_says_which_image_to_take(python, place):
    version = python.parent.parent.name
    if tuple(map(int, version.split(".")[:2])) < (3, 8):
        pytest.skip("no image has it")
    if version.startswith(f"{PYTHON}."):
        assert place.value(power, 2, python=python) == 4
    else:
        assert f"such as python:{PYTHON}-slim" in place.raised(power, 2, python=python).message


@pytest.mark.processes
def test_a_library_that_the_image_lacks_is_named(place, tmp_path):
    import venv

    venv.create(tmp_path / "bare", symlinks=True)
    python = tmp_path / "bare" / "bin" / "python"
    raised = place.raised(total, np.arange(3), python=python)
    assert "the image cannot import numpy" in raised.message
    assert place.value(power, 3, python=python) == 9


def test_the_runner_is_python_3_8_and_imports_only_the_standard_library():
    tree = ast.parse(RUNNER.read_text(), feature_version=(3, 8))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [str(node.module)]
        else:
            continue
        assert {name.partition(".")[0] for name in names} <= sys.stdlib_module_names


def test_the_files_that_all_calls_share_are_the_same_each_time():
    files = shared_files()
    assert files == shared_files()
    assert b"Redistributions of source code" in files["cloudpickle.zip"]


@pytest.mark.parametrize(
    ("function", "args", "match"),
    [
        (3, (), "function is of the type int: expected a function"),
        (power, (threading.Lock(),), "arguments of power cannot be sent: "),
    ],
    ids=["number", "lock"],
)
def test_what_cannot_be_sent_is_refused_in_words(function, args, match):
    with pytest.raises(BadRequest, match=match):
        pack_call(pack_function(function), args)


def test_a_module_that_is_none_is_refused():
    with pytest.raises(BadRequest, match="modules: expected modules that are imported"):
        pack_function(power, ["numpy"])


def test_without_cloudpickle_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    with pytest.raises(MissingExtra, match=r"pip install 'boinc_gahp\[functions\]'"):
        pack_function(power)


def test_the_search_for_a_module_of_the_users_own_leaves_installed_ones():
    assert len(pack_function(shutil.copyfile).content) < 300
    assert len(pack_function(np.linalg.norm).content) < 300
