"""Every test is run by one step of ``scripts/test``; ``.ci/run`` has all but ``--oldest``."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SCRIPT = (ROOT / "scripts" / "test").read_text("utf-8")
STEPS = set(re.findall(r"^#   (--[a-z]+) ", SCRIPT, re.MULTILINE))


@pytest.mark.parametrize("processes", [False, True])
@pytest.mark.parametrize("long", [False, True])
@pytest.mark.parametrize("containers", [False, True])
def test_one_step_selects_a_test_whatever_marks_it_has(processes, long, containers):
    selections = re.findall(r'^\S+\) marks="([^"]+)" ;;$', SCRIPT, re.MULTILINE)
    assert len(selections) == 4
    has = {"processes": processes, "long": long, "containers": containers}
    assert sum(eval(selection, {}, has) for selection in selections) == 1


def test_a_directory_that_these_steps_ignore_has_a_step_of_its_own():
    ignored = re.findall(r"--ignore=(tests/\w+)", SCRIPT)
    assert sorted(re.findall(r"pytest .*\b(?<!=)(tests/\w+)", SCRIPT)) == sorted(ignored)
    listed = re.findall(r"^#   --[a-z]+ +(tests/\w+):", SCRIPT, re.MULTILINE)
    assert sorted(listed) == sorted(ignored)
    for directory in ignored:
        assert list((ROOT / directory).glob("test_*.py")), directory


def test_continuous_integration_runs_every_step():
    runs = re.findall(
        r'^(?:step "[^"]+" |beside \w+ )?(?:"[^"]+" )?(?:env COVERAGE=1 )?scripts/test ?(.*?)$',
        (ROOT / ".ci/run").read_text(),
        re.MULTILINE,
    )
    assert sorted(runs) == sorted({"", *STEPS})
