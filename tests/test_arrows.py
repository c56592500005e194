"""Who may import whom (``CONTRIBUTING.rst``, "The house"), read off the source."""

from __future__ import annotations

import ast
import importlib
from functools import cache
from graphlib import TopologicalSorter
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
    "containers": set(),
    "functions": set(),
    "ledger": set(),
    "submit": {"rpc", "templates", "containers", "ledger"},
    "fetch": {"submit", "rpc", "templates", "containers", "ledger"},
    "htcondor": {"submit", "fetch", "templates", "containers", "ledger"},
    "api": {"submit", "fetch", "rpc", "templates", "containers", "terminal", "functions"},
    "daemon": {"gahp", "submit", "fetch", "htcondor", "ledger"},
    "localproject": {"templates", "terminal"},
    "terminal": set(),
    "workflows": {"api"},
    "cli": {
        "gahp",
        "rpc",
        "templates",
        "containers",
        "ledger",
        "submit",
        "fetch",
        "htcondor",
        "functions",
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
    "text": set(),
    "backoff": set(),
    "threads": set(),
    "states": set(),
    "client_exits": set(),
    "quantities": set(),
    "extras": set(),
    "files": set(),
    "_version": set(),
    # The package itself hands out the Python API.
    "": {"api"},
}
OPEN_TO_ALL = {
    "errors",
    "secret",
    "text",
    "threads",
    "files",
    "backoff",
    "states",
    "client_exits",
    "quantities",
    "extras",
}
OPEN_TO_ALL |= {"config", "_version", ""}

#: The protocol does no input or output of its own (``CONTRIBUTING.rst``, "The house").
NO_IO = {"asyncio", "concurrent", "multiprocessing", "os", "requests", "select", "selectors"}
NO_IO |= {"socket", "sqlite3", "subprocess", "sys", "threading"}


def room_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return "" if parts[0] == "__init__" else parts[0]


@cache
def imported(source: str, path: Path) -> list[tuple[int, str]]:
    """Return line and dotted name of everything that a module imports, names of packages whole."""
    return list(_imported(source, path))


def _imported(source: str, path: Path) -> Iterator[tuple[int, str]]:
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
        elif isinstance(node, ast.Call) and name_of(node.func).endswith("import_module"):
            argument = node.args[0]
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                yield node.lineno, argument.value


def name_of(function: ast.expr) -> str:
    """Return the last name in what is called."""
    return str(getattr(function, "attr", getattr(function, "id", "")))


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
        ("daemon/main.py", "from boinc_gahp.rpc.client import WebRpcs", True),
        ("daemon/main.py", "import_module('boinc_gahp.rpc')", True),
        ("rpc/deep/er.py", "from ...ledger import Ledger", True),
        ("secret.py", "from boinc_gahp.rpc.client import WebRpcs", True),
        ("rpc/client.py", "from .border import Border", False),
        ("rpc/client.py", "from boinc_gahp import __version__, errors", False),
        ("localproject/project.py", "from ..templates import fill_input", False),
        ("localproject/project.py", "from ..rpc import WebRpcs", True),
        ("cli/demo.py", "from boinc_gahp.localproject.project import LocalProject", False),
    ],
)
def test_a_new_arrow_is_noticed(place: str, line: str, is_wrong: bool) -> None:
    assert bool(wrong_arrows(line, PACKAGE / place)) == is_wrong


#: Rooms, from which others import names that the room hands out, and nothing from its modules.
ROOMS = sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))


def handed_out(room: str) -> dict[str, set[str]]:
    """Return the names that a room's ``__init__`` imports from its modules, by module."""
    path = PACKAGE / room / "__init__.py"
    found: dict[str, set[str]] = {}
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith(f"boinc_gahp.{room}."):
            module = str(node.module).removeprefix(f"boinc_gahp.{room}.")
            found.setdefault(module, set()).update(alias.name for alias in node.names)
    return found


def insides(source: str, path: Path) -> list[str]:
    """Return the imports of another room's modules, or of names that it does not hand out."""
    own = room_of(path)
    found = []
    for line, name in imported(source, path):
        package, room, *inside = f"{name}..".split(".")[:4]
        if package != "boinc_gahp" or room == own or room not in ROOMS:
            continue
        if inside[1] or (inside[0] and inside[0] not in offered(room)):
            found.append(f"{path.relative_to(PACKAGE.parent)}:{line}: {name}")
    return found


@cache
def offered(room: str) -> set[str]:
    """Return everything that others may import from a room."""
    tree = ast.parse((PACKAGE / room / "__init__.py").read_text("utf-8"))
    own = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    names = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assigned = {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    return own | names | assigned | NAMESPACES.get(room, set())


#: Modules that others use as a whole: their names need the module's to be understood.
NAMESPACES = {
    "gahp": {"blah_commands", "boinc_commands", "common_commands", "words"},
    "terminal": {"table", "words"},
}


def test_no_room_imports_anothers_insides() -> None:
    assert [each for path in SOURCES for each in insides(path.read_text("utf-8"), path)] == []


@pytest.mark.parametrize(
    ("line", "is_inside"),
    [
        ("from boinc_gahp.ledger.rows import JobRow", True),
        ("import boinc_gahp.ledger.rows", True),
        ("from boinc_gahp.ledger import rows", True),
        ("from boinc_gahp.ledger.rows import JobRow", False),
        ("from boinc_gahp.htcondor.sending import Sender", False),
        ("from boinc_gahp.errors import LedgerError", False),
    ],
)
def test_an_import_of_insides_is_noticed(line: str, is_inside: bool) -> None:
    assert bool(insides(line, PACKAGE / "htcondor" / "manager.py")) == is_inside


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_hands_out_what_it_says(room: str) -> None:
    package = importlib.import_module(f"boinc_gahp.{room}")
    for module, names in handed_out(room).items():
        there = importlib.import_module(f"boinc_gahp.{room}.{module}")
        for name in names:
            assert getattr(package, name) is getattr(there, name), name
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = package.nothing


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Imports for types, and imports inside functions, are not counted: they close no circle."""
    modules = {module_of(path): path for path in SOURCES}
    TopologicalSorter(
        {
            module: {
                name if name in modules else name.rpartition(".")[0] for name in at_import(path)
            }
            for module, path in modules.items()
        }
    ).prepare()


def module_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def at_import(path: Path) -> Iterator[str]:
    """Yield the modules, or names in modules, that a module imports when it is imported."""
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            for _, name in imported(ast.unparse(node), path):
                yield name


def test_the_protocol_imports_nothing_that_does_input_or_output() -> None:
    found = [
        (path.name, name)
        for path in SOURCES
        if room_of(path) == "gahp"
        for _, name in imported(path.read_text("utf-8"), path)
        if name.split(".")[0] in NO_IO
    ]
    assert found == []
