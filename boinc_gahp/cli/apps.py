"""``boinc_gahp apps``: the project's apps, and what is known of each."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from boinc_gahp.cli.known_apps import KnownApp, known_apps, why_unlisted
from boinc_gahp.config.accounts import authenticator_of, find_project
from boinc_gahp.config.layers import load
from boinc_gahp.errors import (
    AppNotFound,
    PermissionDenied,
    TemplatesMissing,
)
from boinc_gahp.rpc.client import WebRpcs
from boinc_gahp.rpc.options import ClientOptions
from boinc_gahp.rpc.site import ProjectSite
from boinc_gahp.templates.reading import read_templates
from boinc_gahp.templates.types import DEFAULTS, InputTemplate, TemplateError
from boinc_gahp.terminal import table, words
from boinc_gahp.terminal.output import command_line
from boinc_gahp.terminal.parsing import Parser, not_empty
from boinc_gahp.terminal.table import Column
from boinc_gahp.terminal.words import moment, one_line
from boinc_gahp.text import count, did_you_mean, listed

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Sequence

    from boinc_gahp.cli.known_apps import KnownApps
    from boinc_gahp.config.settings import ProjectSettings
    from boinc_gahp.rpc.types import AppVersionInfo
    from boinc_gahp.templates.types import OutputTemplate
    from boinc_gahp.terminal.table import Cell

_DESCRIPTION = """\
Lists the project's apps: what each is for, its newest versions by platform, and how many of your
batches have it. With names of apps, or with --details, it also asks whether your account may submit
jobs to each, which input files a job needs, and which outputs it makes.

Some projects do not tell programs which apps they have. Then those of your batches are listed, and
you can ask about any other app by its name.
"""

_COLUMNS = (
    Column("app", minimum=16, middle=True),
    Column("for", rank=3, minimum=20),
    Column("allowed", rank=1),
    Column("inputs", rank=2, minimum=8),
    Column("outputs", rank=2, minimum=8),
    Column("versions", rank=4),
    Column("batches", rank=5, right=True),
)
#: The words for "jobs may be submitted".
_MAY = {True: ("yes", "green"), False: ("no", "yellow")}
#: How many platforms a list names.
_NAMED = 3


@dataclass(frozen=True, slots=True)
class Details:
    """What the project says when it is asked for an app's templates.

    Attributes:
        may_submit: whether the account may submit jobs to the app; None: not known.
        templates: the app's templates, if they can be read.
        trouble: why there are none; "" if there are.
    """

    may_submit: bool | None
    templates: tuple[InputTemplate, OutputTemplate] | None = None
    trouble: str = ""


def run(arguments: list[str], config: str | None) -> int:
    """Print the apps; return 0."""
    options = run_parser(config).read(arguments)
    settings = load(options.config)
    _, chosen = find_project(settings, options.project)
    key = authenticator_of(settings, chosen)
    network = ClientOptions.for_people(settings, chosen)
    with (
        ProjectSite(chosen.url, key, options=network) as site,
        WebRpcs(chosen.url, key, options=network) as project,
    ):
        found = known_apps(site, project)
        apps = _chosen(found, options.app)
        details: dict[str, Details] = {}
        for name in [each.name for each in apps] if options.app or options.details else ():
            details[name] = _details(project, name, found, asked=bool(options.app))
    if options.json:
        _print_json(chosen, found, apps, details)
    elif options.app:
        for number, app in enumerate(apps):
            print("\n" * (number > 0), end="")
            for line in _long(options, chosen, app, details[app.name]):
                print(line)
    else:
        rows = (_row(each, details.get(each.name)) for each in apps)
        for line in table.lines(_COLUMNS, rows, sys.stdout):
            print(line)
        for line in _remarks(options, found, project.host):
            print(line)
    return 0


def run_parser(config: str | None = None) -> Parser:
    """Return the parser of the command's arguments."""
    parser = Parser(
        "apps",
        _DESCRIPTION,
        examples=(
            "boinc_gahp apps",
            "boinc_gahp apps uppercase",
            "boinc_gahp apps --details --project astro --config ~/astro.toml",
            "boinc_gahp apps --json",
        ),
    )
    parser.completes(
        parser.add_argument(
            "app", nargs="*", metavar="APP", type=not_empty, help="only this app, with all details"
        ),
        "app",
    )
    parser.add_argument(
        "--details", action="store_true", help="ask the project about each app: a request per app"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_project()
    parser.add_config(config)
    return parser


def _chosen(found: KnownApps, names: Sequence[str]) -> list[KnownApp]:
    if not names:
        return list(found.apps)
    known = {each.name: each for each in found.apps}
    return [known.get(name, KnownApp(name)) for name in dict.fromkeys(names)]


def _details(project: WebRpcs, name: str, found: KnownApps, *, asked: bool) -> Details:
    """Ask for an app's templates.

    Raises:
        AppNotFound: there is no such app, and the user has named it.
        RpcError: the project does not answer.
    """
    from boinc_gahp.submit.buda_names import project_app

    app = project_app(name)
    try:
        text = project.get_templates(app_name=app)
    except TemplatesMissing:
        trouble = "it has no templates, so each job brings its own, as jobs in containers do"
        if app != name:
            trouble = (
                "a project does not tell which BUDA apps it has, nor their inputs and outputs: its "
                "admin knows them"
            )
        return Details(may_submit=True, trouble=trouble)
    except PermissionDenied as error:
        return Details(may_submit=False, trouble=f"the project says: {error.words}")
    except AppNotFound as error:
        if not asked:
            # Its batches are older than its end.
            return Details(may_submit=False, trouble="the project has it no more")
        near = did_you_mean(name, [each.name for each in found.apps])
        raise AppNotFound(
            f"{error.host} has no app {name!r}{near or '; boinc_gahp apps lists those it has'}",
            rpc=error.rpc,
            host=error.host,
            number=error.number,
            words=error.words,
        ) from None
    try:
        return Details(may_submit=True, templates=read_templates(text))
    except TemplateError as error:
        return Details(may_submit=True, trouble=f"its templates cannot be read: {error}")


# -- for people


def _row(app: KnownApp, details: Details | None) -> tuple[Cell, ...]:
    inputs, outputs = _files(details)
    may = None if details is None else details.may_submit
    return (
        app.name,
        app.title,
        "" if may is None else _MAY[may],
        ", ".join(inputs or ()),
        ", ".join(outputs or ()),
        _short_versions(app.versions or ()),
        f"{app.batches:,}" if app.batches else "",
    )


def _short_versions(versions: Sequence[AppVersionInfo]) -> str:
    """Return the newest version, and the platforms that have any."""
    if not versions:
        return ""
    newest = max(each.version_num for each in versions)
    platforms = dict.fromkeys(each.platform_short for each in versions)
    return f"{_number(newest)} {listed(list(platforms), _NAMED)}"


def _number(version: int) -> str:
    """Return a version as BOINC's pages show it: 102 is 1.02."""
    return f"{version / 100:.2f}"


def _long(
    options: Namespace, chosen: ProjectSettings, app: KnownApp, details: Details
) -> Iterator[str]:
    title = words.printable(app.title)
    yield f"{words.printable(app.name)}: {title}" if title else words.printable(app.name)
    may = {True: "you may submit them", False: "you may not submit them", None: "not known"}
    yield f"  jobs:      {may[details.may_submit]}"
    if details.trouble:
        yield f"             {one_line(details.trouble)}"
    inputs, outputs = _files(details)
    if inputs is not None and outputs is not None:
        yield f"  inputs:    {words.printable(', '.join(inputs)) or 'none'}"
        yield f"  outputs:   {words.printable(', '.join(outputs)) or 'none'}"
    if details.templates is not None:
        yield f"  defaults:  {_defaults(details.templates[0])}"
    yield from _versions(app)
    if app.batches:
        yield f"  batches:   {count(app.batches, 'batch', 'batches')} of yours"
    if inputs is not None and details.may_submit:
        line = ["boinc_gahp", "batch", "submit", app.name]
        for name in inputs:
            line += ["--input", f"{name}=FILE"]
        yield f"  to submit: {command_line([*line, *_common(options)])}"
    elif not details.may_submit:
        yield f"  Ask the admin of {chosen.url} for the right to submit to it."


def _defaults(template: InputTemplate) -> str:
    """Return what a job gets that asks for nothing."""
    size = {
        name: DEFAULTS[name] if getattr(template, name) is None else getattr(template, name)
        for name in ("delay_bound", "rsc_memory_bound", "rsc_disk_bound")
    }
    return (
        f"{words.span(size['delay_bound'])} until the deadline, "
        f"{words.size(size['rsc_memory_bound'])} of memory, "
        f"{words.size(size['rsc_disk_bound'])} of disk"
    )


def _versions(app: KnownApp) -> Iterator[str]:
    if app.versions is None:
        return
    if not app.versions:
        yield "  versions:  none, so no volunteer gets its jobs"
        return
    beta = "; only volunteers who test apps get its jobs" if app.is_beta else ""
    yield f"  versions:  {count(len(app.versions), 'version')}{beta}"
    rows = (
        (
            _number(each.version_num),
            each.platform_short,
            each.plan_class + (" (test)" if each.beta else ""),
            words.at(each.date_unix)[:10] if each.date_unix else "",
        )
        for each in sorted(app.versions, key=lambda each: (each.platform_short, each.plan_class))
    )
    columns = (Column(right=True), Column(minimum=16), Column(minimum=8), Column(rank=1))
    yield from table.lines(columns, rows, sys.stdout, indent=" " * 13)


def _files(details: Details | None) -> tuple[list[str] | None, list[str] | None]:
    """Return the open names of inputs and outputs; None if they are not known."""
    if details is None or details.templates is None:
        return None, None
    inputs, outputs = details.templates
    return (
        [each.open_name for each in inputs.per_job_files],
        [each.open_name + (" (optional)" if each.optional else "") for each in outputs.files],
    )


def _remarks(options: Namespace, found: KnownApps, host: str) -> Iterator[str]:
    more = command_line(["boinc_gahp", "apps", *_common(options)])
    if found.unlisted is not None:
        which = "these are the apps of your batches" if found.apps else "and you have no batches"
        yield (
            f"{host} does not tell which apps it has ({one_line(why_unlisted(found.unlisted))}): "
            f"{which}. "
            f"Ask its admin for other names; then {more} NAME tells more."
        )
    elif not found.apps:
        yield f"{host} has no apps."
    elif not options.details:
        yield f"More about an app: {more} NAME"


def _common(options: Namespace) -> list[str]:
    given = (("--project", options.project), ("--config", options.config))
    return [word for option, value in given if value is not None for word in (option, value)]


# -- for programs


def _print_json(
    chosen: ProjectSettings,
    found: KnownApps,
    apps: Sequence[KnownApp],
    details: dict[str, Details],
) -> None:
    from boinc_gahp.cli.batch.jsons import print_json

    document = {
        "project": chosen.url,
        "is_complete": found.unlisted is None,
        "trouble": None if found.unlisted is None else str(found.unlisted),
    }
    print_json(document, apps=(_json(each, details.get(each.name)) for each in apps))


def _json(app: KnownApp, details: Details | None) -> dict[str, Any]:
    inputs, outputs = None, None
    if details is not None and details.templates is not None:
        inputs = [each.open_name for each in details.templates[0].per_job_files]
        outputs = [
            {"name": each.open_name, "optional": bool(each.optional)}
            for each in details.templates[1].files
        ]
    return {
        "name": app.name,
        "title": app.title or None,
        "beta": app.is_beta,
        "batches": app.batches,
        "may_submit": None if details is None else details.may_submit,
        "trouble": None if details is None else details.trouble or None,
        "inputs": inputs,
        "outputs": outputs,
        "versions": None
        if app.versions is None
        else [_version_json(each) for each in app.versions],
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
