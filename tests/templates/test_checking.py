"""Each finding of the checker: a template that has it, and the same one repaired."""

import re
from pathlib import Path

import pytest

from boinc_gahp.localproject.supplied import SUPPLIED
from boinc_gahp.templates import rules
from boinc_gahp.templates.filling import fill_output
from boinc_gahp.templates.reading import read_output_template
from boinc_gahp.templates.rules import check_template
from boinc_gahp.templates.types import InputFileInfo, InputTemplate, Severity
from boinc_gahp.templates.writing import write_input_template, write_output_template
from tests.templates.faulty import CASES, NO_DELETE
from tests.templates.good import INPUT, OUTPUT, recorded


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_each_finding_is_reported_and_gone_when_repaired(case):
    found = check_template(case.broken)
    [problem] = [problem for problem in found if problem.code == case.code]
    assert (problem.severity, problem.line) == (case.severity, case.line)
    assert case.words in problem.text
    # What names something wrong also says what would be right.
    assert re.search("expected|write |add |leave it out|put |correct |use ", problem.text)
    assert check_template(case.repaired) == []


def test_a_sticky_output_is_kept_by_clients_and_nothing_is_reported_of_it():
    text = OUTPUT.replace("        <no_delete/>\n", "        <sticky/>\n        <no_delete/>\n", 1)
    assert check_template(text) == []
    assert read_output_template(text).files[0].sticky
    assert "<sticky/>" in fill_output(read_output_template(text), "job_0", "http://h/", "r")


def test_every_code_has_an_example():
    sources = "".join(
        path.read_text("utf-8") for path in sorted(Path(rules.__file__).parent.glob("*.py"))
    )
    codes = set(re.findall(r'"([a-z]+(?:-[a-z0-9]+)+)"', sources))
    codes -= {"utf-8", "bad-text"}  # the first is not one; writing alone has the second
    assert codes <= {case.code for case in CASES.values()}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"\ufeff<?xml version='1.0'?>\n{INPUT}", id="byte order mark"),
        pytest.param(
            INPUT.replace("<copy_file/>", "<copy_file/> <!-- a < b & c -->"), id="comment"
        ),
        pytest.param(INPUT.replace(">in<", ">&#105;&#x6e;&gt;<"), id="entities"),
        pytest.param(INPUT.replace("\n", "\n\n"), id="empty lines"),
        pytest.param(
            INPUT.replace(
                "        <rsc_fpops_est>", "<command_line>\n-x\n</command_line>\n<rsc_fpops_est>", 1
            ),
            id="command line on lines of its own",
        ),
        pytest.param(INPUT.replace(NO_DELETE, "<generate_locally/>\n"), id="generated file"),
    ],
)
def test_what_is_right_is_not_complained_of(text):
    assert check_template(text) == []


def test_the_same_of_many_files_is_reported_once():
    template = InputTemplate(tuple(InputFileInfo(f"in{number}") for number in range(20)))
    [problem] = [p for p in check_template(write_input_template(template)) if "no-del" in p.code]
    assert problem.line == 2
    assert "for in0, in1, in2, in3, in4 and 15 more: add it" in problem.text


@pytest.mark.parametrize("app", SUPPLIED, ids=lambda app: app.name)
def test_the_supplied_templates_are_clean(app):
    assert check_template(write_input_template(app.input_template)) == []
    assert check_template(write_output_template(app.output_template)) == []


@pytest.mark.parametrize("case", ["app_uppercase", "app_multi", "template_with_xml_prolog"])
def test_recorded_templates_have_no_errors_but_traps(case):
    found = check_template(recorded(case))
    assert {p.code for p in found} == {"no-delete-input", "no-delete-output"}
    assert {p.severity for p in found} == {Severity.WARNING}
