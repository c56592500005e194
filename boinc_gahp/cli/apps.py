"""``boinc_gahp apps``: the project's apps, and what is known of each."""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from boinc_gahp import errors
from boinc_gahp.api.finding import App
from boinc_gahp.cli.batch.jsons import print_json
from boinc_gahp.config.accounts import authenticator_of, find_project
from boinc_gahp.config.layers import load
from boinc_gahp.rpc.client import WebRpcs
from boinc_gahp.rpc.options import ClientOptions
from boinc_gahp.rpc.site import apps
from boinc_gahp.templates.reading import read_templates
from boinc_gahp.templates.types import DEFAULTS, InputTemplate, TemplateError
from boinc_gahp.terminal import table, words
from boinc_gahp.terminal.output import command_line, print_lines
from boinc_gahp.terminal.parsing import Parser, common_words
from boinc_gahp.terminal.table import Column
from boinc_gahp.terminal.words import moment, one_line
from boinc_gahp.text import count, did_you_mean, printable, size, span

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Mapping

    from boinc_gahp.config.settings import ProjectSettings
    from boinc_gahp.rpc.types import AppInfo, AppVersionInfo


_DESCRIPTION = """\
Lists the project's apps: what each is for, and its newest version for each platform. With names of
apps, it tells all versions, and asks whether your account may submit jobs to each, which input
files a job needs, and which outputs it makes.

Some projects do not tell programs which apps they have. Then you can ask about an app by its name.
"""

_COLUMNS = (
    Column("app", minimum=16, middle=True),
    Column("for", rank=3, minimum=20),
    Column("version", right=True),
    Column("platform", rank=4, minimum=20),
)


@dataclass(frozen=True, slots=True)
class Details:
    """What is known of an app.

    Attributes:
        name: its name.
        listed: what the project's list of apps has of it; None: it is not there.
        may_submit: whether the account may submit jobs to the app; None: that was not asked.
        app: its inputs and outputs, if its templates can be read.
        trouble: why there are none; "" if there are.
    """

    name: str
    listed: AppInfo | None
    may_submit: bool | None = None
    app: App | None = None
    trouble: str = ""


def run(options: Namespace) -> int:
    """Print the apps; return 0."""
    settings = load(options.config)
    _, chosen = find_project(settings, options.project)
    key = authenticator_of(settings, chosen)
    network = ClientOptions.for_people(settings, chosen)
    with WebRpcs(chosen.url, key, options=network) as project:
        known, why = listed_apps(project)
        names = list(dict.fromkeys(options.app)) or sorted(known)
        found = [
            _details(project, name, known) if options.app else Details(name, known[name])
            for name in names
        ]
    if options.json:
        document = {"project": chosen.url, "is_complete": not why, "trouble": why or None}
        print_json(document, apps=map(_json, found))
    elif options.app:
        for number, details in enumerate(found):
            print("\n" * (number > 0), end="")
            print_lines(_long(options, chosen, details))
    else:
        rows = (row for name in names for row in _rows(known[name]))
        print_lines(table.lines(_COLUMNS, rows, sys.stdout))
        more = command_line(["boinc_gahp", "apps", *common_words(options.project, options.config)])
        if why:
            print(
                f"{project.host} does not tell which apps it has ({one_line(why)}). Ask its admin "
                f"for their names; then {more} NAME tells more."
            )
        else:
            print(f"More about an app: {more} NAME" if names else f"{project.host} has no apps.")
    return 0


def run_parser() -> Parser:
    """Return the parser of the command's arguments."""
    parser = Parser(
        "apps",
        _DESCRIPTION,
        examples=(
            "boinc_gahp apps",
            "boinc_gahp apps uppercase",
            "boinc_gahp apps uppercase multi --project astro --config ~/astro.toml",
            "boinc_gahp apps --json",
        ),
    )
    parser.takes({"[APP ...]": "only this app, with all details"})
    return parser.with_common(project=True, json="print JSON")


def _details(project: WebRpcs, name: str, known: Mapping[str, AppInfo]) -> Details:
    """Ask for an app's templates.

    Raises:
        AppNotFound: there is no such app.
        RpcError: the project does not answer.
    """
    from boinc_gahp.submit.checks import project_app

    app, listed = project_app(name), known.get(name)
    try:
        text = project.get_templates(app_name=app)
    except errors.TemplatesMissing:
        trouble = "it has no templates, so each job brings its own, as jobs in containers do"
        if app != name:
            trouble = (
                "a project does not tell which BUDA apps it has, nor their inputs and outputs: its "
                "admin knows them"
            )
        return Details(name, listed, may_submit=True, trouble=trouble)
    except errors.PermissionDenied as error:
        trouble = f"the project says: {error.words}"
        return Details(name, listed, may_submit=False, trouble=trouble)
    except errors.AppNotFound as error:
        near = did_you_mean(name, known)
        near = near or "; boinc_gahp apps lists those it has"
        raise errors.AppNotFound.of(error, f"{error.host} has no app {name!r}{near}") from None
    try:
        return Details(name, listed, may_submit=True, app=App(name, *read_templates(text)))
    except TemplateError as error:
        trouble = f"its templates cannot be read: {error}"
        return Details(name, listed, may_submit=True, trouble=trouble)


# -- for people


def _rows(app: AppInfo) -> Iterator[tuple[str, ...]]:
    """Yield an app's rows: its newest version for each platform, with the plan classes there."""
    head = app.name, app.user_friendly_name
    by_platform: dict[str, list[AppVersionInfo]] = {}
    for version in app.versions:
        by_platform.setdefault(version.platform_short, []).append(version)
    if not by_platform:
        yield (*head, "none", "")
    for platform, versions in sorted(by_platform.items()):
        newest = max(each.version_num for each in versions)
        classes = ", ".join(sorted({each.plan_class for each in versions} - {""}))
        yield (*head, version_number(newest), f"{platform} ({classes})" if classes else platform)
        head = "", ""


def _long(options: Namespace, chosen: ProjectSettings, details: Details) -> Iterator[str]:
    name, listed = printable(details.name), details.listed
    title = "" if listed is None else printable(listed.user_friendly_name)
    yield f"{name}: {title}" if title else name
    yield f"  jobs:      you {'may' if details.may_submit else 'may not'} submit them"
    if details.trouble:
        yield f"             {one_line(details.trouble)}"
    if details.app is not None:
        inputs = [each.open_name for each in details.app.inputs]
        outputs = [
            each.open_name + (" (optional)" if each.optional else "")
            for each in details.app.outputs
        ]
        yield f"  inputs:    {printable(', '.join(inputs)) or 'none'}"
        yield f"  outputs:   {printable(', '.join(outputs)) or 'none'}"
        yield f"  defaults:  {defaults_words(details.app.input_template)}"
    if listed is not None:
        yield from _versions(listed)
    if details.app is not None:
        line = ["boinc_gahp", "batch", "submit", details.name]
        for each in inputs:
            line += ["--input", f"{each}=FILE"]
        line += common_words(options.project, options.config)
        yield f"  to submit: {command_line(line)}"
    elif not details.may_submit:
        yield f"  Ask the admin of {chosen.url} for the right to submit to it."


def default_of(template: InputTemplate, name: str) -> float:
    """Return what a job gets of something for which it does not ask."""
    value: float | None = getattr(template, name)
    return DEFAULTS[name] if value is None else value


def defaults_words(template: InputTemplate) -> str:
    """Return what a job gets that asks for nothing (``web-rpcs.rst``, "The template wins")."""
    return (
        f"{span(default_of(template, 'delay_bound'))} until the deadline, "
        f"{size(default_of(template, 'rsc_memory_bound'))} of memory, "
        f"{size(default_of(template, 'rsc_disk_bound'))} of disk"
    )


def _versions(app: AppInfo) -> Iterator[str]:
    if not app.versions:
        yield "  versions:  none, so no volunteer gets its jobs"
        return
    beta = "; only volunteers who test apps get its jobs" if app.beta else ""
    yield f"  versions:  {count(len(app.versions), 'version')}{beta}"
    rows = (
        (
            version_number(each.version_num),
            each.platform_short,
            each.plan_class + (" (test)" if each.beta else ""),
            words.at(each.date_unix)[:10] if each.date_unix else "",
        )
        for each in sorted(app.versions, key=lambda each: (each.platform_short, each.plan_class))
    )
    columns = (Column(right=True), Column(minimum=16), Column(minimum=8), Column(rank=1))
    yield from table.lines(columns, rows, sys.stdout, indent=" " * 13)


# -- for programs


def _json(details: Details) -> dict[str, Any]:
    listed, found = details.listed, details.app
    return {
        "name": details.name,
        "title": None if listed is None else listed.user_friendly_name or None,
        "beta": listed is not None and listed.beta,
        "may_submit": details.may_submit,
        "trouble": details.trouble or None,
        "inputs": None if found is None else [each.open_name for each in found.inputs],
        "outputs": None
        if found is None
        else [{"name": each.open_name, "optional": bool(each.optional)} for each in found.outputs],
        "versions": None if listed is None else [_version_json(each) for each in listed.versions],
    }


def _version_json(version: AppVersionInfo) -> dict[str, Any]:
    return {
        "platform": version.platform_short,
        "platform_name": version.platform_long,
        "version": version.version_num,
        "plan_class": version.plan_class,
        "created": moment(version.date_unix or None),
        "beta": version.beta,
    }


def listed_apps(project: WebRpcs) -> tuple[dict[str, AppInfo], str]:
    """Return a project's apps by name, and why it does not list them; "" if it does.

    Raises:
        RpcError: it is down, or does not answer at all, or does not know the account.
    """
    try:
        return {app.name: app for app in apps(project)}, ""
    except errors.ProtocolError:
        return {}, "its page apps.php?xml=1 is not for programs"
    except errors.GahpError as error:
        silent = isinstance(error, errors.TransportError) and error.status is None and error.passes
        if silent or error.concerns == "project":
            raise
        if isinstance(error, errors.ProjectError):  # it wants a login; or is the key wrong?
            with suppress(errors.NoSubmitAccess):
                project.query_batches()
        return {}, f"its page apps.php?xml=1: {error}"


def version_number(version: int) -> str:
    """Return a version as BOINC's pages show it: 102 is 1.02."""
    return f"{version / 100:.2f}"


def version_words(app: AppInfo) -> str:
    """Return an app's versions: ``1.02 x86_64-pc-linux-gnu (docker), …``."""
    return ", ".join(
        f"{version_number(each.version_num)} {each.platform_short}"
        + (f" ({each.plan_class})" if each.plan_class else "")
        for each in app.versions
    )
