"""Checks a template as a good linter does: where, what, what is expected, and why."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from boinc_gahp.templates.markup import MAX_TEXT, Findings, children, line_of, parse, too_long
from boinc_gahp.templates.reading import INPUT, OUTPUT, Parts, input_of, output_of, split
from boinc_gahp.templates.rules import check_input, check_output
from boinc_gahp.templates.scanning import Scan
from boinc_gahp.templates.structure import check_structure
from boinc_gahp.templates.types import Problem, Severity, TemplateError
from boinc_gahp.templates.vocabulary import INPUT as INPUT_WORDS, OUTPUT as OUTPUT_WORDS, Vocabulary
from boinc_gahp.text import listed

if TYPE_CHECKING:
    from lxml import etree

_WORDS = {INPUT: INPUT_WORDS, OUTPUT: OUTPUT_WORDS}
_KINDS = {"input": INPUT, "output": OUTPUT}
#: The elements that get_templates puts around the two templates.
_WRAPPERS = {"templates", "get_templates"}
#: The most lines to name if several have the same problem.
_LINES = 5


def check_template(text: str, *, kind: str | None = None) -> list[Problem]:
    """Return what is wrong with an input template, an output template, or a text with both.

    A text without errors can be read, and a text that cannot be read has an error. If several lines
    have the same problem, it is reported once, at the first of them.

    Args:
        text: the content of the file.
        kind: ``input`` or ``output``, if it must be that; None: the elements tell the kind.

    Returns:
        The problems, ordered by line; lines are 1 or more.

    Raises:
        ValueError: there is no such kind.
    """
    if kind is not None and kind not in _KINDS:
        raise ValueError(f"kind {kind!r}: expected 'input', 'output' or None")
    if len(text) > MAX_TEXT:
        return _merged([too_long(text)])
    scan = Scan(text)
    if scan.problem is not None:
        # Anything after it would be guesses.
        return _merged([scan.problem])
    try:
        templates = split(text, "template")
    except TemplateError as error:
        return _merged(error.problems)
    found = Findings()
    _check_kinds(templates, None if kind is None else _KINDS[kind], found)
    _check_outside(parse(text, "template"), found)
    for what, several in templates.items():
        for parts in several:
            _check_one(parts, _WORDS[what], found)
    if len(templates[INPUT]) == 1 and not templates[OUTPUT]:
        found.problems += _one_document(scan)
    found.problems += scan.crowded()
    return _merged(found.problems)


def _check_one(parts: Parts, words: Vocabulary, found: Findings) -> None:
    check_structure(parts, words, found)
    try:
        if words is INPUT_WORDS:
            inputs, problems = input_of(parts)
            check_input(inputs, parts, found)
        else:
            outputs, problems = output_of(parts)
            check_output(outputs, parts, found)
    except TemplateError as error:
        line = 0 if parts.first is None else line_of(parts.first)
        problems = [Problem(p.line or line, p.text, p.code) for p in error.problems]
    found.problems += problems


def _check_kinds(templates: dict[str, list[Parts]], expected: str | None, found: Findings) -> None:
    for what, several in templates.items():
        for parts in several[1:]:
            if parts.first is not None:
                found.error(
                    parts.first,
                    "second-template",
                    f"a second {what} begins here: expected one, in a file of its own",
                )
        if expected is not None and what != expected:
            for parts in several:
                if parts.first is not None:
                    found.error(
                        parts.first, "wrong-kind", f"this is an {what}: expected an {expected}"
                    )
    wanted = [expected] if expected else [INPUT, OUTPUT]
    if not any(templates[what] for what in wanted):
        bodies = " or ".join(f"<{_WORDS[w].root}> with a <{_WORDS[w].body}>" for w in wanted)
        text = f"there is no template: expected {bodies}"
        found.problems.append(Problem(0, text, "no-template"))


def _check_outside(outer: etree._Element, found: Findings) -> None:
    """Note elements around the templates that mean nothing to BOINC."""
    for child in children(outer):
        name = str(child.tag)
        if name == "file_info" or any(name in (w.root, w.body) for w in _WORDS.values()):
            continue
        if name not in _WRAPPERS:
            found.warn(
                child,
                "unknown-element",
                f"<{name}> outside of any template has no meaning to BOINC: expected "
                "<input_template> or <output_template>",
            )
        _check_outside(child, found)


def _one_document(scan: Scan) -> list[Problem]:
    """Return why an input template is not a single XML document."""
    problems = []
    if len(scan.roots) > 1:
        text = (
            "an input template without a root element: expected <input_template> around all of it; "
            "the web RPCs for remote jobs cannot read this"
        )
        problems.append(Problem(scan.roots[1], text, "not-one-document", Severity.WARNING))
    for line in scan.late_declarations:
        text = (
            "an XML declaration that is not at the very start of the file: expected it there, or "
            "none; the web RPCs for remote jobs cannot read this"
        )
        problems.append(Problem(line, text, "not-one-document", Severity.WARNING))
    return problems


def _merged(problems: tuple[Problem, ...] | list[Problem]) -> list[Problem]:
    """Sort problems; the same problem in several lines becomes one."""
    lines: dict[tuple[str, str, Severity], set[int]] = defaultdict(set)
    for problem in problems:
        lines[problem.text, problem.code, problem.severity].add(max(problem.line, 1))
    merged = []
    for (text, code, severity), places in lines.items():
        first, *others = sorted(places)
        merged.append(Problem(first, text + _also(others), code, severity))
    return sorted(merged, key=lambda p: (p.line, p.severity is Severity.WARNING, p.code))


def _also(lines: list[int]) -> str:
    if not lines:
        return ""
    named = listed([*map(str, lines)], _LINES)
    return f" (also in line{'s' if len(lines) > 1 else ''} {named})"
