"""Parameters are set in templates as admins write them, and nothing else is changed."""

from dataclasses import replace

import pytest
from hypothesis import example, given, settings, strategies as st
from lxml import etree

from boinc_gahp.templates.reading import read_input_template, read_templates
from boinc_gahp.templates.types import DOCUMENT_LIMIT, OutputFileInfo, OutputTemplate, TemplateError
from boinc_gahp.templates.writing import set_parameters, write_input_template, write_output_template
from tests.templates.any_templates import input_templates

OLD = """<?xml version="1.0"?>
<!-- by hand -->
<file_info><number>0</number>
   <gzip/></file_info>
<?xml version="1.0"?>
<file_info><sticky>1</sticky><url>http://a/?x=1&amp;y=</url>
  <md5_cksum>0123</md5_cksum><nbytes>3</nbytes></file_info>
<workunit>
  <file_ref><file_number>0</file_number><open_name> in </open_name></file_ref>
  <file_ref><open_name>b</open_name><copy_file/></file_ref>
  <command_line>&lt;x   y</command_line>
  <delay_bound> 86400.00 </delay_bound><delay_bound>7</delay_bound>
  <credit>7</credit><job_keyword_ids>1 2</job_keyword_ids>
</workunit>
"""
OUTPUT = write_output_template(OutputTemplate((OutputFileInfo("out", "<OUTFILE_0/>"),)))
_BOUNDS = ("rsc_fpops_est", "rsc_fpops_bound", "rsc_memory_bound", "rsc_disk_bound")
VALUES = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(_BOUNDS, st.floats(1e-3, 1e300)),
        "delay_bound": st.integers(1, 2**31 - 1).map(float),
    },
)


def test_an_old_template_is_written_strictly_with_all_that_it_has():
    text = set_parameters(OLD + OUTPUT, {"delay_bound": 4242.0, "rsc_memory_bound": 5e8})
    before = read_input_template(OLD)
    assert read_input_template(text) == replace(before, delay_bound=4242.0, rsc_memory_bound=5e8)
    lines = text.splitlines()
    assert {"<number>0</number>", "<gzip/>", "<credit>7</credit>"} <= {*lines}
    assert {"<open_name>in</open_name>", "<command_line>&lt;x   y</command_line>"} <= {*lines}
    assert [line for line in lines if "delay" in line] == ["<delay_bound>4242</delay_bound>"]
    assert "OUTFILE" not in text


@settings(max_examples=60)
@given(input_templates, VALUES)
@example(read_input_template(OLD), {})
def test_what_is_set_is_read_and_the_rest_is_as_it_was(template, values):
    text = set_parameters(write_input_template(template), values)
    assert read_input_template(text) == replace(template, **values)
    # PHP reads it as one document, and create_work an element to a line.
    assert etree.fromstring(text).tag == "input_template"
    assert all(line.count("<") <= 2 for line in text.splitlines())
    # To set the same again changes nothing.
    assert set_parameters(text, values) == text
    assert read_templates(text + OUTPUT)[0] == replace(template, **values)


@pytest.mark.parametrize("nbytes", [DOCUMENT_LIMIT - 1, DOCUMENT_LIMIT])
@pytest.mark.parametrize("letter", ["n", "ä"])
def test_a_template_has_to_fit_as_php_hands_it_on(nbytes, letter):
    """Not ASCII becomes a number of six bytes."""
    values = {"delay_bound": 60.0}

    def with_note(count):
        return OLD.replace("</workunit>", f"<note>{letter * count}</note></workunit>")

    each = 1 if letter == "n" else len("&#228;")
    least = len(etree.tostring(etree.fromstring(set_parameters(with_note(1), values)))) + 1 - each
    count = (nbytes - least) // each
    if nbytes < DOCUMENT_LIMIT:
        set_parameters(with_note(count), values)
    with pytest.raises(TemplateError, match="filled in it would have 65,5"):
        set_parameters(with_note(count + (nbytes < DOCUMENT_LIMIT)), values)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected XML elements"),
        (OUTPUT, "there is none"),
        (OLD + OLD, "a second one"),
        (OLD.replace("<nbytes>3</nbytes>", ""), "expected all three"),
    ],
)
def test_what_is_no_input_template_is_refused(text, said):
    with pytest.raises(TemplateError, match=said):
        set_parameters(text, {"delay_bound": 60.0})
