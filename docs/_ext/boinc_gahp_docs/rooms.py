"""Who imports whom: the arrows between the rooms, counted in the source."""

from __future__ import annotations

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import boinc_gahp

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

PACKAGE = Path(boinc_gahp.__file__).parent

#: Any room may import these.
OPEN = (
    "backoff",
    "client_exits",
    "config",
    "errors",
    "extras",
    "files",
    "quantities",
    "secret",
    "serving",
    "states",
    "text",
    "threads",
)
#: They are drawn as a floor under the rooms, without arrows; logs is for cli alone.
FLOOR = (*OPEN, "logs")
#: Parts of the package that are no rooms; the package itself hands out the Python API.
_NO_ROOMS = ("", "_version")

Arrows = dict[tuple[str, str], int]


def rooms() -> dict[str, int]:
    """Return the rooms, the floor's among them, with their numbers of modules."""
    found: defaultdict[str, int] = defaultdict(int)
    for path in PACKAGE.rglob("*.py"):
        if (room := room_of(path)) not in _NO_ROOMS:
            found[room] += 1
    return dict(sorted(found.items()))


def arrows() -> Arrows:
    """Return for (room, other room) how many modules of the one import from the other."""
    known = set(rooms())
    found: defaultdict[tuple[str, str], int] = defaultdict(int)
    for path in sorted(PACKAGE.rglob("*.py")):
        room = room_of(path)
        names = (name.split(".") for name in imported(path))
        others = {name[1] for name in names if name[0] == "boinc_gahp" and len(name) > 1}
        for other in others & known - {room}:
            if room in known:
                found[room, other] += 1
    return dict(sorted(found.items()))


def between_rooms(found: Mapping[tuple[str, str], int]) -> Arrows:
    """Return the arrows that neither begin nor end at the floor."""
    return {
        pair: number
        for pair, number in found.items()
        if pair[0] not in FLOOR and pair[1] not in FLOOR
    }


def direct(found: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the arrows that no way over other arrows replaces (the transitive reduction)."""
    arrows = list(found)

    def reaches(begin: str, end: str) -> bool:
        return any(one == begin and (other == end or reaches(other, end)) for one, other in arrows)

    return [
        (one, other)
        for one, other in arrows
        if not any(
            begin == one and between != other and reaches(between, other)
            for begin, between in arrows
        )
    ]


def room_of(path: Path) -> str:
    """Return the room of a module."""
    first = path.relative_to(PACKAGE).with_suffix("").parts[0]
    return "" if first == "__init__" else first


@cache
def imported(path: Path, source: str | None = None) -> tuple[str, ...]:
    """Return the dotted name of everything that a module imports, names of packages whole.

    Args:
        path: the module.
        source: read instead of the module's own.
    """
    return tuple(_imported(path, path.read_text("utf-8") if source is None else source))


def _imported(path: Path, source: str) -> Iterator[str]:
    package = ("boinc_gahp", *path.relative_to(PACKAGE).parent.parts)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(filter(None, (base, node.module)))
            yield from (f"{module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call):
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if called.endswith("import_module"):
                yield from _imported_by_name(node.args[0])


def _imported_by_name(argument: ast.expr) -> Iterator[str]:
    """Yield what ``import_module`` is told, as far as the source tells it."""
    if isinstance(argument, ast.JoinedStr):
        argument = argument.values[0]
    if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
        yield argument.value.rstrip(".")
