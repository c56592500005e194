"""The rooms of the program, who may import whom, and who does, read off the source."""

import ast
from functools import cache
from pathlib import Path

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
    "logs": set(),
    # The package itself hands out the Python API.
    "": {"api", "submit", "fetch"},
}
OPEN_TO_ALL = {"errors", "secret", "text", "threads", "files", "backoff", "states", "client_exits"}
OPEN_TO_ALL |= {"quantities", "extras", "config", "_version"}
ARROWS["cli"] = set(ARROWS) - {"workflows"}
ARROWS |= {room: set() for room in OPEN_TO_ALL}
OPEN_TO_ALL |= {""}


def room_of(path):
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return "" if parts[0] == "__init__" else parts[0]


@cache
def imported(source, path):
    """Return line and dotted name of everything that a module imports, names of packages whole."""
    return list(_imported(source, path))


def _imported(source, path):
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


def name_of(function):
    """Return the last name in what is called."""
    return str(getattr(function, "attr", getattr(function, "id", "")))


def rooms_imported(source, path):
    for line, name in imported(source, path):
        if name == "boinc_gahp" or name.startswith("boinc_gahp."):
            first = f"{name}.".split(".")[1]
            yield line, first if first in ARROWS else ""
