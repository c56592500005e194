"""Parts of the back end that an app supplies: validators, assimilators, work generators.

An app's settings name them with a text, which is one of

- a supplied name (validators ``trivial`` and ``bitwise``, the assimilator
  ``batch_collect_assimilator``);
- ``module:function``. The module is looked for in the project's own directory ``modules`` first,
  then where Python looks for modules.

A module in ``modules`` is a file by itself, so that two projects in one process may each have a
``compare.py``; it is loaded again when it has changed.

``batch_collect_assimilator`` is BOINC's: it moves outputs to ``results/``, away from get_output.php
(``containers.rst``, "Outputs that were moved").
"""

from __future__ import annotations

import importlib
import re
import runpy
import shutil
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from boinc_gahp.localproject.errors import LocalProjectTrouble

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from boinc_gahp.localproject.backend.views import Result, Workunit
    from boinc_gahp.localproject.core import Core


VALIDATORS, ASSIMILATORS, WORK_GENERATORS = "validator", "assimilator", "work generator"

_SPEC = re.compile(r"(?P<module>[^\W\d]\w*(\.[^\W\d]\w*)*):(?P<name>[^\W\d]\w*)")

_COLLECTOR = "batch_collect_assimilator"

#: What stands in a project's own modules, with their times, sizes and inodes.
_loaded: dict[Path, tuple[tuple[int, int, int], dict[str, Any]]] = {}


def load(core: Core, spec: str, group: str) -> Any:
    """Return the plug-in that an app's setting ``spec`` names.

    Raises:
        LocalProjectTrouble: there is no such plug-in, or it cannot be loaded.
    """
    supplied = _SUPPLIED.get(group, {})
    what = f"the {group} {spec!r}"
    if spec == _COLLECTOR and group == ASSIMILATORS:
        return partial(_collect, core)
    if spec in supplied:
        return supplied[spec]
    match = _SPEC.fullmatch(spec)
    if match is None:
        choices = ", ".join(map(repr, supplied)) + " or " if supplied else ""
        raise LocalProjectTrouble(f"{what}: expected {choices}module:function")
    names = _names_of(core, match["module"], what)
    if match["name"] not in names:
        raise LocalProjectTrouble(
            f"{what}: {names['__file__']} has no {match['name']!r}: define it there, or give a "
            "name that is defined there"
        )
    found = names[match["name"]]
    if not callable(found):
        raise LocalProjectTrouble(f"{what} is of type {type(found).__name__}: expected a function")
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
            raise LocalProjectTrouble(
                f"{what}: there is no module {missing!r}, neither in {path.parent} nor where "
                f"Python looks: put it there as {missing.partition('.')[0]}.py, or install it"
            ) from error
        raise LocalProjectTrouble(
            f"{what}: the module cannot be imported: {_cause(error)}: fix it"
        ) from error


def _cause(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def call(what: str, function: Callable[..., Any], *arguments: object) -> Any:
    """Call a plug-in's function and return its result.

    Raises:
        LocalProjectTrouble: it raised an exception, or tried to end the process; ``what`` names it.
    """
    try:
        return function(*arguments)
    except (Exception, SystemExit) as error:
        raise LocalProjectTrouble(f"{what} raised {_cause(error)}") from error


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


def _collect(core: Core, job: Workunit, canonical: Result | None, _all: object) -> None:
    """Move the canonical result's outputs, or write down the error, as an assimilator's handler."""
    directory = _collected_in(core, job.batch)
    directory.mkdir(parents=True, exist_ok=True)
    if canonical is None:
        with (directory / f"{job.name}_error").open("a") as file:
            file.write(f"0x{job.error_mask:x}\n")
        return
    moved = False
    for output in canonical.files:
        # An open name with directories leads nowhere: such an output stays where it is.
        with suppress(OSError):
            output.path.rename(collected_path(core, job.batch, job.name, output.open_name))
            moved = True
    if not moved:
        (directory / f"{job.name}_no_output_files").touch()


def _collected_in(core: Core, batch_id: int) -> Path:
    """Return the directory of a batch's moved outputs; 0: of jobs without a batch."""
    return core.directory / "results" / str(batch_id)


def collected_path(core: Core, batch_id: int, job_name: str, open_name: str) -> Path:
    """Return where an output of a job is after it was moved."""
    return _collected_in(core, batch_id) / f"{job_name}__file_{open_name}"


def remove_collected(core: Core, batch_id: int) -> None:
    """Remove a batch's moved outputs, as retire_batch does."""
    shutil.rmtree(_collected_in(core, batch_id), ignore_errors=True)


_SUPPLIED: dict[str, dict[str, Any]] = {VALIDATORS: {"trivial": trivial, "bitwise": bitwise}}
