"""What ``check`` says of the Job Router: whether vanilla jobs find their way to volunteers.

A mistake in a route shows only in JobRouterLog, and the route is dropped (``gridmanager-batch.md``,
"Job Router"); those that were seen there are named here.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from boinc_gahp.cli import condor
from boinc_gahp.cli.points import failed, note, ok, warning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from boinc_gahp.cli.points import Point

EXAMPLE = "conf/20-boinc_gahp.condor.conf"

#: HTCondor that has dropped JOB_ROUTER_ENTRIES (seen with 25.14.1; 23.9.6 still had it).
_NO_ENTRIES = 25

_LEADS_TO_BOINC = re.compile(r"\bbatch\s+boinc\b", re.IGNORECASE)
_COPIED = re.compile(r"^\s*COPY\s+TransferOutputRemaps\s+(\w+)\s*$", re.IGNORECASE | re.MULTILINE)
_SETS_REMAPS = re.compile(
    r"^\s*(?:SET|EVALSET)\s+TransferOutputRemaps\b(.*)$|^\s*COPY\s+(\w+)\s+TransferOutputRemaps\s*$",
    re.IGNORECASE | re.MULTILINE,
)
_NEEDS_EQUALS = re.compile(r"(MaxJobs|MaxIdleJobs)\s+[^\s=]", re.IGNORECASE)


def route_points(version: tuple[int, int, int] | None) -> Iterator[Point]:
    """Look at the routes to BOINC; raises nothing."""
    runs = "JOB_ROUTER" in map(str.upper, condor.names("DAEMON_LIST"))
    routes = {
        name: text
        for name in condor.names("JOB_ROUTER_ROUTE_NAMES")
        if _LEADS_TO_BOINC.search(text := condor.value(f"JOB_ROUTER_ROUTE_{name}") or "")
    }
    entries = _LEADS_TO_BOINC.search(condor.value("JOB_ROUTER_ENTRIES") or "")
    if entries:
        yield _entries_point(version)
    if not routes:
        if not entries:
            yield note(
                "Job Router: no route leads to BOINC, so vanilla jobs stay in the pool "
                f"({EXAMPLE} has one)"
            )
        return
    if not runs:
        yield failed(
            f"Job Router: there is a route to BOINC ({', '.join(routes)}), but no Job Router: set "
            "DAEMON_LIST = $(DAEMON_LIST) JOB_ROUTER and restart HTCondor"
        )
    accepted = condor.accepted_routes()
    for name, text in routes.items():
        mistakes = [*_mistakes(text)]
        yield from (failed(f"Job Router: route {name}: {each}") for each in mistakes)
        if accepted is not None and name not in accepted:
            if not mistakes:
                yield failed(f"Job Router: HTCondor drops route {name}; {_why_dropped()}")
        elif not mistakes:
            yield ok(f"Job Router: route {name} leads to BOINC")
        yield from _lost_points(name, text)


def _entries_point(version: tuple[int, int, int] | None) -> Point:
    remedy = f"write the route with JOB_ROUTER_ROUTE_NAMES and JOB_ROUTER_ROUTE_..., as {EXAMPLE}"
    if version is not None and version[0] >= _NO_ENTRIES:
        shown = ".".join(map(str, version))
        return failed(f"Job Router: HTCondor {shown} refuses JOB_ROUTER_ENTRIES; {remedy}")
    if (condor.value("JOB_ROUTER_USE_DEPRECATED_ROUTER_ENTRIES") or "").lower() != "true":
        return failed(
            "Job Router: JOB_ROUTER_ENTRIES is not looked at unless "
            f"JOB_ROUTER_USE_DEPRECATED_ROUTER_ENTRIES is true; {remedy}"
        )
    return warning(f"Job Router: JOB_ROUTER_ENTRIES works only up to HTCondor 24; {remedy}")


def _mistakes(text: str) -> Iterator[str]:
    """Yield what HTCondor drops a route for, or leads its jobs nowhere."""
    if text.lstrip().startswith("["):
        yield f"it is in the old syntax, in brackets; write it as {EXAMPLE} has it"
        return
    for line in map(str.strip, text.splitlines()):
        words = line.split(None, 2)
        first = words[0].lower() if words else ""
        if first == "gridresource" and not line[len(first) :].lstrip().startswith("="):
            yield f'"{line}" is no instruction; write: SET GridResource "batch boinc"'
        elif first == "set" and len(words) == 3 and words[1].lower() == "gridresource":
            if not words[2].startswith('"'):
                yield f'in "{line}" the value lacks quotes; write: SET GridResource "batch boinc"'
        elif _NEEDS_EQUALS.match(line):
            yield f'"{line}" lacks an =; write: {words[0]} = {words[1]}'


def _why_dropped() -> str:
    if condor.value("JOB_ROUTER_SOURCE_JOB_CONSTRAINT") is None:
        return (
            f"JOB_ROUTER_SOURCE_JOB_CONSTRAINT has to say which jobs may be routed, as in {EXAMPLE}"
        )
    return f"JobRouterLog says why; {EXAMPLE} has one that works"


def _lost_points(name: str, text: str) -> Iterator[Point]:
    """Yield what a routed job would lose on its way."""
    if not re.search(r"\b(remote_Boinc|BatchQueue)", text, re.IGNORECASE):
        yield warning(
            f"Job Router: route {name} passes on no app: only attributes that are called "
            "remote_... reach boinc_gahp; add: COPY /^Boinc(.+)/ remote_Boinc\\1"
        )
    kept = {copy.lower() for copy in _copies()}
    used = " ".join("".join(found.groups("")) for found in _SETS_REMAPS.finditer(text))
    if not kept & set(re.findall(r"\w+", used.lower())):
        yield warning(
            f"Job Router: route {name} loses transfer_output_remaps, so outputs keep their own "
            f"names; save them in a JOB_TRANSFORM and put them back in the route, as {EXAMPLE}"
        )


def _copies() -> Iterator[str]:
    """Yield the attributes that keep a job's remaps from its submit on."""
    for name in condor.names("JOB_TRANSFORM_NAMES"):
        yield from _COPIED.findall(condor.value(f"JOB_TRANSFORM_{name}") or "")
