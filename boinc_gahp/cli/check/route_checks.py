"""What ``check`` says about the Job Router: whether vanilla jobs find their way to volunteers.

A mistake in a route shows only in JobRouterLog, and the route is dropped
(``gridmanager-batch.rst``, "Job Router").
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from boinc_gahp.cli.check import condor_tools
from boinc_gahp.cli.check.checks import failed, note, ok, warning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from boinc_gahp.cli.check.checks import Check

EXAMPLE = "conf/zz-boinc_gahp.router.conf"
_GRID_EXAMPLE = "conf/20-boinc_gahp.condor.conf"

_LEADS_TO_BOINC = re.compile(r"\bbatch\s+boinc\b", re.IGNORECASE)
_COPIED = re.compile(r"^\s*COPY\s+TransferOutputRemaps\s+(\w+)\s*$", re.IGNORECASE | re.MULTILINE)
_SETS_REMAPS = re.compile(
    r"^\s*(?:SET|EVALSET)\s+TransferOutputRemaps\b(.*)$|^\s*COPY\s+(\w+)\s+TransferOutputRemaps\s*$",
    re.IGNORECASE | re.MULTILINE,
)
_PASSED_ON = re.compile(r"\bremote_ContainerImage\b", re.IGNORECASE)
_REQUIREMENTS = re.compile(r"^\s*REQUIREMENTS\b(.*)$", re.IGNORECASE | re.MULTILINE)
#: Jobs that a route is for: what each sets.
_APP = 'BoincApp = "app"'
_OWN_PROGRAM = "WantBoinc = true"


def check_routes() -> Iterator[Check]:
    """Check the routes to BOINC; never raises."""
    listed = condor_tools.definition("JOB_ROUTER_ROUTE_NAMES")
    routes, unlisted = _divided(listed, "JOB_ROUTER_ROUTE_", _LEADS_TO_BOINC)
    entries = _LEADS_TO_BOINC.search(condor_tools.value("JOB_ROUTER_ENTRIES") or "")
    if entries:
        yield failed(
            "Job Router: HTCondor 24 and older read JOB_ROUTER_ENTRIES only if "
            "JOB_ROUTER_USE_DEPRECATED_ROUTER_ENTRIES is true, later ones never; write the route "
            f"with JOB_ROUTER_ROUTE_NAMES and JOB_ROUTER_ROUTE_..., as {EXAMPLE}"
        )
    for name in unlisted:
        yield failed(
            f"Job Router: route {name} leads to BOINC, but is not in JOB_ROUTER_ROUTE_NAMES, "
            f"{_last_word(listed)}",
            "add it there, and run condor_reconfig",
        )
    if not routes:
        if not entries and not unlisted:
            yield note(
                "Job Router: no route leads to BOINC, so vanilla jobs stay in the pool "
                f"({EXAMPLE} has one)"
            )
        return
    daemons = condor_tools.definition("DAEMON_LIST", "MASTER")
    if "JOB_ROUTER" not in map(str.upper, daemons.words):
        yield failed(
            f"Job Router: there is a route to BOINC ({', '.join(routes)}), but no JOB_ROUTER in "
            f"{daemons.name}, {_last_word(daemons)}",
            "add it there, and run condor_reconfig",
        )
    yield from _check_constraint()
    accepted = condor_tools.accepted_routes()
    for name, text in routes.items():
        if accepted is not None and name not in accepted:
            yield failed(
                f"Job Router: HTCondor drops route {name}; JobRouterLog says why. Often it is in "
                "the old syntax, in brackets, or lacks REQUIREMENTS, a SET, an = or quotes; "
                f"{EXAMPLE} has one that works"
            )
        else:
            yield ok(f"Job Router: route {name} leads to BOINC")
        yield from _check_lost_files(name, text)
    found = map(_REQUIREMENTS.search, routes.values())
    if not any(each is None or _lets_in(each[1], _OWN_PROGRAM) for each in found):
        yield note(
            "Job Router: no route takes jobs with +WantBoinc = true, so jobs that bring their own "
            f"program stay in the pool ({EXAMPLE} has one)"
        )


def check_attributes() -> Iterator[Check]:
    """Check whether jobs keep on their way what only settings of the schedd make them keep.

    Says nothing if there are no such settings at all: jobs for installed apps need none.
    """
    listed = condor_tools.definition("JOB_TRANSFORM_NAMES")
    used, unlisted = _divided(listed, "JOB_TRANSFORM_", _PASSED_ON)
    lost = "so container_image, request_cpus and request_disk do not reach boinc_gahp"
    for name in unlisted:
        if not used:
            yield warning(
                f"HTCondor: the transform {name} is not in JOB_TRANSFORM_NAMES, "
                f"{_last_word(listed)}, {lost}",
                "add it there, and run condor_reconfig",
            )
    name = "EXTENDED_SUBMIT_COMMANDS"
    kept = condor_tools.value(name) or ""
    dropped = [word for word in ("container_image", "docker_image") if word not in kept]
    if dropped and (used or unlisted):
        # Its value has several lines, so where it was last set cannot be told.
        yield warning(
            f"HTCondor: condor_submit drops {' and '.join(dropped)} from grid jobs, because {name} "
            f"lacks {'it' if len(dropped) == 1 else 'them'}; add what {_GRID_EXAMPLE} has there, "
            "and run condor_reconfig"
        )


def _check_constraint() -> Iterator[Check]:
    """Check whether the constraint on all routes admits jobs that set only what is needed."""
    name = "JOB_ROUTER_SOURCE_JOB_CONSTRAINT"
    text = condor_tools.value(name)
    if text is not None and not all(_lets_in(text, job) for job in (_OWN_PROGRAM, _APP)):
        place = condor_tools.definition(name).place or "a file"
        yield warning(
            f"Job Router: {name}, which is last set in {place}, does not let in every vanilla job "
            "for BOINC; add to it there: || (WantBoinc =?= true) || (BoincApp isnt undefined), and "
            "run condor_reconfig"
        )


def _lets_in(expression: str, job: str) -> bool:
    """Tell whether an expression is true for a vanilla job with such an attribute."""
    from boinc_gahp.htcondor.attributes import AdRefused, Attributes

    scopeless = re.sub(r"\b(?:MY|TARGET)\.", "", expression, flags=re.IGNORECASE)
    try:
        return bool(Attributes(f"[ JobUniverse = 5; {job}; Found = ({scopeless}); ]").get("Found"))
    except AdRefused:
        return False


def _divided(
    listed: condor_tools.Definition, prefix: str, wanted: re.Pattern[str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the settings of a family that are for BOINC: in use, and named in no list."""
    found = {
        name: text for name, text in condor_tools.family(prefix).items() if wanted.search(text)
    }
    used = {name.lower() for name in listed.words}
    return (
        {name: text for name, text in found.items() if name.lower() in used},
        {name: text for name, text in found.items() if name.lower() not in used},
    )


def _last_word(found: condor_tools.Definition) -> str:
    return f"which is last set in {found.place}" if found.place else "which no file sets"


def _check_lost_files(name: str, text: str) -> Iterator[Check]:
    """Yield what a routed job would lose on its way."""
    if not re.search(r"\b(remote_Boinc|BatchQueue)", text, re.IGNORECASE):
        yield warning(
            f"Job Router: route {name} passes on no app: only attributes that are called "
            "remote_... reach boinc_gahp; add: COPY /^Boinc(.+)/ remote_Boinc\\1"
        )
    used = " ".join("".join(found.groups("")) for found in _SETS_REMAPS.finditer(text))
    read = set(re.findall(r"\w+", used.lower()))
    listed = condor_tools.definition("JOB_TRANSFORM_NAMES")
    transforms, unlisted = _divided(listed, "JOB_TRANSFORM_", _COPIED)
    if any(_saves(read, each) for each in transforms.values()):
        return
    for transform, each in unlisted.items():
        if _saves(read, each):
            yield warning(
                f"Job Router: route {name} loses transfer_output_remaps, because the transform "
                f"{transform}, which saves them, is not in JOB_TRANSFORM_NAMES, "
                f"{_last_word(listed)}",
                "add it there, and run condor_reconfig",
            )
            return
    yield warning(
        f"Job Router: route {name} loses transfer_output_remaps, so outputs keep their own "
        f"names; save them in a JOB_TRANSFORM and put them back in the route, as {EXAMPLE}"
    )


def _saves(read: set[str], transform: str) -> bool:
    """Tell whether a transform keeps a job's remaps in an attribute that boinc_gahp reads."""
    return any(copy.lower() in read for copy in _COPIED.findall(transform))
