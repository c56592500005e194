"""Who may import whom (``CONTRIBUTING.rst``, "The house"), read off the source."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = Path(__file__).parent.parent / "boinc_gahp"
SOURCES = sorted(PACKAGE.rglob("*.py"))

#: A room, and the rooms that it may import beside itself.
ARROWS = {
    "gahp": set(),
    "rpc": set(),
    "templates": set(),
    "ledger": set(),
    "submit": {"rpc", "templates", "ledger"},
    "fetch": {"submit", "rpc", "templates", "ledger"},
    "bridge": {"submit", "fetch", "rpc", "ledger"},
    "htcondor": {"bridge", "submit", "fetch", "templates", "ledger"},
    "api": {"bridge", "submit", "fetch", "rpc", "templates"},
    "daemon": {"gahp", "bridge", "submit", "fetch", "htcondor", "ledger"},
    "localproject": {"templates", "terminal"},
    "terminal": set(),
    "cli": {
        "gahp",
        "rpc",
        "templates",
        "ledger",
        "submit",
        "fetch",
        "bridge",
        "htcondor",
        "api",
        "daemon",
        "localproject",
        "terminal",
        "logs",
    },
    "config": set(),
    "logs": set(),
    "errors": set(),
    "secret": set(),
    "lazy": set(),
    "text": set(),
    "backoff": set(),
    "threads": set(),
    "states": set(),
    "client_exits": set(),
    "files": set(),
    "_version": set(),
    # The name that api had.
    "remote": {"api"},
    # The package itself hands out the Python API.
    "": {"api"},
}
OPEN_TO_ALL = {
    "lazy",
    "errors",
    "secret",
    "text",
    "threads",
    "files",
    "backoff",
    "states",
    "client_exits",
}
OPEN_TO_ALL |= {"config", "_version", ""}

#: The protocol does no input or output of its own (``CONTRIBUTING.rst``, "The house").
NO_IO = {"asyncio", "concurrent", "multiprocessing", "os", "requests", "select", "selectors"}
NO_IO |= {"socket", "sqlite3", "subprocess", "sys", "threading"}


def room_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return "" if parts[0] == "__init__" else parts[0]


def imported(source: str, path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and dotted name of everything that a module imports, names of packages whole."""
    package = ("boinc_gahp", *path.relative_to(PACKAGE).parent.parts)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(filter(None, (base, node.module)))
            for alias in node.names:
                yield node.lineno, f"{module}.{alias.name}"
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            argument = node.args[0]
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                yield node.lineno, argument.value


def rooms_imported(source: str, path: Path) -> Iterator[tuple[int, str]]:
    for line, name in imported(source, path):
        if name == "boinc_gahp" or name.startswith("boinc_gahp."):
            first = f"{name}.".split(".")[1]
            yield line, first if first in ARROWS else ""


def wrong_arrows(source: str, path: Path) -> list[str]:
    room = room_of(path)
    return [
        f"{path.relative_to(PACKAGE.parent)}:{line}: {room} imports {other or 'boinc_gahp'}"
        for line, other in rooms_imported(source, path)
        if other != room and other not in ARROWS[room] | OPEN_TO_ALL
    ]


def test_every_module_belongs_to_a_room() -> None:
    assert {room_of(path) for path in SOURCES} == set(ARROWS)


@pytest.mark.parametrize("room", ARROWS)
def test_a_room_imports_only_what_it_may(room: str) -> None:
    found = [
        arrow
        for path in SOURCES
        if room_of(path) == room
        for arrow in wrong_arrows(path.read_text("utf-8"), path)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("place", "line", "is_wrong"),
    [
        ("rpc/client.py", "import boinc_gahp.submit.engine", True),
        ("rpc/client.py", "from boinc_gahp import ledger", True),
        ("rpc/client.py", "from ..templates import read_templates", True),
        ("rpc/client.py", "def f():\n    from boinc_gahp.daemon import main", True),
        ("rpc/client.py", "if TYPE_CHECKING:\n    from boinc_gahp.gahp import words", True),
        ("daemon/main.py", "from boinc_gahp.rpc import WebRpcs", True),
        ("daemon/main.py", "import_module('boinc_gahp.rpc')", True),
        ("rpc/deep/er.py", "from ...ledger import Ledger", True),
        ("secret.py", "from boinc_gahp.rpc import WebRpcs", True),
        ("rpc/client.py", "from .border import Border", False),
        ("rpc/client.py", "from boinc_gahp import __version__, errors", False),
        ("localproject/project.py", "from ..templates import fill_input", False),
        ("localproject/project.py", "from ..rpc import WebRpcs", True),
        ("cli/demo.py", "from boinc_gahp.localproject import LocalProject", False),
    ],
)
def test_a_new_arrow_is_noticed(place: str, line: str, is_wrong: bool) -> None:
    assert bool(wrong_arrows(line, PACKAGE / place)) == is_wrong


def test_the_protocol_imports_nothing_that_does_input_or_output() -> None:
    found = [
        (path.name, name)
        for path in SOURCES
        if room_of(path) == "gahp"
        for _, name in imported(path.read_text("utf-8"), path)
        if name.split(".")[0] in NO_IO
    ]
    assert found == []
