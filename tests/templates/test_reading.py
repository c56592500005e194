"""Templates as admins write them and as get_templates hands them back."""

import re

import pytest

from boinc_gahp.templates.reading import read_input_template, read_output_template, read_templates
from boinc_gahp.templates.rules import check_template
from boinc_gahp.templates.types import Severity, TemplateError
from tests.templates import good
from tests.templates.faulty import CASES
from tests.templates.good import OUTPUT, recorded

#: With the numbers that old templates have.
INPUT = good.INPUT.replace("<no_delete/>", "<number>0</number>").replace(
    "<file_ref>\n", "<file_ref>\n            <file_number>0</file_number>\n"
)


@pytest.mark.parametrize(
    ("case", "inputs", "outputs"),
    [
        ("app_uppercase", ["in"], [("out", False)]),
        ("app_multi", ["in0", "in1"], [("out0", False), ("out1", False), ("out2", True)]),
        ("app_zipped", ["in"], [("results.zip", False)]),
        ("by_job_name", ["in"], [("out", False)]),
        ("by_job_name_with_own_templates", ["in"], [("out", False)]),
        ("template_with_xml_prolog", ["in"], [("out0", False), ("out1", True), ("out2", False)]),
    ],
)
def test_recorded_templates_are_read(case, inputs, outputs):
    input_template, output_template = read_templates(recorded(case))
    assert [file.open_name for file in input_template.files] == inputs
    assert [(file.open_name, file.optional) for file in output_template.files] == outputs
    assert input_template.max_error_results == 2
    assert input_template.rsc_fpops_est == 1e9
    assert all(file.max_nbytes == 5e6 and file.copy_file for file in output_template.files)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(INPUT + OUTPUT, id="two roots"),
        pytest.param(OUTPUT + INPUT, id="output first"),
        pytest.param(f"<templates>\n{INPUT}\n{OUTPUT}</templates>", id="one wrapper"),
        pytest.param(
            f'<?xml version="1.0"?>\n{INPUT}\n<?xml version="1.0" encoding="ISO-8859-1" ?>{OUTPUT}',
            id="declarations in the middle",
        ),
        pytest.param(f"<!-- <workunit> a -- b -->{INPUT}<!-- x -->\n{OUTPUT}", id="comments"),
        pytest.param(re.sub("</?(input|output)_template>", "", INPUT + OUTPUT), id="without roots"),
        pytest.param((INPUT + OUTPUT).replace(">\n", ">\r\n\t \n"), id="odd white space"),
        pytest.param(re.sub(r">\s+<", "><", INPUT + OUTPUT), id="on one line"),
        pytest.param(
            (INPUT + OUTPUT).replace("<open_name>in<", "<open_name>\n  in \n<"),
            id="white space in texts",
        ),
        pytest.param((INPUT + OUTPUT).replace("</output_template>", ""), id="unclosed root"),
        pytest.param(INPUT + "\x01\x00" + OUTPUT, id="control characters"),
        pytest.param(
            '<!DOCTYPE x [<!ENTITY a "b">\n<!ENTITY c "&a;">]>' + INPUT + OUTPUT + "&c;",
            id="document type",
        ),
        pytest.param(INPUT.replace("</file_info>", "<new_flag/></file_info>") + OUTPUT, id="new"),
        pytest.param((INPUT + OUTPUT).replace("<number>0</number>", ""), id="without old numbers"),
    ],
)
def test_what_admins_write_is_read_alike(text):
    assert read_templates(text) == read_templates(INPUT + OUTPUT)


@pytest.mark.parametrize(
    ("flag", "expected"),
    [
        ("<copy_file/>", True),
        ("<copy_file></copy_file>", True),
        ("<copy_file>1</copy_file>", True),
        ("<copy_file> 1 </copy_file>", True),
        ("<copy_file>0</copy_file>", False),
        ("", False),
    ],
)
def test_flags_have_two_forms(flag, expected):
    template = read_input_template(INPUT.replace("<copy_file/>", flag))
    assert template.files[0].copy_file is expected


def test_output_files_are_in_the_order_of_their_numbers():
    text = """<file_info><name><OUTFILE_1/></name></file_info>
        <file_info><name><OUTFILE_0/></name><no_delete/></file_info>
        <result><file_ref><file_name><OUTFILE_1/></file_name><open_name>b</open_name></file_ref>
        <file_ref><file_name><OUTFILE_0/></file_name><open_name>a</open_name><no_validate/>
        </file_ref><report_immediately/></result>"""
    template = read_output_template(text)
    assert [(file.open_name, file.number) for file in template.files] == [("a", 0), ("b", 1)]
    assert template.report_immediately
    assert template.files[0].no_validate
    assert template.files[0].no_delete
    assert not template.files[1].no_delete


#: Errors with which PHP and create_work take a template all the same, and so do we.
READ_ALL_THE_SAME = {
    "malformed", "zero", "counts", "open-name", "no-url", "result-line", "document-size",
}  # fmt: skip


@pytest.mark.parametrize(
    "case",
    [
        case
        for case in CASES.values()
        if case.severity is Severity.ERROR and case.code not in READ_ALL_THE_SAME
    ],
    ids=lambda case: case.code,
)
def test_what_the_checker_calls_an_error_is_not_read(case):
    kind = "input" if case.good == good.INPUT else "output"
    read = read_input_template if kind == "input" else read_output_template
    with pytest.raises(TemplateError, match=f"^{kind} template: ") as caught:
        read(case.broken)
    problem = next(found for found in check_template(case.broken) if found.code == case.code)
    assert problem.text in str(caught.value) or case.code in ("no-template", "second-template")


def test_everything_that_is_wrong_is_listed_by_line():
    with pytest.raises(TemplateError) as caught:
        read_input_template(
            INPUT.replace("1e12", "-1").replace("<copy_file/>", "<copy_file>x</copy_file>")
        )
    assert [problem.line for problem in caught.value.problems] == [9, 11]


def test_entities_are_neither_expanded_nor_fetched():
    bomb = '<!DOCTYPE x [<!ENTITY a "in"><!ENTITY s SYSTEM "file:///etc/passwd">]>'
    with pytest.raises(TemplateError, match="without <open_name>"):
        read_input_template(bomb + INPUT.replace(">in<", ">&a;&s;<"))
