"""The keys of JSON documents that are made of dataclasses, with the comments at their fields."""

from __future__ import annotations

import dataclasses
import re
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from boinc_gahp_docs.settings import field_comments

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_TYPES = {
    "str": "text",
    "bool": "true or false",
    "int": "number",
    "float": "number",
    "Time": "time",
    "dict": "object",
}
_HEADING = re.compile(r"^((?:batch|ledger) [^\n]*|apps)\n-+\n", re.MULTILINE)
_OBJECT = re.compile(r"^\.\. json-object:: ([\w.]+)$", re.MULTILINE)
_KEY = re.compile(r"^   ``([\w\[\].]+)`` \|", re.MULTILINE)


def documented(page: Path) -> dict[str, set[str]]:
    """Return the keys on a page, by the action that stands above them."""
    _, *parts = _HEADING.split(page.read_text("utf-8"))
    return {
        action.strip(): set(_KEY.findall(_OBJECT.sub(lambda found: render(named(found[1])), text)))
        for heading, text in zip(parts[::2], parts[1::2], strict=True)
        for action in heading.split(",")
    }


def keys(cls: type[Any], above: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield each key as the page writes it, the type of its value, and its meaning."""
    comments = field_comments(cls)
    for field in dataclasses.fields(cls):
        kind, _, null = str(field.type).partition(" | ")
        outer, _, inner = kind.rstrip("]").partition("[")
        inside = _dataclass(inner or outer)
        name, word = above + field.name, "list" if outer == "list" else _TYPES.get(outer, "object")
        if null:
            word = "true, false or null" if outer == "bool" else f"{word} or null"
        yield name, word, comments[field.name]
        if inside is not None:
            yield from keys(inside, f"{name}[]." if outer == "list" else f"{name}.")


def _dataclass(name: str) -> type[Any] | None:
    """Return the dataclass of a name in an annotation, which may be imported only for types."""
    rooms = (module for name, module in sys.modules.items() if name.startswith("boinc_gahp."))
    found = (vars(module).get(name) for module in rooms)
    classes = (each for each in found if isinstance(each, type))
    return next((each for each in classes if dataclasses.is_dataclass(each)), None)


def named(path: str) -> type[Any]:
    """Return a class by its module and name."""
    module, _, name = path.rpartition(".")
    found: type[Any] = getattr(import_module(module), name)
    return found


def render(cls: type[Any]) -> str:
    """Return a table of the keys."""
    rows = [f"   ``{name}`` | {kind} | {meaning}" for name, kind, meaning in keys(cls)]
    head = [
        ".. csv-table::",
        "   :header: key | type | meaning",
        "   :delim: |",
        "   :widths: 30 20 50",
        "   :class: stacked",
        "",
    ]
    return "\n".join([*head, *rows, ""])
