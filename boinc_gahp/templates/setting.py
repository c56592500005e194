"""Sets parameters in an input template, for a job that asks for other values.

The template wins over anything a project is told beside it (``web-rpcs.rst``, "The template wins"),
so the job's values have to be in it.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lxml import etree

from boinc_gahp.templates.filling import number
from boinc_gahp.templates.markup import children
from boinc_gahp.templates.reading import input_parts, read_input_template
from boinc_gahp.templates.types import DOCUMENT_LIMIT, Problem, TemplateError

if TYPE_CHECKING:
    from collections.abc import Mapping


def set_parameters(text: str, values: Mapping[str, float]) -> str:
    """Return an input template with some parameters of its workunit set; the rest is unchanged.

    It is read as tolerantly as any template and written strictly: one ``<input_template>``, an
    element per line. Elements that BOINC passes to volunteers without reading them are kept, too.

    Args:
        text: an input template, or the whole answer of get_templates.
        values: finite, by the names of elements; ``delay_bound`` must be whole.

    Raises:
        TemplateError: the text has no input template, or several, or one that cannot be used; or
            the result would be too large for a project.
    """
    before = read_input_template(text)
    parts = input_parts(text)
    template = etree.Element("input_template")
    template.extend(deepcopy(list(parts.file_infos)))
    workunit = etree.SubElement(template, "workunit")
    if parts.body is not None:
        workunit.extend(deepcopy([e for e in children(parts.body) if e.tag not in values]))
    for name, value in values.items():
        etree.SubElement(workunit, name).text = number(value)
    for element in template.iter():
        if len(element) == 0 and element.text is not None:
            element.text = element.text.strip() or None
        element.tail = None
    etree.indent(template, space="")
    written = etree.tostring(template, encoding="unicode") + "\n"
    # As PHP passes it on, with numbers for what is not ASCII; create_work has no room for more.
    nbytes = len(etree.tostring(template)) + 1
    if nbytes >= DOCUMENT_LIMIT:
        problem = (
            f"with {', '.join(values)} filled in it would have {nbytes:,} bytes and must have "
            f"fewer than {DOCUMENT_LIMIT:,}: make the template smaller, or use its own values"
        )
        raise TemplateError("input template", [Problem(0, problem, "document-size")])
    if read_input_template(written) != replace(before, **dict[str, Any](values)):
        problem = (
            f"{', '.join(values)} cannot be filled in: the template can be read in several ways"
        )
        raise TemplateError("input template", [Problem(0, problem, "ambiguous")])
    return written
