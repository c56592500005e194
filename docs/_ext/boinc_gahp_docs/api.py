"""The Python API: every public name of a module as autodoc's directives."""

from __future__ import annotations

import enum
import inspect
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boinc_gahp
from boinc_gahp import errors
from boinc_gahp_docs import rst

if TYPE_CHECKING:
    from collections.abc import Iterator

#: The modules of the API: their ``__all__``, or else every class in them.
MODULES = (
    "boinc_gahp",
    "boinc_gahp.rpc.client",
    "boinc_gahp.rpc.types",
    "boinc_gahp.rpc.options",
    "boinc_gahp.rpc.outputs",
    "boinc_gahp.errors",
)


def sources() -> list[str]:
    """Return the files that pages are rendered from: a change in any of them renders them anew."""
    package = Path(boinc_gahp.__file__).parent
    return [str(path) for path in (*package.rglob("*.py"), *Path(__file__).parent.glob("*.py"))]


def names(module: str) -> list[str]:
    """Return the public names of a module, in the order in which they are to be read."""
    found = import_module(module)
    if hasattr(found, "__all__"):
        return [name for name in found.__all__ if not name.startswith("_")]
    return [
        name
        for name, value in vars(found).items()
        if inspect.isclass(value) and value.__module__ == module and not name.startswith("_")
    ]


def render(module: str, first: tuple[str, ...] = ()) -> str:
    """Return an autodoc directive for each public name of a module.

    Args:
        module: one of :data:`MODULES`.
        first: names that come before the others.
    """
    public = names(module)
    unknown = set(first) - set(public)
    if unknown:
        raise LookupError(f"{module} has no {', '.join(sorted(unknown))}")
    ordered = [*first, *(name for name in public if name not in first)]
    found = import_module(module)
    parts = [f".. module:: {module}\n"]
    for name in ordered:
        value = getattr(found, name)
        home = _home(name, value)
        if home != module:
            parts.append(f"``{name}`` is :class:`{home}.{name}`.\n")
        else:
            parts.append(_render(f"{module}.{name}", value))
    return "\n".join(parts)


def _home(name: str, value: Any) -> str:
    """Return the module that describes a value: where it is defined, or the first that has it."""
    home = str(getattr(value, "__module__", ""))
    if home in MODULES:
        return home
    return next(each for each in MODULES if getattr(import_module(each), name, None) is value)


def _render(name: str, value: Any) -> str:
    if inspect.isclass(value):
        options = ["   :members:"]
        if any(_is_hidden(base) for base in value.__mro__[1:]):
            options.append("   :inherited-members:")
        if issubclass(value, enum.Enum):
            options.append("   :undoc-members:")
        if issubclass(value, Exception):
            options.append("   :show-inheritance:")
        kind = "autoexception" if issubclass(value, BaseException) else "autoclass"
        return "\n".join([f".. {kind}:: {name}", *options, ""])
    if inspect.isroutine(value):
        return f".. autofunction:: {name}\n"
    return f".. autodata:: {name}\n   :no-value:\n"


def _is_hidden(base: type) -> bool:
    """Tell whether a base class is one of the package that is not documented."""
    if not base.__module__.startswith("boinc_gahp."):
        return False
    return all(base.__name__ not in names(module) for module in MODULES)


def error_tree() -> str:
    """Return the tree of exceptions as a drawing, each with its code and facts."""
    return "\n".join([errors.GahpError.__name__, *_branches(errors.GahpError, "")])


def _branches(base: type[Exception], indent: str) -> Iterator[str]:
    children = [child for child in base.__subclasses__() if child.__module__ == errors.__name__]
    for child in children:
        last = child is children[-1]
        yield f"{indent}{'└── ' if last else '├── '}{child.__name__}  {_facts(child)}"
        yield from _branches(child, indent + ("    " if last else "│   "))


def _facts(error: Any) -> str:
    facts = {
        "passes": error.passes,
        "may still be running": error.may_be_running,
        "spoils a batch": error.spoils_batch,
        f"concerns the {error.concerns}": error.concerns,
    }
    return "; ".join([error.code, *(words for words, holds in facts.items() if holds)])


def without_sources(lines: list[str]) -> list[str]:
    """Return a docstring's lines without the documents that it cites."""
    return rst.without_sources("\n".join(lines)).splitlines()
