"""The Python API: every public name of a room as autodoc's directives."""

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

#: Rooms whose ``__all__`` is the API; errors' is every class of the module.
ROOMS = ("boinc_gahp.api", "boinc_gahp.rpc", "boinc_gahp.errors")


def sources() -> list[str]:
    """Return the files that pages are rendered from: a change in any of them renders them anew."""
    package = Path(boinc_gahp.__file__).parent
    return [str(path) for path in (*package.rglob("*.py"), *Path(__file__).parent.glob("*.py"))]


def names(module: str) -> list[str]:
    """Return the public names of a room, in the order in which they are to be read."""
    found = import_module(module)
    if hasattr(found, "__all__"):
        return list(found.__all__)
    return [
        name
        for name, value in vars(found).items()
        if inspect.isclass(value) and value.__module__ == module
    ]


def render(module: str, first: tuple[str, ...] = ()) -> str:
    """Return an autodoc directive for each public name of a room.

    Args:
        module: the room.
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
    """Return the room that describes a value: where it was defined, or the first that has it."""
    home = ".".join(str(getattr(value, "__module__", "")).split(".")[:2])
    if home in ROOMS:
        return home
    return next(room for room in ROOMS if getattr(import_module(room), name, None) is value)


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
    """Tell whether a base class is one of the package that no room hands out."""
    room = ".".join(base.__module__.split(".")[:2])
    return room in ROOMS and not hasattr(import_module(room), base.__name__)


def error_tree() -> str:
    """Return the tree of exceptions as a drawing."""
    return "\n".join([errors.GahpError.__name__, *_branches(errors.GahpError, "")])


def _branches(base: type[Exception], indent: str) -> Iterator[str]:
    children = [child for child in base.__subclasses__() if child.__module__ == errors.__name__]
    for child in children:
        last = child is children[-1]
        yield f"{indent}{'└── ' if last else '├── '}{child.__name__}"
        yield from _branches(child, indent + ("    " if last else "│   "))


def without_sources(lines: list[str]) -> list[str]:
    """Return a docstring's lines without the documents that it cites."""
    return rst.without_sources("\n".join(lines)).splitlines()
