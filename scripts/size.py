"""Print the size of the program and of its tests, room by room.

Lines of code are those that are neither blank nor only a comment or a docstring. Value types are
dataclasses and named tuples, error classes all that descend from an exception.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
_NO_CODE = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
    tokenize.ENDMARKER,
}  # fmt: skip


class Size(NamedTuple):
    """What is counted of one module, or of several."""

    lines: int = 0
    modules: int = 0
    values: int = 0
    errors: int = 0


def size_of(source: str, errors: set[str]) -> Size:
    """Return the size of a module, given the names of all error classes."""
    tree = ast.parse(source)
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    return Size(
        len(code_lines(source, tree)),
        1,
        sum(is_value(each) for each in classes),
        sum(each.name in errors for each in classes),
    )


def code_lines(source: str, tree: ast.Module) -> set[int]:
    """Return the numbers of the lines that are neither blank, comment nor docstring."""
    lines = {
        line
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type not in _NO_CODE
        for line in range(token.start[0], token.end[0] + 1)
    }
    for node in ast.walk(tree):
        documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        if isinstance(node, documented) and ast.get_docstring(node) is not None:
            lines.difference_update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return lines


def is_value(node: ast.ClassDef) -> bool:
    """Tell whether a class is a dataclass or a named tuple."""
    marks = [ast.unparse(each) for each in (*node.decorator_list, *node.bases)]
    return any("dataclass" in mark or "NamedTuple" in mark for mark in marks)


def error_classes(sources: list[str]) -> set[str]:
    """Return the names of all classes that descend from an exception."""
    bases = {
        node.name: {ast.unparse(base).rpartition(".")[2] for base in node.bases}
        for source in sources
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ClassDef)
    }
    known = {"Exception", "BaseException"}
    known |= {base for each in bases.values() for base in each if base.endswith("Error")}
    while more := {name for name, its in bases.items() if its & known} - known:
        known |= more
    return known & set(bases)


def main() -> None:
    """Print a table for the program, and one for the tests."""
    for top in ("boinc_gahp", "tests"):
        paths = sorted((ROOT / top).rglob("*.py"))
        sources = {path: path.read_text("utf-8") for path in paths}
        errors = error_classes(list(sources.values()))
        rooms: defaultdict[str, Size] = defaultdict(Size)
        for path, source in sources.items():
            inside = path.relative_to(ROOT).parts
            added = size_of(source, errors)
            for room in ("/".join(inside[: 2 if len(inside) > 2 else 1]), "all"):
                rooms[room] = Size(*map(sum, zip(rooms[room], added, strict=True)))
        rooms["all"] = rooms.pop("all")
        header = ("lines", "modules", "values", "errors")
        sys.stdout.write(f"{top:<24}" + "".join(f"{word:>9}" for word in header) + "\n")
        for room, size in rooms.items():
            sys.stdout.write(f"{room:<24}" + "".join(f"{number:9,}" for number in size) + "\n")


if __name__ == "__main__":
    main()
