"""What ``check`` says about HTCondor on this machine, and about the daemon that it starts.

HTCondor starts the daemon as the owner of the jobs, with the environment of condor_master and that
user's HOME (``gridmanager-batch.rst``, "Starting the GAHP").
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import boinc_gahp
from boinc_gahp.cli.check.checks import Check, failed, note, ok, warning
from boinc_gahp.config.accounts import named_projects, no_account
from boinc_gahp.config.layers import load
from boinc_gahp.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from boinc_gahp.config.settings import Settings


_EXAMPLE = "conf/20-boinc_gahp.condor.conf"
#: The first HTCondor without its own grid type for BOINC.
_BATCH_ONLY = 10
#: Seconds that HTCondor gives a command unless its configuration says otherwise (``gahp.rst``,
#: "Time limits").
CALL_TIMEOUT = 300
#: Seconds by which ``[timeouts] submit`` should stay below that.
CALL_MARGIN = 30
#: The most seconds between two counts of the schedd (``gridmanager-batch.rst``, "When a
#: gridmanager is told of a new job").
_COUNT_INTERVAL = 60
#: Variables that move this user's files away from where HTCondor's daemon looks for them.
_MOVERS = {"XDG_CONFIG_HOME": ".config", "XDG_STATE_HOME": ".local/state"}

#: Seconds that a tool may take; condor_config_val may run commands to read settings.
_TIMEOUT = 20

_VERSION = re.compile(r"\$CondorVersion: ((\d+)\.\d+\.\d+)")
_ROUTE = re.compile(r'^Name +: "(.*)"$', re.MULTILINE)
# Such as  # at: /etc/condor/condor_config.local, line 1  (or <Default>, <Environment>).
_DEFINED = re.compile(r"^([\w.]+) = (.*)\n # at: (.+)$", re.MULTILINE)
_DEFAULT = "<Default>"


def check_htcondor(settings: Settings, command: Path, config: str | None) -> Iterator[Check]:
    """Check whether HTCondor's configuration fits, if there is an HTCondor.

    Args:
        settings: all settings.
        command: the boinc_gahp to check.
        config: the settings file named on the command line.
    """
    if shutil.which("condor_config_val") is None:
        yield note("HTCondor: condor_config_val is not on the PATH, so this was not looked at")
        return
    broken = _broken()
    if broken is not None:
        yield failed(f"HTCondor: it cannot read its own settings, so nothing works: {broken}")
        return
    version = _VERSION.search(_output("condor_version") or "")
    is_old = version is not None and int(version[2]) < _BATCH_ONLY
    if version is None:
        yield note("HTCondor: condor_version does not tell the version")
    else:
        how = "boinc" if is_old else "batch boinc"
        yield ok(f"HTCondor: version {version[1]}; jobs are sent with grid_resource = {how}")
    silent = _silent()
    if silent is not None:
        yield warning(f"HTCondor: condor_q gets no answer; is HTCondor running here? {silent}")
    yield from _check_program(command)
    yield _check_call_timeout(settings.timeouts.submit if version is None or is_old else None)
    if not is_old:
        yield from _check_count_interval()
        yield from check_attributes()
        yield from check_routes()
        yield from _check_settings(config)


# -- the program


def _check_program(command: Path) -> Iterator[Check]:
    named = _setting("BOINC_GAHP")
    if named is None:
        yield failed(
            f"HTCondor: BOINC_GAHP is not set; set it to {command} ({_EXAMPLE}), or jobs fail with "
            "boinc_ping.sh: No such file"
        )
    elif not named.startswith("/"):
        yield failed(
            f"HTCondor: BOINC_GAHP is {named}; an absolute path without arguments is expected, "
            f"such as {command}"
        )
    elif not shutil.which(named):
        yield failed(f"HTCondor: BOINC_GAHP is {named}, which is not an executable program")
    else:
        # Only this running program can tell what it imports.
        own = (Path(boinc_gahp.__file__),) if Path(named).resolve() == command else ()
        closed = closed_to_others(Path(named), own)
        if closed is None:
            yield ok(f"HTCondor: BOINC_GAHP is {named}")
        else:
            needed = "x" if closed.is_dir() else "rx"
            yield warning(
                f"HTCondor: BOINC_GAHP is {named}, which other users cannot run, because of "
                f"{closed}; HTCondor runs it as the owner of the jobs: install it where everybody "
                "may read, such as in /opt, with a Python that everybody may run, such as "
                f"/usr/bin/python3, or run: chmod o+{needed} {closed}"
            )


def closed_to_others(program: Path, modules: tuple[Path, ...] = ()) -> Path | None:
    """Return why other users cannot run a program; None if they can.

    Checks the program, its interpreter if it is a script, ``modules``, which it reads, and all
    directories above them, also along symbolic links.
    """
    interpreter = _interpreter(program)
    programs = (program,) if interpreter is None else (program, interpreter)
    for file in (*programs, *modules):
        for path in _way_to(file):
            mode = path.stat().st_mode
            if stat.S_ISDIR(mode):
                needed = stat.S_IXOTH
            else:
                needed = stat.S_IROTH if file in modules else stat.S_IROTH | stat.S_IXOTH
            if mode & needed != needed:
                return path
    return None


def _way_to(file: Path) -> Iterator[Path]:
    """Yield the directories from the root down, then the file; links are followed."""
    seen = set()
    for way in (file.absolute(), file.resolve()):
        for path in (*reversed(way.parents), way):
            if path not in seen:
                seen.add(path)
                yield path


def _interpreter(program: Path) -> Path | None:
    try:
        with program.open("rb") as file:
            first = file.readline(1000)
    except OSError:
        return None
    words = first.removeprefix(b"#!").split()
    if not (first.startswith(b"#!") and words):
        return None
    found = Path(os.fsdecode(words[0]))
    return found if found.exists() else None


# -- time limits


def _check_call_timeout(submit: float | None) -> Check:
    """Check the time that HTCondor gives a command.

    Args:
        submit: ``[timeouts] submit``, if HTCondor may be one that uses ``BOINC_SUBMIT``.
    """
    from boinc_gahp.htcondor.service import CANCEL_TIMEOUT

    text = _setting("GRIDMANAGER_GAHP_CALL_TIMEOUT") or str(CALL_TIMEOUT)
    told = f"HTCondor: GRIDMANAGER_GAHP_CALL_TIMEOUT is {text}"
    if not text.isdigit():
        return warning(f"{told}, which is not a number")
    given = int(text)
    if submit is None:
        if given > CANCEL_TIMEOUT:
            return ok(told)
        return warning(
            f"{told}; removing a job whose outputs are being written may take "
            f"{CANCEL_TIMEOUT:g} s: set it to {CALL_TIMEOUT}"
        )
    both = f"{told}, [timeouts] submit in boinc_gahp.toml is {submit:g}"
    advice = f"set submit = {given - CALL_MARGIN}"
    if submit >= given:
        return failed(f"{both}: answers come too late, and jobs are submitted twice; {advice}")
    if submit < given - 2 * CALL_MARGIN:
        return warning(f"{both}: large inputs get less time than they could; {advice}")
    return ok(both)


def _check_count_interval() -> Iterator[Check]:
    text = _setting("SCHEDD_INTERVAL") or "0"
    if not text.isdigit() or int(text) > _COUNT_INTERVAL:
        yield warning(
            f"HTCondor: SCHEDD_INTERVAL is {text}: new jobs may stay idle for so many seconds "
            f"before boinc_gahp is told of them; set it to 20 ({_EXAMPLE})"
        )


# -- what the daemon finds


def _check_settings(config: str | None) -> Iterator[Check]:
    for variable, usual in _MOVERS.items():
        moved = os.environ.get(variable)
        if moved and Path(moved) != Path(os.environ.get("HOME", "/"), usual):
            yield warning(
                f"HTCondor: {variable} is {moved} in your environment, but not for a boinc_gahp "
                f"that HTCondor starts: that uses ~/{usual}"
            )
    try:
        found = load(None, {})
    except ConfigError as error:
        yield _holding(error)
        return
    urls = [each.url for _, each in named_projects(found) if each.authenticator is not None]
    if urls:
        listed = ", ".join(dict.fromkeys(urls))
        yield ok(f"HTCondor: a boinc_gahp that it starts for you finds accounts on {listed}")
        return
    named = config or os.environ.get("BOINC_GAHP_CONFIG")
    why = f"{named} is not read then: " if named else ""
    yield _holding(no_account(found), why)


def _holding(error: ConfigError, why: str = "") -> Check:
    return failed(
        "HTCondor: a boinc_gahp that it starts for you would hold your jobs: "
        f"{why}{error.with_code()}"
    )


EXAMPLE = "conf/zz-boinc_gahp.router.conf"

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
    listed = _definition("JOB_ROUTER_ROUTE_NAMES")
    routes, unlisted = _divided(listed, "JOB_ROUTER_ROUTE_", _LEADS_TO_BOINC)
    entries = _LEADS_TO_BOINC.search(_setting("JOB_ROUTER_ENTRIES") or "")
    if entries:
        yield failed(
            "Job Router: HTCondor before 24.10 reads JOB_ROUTER_ENTRIES only if "
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
    daemons = _definition("DAEMON_LIST", "MASTER")
    if "JOB_ROUTER" not in map(str.upper, daemons.words):
        yield failed(
            f"Job Router: there is a route to BOINC ({', '.join(routes)}), but no JOB_ROUTER in "
            f"{daemons.name}, {_last_word(daemons)}",
            "add it there, and run condor_reconfig",
        )
    yield from _check_constraint()
    accepted = _accepted_routes()
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
    listed = _definition("JOB_TRANSFORM_NAMES")
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
    kept = _setting(name) or ""
    dropped = [word for word in ("container_image", "docker_image") if word not in kept]
    if dropped and (used or unlisted):
        # Its value has several lines, so where it was last set cannot be told.
        yield warning(
            f"HTCondor: condor_submit drops {' and '.join(dropped)} from grid jobs, because {name} "
            f"lacks {'it' if len(dropped) == 1 else 'them'}; add what {_EXAMPLE} has there, "
            "and run condor_reconfig"
        )


def _check_constraint() -> Iterator[Check]:
    """Check whether the constraint on all routes admits jobs that set only what is needed."""
    name = "JOB_ROUTER_SOURCE_JOB_CONSTRAINT"
    text = _setting(name)
    if text is not None and not all(_lets_in(text, job) for job in (_OWN_PROGRAM, _APP)):
        place = _definition(name).place or "a file"
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
    listed: _Definition, prefix: str, wanted: re.Pattern[str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the settings of a family that are for BOINC: in use, and named in no list."""
    found = {name: text for name, text in _family(prefix).items() if wanted.search(text)}
    used = {name.lower() for name in listed.words}
    return (
        {name: text for name, text in found.items() if name.lower() in used},
        {name: text for name, text in found.items() if name.lower() not in used},
    )


def _last_word(found: _Definition) -> str:
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
    listed = _definition("JOB_TRANSFORM_NAMES")
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


# -- HTCondor's own tools, if they are on the PATH


@dataclass(frozen=True)
class _Definition:
    """The definition of a setting that counts: of several, the last one that HTCondor reads.

    Attributes:
        name: of the setting, with ``MASTER.`` before it if it is for that daemon only.
        words: the words of its value, which is a list.
        place: the file and line, in HTCondor's words; None if it is not in a file.
    """

    name: str
    words: list[str]
    place: str | None


def _broken() -> str | None:
    """Return HTCondor's message if it cannot read its settings at all; None if it can."""
    answer = _run("condor_config_val", "DAEMON_LIST")
    if answer is None or answer.returncode == 0 or "Not defined" in answer.stderr:
        return None
    return " ".join(answer.stderr.split())


def _silent() -> str | None:
    """Return condor_q's message if HTCondor does not answer it; None if it does."""
    answer = _run("condor_q", "-totals")
    if answer is None or answer.returncode == 0:
        return None
    return next(iter((answer.stderr.strip() or answer.stdout.strip()).splitlines()), "no words")


def _setting(name: str) -> str | None:
    """Return a setting, expanded; None if it is undefined or empty."""
    return (_output("condor_config_val", name) or "").strip() or None


def _definition(name: str, subsystem: str = "TOOL") -> _Definition:
    """Return the value of a list setting, as HTCondor or one of its daemons reads it."""
    command = ("condor_config_val", "-subsystem", subsystem, "-verbose", name)
    found = _DEFINED.search(_output(*command) or "")
    if found is None:
        return _Definition(name, _words(_setting(name) or ""), None)
    place = None if found[3] == _DEFAULT else found[3]
    return _Definition(found[1], _words(found[2]), place)


def _family(prefix: str) -> dict[str, str]:
    """Return the settings whose names begin with ``prefix``, by the rest of their names."""
    dumped = _output("condor_config_val", "-dump", f"^{prefix}") or ""
    known = re.findall(rf"^{prefix}(\w+) @?=", dumped, re.IGNORECASE | re.MULTILINE)
    return {each: _setting(f"{prefix}{each}") or "" for each in known}


def _accepted_routes() -> list[str] | None:
    """Return the Job Router's routes as HTCondor understands its settings; None if unknown.

    It leaves out a route with a mistake in it, without any message (seen with 23.9.6).
    """
    output = _output("condor_job_router_info", "-config")
    return None if output is None else _ROUTE.findall(output)


def _words(text: str) -> list[str]:
    return [word for word in re.split(r"[,\s]+", text) if word]


def _output(*command: str) -> str | None:
    answer = _run(*command)
    return answer.stdout if answer is not None and answer.returncode == 0 else None


def _run(*command: str) -> subprocess.CompletedProcess[str] | None:
    try:
        return subprocess.run(
            command, capture_output=True, timeout=_TIMEOUT, check=False, errors="replace"
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
