"""Job templates: read tolerantly, check, fill in, write strictly (``templates.rst``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boinc_gahp.lazy import exports

if TYPE_CHECKING:
    from boinc_gahp.templates.checking import check_template as check_template
    from boinc_gahp.templates.documents import (
        ResultDocument as ResultDocument,
        ResultFile as ResultFile,
        WorkunitDocument as WorkunitDocument,
        WorkunitFile as WorkunitFile,
        read_result as read_result,
        read_result_document as read_result_document,
        read_workunit as read_workunit,
    )
    from boinc_gahp.templates.filling import (
        JobFile as JobFile,
        fill_input as fill_input,
        fill_output as fill_output,
    )
    from boinc_gahp.templates.reading import (
        read_input_template as read_input_template,
        read_output_template as read_output_template,
        read_templates as read_templates,
    )
    from boinc_gahp.templates.rules import faults as faults
    from boinc_gahp.templates.types import (
        DEFAULTS as DEFAULTS,
        DOCUMENT_LIMIT as DOCUMENT_LIMIT,
        UPLOAD_URL as UPLOAD_URL,
        InputFileInfo as InputFileInfo,
        InputTemplate as InputTemplate,
        OutputFileInfo as OutputFileInfo,
        OutputTemplate as OutputTemplate,
        Problem as Problem,
        Severity as Severity,
        TemplateError as TemplateError,
        safe_open_name as safe_open_name,
    )
    from boinc_gahp.templates.writing import (
        set_parameters as set_parameters,
        write_input_template as write_input_template,
        write_output_template as write_output_template,
    )

__getattr__, __dir__ = exports(
    __name__,
    {
        "checking": ["check_template"],
        "documents": [
            "ResultDocument",
            "ResultFile",
            "WorkunitDocument",
            "WorkunitFile",
            "read_result",
            "read_result_document",
            "read_workunit",
        ],
        "filling": ["JobFile", "fill_input", "fill_output"],
        "reading": ["read_input_template", "read_output_template", "read_templates"],
        "rules": ["faults"],
        "types": [
            "DEFAULTS",
            "DOCUMENT_LIMIT",
            "InputFileInfo",
            "InputTemplate",
            "OutputFileInfo",
            "OutputTemplate",
            "Problem",
            "Severity",
            "TemplateError",
            "UPLOAD_URL",
            "safe_open_name",
        ],
        "writing": ["set_parameters", "write_input_template", "write_output_template"],
    },
)
