"""Job templates: read tolerantly, check, fill in, write strictly (``job-templates.md``)."""

from .filling import (
    JobFile,
    ResultFile,
    WorkunitDocument,
    WorkunitFile,
    fill_input,
    fill_output,
    read_result,
    read_workunit,
)
from .reading import read_input_template, read_output_template, read_templates
from .types import (
    DOCUMENT_LIMIT,
    UPLOAD_URL,
    InputFileInfo,
    InputTemplate,
    OutputFileInfo,
    OutputTemplate,
    Problem,
    TemplateError,
)
from .writing import write_input_template, write_output_template

__all__ = [
    "DOCUMENT_LIMIT",
    "UPLOAD_URL",
    "InputFileInfo",
    "InputTemplate",
    "JobFile",
    "OutputFileInfo",
    "OutputTemplate",
    "Problem",
    "ResultFile",
    "TemplateError",
    "WorkunitDocument",
    "WorkunitFile",
    "fill_input",
    "fill_output",
    "read_input_template",
    "read_output_template",
    "read_result",
    "read_templates",
    "read_workunit",
    "write_input_template",
    "write_output_template",
]
