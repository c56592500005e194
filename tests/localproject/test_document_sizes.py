"""The 64 KB of a database field (``templates.rst``, "Size limits"): told before a job is made."""

import re

import pytest

from boinc_gahp.templates.types import InputFileInfo, InputTemplate, OutputFileInfo, OutputTemplate
from boinc_gahp.templates.writing import write_input_template, write_output_template
from tests.inside import workunit_names
from tests.localproject.client import error, job

LARGE = "x" * 70_000


@pytest.mark.parametrize(
    ("own", "told"),
    [
        (InputTemplate((InputFileInfo("in"),), command_line=LARGE), "workunit.xml_doc"),
        (
            OutputTemplate((OutputFileInfo("out", "<OUTFILE_0/>", urls=(f"http://h/{LARGE}",)),)),
            "result.xml_doc_in",
        ),
    ],
    ids=["input template", "output template"],
)
def test_a_job_whose_document_does_not_fit_the_database_is_never_made(client, own, told):
    batch_id, name = client.begun("large")
    if isinstance(own, InputTemplate):
        text = write_input_template(own)
    else:
        text = write_output_template(own)
    reply = client.submit(batch_id, [job("small", name), job("large", name, more=text)])
    assert re.search(rf"create_work failed: .*{told}.*it would have 7\d,\d\d\d bytes", error(reply))
    assert "fewer than 65,535" in error(reply)
    assert workunit_names(client.project) == []
