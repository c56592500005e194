"""Writes templates strictly: every element and tag on a line of its own, in BOINC's order."""

from __future__ import annotations

import re
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

from lxml import etree

from boinc_gahp.templates._markup import children
from boinc_gahp.templates.filling import number, output_elements
from boinc_gahp.templates.reading import input_parts, read_input_template, read_output_template
from boinc_gahp.templates.types import (
    DOCUMENT_LIMIT,
    PARAMETERS,
    UPLOAD_URL,
    InputTemplate,
    OutputTemplate,
    wrong,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from boinc_gahp.templates.types import InputFileInfo

#: The elements of an input's file_info, in their order; its URLs come after its name.
_INFO = (
    *("gzip", "gzipped_nbytes", "sticky", "no_delete", "report_on_rpc", "physical_name"),
    *("md5_cksum", "nbytes", "generate_locally"),
)
#: A line of text without white space at its ends: readers strip it, so it would be lost.
_LINE = re.compile(r"[^\s\x00-\x1f\x7f-\x9f](?:[^\x00-\x1f\x7f-\x9f\u2028\u2029]*[^\s\x00-\x1f])?")


class OwnText(str):
    """The text of a template that goes with each of many jobs, made here.

    Attributes:
        template: what it says, so that nobody has to read it.
    """

    template: InputTemplate | OutputTemplate

    def __new__(cls, text: str, template: InputTemplate | OutputTemplate) -> OwnText:
        """Keep what the text says."""
        self = super().__new__(cls, text)
        self.template = template
        return self


def write_input_template(template: InputTemplate, *, terse: bool = False) -> str:
    """Return an input template's text; reading it gives an equal template.

    Args:
        template: the template.
        terse: without indentation, as :class:`OwnText`.

    Raises:
        TemplateError: it cannot be written so that it could be read again.
    """
    lines = ["<input_template>"]
    for file in template.files:
        lines += ["    <file_info>", *_input_info(file), "    </file_info>"]
    lines.append("    <workunit>")
    for file in template.files:
        lines += ["        <file_ref>", _element("open_name", file.open_name, 12)]
        if file.copy_file:
            lines.append("            <copy_file/>")
        lines.append("        </file_ref>")
    if template.command_line is not None:
        lines.append(_element("command_line", template.command_line, 8))
    for name in PARAMETERS:
        value = getattr(template, name)
        if value is not None:
            lines.append(f"        <{name}>{number(value)}</{name}>")
    if template.buda_app_name is not None:
        lines.append(_element("buda_app_name", template.buda_app_name, 8))
    lines += ["    </workunit>", "</input_template>", ""]
    if terse:
        return OwnText("\n".join(map(str.lstrip, lines)), template)
    text = "\n".join(lines)
    if read_input_template(text) != template:
        raise wrong("input template", "a number cannot be written exactly", "bad-number")
    return text


def write_output_template(template: OutputTemplate, *, terse: bool = False) -> str:
    """Return an output template's text; reading it gives an equal template.

    Args:
        template: the template.
        terse: as for :func:`write_input_template`; ``no_delete`` is only where today's servers
            read it.

    Raises:
        TemplateError: it cannot be written so that it could be read again.
    """
    infos, refs = [], []
    for file in template.files:
        name = file.name
        if file.number is None:
            name = _checked("name", name)
        urls = tuple(url if url == UPLOAD_URL else _checked("url", url) for url in file.urls)
        _checked("open_name", file.open_name)
        info, ref = output_elements(file, name, urls, terse=terse)
        infos += [f"    {line}" for line in info]
        refs += [f"    {line}" for line in ref]
    if template.report_immediately:
        refs.append("        <report_immediately/>\n")
    text = (
        f"<output_template>\n{''.join(infos)}    <result>\n{''.join(refs)}    </result>\n"
        "</output_template>\n"
    )
    if terse:
        return OwnText("".join(map(str.lstrip, text.splitlines(keepends=True))), template)
    if read_output_template(text) != template:
        text = "expected files in the order of their numbers"
        raise wrong("output template", text, "file-order")
    return text


def _input_info(file: InputFileInfo) -> list[str]:
    lines = []
    for name in _INFO:
        value = getattr(file, name)
        if value is True:
            lines.append(f"        <{name}/>")
        elif value is not None and value is not False:
            lines.append(_element(name, str(value), 8))
        if name == "physical_name":
            lines += [_element("url", url, 8) for url in file.urls]
    return lines


def _element(name: str, text: str, indent: int) -> str:
    return f"{' ' * indent}<{name}>{_checked(name, text)}</{name}>"


def _checked(name: str, text: str) -> str:
    if not _LINE.fullmatch(text) or not text.isprintable():
        problem = f"<{name}> {text!r}: expected one line, without spaces at its ends"
        raise wrong("template", problem, "bad-text")
    return escape(text)


def set_parameters(text: str, values: Mapping[str, float | str]) -> str:
    """Return an input template with some parameters of its workunit set; the rest is unchanged.

    It is read as tolerantly as any template and written strictly: one ``<input_template>``, an
    element per line. Elements that BOINC passes to volunteers without reading them are kept, too.

    Args:
        text: an input template, or the whole answer of get_templates.
        values: by the names of elements; numbers are finite, and ``delay_bound`` is whole.

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
        etree.SubElement(workunit, name).text = value if isinstance(value, str) else number(value)
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
        raise wrong("input template", problem, "document-size")
    if read_input_template(written) != replace(before, **dict[str, Any](values)):
        problem = (
            f"{', '.join(values)} cannot be filled in: the template can be read in several ways"
        )
        raise wrong("input template", problem, "ambiguous")
    return written
