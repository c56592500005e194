"""Who may import whom (``CONTRIBUTING.rst``, "The house"), read off the source."""

import ast
from graphlib import TopologicalSorter

from boinc_gahp_docs.rooms import PACKAGE, imported, room_of

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
    "page": {"api", "terminal"},
    "logs": set(),
    # The package itself hands out the Python API.
    "": {"api", "submit", "fetch"},
}
OPEN_TO_ALL = {"errors", "secret", "text", "threads", "files", "backoff", "states", "client_exits"}
OPEN_TO_ALL |= {"quantities", "extras", "config", "serving", "_version"}
ARROWS["cli"] = set(ARROWS) - {"workflows"}
ARROWS |= {room: set() for room in OPEN_TO_ALL}
OPEN_TO_ALL |= {""}

#: The protocol does no input or output of its own (``CONTRIBUTING.rst``, "The house").
NO_IO = {"asyncio", "concurrent", "multiprocessing", "os", "requests", "select", "selectors"}
NO_IO |= {"socket", "sqlite3", "subprocess", "sys", "threading"}
AT_THE_TOP = ast.Import | ast.ImportFrom


def wrong_arrows(path, *source):
    room, found = room_of(path), []
    for name in imported(path, *source):
        package, other, *_ = f"{name}.".split(".")
        other = other if other in ARROWS else ""
        if package == "boinc_gahp" and other != room and other not in ARROWS[room] | OPEN_TO_ALL:
            found.append(f"{path.relative_to(PACKAGE)}: {room} imports {name}")
    return found


def test_every_module_belongs_to_a_room():
    assert {room_of(path) for path in SOURCES} == set(ARROWS)


def test_a_room_imports_only_what_it_may():
    assert [arrow for path in SOURCES for arrow in wrong_arrows(path)] == []


def insides(path, *source):
    """Return the imports of what belongs to another room alone: its name has an underscore."""
    own, found = room_of(path), []
    for name in imported(path, *source):
        package, room, *inside = f"{name}.".split(".")
        inner = [each for each in inside if each.startswith("_") and not each.startswith("__")]
        if package == "boinc_gahp" and room != own and inner:
            found.append(f"{path.relative_to(PACKAGE)}: {name}")
    return found


def test_no_room_imports_anothers_insides():
    assert [each for path in SOURCES for each in insides(path)] == []
    assert insides(PACKAGE / "htcondor/_manager.py", "from boinc_gahp.ledger.rows import _row")


def test_what_no_other_room_imports_has_an_underscore():
    """But for rooms that only the command line uses, where nothing is another room's."""
    used = {
        name
        for path in SOURCES
        for name in imported(path)
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
            for name in imported(path)
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
    """Return the modules, or names in modules, that a module imports when it is imported."""
    nodes = ast.parse(path.read_text("utf-8")).body
    return imported(path, "\n".join(ast.unparse(n) for n in nodes if isinstance(n, AT_THE_TOP)))


def test_the_protocol_imports_nothing_that_does_input_or_output():
    found = [
        (path.name, name)
        for path in SOURCES
        if room_of(path) == "gahp"
        for name in imported(path)
        if name.split(".")[0] in NO_IO
    ]
    assert found == []
