"""README.rst and the guides tell what the program does; these tests tell when they do not."""

import re
from pathlib import Path

import pytest

from boinc_gahp.client_exits import MEANINGS
from boinc_gahp.htcondor.attributes import BOINC
from boinc_gahp.htcondor.status_ad import HoldCode

ROOT = Path(__file__).parent.parent
SCIENTISTS = (ROOT / "docs" / "scientists.rst").read_text("utf-8")
PAGES = ["README.rst", "CONTRIBUTING.rst"]
PAGES += sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.rst"))


@pytest.mark.parametrize("page", PAGES)
def test_every_file_that_a_page_names_is_there(page):
    text = (ROOT / page).read_text("utf-8")
    for name in re.findall(r"(?<![\w./-])(?:conf|scripts)/[\w.-]+(?:/[\w.-]+)*\w", text):
        assert (ROOT / name).exists(), name


def test_every_module_that_contributing_names_is_there():
    named = re.findall(r"``([\w/]+\.py)``", (ROOT / "CONTRIBUTING.rst").read_text("utf-8"))
    above = (ROOT, ROOT / "boinc_gahp", ROOT / "tests")
    assert "daemon/_dispatch.py" in named
    assert [name for name in named if not any((each / name).exists() for each in above)] == []


def test_the_readme_has_the_two_commands_to_try_first():
    readme = (ROOT / "README.rst").read_text("utf-8")
    assert re.search(r"^    \./scripts/run$", readme, re.MULTILINE)
    assert re.search(r"^    \./scripts/test$", readme, re.MULTILINE)


def test_the_guide_for_scientists_explains_every_hold_code_and_no_other():
    found = re.findall(r"^(23\d\d)  ", SCIENTISTS, re.MULTILINE)
    assert [int(code) for code in found] == list(HoldCode)


def test_the_guide_for_scientists_explains_every_attribute_of_a_job():
    found = re.findall(r"^``Boinc(\w+)``  ", SCIENTISTS, re.MULTILINE)
    assert sorted(found) == sorted(BOINC)


def test_the_guide_for_scientists_has_the_exit_statuses_that_hold_reasons_explain():
    found = re.findall(r"^(-?\d{3,}) +(.*)$", SCIENTISTS, re.MULTILINE)
    listed = {int(status): text for status, text in found if not status.startswith("23")}
    assert listed == MEANINGS


@pytest.mark.parametrize("page", ["README.rst", "docs/scientists.rst"])
def test_submit_files_of_a_page_say_what_the_samples_say_that_a_real_htcondor_runs(page):
    samples = "".join(path.read_text("utf-8") for path in (ROOT / "conf/submit").glob("*.sub"))
    known = set(re.findall(r"^(\+?\w+) *=", samples, re.MULTILINE))
    known.add("boinc_authenticator_file")  # of HTCondor 9
    text = (ROOT / page).read_text("utf-8")
    blocks = re.findall(r"::\n\n((?: {4}[^\n]*\n|\n)+)", text)
    submit = [block for block in blocks if re.search(r"grid_resource|\+Boinc", block)]
    assert submit
    for block in submit:
        commands = set(re.findall(r"^ {4}(\+?\w+) *= ", block, re.MULTILINE))
        assert commands <= known
        kinds = re.findall(r"grid_resource = (\w+)", block)
        assert set(kinds) <= {"batch", "boinc"}
