"""The table of rules: what breaks a submit or loses an output although a template can be read.

Where ``templates.rst`` and ``back-end.rst`` leave facts open, those of BOINC's own ``create_work``
and ``file_deleter`` apply. :func:`check_template` also tells whether a text can be read at all.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from boinc_gahp.templates._markup import document_error, xml_error
from boinc_gahp.templates.filling import JobFile, fill_input, fill_output, nbytes_of
from boinc_gahp.templates.reading import INPUT, OUTPUT, input_of, only, output_of, split
from boinc_gahp.templates.types import (
    DEFAULTS,
    DOCUMENT_LIMIT,
    InputTemplate,
    OutputTemplate,
    Problem,
    Severity,
    TemplateError,
    safe_open_name,
)
from boinc_gahp.text import listed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from boinc_gahp.templates.types import InputFileInfo, OutputFileInfo

    File = InputFileInfo | OutputFileInfo
    Template = InputTemplate | OutputTemplate

#: Files are staged under an MD5 with an extension. A result's name can be as long as this
#: (``wire/FACT_long_job_names_kill_transitioner.json``: 191 is too long for a job and its "_0").
LONGEST_NAME = {InputTemplate: 42, OutputTemplate: 191}
#: A project's URL; hardly any is longer.
_URL = "h" * 64
#: What the transitioner adds to each output file if upload certificates are on: 1,024 bits in hex,
#: and the tags.
_CERTIFICATE = 300
#: The most files to name.
_NAMED = 5

_NOT_ZERO = (
    "rsc_fpops_est",
    "rsc_fpops_bound",
    "rsc_disk_bound",
    "delay_bound",
    "max_error_results",
    "max_total_results",
    "max_success_results",
)
#: Each count must not exceed the one beside it.
_COUNTS = (
    ("min_quorum", "target_nresults"),
    ("max_success_results", "max_total_results"),
    ("max_error_results", "max_total_results"),
)
#: Escaped neither for SQL nor for the XML that clients read (``containers.rst``, "On the server").
_NOT_IN_OPEN_NAMES = re.compile(r"[<&'\\]")
_CROWDED = re.compile(r"<result>[ \t]*[^\s]")


@dataclass(frozen=True, slots=True)
class Rule:
    """A row of the table.

    Attributes:
        code: a short name; it never changes.
        severity: of a template that breaks the rule.
        where: the templates that it is about.
        find: yields each place that breaks the rule: its line, and its name for the text.
        text: what is wrong, what to write, and why; ``{}`` stands for the names.
    """

    code: str
    severity: Severity
    where: tuple[type[Template], ...]
    find: Callable[[Any], Iterator[tuple[int, str]]]
    text: str


def _files(is_wrong: Callable[[Any], object]) -> Callable[[Template], Iterator[tuple[int, str]]]:
    """Return a function that finds files of a template."""

    def find(template: Template) -> Iterator[tuple[int, str]]:
        files: tuple[File, ...] = template.files
        return ((file.line, file.open_name) for file in files if is_wrong(file))

    return find


def _goes_through(open_name: str) -> bool:
    """Whether clients use this open name, as it was written."""
    return safe_open_name(open_name) and not _NOT_IN_OPEN_NAMES.search(open_name)


def _zeros(template: InputTemplate) -> Iterator[tuple[int, str]]:
    return ((template.line, f"<{name}>") for name in _NOT_ZERO if getattr(template, name) == 0)


def _counts(template: InputTemplate) -> Iterator[tuple[int, str]]:
    counts = template.counts
    for names in _COUNTS:
        small, large = (counts[name] for name in names)
        if small > large:
            yield template.line, f"<{names[0]}> {small} is more than <{names[1]}> {large}"


def _one_attempt(template: InputTemplate) -> Iterator[tuple[int, str]]:
    spare = template.counts["max_total_results"] > template.counts["target_nresults"]
    if template.max_total_results is None and not spare and not any(_counts(template)):
        yield template.line, "<max_total_results>"


def _low_bound(template: InputTemplate) -> Iterator[tuple[int, str]]:
    estimate, bound = (
        DEFAULTS[name] if getattr(template, name) is None else getattr(template, name)
        for name in ("rsc_fpops_est", "rsc_fpops_bound")
    )
    if bound < estimate:
        yield (
            template.line,
            f"<rsc_fpops_bound> {bound:g} is less than <rsc_fpops_est> {estimate:g}",
        )


def _size(template: Template, chars: int) -> int:
    """Return the size of a filled-in document with names of so many characters."""
    if isinstance(template, OutputTemplate):
        url = f"{_URL}_cgi/file_upload_handler"
        filled = fill_output(template, "n" * chars, url, "r2147483647", any_size=True)
        return nbytes_of(filled) + len(template.files) * _CERTIFICATE

    def staged(name: str) -> JobFile:
        return JobFile(name, 10**12, "0" * 32, (f"{_URL}download/3ff/{name}",), 10**12)

    count = sum(file.physical_name is None and not file.generate_locally for file in template.files)
    own = [staged("n" * chars)] * count
    return nbytes_of(fill_input(template, own, staged=staged, any_size=True))


def _large(template: Template, *, longest: bool) -> Iterator[tuple[int, str]]:
    chars = LONGEST_NAME[type(template)] if longest else 0
    size = _size(template, chars)
    if size >= DOCUMENT_LIMIT and not (longest and _size(template, 0) >= DOCUMENT_LIMIT):
        yield template.line, f"with names of {chars} characters it has {size:,} bytes"


_TOO_LARGE = (
    f"filled in, {{}}; it must have fewer than {DOCUMENT_LIMIT:,}: use fewer files (a zip can hold "
    "many)"
)
_E, _W = Severity.ERROR, Severity.WARNING
_IN, _OUT, _BOTH = (InputTemplate,), (OutputTemplate,), (InputTemplate, OutputTemplate)

RULES = (
    Rule("zero", _E, _IN, _zeros, "{} is 0: write more, or leave it out; no job can be made"),
    Rule("counts", _E, _IN, _counts, "{}: write at most as much; create_work refuses such jobs"),
    Rule(
        "one-attempt",
        _W,
        _IN,
        _one_attempt,
        "no {}, so each job gets one attempt: write <max_error_results>3</max_error_results>, "
        "<max_total_results>10</max_total_results> and "
        "<max_success_results>6</max_success_results>; a volunteer who aborts a job would end it",
    ),
    Rule(
        "bound-below-estimate",
        _W,
        _IN,
        _low_bound,
        "{}: write several times as much; clients abort a job that reaches its bound",
    ),
    Rule(
        "no-delete-input",
        _W,
        _IN,
        _files(lambda file: not (file.remote or file.generate_locally or file.no_delete)),
        "the input template lacks <no_delete/> for {}: add it to the <file_info>, unless each job "
        "has a file of its own; the project deletes a file that several jobs share as soon as the "
        "first of them is done",
    ),
    Rule(
        "gzip-without-size",
        _W,
        _IN,
        _files(lambda file: file.gzip and file.gzipped_nbytes is None),
        "<gzip/> without <gzipped_nbytes> for {}: leave it out, or stage each file with --gzip; "
        "create_work refuses files that are staged by web RPC",
    ),
    Rule(
        "open-name",
        _E,
        _BOTH,
        _files(lambda file: file.open_name and not _goes_through(file.open_name)),
        "<open_name> {}: write a relative path without '..' and without ' \\ & and <; clients "
        "refuse other paths, and the project's database or clients may change these characters",
    ),
    Rule(
        "no-url",
        _E,
        _OUT,
        _files(lambda file: not file.urls),
        "no <url> for {}: add <url><UPLOAD_URL/></url> to the <file_info>; volunteers would not "
        "know where to send the output",
    ),
    Rule(
        "fixed-name",
        _W,
        _OUT,
        _files(lambda file: file.number is None),
        "the same <name> for all instances of {}: write <OUTFILE_0/>, <OUTFILE_1/>, …; instances "
        "would overwrite each other's file on the server",
    ),
    Rule(
        "no-max-nbytes",
        _W,
        _OUT,
        _files(lambda file: not file.max_nbytes),
        "no <max_nbytes> for {}, or 0: write the most bytes that the output can have; a larger one "
        "is not uploaded",
    ),
    Rule(
        "no-delete-output",
        _W,
        _OUT,
        _files(lambda file: not file.no_delete),
        "the output template lacks <no_delete/> for {}: add it to the <file_info>, where the file "
        "deleter looks for it; the project may delete outputs before they are fetched",
    ),
    Rule(
        "not-generated-locally",
        _W,
        _OUT,
        _files(lambda file: not file.generated_locally),
        "no <generated_locally/> for {}: add it; clients would try to download the output",
    ),
    Rule("document-size", _E, _BOTH, partial(_large, longest=False), _TOO_LARGE),
    Rule("document-size", _W, _BOTH, partial(_large, longest=True), _TOO_LARGE),
)


def faults(template: Template) -> list[Problem]:
    """Return which rules a template breaks, in the order of the table."""
    problems = []
    for rule in RULES:
        found = list(rule.find(template)) if isinstance(template, rule.where) else []
        if found:
            text = rule.text.format(listed([name for _, name in found], _NAMED))
            problems.append(Problem(min(line for line, _ in found), text, rule.code, rule.severity))
    return problems


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
