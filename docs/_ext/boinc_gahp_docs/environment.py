"""The environment variables that the program looks at, read off its source."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import boinc_gahp

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = Path(boinc_gahp.__file__).parent

#: Where programs run that are volunteers', not ours.
_ELSEWHERE = ("localproject/apps/",)
_READERS = {"get", "getenv", "pop", "setdefault"}
_MAPPINGS = {"environ", "os.environ"}


def variables() -> dict[str, list[str]]:
    """Return the names of all variables that the source asks for, with the modules that do."""
    found: dict[str, list[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(PACKAGE).as_posix()
        if place.startswith(_ELSEWHERE):
            continue
        for name in _names(ast.parse(path.read_text("utf-8"))):
            found.setdefault(name, [])
            if place not in found[name]:
                found[name].append(place)
    return found


def _names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        key: ast.expr | None = None
        if isinstance(node, ast.Subscript) and ast.unparse(node.value) in _MAPPINGS:
            key = node.slice
        elif isinstance(node, ast.Compare) and any(
            ast.unparse(each) in _MAPPINGS for each in node.comparators
        ):
            key = node.left
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = ast.unparse(node.func.value)
            if node.func.attr in _READERS and (owner in _MAPPINGS or node.func.attr == "getenv"):
                key = node.args[0]
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            yield key.value
