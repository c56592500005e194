"""The documents that BOINC keeps with workunits and results."""

from dataclasses import replace
from xml.sax.saxutils import escape

import pytest
from hypothesis import example, given, strategies as st

from boinc_gahp.templates.documents import read_result, read_workunit
from boinc_gahp.templates.filling import JobFile, fill_input, fill_output
from boinc_gahp.templates.reading import read_input_template, read_output_template
from boinc_gahp.templates.types import (
    DOCUMENT_LIMIT,
    InputFileInfo,
    InputTemplate,
    OutputFileInfo,
    OutputTemplate,
    TemplateError,
)
from boinc_gahp.templates.writing import write_input_template, write_output_template
from tests.templates.any_templates import input_templates, output_templates
from tests.templates.good import many_outputs

FILE = JobFile("ea6a.txt", 18, "ea6a", ("http://127.0.0.1:8600/test/download/323/ea6a.txt",))


@given(input_templates)
def test_an_input_template_that_is_written_is_read_again(template):
    assert read_input_template(write_input_template(template)) == template


@given(output_templates)
def test_an_output_template_that_is_written_is_read_again(template):
    assert read_output_template(write_output_template(template)) == template


@pytest.mark.parametrize("name", ["", " in", "in\n", "a\nb", "\x01", "a\x7fb", "\ud800"])
def test_a_name_that_would_not_be_read_again_is_not_written(name):
    with pytest.raises(TemplateError):
        write_input_template(InputTemplate((InputFileInfo(name),)))
    with pytest.raises(TemplateError):
        write_output_template(OutputTemplate((OutputFileInfo(name, "<OUTFILE_0/>"),)))


def test_output_files_out_of_order_are_not_written():
    files = (OutputFileInfo("a", "<OUTFILE_1/>"), OutputFileInfo("b", "<OUTFILE_0/>"))
    with pytest.raises(TemplateError, match="in the order of their numbers"):
        write_output_template(OutputTemplate(files))


def test_the_workunit_document_is_the_real_servers():
    """Compared with the query in wire/submit_batch__dup_job_name_existing_in_middle.rep.xml."""
    template = InputTemplate((InputFileInfo("in", copy_file=True),))
    assert fill_input(template, [FILE]) == (
        "<file_info>\n"
        "    <name>ea6a.txt</name>\n"
        "    <url>http://127.0.0.1:8600/test/download/323/ea6a.txt</url>\n"
        "    <md5_cksum>ea6a</md5_cksum>\n"
        "    <nbytes>18</nbytes>\n"
        "</file_info>\n"
        "<workunit>\n"
        "<command_line>\n"
        "\n"
        "</command_line>\n"
        "<file_ref>\n"
        "    <file_name>ea6a.txt</file_name>\n"
        "    <open_name>in</open_name>\n"
        "    <copy_file/>\n"
        "</file_ref>\n"
        "</workunit>"
    )


@given(st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S", "Z")), max_size=200))
@example("a<b <?pi <!-- &")
@example("</command_line> <x <![CDATA[q]]> </workunit>")
def test_a_command_line_stands_as_it_is_told_and_is_unescaped_once(command_line):
    template = InputTemplate((InputFileInfo("in"),))
    document = fill_input(template, [FILE], command_line=command_line)
    read = read_workunit(document)
    assert read.stored_command_line == command_line
    assert [file.name for file in read.files] == ["ea6a.txt"]
    document = fill_input(template, [FILE], command_line=escape(command_line))
    assert read_workunit(document).command_line == command_line


def test_a_remote_file_has_a_name_from_the_template_or_from_the_job():
    named = InputFileInfo("e", urls=("http://m/",), md5_cksum="ee", nbytes=1, physical_name="e1")
    template = InputTemplate((named, replace(named, physical_name=None)), command_line="-x")
    read = read_workunit(fill_input(template, [JobFile("named", 0, "", ())]))
    assert [file.name for file in read.files] == ["e1", "named"]
    assert read.command_line == "-x"
    with pytest.raises(TemplateError, match="remote file 'e' has no <physical_name>"):
        fill_input(template)


@pytest.mark.parametrize("count", [0, 2])
def test_the_number_of_files_must_fit(count):
    with pytest.raises(TemplateError, match=f"{count} files are given for the job: expected 1"):
        fill_input(InputTemplate((InputFileInfo("in"),)), [FILE] * count)


def test_a_document_over_the_limit_is_refused_with_its_size():
    template = many_outputs(400)
    with pytest.raises(TemplateError, match=r"result\.xml_doc_in: it would have"):
        fill_output(template, "w_0", "http://h/", "r1")


def test_the_limit_counts_bytes_and_is_exact():
    template = InputTemplate()
    empty = len(fill_input(template).encode())
    largest = "é" * ((DOCUMENT_LIMIT - 1 - empty) // 2)
    assert len(fill_input(template, command_line=largest).encode()) < DOCUMENT_LIMIT
    with pytest.raises(TemplateError, match="65,536 bytes and must have fewer than 65,535"):
        fill_input(template, command_line=f"{largest}é")


def test_a_document_of_another_kind_is_refused():
    for read, document in ((read_workunit, "<result/>"), (read_result, "<workunit/>")):
        with pytest.raises(TemplateError, match="expected a <"):
            read(document)
