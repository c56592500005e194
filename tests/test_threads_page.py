"""``docs/internals/threads.rst`` names every thread, and every module that has a lock."""

import ast
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "boinc_gahp"
PAGE = (ROOT / "docs" / "internals" / "threads.rst").read_text("utf-8")
LOCKS = {"Lock", "RLock", "Condition"}


def sources():
    for path in PACKAGE.rglob("*.py"):
        if "localproject" not in path.parts:
            yield path, ast.parse(path.read_text("utf-8"))


def called(node):
    """Return the last name in what is called."""
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


def names_of_threads(tree):
    """Yield the names that are given to threads, up to the first part that is not fixed."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and called(node) in {"start", "Workers", "Pool"}:
            for argument in node.args:
                first = argument.values[0] if isinstance(argument, ast.JoinedStr) else argument
                if isinstance(first, ast.Constant) and isinstance(first.value, str):
                    yield first.value.strip()


def test_every_thread_is_on_the_page():
    names = {name for _, tree in sources() for name in names_of_threads(tree)}
    assert {"ledger-writer", "housekeeping", "manager", "worker"} <= names
    assert [name for name in sorted(names) if f"``{name}" not in PAGE] == []


def test_every_module_with_a_lock_is_on_the_page():
    modules = {
        ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        for path, tree in sources()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in LOCKS
    }
    assert "ledger.store" in modules
    assert [module for module in sorted(modules) if f"``{module}``" not in PAGE] == []
