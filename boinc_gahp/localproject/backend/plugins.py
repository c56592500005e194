"""Parts of the back end that an app supplies: validators, assimilators, work generators.

An app's settings name them with a text, which is one of

- a supplied name (validators ``trivial`` and ``bitwise``, the assimilator
  ``batch_collect_assimilator``);
- ``module:function``. The module is looked for in the project's own directory ``modules`` first,
  then where Python looks for modules.

A module in ``modules`` is a file by itself, so that two projects in one process may each have a
``compare.py``; it is loaded again when it has changed.
"""

from __future__ import annotations

import importlib
import re
import runpy
from functools import partial
from typing import TYPE_CHECKING, Any

from boinc_gahp.localproject.backend import batch_collect

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from boinc_gahp.localproject.backend.views import Result
    from boinc_gahp.localproject.core import Core

VALIDATORS, ASSIMILATORS, WORK_GENERATORS = "validator", "assimilator", "work generator"

_SPEC = re.compile(r"(?P<module>[^\W\d]\w*(\.[^\W\d]\w*)*):(?P<name>[^\W\d]\w*)")

#: What stands in a project's own modules, with their times, sizes and inodes.
_loaded: dict[Path, tuple[tuple[int, int, int], dict[str, Any]]] = {}


class PluginError(Exception):
    """A plug-in cannot be used; the text says what was asked, what was found, what to do."""


def load(core: Core, spec: str, group: str) -> Any:
    """Return the plug-in that an app's setting ``spec`` names.

    Raises:
        PluginError: there is no such plug-in, or it cannot be loaded.
    """
    supplied = _SUPPLIED.get(group, {})
    what = f"the {group} {spec!r}"
    if spec == batch_collect.NAME and group == ASSIMILATORS:
        return partial(batch_collect.collect, core)
    if spec in supplied:
        return supplied[spec]
    match = _SPEC.fullmatch(spec)
    if match is None:
        choices = ", ".join(map(repr, supplied)) + " or " if supplied else ""
        raise PluginError(f"{what}: expected {choices}module:function")
    names = _names_of(core, match["module"], what)
    if match["name"] not in names:
        raise PluginError(
            f"{what}: {names['__file__']} has no {match['name']!r}: define it there, or give a "
            "name that is defined there"
        )
    found = names[match["name"]]
    if not callable(found):
        raise PluginError(f"{what} is of type {type(found).__name__}: expected a function")
    return found


def _names_of(core: Core, module: str, what: str) -> dict[str, Any]:
    """Return what a module defines."""
    path = core.directory / "modules" / f"{module}.py"
    try:
        if not path.is_file():
            return vars(importlib.import_module(module))
        status = path.stat()
        stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
        known = _loaded.get(path)
        if known is None or known[0] != stamp:
            known = _loaded[path] = (stamp, runpy.run_path(str(path)))
        return known[1]
    except (Exception, SystemExit) as error:
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if missing is not None and f"{module}.".startswith(f"{missing}."):
            raise PluginError(
                f"{what}: there is no module {missing!r}, neither in {path.parent} nor where "
                f"Python looks: put it there as {missing.partition('.')[0]}.py, or install it"
            ) from error
        raise PluginError(
            f"{what}: the module cannot be imported: {_cause(error)}: fix it"
        ) from error


def _cause(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def call(what: str, function: Callable[..., Any], *arguments: object) -> Any:
    """Call a plug-in's function and return its result.

    Raises:
        PluginError: it raised an exception, or tried to end the process; ``what`` names it.
    """
    try:
        return function(*arguments)
    except (Exception, SystemExit) as error:
        raise PluginError(f"{what} raised {_cause(error)}") from error


def trivial(_first: Result, _second: Result) -> bool:
    """Every result that exited with 0 is as good as any other."""
    return True


def bitwise(first: Result, second: Result) -> bool:
    """The same bytes in all output files; those with ``no_validate`` are ignored.

    An optional file that was not made equals only one that was not made either.
    """
    return _contents(first) == _contents(second)


def _contents(instance: Result) -> dict[str, tuple[int, str]]:
    # The MD5s are those of the files as received, not those that hosts report.
    return {
        file.open_name: (file.nbytes, file.md5) for file in instance.files if not file.no_validate
    }


_SUPPLIED: dict[str, dict[str, Any]] = {VALIDATORS: {"trivial": trivial, "bitwise": bitwise}}
