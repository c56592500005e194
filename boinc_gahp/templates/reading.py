"""Reads templates tolerantly: as get_templates returns them and as admins write them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

from boinc_gahp.templates._markup import Fields, children, line_of, parse
from boinc_gahp.templates.types import (
    InputFileInfo,
    InputTemplate,
    OutputFileInfo,
    OutputTemplate,
    Problem,
    TemplateError,
    wrong,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lxml import etree

T = TypeVar("T")

INPUT = "input template"
OUTPUT = "output template"

#: The element that marks a template's kind, and the kind.
_BODIES = {"workunit": INPUT, "result": OUTPUT}
#: Elements around or inside templates; any other outer element is a wrapper to look into.
_ROOTS = {"input_template": INPUT, "output_template": OUTPUT}


class Parts(NamedTuple):
    """The elements of one template: its file_infos, its workunit or result, and its root if any."""

    file_infos: Sequence[etree._Element]
    body: etree._Element | None
    root: etree._Element | None = None


def read_templates(text: str) -> tuple[InputTemplate, OutputTemplate]:
    """Read an input template and an output template from one text.

    Their root elements may be missing, and anything may be around them.

    Raises:
        TemplateError: one is missing, there are two of a kind, or one is wrong.
    """
    parts = split(text, "job templates")
    return (
        _good(INPUT, input_of(only(parts, INPUT))),
        _good(OUTPUT, output_of(only(parts, OUTPUT))),
    )


def read_input_template(text: str) -> InputTemplate:
    """Read an input template.

    Raises:
        TemplateError: lists everything that is wrong with it.
    """
    return _good(INPUT, input_of(input_parts(text)))


def input_parts(text: str) -> Parts:
    """Return the elements of the only input template in a text.

    Raises:
        TemplateError: there is none, or there are several.
    """
    return only(split(text, INPUT), INPUT)


def read_output_template(text: str) -> OutputTemplate:
    """Read an output template.

    Raises:
        TemplateError: lists everything that is wrong with it.
    """
    return _good(OUTPUT, output_of(only(split(text, OUTPUT), OUTPUT)))


def _good(kind: str, found: tuple[T, list[Problem]]) -> T:
    template, problems = found
    if problems:
        raise TemplateError(kind, problems)
    return template


def only(parts: dict[str, list[Parts]], kind: str) -> Parts:
    """Return the elements of the only template of a kind.

    Raises:
        TemplateError: there is none, or there are several.
    """
    found = parts[kind]
    root = "<input_template>" if kind == INPUT else "<output_template>"
    body = "<workunit>" if kind == INPUT else "<result>"
    if not found:
        text = f"there is none: expected {root} with a {body}"
        raise wrong(kind, text, "no-template")
    if len(found) > 1:
        second = found[1]
        first = next(e for e in (second.root, *second.file_infos, second.body) if e is not None)
        line = line_of(first)
        text = f"a second one begins here: expected one {root}"
        raise wrong(kind, text, "second-template", line)
    return found[0]


def split(text: str, what: str) -> dict[str, list[Parts]]:
    """Sort the elements into templates: by root element, or by the element after the file_infos."""
    parts: dict[str, list[Parts]] = {INPUT: [], OUTPUT: []}
    loose: list[etree._Element] = []
    for element in _flat(parse(text, what)):
        kind = _ROOTS.get(element.tag)
        if kind is not None:
            parts[kind].append(_rooted(element, kind))
        elif element.tag == "file_info":
            loose.append(element)
        else:
            parts[_BODIES[element.tag]].append(Parts(loose, element))
            loose = []
    return parts


def _flat(element: etree._Element) -> Iterator[etree._Element]:
    for child in children(element):
        if child.tag in _ROOTS or child.tag in _BODIES or child.tag == "file_info":
            yield child
        else:
            yield from _flat(child)


def _rooted(root: etree._Element, kind: str) -> Parts:
    infos = [child for child in children(root) if child.tag == "file_info"]
    bodies = [child for child in children(root) if _BODIES.get(child.tag) == kind]
    return Parts(infos, bodies[0] if bodies else None, root)


def file_refs(body: etree._Element) -> list[etree._Element]:
    """Return the file_refs of a workunit or result."""
    return [child for child in children(body) if child.tag == "file_ref"]


def _refs(parts: Parts, kind: str, problems: list[Problem]) -> tuple[Fields, list[etree._Element]]:
    """Return the body and its file_refs; each file_info must have one."""
    if parts.body is None:
        tag = "workunit" if kind == INPUT else "result"
        text = f"expected a <{tag}> after the <file_info>s"
        raise wrong(kind, text, "no-body")
    body = Fields(problems, parts.body)
    refs = file_refs(parts.body)
    if len(refs) != len(parts.file_infos):
        body.problem(
            "file-count",
            f"{len(parts.file_infos)} <file_info> but {len(refs)} <file_ref>: "
            "expected one <file_ref> for each <file_info>, in the same order",
        )
        raise TemplateError(kind, problems)
    return body, refs


def _open_name(fields: Fields, ref: etree._Element, seen: dict[str, int]) -> str:
    name = fields.text("open_name")
    if name is None:
        fields.problem(
            "no-open-name", "<file_ref> without <open_name>: expected the file's logical name", ref
        )
        return ""
    if name in seen:
        fields.problem(
            "duplicate-open-name",
            f"open_name {name!r} is used before, in line {seen[name]}: "
            "expected another name for each file",
            ref,
        )
    seen.setdefault(name, line_of(ref))
    return name


def input_of(parts: Parts) -> tuple[InputTemplate, list[Problem]]:
    """Return the values of an input template, and its problems; a wrong value reads as None.

    Raises:
        TemplateError: files and their file_refs cannot be matched.
    """
    problems: list[Problem] = []
    body, refs = _refs(parts, INPUT, problems)
    seen: dict[str, int] = {}
    files = []
    for info, ref in zip(parts.file_infos, refs, strict=True):
        fields = Fields(problems, info, ref)
        files.append(_input_file(fields, _open_name(fields, ref, seen)))
    values = body.values(InputTemplate)
    template = InputTemplate(tuple(files), line=body.line, **values)
    return template, sorted(problems, key=lambda problem: problem.line)


def _input_file(fields: Fields, open_name: str) -> InputFileInfo:
    generated = fields.flag("generate_locally", "generated_locally")
    values = fields.values(InputFileInfo, "generate_locally")
    urls = fields.texts("url")
    file = InputFileInfo(
        open_name, urls=urls, generate_locally=generated, line=fields.line, **values
    )
    if file.urls and (file.md5_cksum is None or file.nbytes is None):
        fields.problem(
            "remote-incomplete",
            "<url> without <md5_cksum> and <nbytes>: expected all three for a remote file",
        )
    return file


def output_of(parts: Parts) -> tuple[OutputTemplate, list[Problem]]:
    """Return the values of an output template, and its problems; like :func:`input_of`."""
    problems: list[Problem] = []
    body, refs = _refs(parts, OUTPUT, problems)
    by_name: dict[str, etree._Element] = {}
    for info in parts.file_infos:
        fields = Fields(problems, info)
        name = fields.text("name")
        if name is None:
            fields.problem(
                "no-name", "<file_info> without <name>: expected <OUTFILE_0/>, <OUTFILE_1/>, …"
            )
        elif name in by_name:
            fields.problem(
                "duplicate-name", f"a second <file_info> named {name}: expected different names"
            )
        else:
            by_name[name] = info
    seen: dict[str, int] = {}
    files = []
    for ref in refs:
        name = Fields(problems, ref).text("file_name")
        matching = by_name.pop(name, None) if name else None
        if name is None or matching is None:
            body.problem(
                "unknown-file-name",
                f"<file_name> {name or 'missing'}: expected the <name> of a <file_info> that "
                "no other <file_ref> has",
                ref,
            )
            continue
        fields = Fields(problems, matching, ref)
        files.append(_output_file(fields, matching, _open_name(fields, ref, seen), name))
    if not problems:
        files = _numbered(files, body)
    report_immediately = body.flag("report_immediately")
    template = OutputTemplate(tuple(files), report_immediately, body.line)
    return template, sorted(problems, key=lambda problem: problem.line)


def _output_file(fields: Fields, info: etree._Element, open_name: str, name: str) -> OutputFileInfo:
    values = fields.values(OutputFileInfo, "no_delete")
    no_delete = Fields([], info).flag("no_delete")
    urls = fields.texts("url")
    return OutputFileInfo(
        open_name, name, urls=urls, no_delete=no_delete, line=line_of(info), **values
    )


def _numbered(files: list[OutputFileInfo], body: Fields) -> list[OutputFileInfo]:
    """Sort files by their OUTFILE numbers, which must be their places."""
    if all(file.number is None for file in files):
        return files
    ordered = sorted(files, key=lambda file: -1 if file.number is None else file.number)
    if [file.number for file in ordered] != list(range(len(ordered))):
        names = " ".join(file.name for file in files)
        body.problem(
            "file-order",
            f"output files are called {names}: expected <OUTFILE_0/> to "
            f"<OUTFILE_{len(files) - 1}/>, each once",
        )
    return ordered
