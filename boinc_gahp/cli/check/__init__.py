"""``boinc_gahp check``: tests point by point whether everything fits together."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from boinc_gahp import logs
from boinc_gahp.cli.check import checks
from boinc_gahp.cli.check.checks import Check, Level
from boinc_gahp.cli.check.htcondor_checks import check_htcondor
from boinc_gahp.cli.check.project_checks import check_image, check_project
from boinc_gahp.config.layers import load
from boinc_gahp.errors import ConfigError
from boinc_gahp.terminal.output import coloured
from boinc_gahp.terminal.parsing import Parser
from boinc_gahp.terminal.words import one_line
from boinc_gahp.text import count

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Sequence

_COLOURS = dict(zip(Level, ("green", "faint", "yellow", "red"), strict=True))

_DESCRIPTION = """\
Checks that the settings, directories, project, account, apps and HTCondor work together. It prints
a line for each point: "ok"; "note", if the point cannot be checked; "warning" or "FAILED", with
what to do.
"""


def run(options: Namespace) -> int:
    """Print the points; return 0 if all is well, else 1."""
    points = print_checks(options.config, options.project, options.app)
    if options.report is not None:
        from boinc_gahp.cli.check import report

        shown = [f"{each.level.value}: {one_line(each.shown)}" for each in points]
        report.write(Path(options.report), options.config, shown, time.time())
        print(f"Read {options.report} before you send it to whoever is to help.")
    return 1 if {each.level for each in points} & {Level.FAILED, Level.WARNING} else 0


def print_checks(config: str | None, project: str | None, apps: Sequence[str] = ()) -> list[Check]:
    """Check everything, and print the points; return them.

    Args:
        config: the settings file to read last.
        project: the name of a project in the settings; None: the default project.
        apps: the apps to look at.
    """
    points = []
    for check in _all_checks(config, project, apps):
        points.append(check)
        print(_shown(check), flush=True)
    levels = [each.level for each in points]
    failures, warnings = levels.count(Level.FAILED), levels.count(Level.WARNING)
    print()
    if failures or warnings:
        print(f"{count(failures, 'failure')}, {count(warnings, 'warning')}.")
    else:
        print("All is well.")
    return points


def run_parser() -> Parser:
    """Return the parser of the command's arguments."""
    parser = Parser(
        "check",
        _DESCRIPTION,
        examples=(
            "boinc_gahp check",
            "boinc_gahp check --app uppercase --app multi",
            "boinc_gahp check --project astro --config ~/astro.toml",
            "boinc_gahp check --report report.txt",
        ),
        statuses={1: "a warning or a failure"},
    )
    apps = {
        "--app APP ...": "an app that your jobs use; may be repeated. The container_app of the "
        "settings is always checked"
    }
    parser.takes(apps, default=[])
    report = (
        "also write a report of a fault: versions, settings without secrets, this, end of the log"
    )
    parser.takes({"--report FILE": report})
    return parser.with_common(project=True)


def _all_checks(config: str | None, name: str | None, apps: Sequence[str]) -> Iterator[Check]:
    try:
        settings = load(config)
    except ConfigError as error:
        yield checks.failed(f"settings: {error.with_code()}")
        return
    yield from checks.check_settings(settings)
    local = list(checks.check_directories(settings))
    yield from local
    if local[0].level is Level.OK:
        logs.start(settings)
    yield from check_htcondor(settings, Path(sys.argv[0]).resolve(), config)
    project, choice = checks.chosen_project(settings, name)
    yield choice
    if project is not None:
        yield from check_image(project)
        yield from check_project(settings, project, apps)


def _shown(check: Check) -> str:
    width = max(len(level.value) for level in Level) + 2
    word = coloured(f"{check.level.value:<{width}}", _COLOURS[check.level], sys.stdout)
    return word + one_line(check.shown)
