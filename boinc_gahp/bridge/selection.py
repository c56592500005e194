"""Which outputs go where: the rules of BOINC_FETCH_OUTPUT, without files or network.

The rules are those of ``gahp.rst``, "BOINC_FETCH_OUTPUT"; those of a job ad
are told at :class:`~boinc_gahp.bridge.types.AdFiles`.
"""

from __future__ import annotations

import os.path
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from boinc_gahp.bridge.names import new_file, shown
from boinc_gahp.errors import OutputError
from boinc_gahp.text import listed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence, Set

    from boinc_gahp.bridge.types import AdFiles, FetchRequest

DEV_NULL = "/dev/null"
#: As a name for stderr these mean that it is not kept.
_NOWHERE = (DEV_NULL, "NULL")
#: Outputs that are a job's stdout, whatever the ad calls it.
_STDOUTS = ("stdout", "stdout.txt")


#: Outputs that an error lists; archives can have very many.
_NAMED = 50


@dataclass(frozen=True, slots=True)
class Delivery:
    """One output, and a place where it goes.

    Attributes:
        output: its logical name.
        destination: absolute.
        inside: the directory below which the destination is made of a name from the network; None
            where all of it was asked for.
    """

    output: str
    destination: Path
    inside: Path | None = field(default=None, compare=False)


def stderr_path(request: FetchRequest) -> Path | None:
    """Return where stderr goes, or None."""
    if request.stderr is None or request.stderr in _NOWHERE:
        return None
    return _absolute(request, request.stderr)


def stdout_path(request: FetchRequest, outputs: Mapping[str, str]) -> Path | None:
    """Return where a job ad wants stdout, or a line that no output is for; None: nowhere."""
    if request.ad is None:
        at = _stdout_at(request, outputs)
        return None if at is None else _absolute(request, request.specs[at][1])
    if request.ad.stdout is None or request.ad.stdout == DEV_NULL:
        return None
    return _absolute(request, request.ad.stdout)


def plain_names(outputs: Sequence[str]) -> dict[str, str]:
    """Return the file names that outputs get where no spec names another: their base names.

    Two outputs that share a base name keep the path that the app's template gives them.
    """
    bases = Counter(map(_base, outputs))
    return {name: _base(name) if bases[_base(name)] == 1 else name for name in outputs}


def select(request: FetchRequest, outputs: Mapping[str, str]) -> tuple[Delivery, ...]:
    """Return what is to be delivered, each pair once.

    Args:
        request: what was asked for.
        outputs: the app's outputs: logical name to plain file name, relative to the directory.

    Raises:
        OutputError: a spec names no output, or two files would get one name.
    """
    if request.ad is not None:
        wanted = _of_ad(request, request.ad, outputs)
    else:
        wanted = _all(request, outputs) if request.mode == "ALL" else _some(request, outputs)
    deliveries = tuple(dict.fromkeys(wanted))
    taken: dict[Path, str] = {}
    stderr = stderr_path(request)
    # One file for both gets what there is of stdout, and stderr where there is nothing.
    if stderr is not None and stderr != stdout_path(request, outputs):
        taken[stderr] = "stderr"
    for delivery in deliveries:
        other = taken.setdefault(delivery.destination, delivery.output)
        if other != delivery.output:
            raise OutputError(
                f"{other} and {delivery.output} of job {request.job_name!r} would both be written "
                f"to {str(delivery.destination)!r}: give them different names"
            )
    return deliveries


def find(source: str, outputs: Mapping[str, str]) -> str | None:
    """Return the output that a spec's source names: by its full path first, then its base name."""
    for name in (source, os.path.normpath(source), _base(source)):
        if name in outputs:
            return name
    return None


def _all(request: FetchRequest, outputs: Mapping[str, str]) -> list[Delivery]:
    renames: dict[str, list[str]] = {}
    for source, destination in request.specs:
        name = find(source, outputs)
        if name is not None:
            renames.setdefault(name, []).append(destination)
        elif request.ad is None:
            raise _no_such_output(request, source, outputs)
    wanted = []
    for name, plain in outputs.items():
        if name in renames:
            paths = [path for path in renames[name] if path != DEV_NULL]
            wanted += [Delivery(name, _absolute(request, path)) for path in paths]
        else:
            path = checked(request, name, plain)
            wanted.append(Delivery(name, _absolute(request, path), named_below(request)))
    return wanted


def _some(request: FetchRequest, outputs: Mapping[str, str]) -> list[Delivery]:
    stderr = _stderr_paths(request)
    stdout = _stdout_at(request, outputs)
    wanted = []
    for at, (source, destination) in enumerate(request.specs):
        path = _absolute(request, destination)
        if path in stderr or destination == DEV_NULL:
            continue  # stderr is written already, and /dev/null keeps nothing
        name = find(source, outputs)
        if name is not None:
            wanted.append(Delivery(name, path))
        elif at != stdout:
            raise _no_such_output(request, source, outputs)
    return wanted


def _of_ad(request: FetchRequest, ad: AdFiles, outputs: Mapping[str, str]) -> list[Delivery]:
    claimed = {find(source, outputs) for source, _ in request.specs}
    stdout = stdout_path(request, outputs)
    standard: list[Delivery] = []
    if stdout is not None:
        name = find(_base(ad.stdout or ""), outputs)
        if name is None:
            free = (name for name in _STDOUTS if name in outputs and name not in claimed)
            name = next(free, None)
        if name is not None:
            standard.append(Delivery(name, stdout))
    if request.mode == "ALL":
        # What is stdout under another name is not wanted under its own as well.
        own = {delivery.output for delivery in standard} - claimed
        others = {name: plain for name, plain in outputs.items() if name not in own}
        return _all(request, others) + standard
    wanted = []
    written = {_base(name) for name in (ad.stdout, request.stderr) if name is not None}
    for source, destination in request.specs:
        name = find(source, outputs)
        if name is not None and destination != DEV_NULL:
            wanted.append(Delivery(name, _absolute(request, destination)))
        elif name is None and _base(source) not in written:
            raise _no_such_output(request, source, outputs)
    return wanted + standard


def _stdout_at(request: FetchRequest, outputs: Mapping[str, str]) -> int | None:
    """Return the place of the pair that is of the job's stdout; None where there is none such.

    A gridmanager appends ``basename(Out) Out`` and, unless Err is the same, ``basename(Err) Err``:
    so it is the pair before that of stderr, or the last one. No volunteer sends a stdout back:
    where the app has no output of that name it is an empty file.
    """
    if request.mode != "SOME":
        return None
    stderr = _stderr_paths(request)
    paths = [_absolute(request, destination) for _, destination in request.specs]
    last = max((at for at, path in enumerate(paths) if path in stderr), default=len(paths))
    if last == 0:
        return None
    source, destination = request.specs[last - 1]
    if destination == DEV_NULL or source != _base(destination) or paths[last - 1] in stderr:
        return None
    return last - 1 if find(source, outputs) is None else None


def _stderr_paths(request: FetchRequest) -> Set[Path]:
    kept = stderr_path(request)
    return {_absolute(request, name) for name in _NOWHERE} if kept is None else {kept}


def _no_such_output(request: FetchRequest, source: str, outputs: Mapping[str, str]) -> OutputError:
    names = listed([repr(name) for name in outputs], _NAMED)
    return OutputError(
        f"job {request.job_name!r} has no output {source!r}; its outputs are: {names}"
    )


def checked(request: FetchRequest, output: str, plain: str) -> str:
    """Return a name from the network, as a path in the job's directory.

    Raises:
        OutputError: no file there may be called so unless the job says it.
    """
    whose = f"output {output!r} of job {request.job_name!r}"
    return new_file(shown(plain) if request.folder else plain, whose)


def job_directory(request: FetchRequest) -> Path:
    """Return the job's directory."""
    return Path(os.path.normpath(request.directory))


def named_below(request: FetchRequest) -> Path:
    """Return the directory below which names come from the network: a folder's own does, too."""
    return job_directory(request).parent if request.folder else job_directory(request)


def _absolute(request: FetchRequest, name: str) -> Path:
    return Path(os.path.normpath(os.path.join(request.directory, name)))  # noqa: PTH118


def _base(name: str) -> str:
    return name.rstrip("/").rpartition("/")[2]
