"""Checks the text of a template: whether it is XML, can be read, and follows the rules."""

from __future__ import annotations

import re

from boinc_gahp.templates._markup import document_error, xml_error
from boinc_gahp.templates.reading import INPUT, OUTPUT, input_of, only, output_of, split
from boinc_gahp.templates.rules import faults
from boinc_gahp.templates.types import InputTemplate, OutputTemplate, Problem, TemplateError

_CROWDED = re.compile(r"<result>[ \t]*[^\s]")


def check_template(text: str) -> list[Problem]:
    """Return what is wrong with an input template, an output template, or a text with both.

    A text without errors can be read, and a text that cannot be read has an error.

    Returns:
        The problems, ordered by line; lines are 1 or more.
    """
    problem = xml_error(text)
    if problem is not None:
        return _sorted([problem])  # anything after it would be guesses
    try:
        templates = split(text, "template")
    except TemplateError as error:
        return _sorted(error.problems)
    found: list[Problem] = []
    for what in (kind for kind in (INPUT, OUTPUT) if templates[kind]):
        template: InputTemplate | OutputTemplate
        try:
            parts = only(templates, what)
            template, problems = input_of(parts) if what == INPUT else output_of(parts)
        except TemplateError as error:
            found += error.problems
        else:
            found += [*problems, *faults(template)]
    if not any(templates.values()):
        text = "there is no template: expected <input_template> or <output_template>"
        return _sorted([Problem(0, text, "no-template")])
    if not templates[OUTPUT] and (problem := document_error(text)) is not None:
        found.append(problem)
    if crowded := _CROWDED.search(text):
        found.append(
            Problem(
                text.count("\n", 0, crowded.start()) + 1,
                "more in the line of <result>: write it on a line of its own; jobs are recorded as "
                "sent and never delivered",
                "result-line",
            )
        )
    return _sorted(found)


def _sorted(problems: list[Problem] | tuple[Problem, ...]) -> list[Problem]:
    placed = (Problem(max(p.line, 1), p.text, p.code, p.severity) for p in problems)
    return sorted(placed, key=lambda problem: problem.line)
