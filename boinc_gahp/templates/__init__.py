"""Job templates: read tolerantly, check, fill in, write strictly (``templates.rst``)."""

from boinc_gahp.templates.checking import check_template
from boinc_gahp.templates.documents import (
    ResultDocument,
    ResultFile,
    WorkunitDocument,
    WorkunitFile,
    read_result,
    read_result_document,
    read_workunit,
)
from boinc_gahp.templates.filling import JobFile, fill_input, fill_output
from boinc_gahp.templates.reading import read_input_template, read_output_template, read_templates
from boinc_gahp.templates.sizes import WorstCase, worst_input, worst_output
from boinc_gahp.templates.types import (
    DEFAULTS,
    DOCUMENT_LIMIT,
    UPLOAD_URL,
    InputFileInfo,
    InputTemplate,
    OutputFileInfo,
    OutputTemplate,
    Problem,
    Severity,
    TemplateError,
    safe_open_name,
)
from boinc_gahp.templates.writing import set_parameters, write_input_template, write_output_template

__all__ = [
    "DEFAULTS",
    "DOCUMENT_LIMIT",
    "UPLOAD_URL",
    "InputFileInfo",
    "InputTemplate",
    "JobFile",
    "OutputFileInfo",
    "OutputTemplate",
    "Problem",
    "ResultDocument",
    "ResultFile",
    "Severity",
    "TemplateError",
    "WorkunitDocument",
    "WorkunitFile",
    "WorstCase",
    "check_template",
    "fill_input",
    "fill_output",
    "read_input_template",
    "read_output_template",
    "read_result",
    "read_result_document",
    "read_templates",
    "read_workunit",
    "safe_open_name",
    "set_parameters",
    "worst_input",
    "worst_output",
    "write_input_template",
    "write_output_template",
]
