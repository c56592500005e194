"""Parts of the back end that an app supplies: validators, assimilators, work generators.

An app's settings name them with a text, which is one of

- a supplied name (validators ``trivial`` and ``bitwise``, the assimilator
  ``batch_collect_assimilator``);
- ``module:function``, or ``module`` alone if a validator is a whole module. The module is looked
  for in the project's own directory ``modules`` first, then where Python looks for modules.

A module in ``modules`` is loaded under a name of the project's own, so that two projects in one
process may each have a ``compare.py``; it is loaded again when a file there has changed. It imports
its neighbours relatively (``from . import helper``).
"""

from __future__ import annotations

import hashlib
import importlib
import re
import sys
import threading
from functools import partial, reduce
from types import ModuleType
from typing import TYPE_CHECKING, Any

from boinc_gahp.localproject.backend import batch_collect

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from boinc_gahp.localproject.core import Core

    #: Every source file of a ``modules`` directory: modification time, size, inode.
    Stamps = dict[Path, tuple[int, int, int]]
    from boinc_gahp.localproject.backend.views import Result

VALIDATORS, ASSIMILATORS, WORK_GENERATORS = "validator", "assimilator", "work generator"

_SPEC = re.compile(r"(?P<module>[^\W\d]\w*(\.[^\W\d]\w*)*)(:(?P<name>[^\W\d]\w*(\.[^\W\d]\w*)*))?")

_lock = threading.Lock()
_loaded: dict[str, Stamps] = {}


class PluginError(Exception):
    """A plug-in cannot be used; the text says what was asked, what was found, what to do."""


def load(core: Core, spec: str, group: str) -> Any:
    """Return the plug-in that an app's setting ``spec`` names.

    A callable; for validators also an object with ``check_set`` and ``check_pair``.

    Raises:
        PluginError: there is no such plug-in, or it cannot be loaded.
    """
    supplied = _SUPPLIED.get(group, {})
    if spec == batch_collect.NAME and group == ASSIMILATORS:
        return partial(batch_collect.collect, core)
    if spec in supplied:
        return supplied[spec]
    match = _SPEC.fullmatch(spec)
    if match is None:
        names = ", ".join(map(repr, supplied)) + " or " if supplied else ""
        raise PluginError(f"{_asked(spec, group)}: expected {names}module:function")
    module = _module(core, spec, group, match["module"])
    found = _attribute(module, spec, group, match["name"])
    if callable(found) or (group == VALIDATORS and is_check_set(found)):
        return found
    expected = "a function"
    if group == VALIDATORS:
        expected += ", or an object or module with functions check_set and check_pair"
    raise PluginError(f"{_asked(spec, group)} is {_kind(found)}: expected {expected}")


def is_check_set(found: object) -> bool:
    """Whether a validator decides on whole sets: it has ``check_set`` and ``check_pair``."""
    return all(callable(getattr(found, name, None)) for name in ("check_set", "check_pair"))


def _asked(spec: str, group: str) -> str:
    return f"the {group} {spec!r}"


def _kind(found: object) -> str:
    return "a module" if isinstance(found, ModuleType) else f"of type {type(found).__name__}"


def _cause(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _module(core: Core, spec: str, group: str, name: str) -> ModuleType:
    directory = core.directory / "modules"
    own = _is_in(directory, name)
    try:
        return _import_own(directory, name) if own else importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}.") and not own:
            raise PluginError(
                f"{_asked(spec, group)}: there is no module {error.name!r}, neither in {directory} "
                f"nor where Python looks: put it there as {error.name.partition('.')[0]}.py, or "
                "install it"
            ) from error
        raise _broken(spec, group, error) from error
    except (Exception, SystemExit) as error:
        raise _broken(spec, group, error) from error


def _broken(spec: str, group: str, error: BaseException) -> PluginError:
    return PluginError(
        f"{_asked(spec, group)}: the module cannot be imported: {_cause(error)}: fix it"
    )


def _is_in(directory: Path, name: str) -> bool:
    top = directory / name.partition(".")[0]
    return top.is_dir() or top.with_suffix(".py").is_file()


def _import_own(directory: Path, name: str) -> ModuleType:
    root = str(directory.resolve())
    digest = hashlib.md5(root.encode("utf-8", "surrogateescape"), usedforsecurity=False)
    package = f"_boinc_gahp_modules_{digest.hexdigest()}"
    stamps = {
        path: (status.st_mtime_ns, status.st_size, status.st_ino)
        for path in directory.rglob("*.py")
        for status in [path.stat()]
    }
    with _lock:
        if _loaded.get(package) != stamps:
            for loaded in [*sys.modules]:
                if loaded == package or loaded.startswith(f"{package}."):
                    del sys.modules[loaded]
            importlib.invalidate_caches()
            parent = ModuleType(package)
            parent.__path__ = [root]
            sys.modules[package] = parent
            _loaded[package] = stamps
        return importlib.import_module(f"{package}.{name}")


def _attribute(module: ModuleType, spec: str, group: str, name: str | None) -> object:
    try:
        return reduce(getattr, name.split("."), module) if name else module
    except AttributeError as error:
        raise PluginError(
            f"{_asked(spec, group)}: {module.__file__} has no {name!r}: define it there, or "
            "give a name that is defined there"
        ) from error


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
