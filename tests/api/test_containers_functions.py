"""Functions that volunteers call, from the call to the value, in real containers."""

import os
import pickle
import re
import sys
import textwrap
from pathlib import Path

import pytest

from boinc_gahp import Project
from boinc_gahp.errors import JobFailed, RemoteError
from boinc_gahp.functions.payload import pack_call, pack_function
from tests.python_image import PYTHON_IMAGE, python_image

# A machine with other work starts a container in seconds.
pytestmark = [pytest.mark.long, pytest.mark.containers, pytest.mark.timeout(1200)]

_TIMEOUT = 500


@pytest.fixture(scope="module", autouse=True)
def image(engine):
    """The image of Python that all functions use."""
    python_image(engine)


@pytest.fixture
def project(in_containers):
    return in_containers.project


def divide(number, by):
    sys.stdout.write(f"dividing {number}")
    return number / by


def test_a_call_returns_its_value_and_what_it_raises(project):
    function = project.function(divide, image=PYTHON_IMAGE)
    good, bad = function.starmap([(3, 2), {"number": 1, "by": 0}])
    assert good.result(_TIMEOUT) == 1.5
    [folder] = Path(good.batch.name).glob("*_0")
    assert (folder / "stdout.txt").read_text() == "dividing 3"
    assert good.parameters == {"number": 3, "by": 2}
    error = bad.exception(_TIMEOUT)
    assert isinstance(error, RemoteError)
    assert (error.type_name, error.message) == ("ZeroDivisionError", "division by zero")
    assert error.exit_status == 1
    assert "return number / by" in error.traceback
    assert "divide(number=1, by=0), job" in str(error)


SCRIPT = """
import time

WORDS = {"alpha", "beta", "gamma", "delta"}

class Point:
    def __init__(self, x):
        self.x = x

def slow(point, words=WORDS):
    time.sleep(0.1)
    return point.x, sorted(words)

image, when = given

def report(news):
    if news.step == when:
        print("now", flush=True)
        time.sleep(100)

futures = project.function(slow, image=image, progress=report).starmap(
    [(Point(number), WORDS) for number in range(20)]
)
for future in futures.as_completed(500):
    future.result()
    if when == "result":
        print("now", flush=True)
print(futures.batch.id, sum(each.result()[0] for each in futures))
"""


@pytest.mark.parametrize("when", ["staging", "submitting", "result"])
def test_a_program_that_was_killed_finds_its_calls_again(when, in_containers):
    count = "SELECT count(*) FROM workunit"
    [(before,)] = in_containers.rows(count)
    with in_containers.program(SCRIPT, PYTHON_IMAGE, when) as process:
        assert process.stdout.readline() == "now\n"
        process.kill()
    with in_containers.program(SCRIPT, PYTHON_IMAGE, "never") as process:
        out, _ = process.communicate(timeout=_TIMEOUT)
    batch_id, total = map(int, out.split())
    assert total == sum(range(20))
    assert in_containers.rows(count) == [(before + 20,)]
    assert [batch.id for batch in in_containers.project.batches() if batch.njobs] == [batch_id]


def forged(kind, key):
    """Do what a hostile computer might do: forge what comes back, and end well."""
    import pathlib

    result = pathlib.Path("returned", "result.json")
    if kind == "pickle":
        result.write_bytes(pickle.dumps(pathlib.Path("x")))
    elif kind == "another job's output":
        result.write_text(f'{{"format": 1, "call": "{key}", "value": 1}}')
    elif kind == "link":
        result.symlink_to("/etc/passwd")
    elif kind == "terminal":
        own = sys.argv[1]
        result.write_text(f'{{"format": 1, "call": "{own}", "problem": "\\u001b[2J"}}')
    os._exit(0)


#: What else a result can be: tests/functions/test_hostile_results.py.
HOSTILE = {
    "pickle": "not the JSON that was expected",
    "another job's output": "the result of another call",
    "link": "",
    "terminal": r"\x1b[2J",
    "nothing": "ended without a result",
}


def test_nothing_from_a_hostile_computer_is_taken_for_a_value(project):
    function = project.function(forged, image=PYTHON_IMAGE)
    other = pack_call(pack_function(forged), ("pickle", ""))
    futures = function.starmap([(kind, other.key) for kind in HOSTILE])
    futures.wait(_TIMEOUT)
    for (kind, words), future in zip(HOSTILE.items(), futures, strict=True):
        error = future.exception()
        assert isinstance(error, JobFailed), kind
        assert words in str(error), kind
        assert str(error).isprintable()


def test_the_examples_of_the_page_are_as_it_says(project, monkeypatch, capsys):
    plain = Project.function

    def here(self, function, **options):
        return plain(self, function, image=PYTHON_IMAGE, **options)

    monkeypatch.setattr(Project, "function", here)
    monkeypatch.setattr(Project, "from_settings", lambda: project)
    page = (Path(__file__).parent.parent.parent / "docs" / "functions.rst").read_text("utf-8")
    blocks = re.findall(r"\.\. code-block:: python\n\n((?:   .*\n|\n)+)", page)
    text = "".join(map(textwrap.dedent, blocks))
    exec(compile(text, "functions.rst", "exec"), {"__name__": "__main__"})
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith("1209.5")
    assert sorted(out[1:4]) == [
        "{'number': 1, 'by': 0} ZeroDivisionError",
        "{'number': 1, 'by': 2} 0.5",
        "{'number': 1, 'by': 4} 0.25",
    ]
    assert out[4] == "1 999"
    assert out[5] == "ZeroDivisionError division by zero"
    assert "return number / by" in "\n".join(out) or "in divide" in "\n".join(out)
