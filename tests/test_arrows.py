"""Who may import whom (``CONTRIBUTING.rst``, "The house"), read off the source."""

import ast
from graphlib import TopologicalSorter

import pytest

from tests.arrows import ARROWS, OPEN_TO_ALL, PACKAGE, SOURCES, imported, room_of, rooms_imported

#: The protocol does no input or output of its own (``CONTRIBUTING.rst``, "The house").
NO_IO = {"asyncio", "concurrent", "multiprocessing", "os", "requests", "select", "selectors"}
NO_IO |= {"socket", "sqlite3", "subprocess", "sys", "threading"}


def wrong_arrows(source, path):
    room = room_of(path)
    return [
        f"{path.relative_to(PACKAGE.parent)}:{line}: {room} imports {other or 'boinc_gahp'}"
        for line, other in rooms_imported(source, path)
        if other != room and other not in ARROWS[room] | OPEN_TO_ALL
    ]


def test_every_module_belongs_to_a_room():
    assert {room_of(path) for path in SOURCES} == set(ARROWS)


@pytest.mark.parametrize("room", sorted(ARROWS))
def test_a_room_imports_only_what_it_may(room):
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
        ("rpc/client.py", "from boinc_gahp import ledger", True),
        ("rpc/client.py", "from ..templates import read_templates", True),
        ("rpc/client.py", "def f():\n    from boinc_gahp.daemon import main", True),
        ("daemon/main.py", "from boinc_gahp.rpc.client import WebRpcs", True),
        ("daemon/main.py", "import_module('boinc_gahp.rpc')", True),
        ("rpc/client.py", "from boinc_gahp import __version__, errors", False),
    ],
)
def test_a_new_arrow_is_noticed(place, line, is_wrong):
    assert bool(wrong_arrows(line, PACKAGE / place)) == is_wrong


def insides(source, path):
    """Return the imports of what belongs to another room alone: its name has an underscore."""
    own = room_of(path)
    found = []
    for line, name in imported(source, path):
        package, room, *inside = f"{name}.".split(".")
        inner = [each for each in inside if each.startswith("_") and not each.startswith("__")]
        if package == "boinc_gahp" and room != own and inner:
            found.append(f"{path.relative_to(PACKAGE.parent)}:{line}: {name}")
    return found


def test_no_room_imports_anothers_insides():
    assert [each for path in SOURCES for each in insides(path.read_text("utf-8"), path)] == []


@pytest.mark.parametrize(
    ("line", "is_inside"),
    [
        ("from boinc_gahp.ledger._requests import Requests", True),
        ("from boinc_gahp.ledger.rows import _row", True),
        ("from boinc_gahp.htcondor._sending import Sender", False),
    ],
)
def test_an_import_of_insides_is_noticed(line, is_inside):
    assert bool(insides(line, PACKAGE / "htcondor" / "_manager.py")) == is_inside


def test_what_no_other_room_imports_has_an_underscore():
    """But for rooms that only the command line uses, where nothing is another room's."""
    used = {
        name
        for path in SOURCES
        for _, name in imported(path.read_text("utf-8"), path)
        if name.count(".") >= 2 and name.split(".")[1] != room_of(path)
    }
    used |= {name.rpartition(".")[0] for name in used}
    inner = [
        module
        for path in SOURCES
        if len(path.relative_to(PACKAGE).parts) == 2
        and not path.name.startswith("_")
        and room_of(path) not in {"cli", "localproject", "workflows"}
        and (module := module_of(path)) not in used
    ]
    assert inner == []


def test_no_modules_import_each_other_in_a_circle():
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


#: What people hold; the package's own __init__ hands them out.
HANDLES = ("project", "batch", "futures.functions")
#: A batch has its project, and futures their batch, as attributes.
UP = {("boinc_gahp.api.batch", "project"), ("boinc_gahp.api.futures.job_futures", "batch")}


def test_functions_of_the_api_do_not_know_the_handles_that_call_them():
    """So no modules import each other in a circle there, also counting imports for types."""
    modules = {module_of(path): path for path in SOURCES if room_of(path) == "api"}
    arrows = {
        module: {
            other
            for _, name in imported(path.read_text("utf-8"), path)
            for other in (name, name.rpartition(".")[0])
            if other in modules and (module, other.rpartition(".")[2]) not in UP
        }
        for module, path in modules.items()
    }
    TopologicalSorter(arrows).prepare()
    handles = {f"boinc_gahp.api.{name}" for name in HANDLES}
    assert [each for each in arrows.keys() - handles if arrows[each] & handles] == []


def module_of(path):
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def at_import(path):
    """Yield the modules, or names in modules, that a module imports when it is imported."""
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            for _, name in imported(ast.unparse(node), path):
                yield name


def test_the_protocol_imports_nothing_that_does_input_or_output():
    found = [
        (path.name, name)
        for path in SOURCES
        if room_of(path) == "gahp"
        for _, name in imported(path.read_text("utf-8"), path)
        if name.split(".")[0] in NO_IO
    ]
    assert found == []
