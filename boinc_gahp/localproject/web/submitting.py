"""The form that submits a batch: the fields, their errors, and the jobs made from it."""

from __future__ import annotations

import math
import re
import time
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from flask import flash, redirect, request, url_for

from boinc_gahp.localproject import accounts
from boinc_gahp.localproject.backend.create_work import NewJob, WorkError, submit
from boinc_gahp.localproject.backend.job_templates import keep_template
from boinc_gahp.localproject.backend.staging import stage_file
from boinc_gahp.localproject.hosts.hosts import mean_speed
from boinc_gahp.localproject.names import MAX_NAME
from boinc_gahp.localproject.server.job_files import note_use
from boinc_gahp.localproject.server.replies import RpcFailed
from boinc_gahp.localproject.web import access, queries, words
from boinc_gahp.localproject.web.layout import show
from boinc_gahp.localproject.web.posted import posted
from boinc_gahp.templates import DEFAULTS, TemplateError, set_parameters
from boinc_gahp.text import count

if TYPE_CHECKING:
    import sqlite3

    from flask import Response
    from werkzeug.wrappers import Response as AnyResponse

    from boinc_gahp.localproject.core import Core
    from boinc_gahp.localproject.store import IncomingFile
    from boinc_gahp.localproject.web.posted import Posted
    from boinc_gahp.templates import InputFileInfo, InputTemplate

_MAX_JOBS = 10_000
#: BOINC's columns for whole numbers have 32 bits.
_MAX_WHOLE = 2**31
#: A file that was sent with a wrong form is kept for the next try.
_KEEP_FOR = 86400.0
_EXTENSION = re.compile(r"\.[A-Za-z0-9_\-]{1,20}")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.\-]+")
_MAX_STEM = 120
#: The supplied app to begin with: one input, one output.
_SIMPLEST = "uppercase"
_STAGED_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of :class:`NewJob` that the form offers."""

    name: str
    label: str
    hint: str
    whole: bool = True


#: ``templates.rst``, "Job parameters", in the order of the form; empty fields leave the template's
#: values. Filled fields go into a template of the jobs' own, because a template's values win.
PARAMETERS = (
    Parameter("min_quorum", "Quorum", "results that must agree"),
    Parameter("target_nresults", "Instances at first", "at least the quorum"),
    Parameter("max_error_results", "Failures allowed", "instances; with one more, the job ends"),
    Parameter("max_total_results", "Instances at most", "in all"),
    Parameter("max_success_results", "Successes at most", "without agreement"),
    Parameter("delay_bound", "Deadline", "seconds after sending", whole=False),
    Parameter("rsc_fpops_est", "Operations, estimated", "floating point", whole=False),
    Parameter("rsc_fpops_bound", "Operations, at most", "floating point", whole=False),
    Parameter("rsc_memory_bound", "Memory, at most", "bytes", whole=False),
    Parameter("rsc_disk_bound", "Disk, at most", "bytes", whole=False),
    Parameter("rsc_bandwidth_bound", "Bandwidth, at least", "bytes a second", whole=False),
    Parameter("size_class", "Size class", "for apps that have them"),
    Parameter("app_version_num", "App version", "0 or empty: the newest"),
)


@dataclass(slots=True)
class Draft:
    """The input by field, and the errors by field; ``""`` is the whole form.

    ``estimate``: how long the batch would run, in seconds, if the user asked.
    """

    app: accounts.AppRow
    template: InputTemplate
    values: dict[str, str] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    estimate: float | None = None

    @property
    def files(self) -> tuple[InputFileInfo, ...]:
        """The files that each job names."""
        return self.template.per_job_files

    def number(self, name: str, label: str, *, whole: bool = True) -> float | None:
        """Read a number; None if the field is empty."""
        text = self.values.get(name, "").strip().replace(",", "")
        if not text:
            return None
        try:
            number = int(text) if whole else float(text)
        except ValueError:
            number = math.nan
        if not abs(number) < (_MAX_WHOLE if whole else math.inf):
            kind = "a whole number" if whole else "a number, such as 1e9,"
            self.errors[name] = f"{label}: “{text[:40]}” was typed, {kind} is expected."
            return None
        return number


def form(core: Core) -> Response:
    """Show the form, for the app that the address names, or a simple one."""
    access.need_visitor(core)
    connection = core.db.connection()
    return _show(core, connection, _draft(core, connection, request.args.get("app", "")))


def _apps(connection: sqlite3.Connection) -> list[queries.ShownApp]:
    """Return the apps whose jobs need nothing that the form cannot ask for."""
    return [app for app in queries.apps(connection) if not app.container]


def _draft(core: Core, connection: sqlite3.Connection, app_name: str) -> Draft:
    if not app_name:
        apps = _apps(connection)
        if not apps:
            raise access.Refused("There is no app", "Add one: boinc_gahp local-project add-app")
        names = [app.name for app in apps]
        app_name = _SIMPLEST if _SIMPLEST in names else names[0]
    try:
        app = accounts.find_app(connection, app_name)
        template = core.input_template(core.templates / f"{app.name}_in")
    except RpcFailed as error:
        raise access.Refused("There is no such app", f"{error.message}.", 404) from error
    except (OSError, TemplateError) as error:
        raise access.Refused(
            f"{app_name} has no usable input template",
            f"{error}. Correct it (see boinc_gahp template check), or choose another app.",
            409,
        ) from error
    return Draft(app, template)


def _show(core: Core, connection: sqlite3.Connection, draft: Draft, status: int = 200) -> Response:
    user = access.need_visitor(core)
    staged = connection.execute(
        "SELECT name FROM job_file ORDER BY id DESC LIMIT ?", (_STAGED_SHOWN,)
    )
    return show(
        core,
        "submit.html",
        status,
        draft=draft,
        apps=_apps(connection),
        may_submit=accounts.may_submit(connection, user, draft.app),
        parameters=[(each, _default(draft.template, each.name)) for each in PARAMETERS],
        staged=[row["name"] for row in staged],
    )


def _default(template: InputTemplate, name: str) -> str:
    value = getattr(template, name, None)
    value = DEFAULTS.get(name) if value is None else value
    return "" if value is None else f"{value:g}".replace("e+0", "e").replace("e+", "e")


def submitted(core: Core) -> AnyResponse:
    """Submit the batch, or show the form again with the errors, keeping the input.

    It is also shown again if the user asked how long the batch would run.
    """
    user = access.need_visitor(core)
    connection = core.db.connection()
    with posted(core) as sent:
        draft = _draft(core, connection, sent.text("app"))
        draft.values = sent.texts()
        if not accounts.may_submit(connection, user, draft.app):
            draft.errors[""] = (
                f"{user.name} may not submit jobs to {draft.app.name}: the project's admin can "
                "allow it."
            )
            return _show(core, connection, draft, 403)
        files = _stage(core, draft, sent)
        jobs = _jobs(draft, files)
        if not draft.errors and sent.text("estimate"):
            draft.estimate = _estimate(connection, draft.template, jobs)
            return _show(core, connection, draft)
        if not draft.errors:
            name = draft.values.get("batch_name", "").strip()
            try:
                jobs = _with_template(core, draft, jobs)
                batch_id = submit(core, user, draft.app, name, jobs)
            except (WorkError, TemplateError) as error:
                draft.errors[""] = f"Nothing was submitted: {error}."
        if draft.errors:
            return _show(core, connection, draft, 422)
    with core.db.write() as connection:
        # The table has no room for longer names; nobody would remove such files.
        for name in dict.fromkeys(name for name in files if len(name) <= MAX_NAME):
            note_use(connection, name, batch_id, 0)
    flash(f"Submitted {count(len(jobs), 'job')}.", "good")
    return redirect(url_for("page.batch", batch_id=batch_id), 303)


def _estimate(connection: sqlite3.Connection, template: InputTemplate, jobs: list[NewJob]) -> float:
    """Return estimate_batch's answer: all operations, at the mean speed of the hosts."""
    usual = template.rsc_fpops_est or DEFAULTS["rsc_fpops_est"]
    return sum(job.rsc_fpops_est or usual for job in jobs) / mean_speed(connection)


def _with_template(core: Core, draft: Draft, jobs: list[NewJob]) -> list[NewJob]:
    """Return the jobs, with their own template if they ask for other values than the app's has.

    Raises:
        TemplateError: a value that they ask for cannot be put into a template.
    """
    typed = {
        each.name: value
        for each in PARAMETERS
        if hasattr(draft.template, each.name)
        and (value := getattr(jobs[0], each.name)) not in (None, getattr(draft.template, each.name))
    }
    if not typed:
        return jobs
    path = core.templates / f"{draft.app.name}_in"
    own = keep_template(core, set_parameters(path.read_text("utf-8", "replace"), typed))
    return [replace(job, input_template=own) for job in jobs]


def _stage(core: Core, draft: Draft, sent: Posted) -> list[str]:
    """Stage the files that were sent, and return the physical names of a job's files."""
    names = []
    for number, info in enumerate(draft.files):
        uploaded = sent.file(f"file_{number}")
        key = f"staged_{number}"
        if uploaded is not None and uploaded.incoming is not None:
            draft.values[key] = _staged(core, uploaded.filename, uploaded.incoming, info)
        name = draft.values.get(key, "").strip()
        if not name:
            draft.errors[key] = _missing_file(draft, info)
        elif not core.download.exists(name):
            draft.errors[key] = (
                f"{info.open_name}: no file is staged as “{name}”. Choose a file to send instead, "
                "or type the physical name of one that is staged."
            )
        names.append(name)
    return names


def _missing_file(draft: Draft, info: InputFileInfo) -> str:
    need = len(draft.files)
    open_names = ", ".join(each.open_name for each in draft.files)
    return (
        f"{info.open_name}: no file was given. Each job of {draft.app.name} has {need} input "
        f"file{'s' * (need != 1)} ({open_names}): choose one to send, or name one that is staged."
    )


def _staged(core: Core, filename: str, incoming: IncomingFile, info: InputFileInfo) -> str:
    """Stage a file by its content, like the bridge: ``<MD5><extension>``."""
    extension = PurePath(filename.replace("\\", "/")).suffix
    name = incoming.finish() + (extension if _EXTENSION.fullmatch(extension) else "")
    core.download.add(name, incoming)
    if info.gzip:
        stage_file(core, core.download.path(name), name, gzip=True)
    with core.db.write() as connection:
        note_use(connection, name, 0, time.time() + _KEEP_FOR)
    return name


def _jobs(draft: Draft, files: list[str]) -> list[NewJob]:
    """Return the jobs; ``{n}`` in the command line becomes each job's number."""
    typed = draft.number("jobs", "Number of jobs")
    wanted = 1 if typed is None else int(typed)
    if not 1 <= wanted <= _MAX_JOBS:
        draft.errors["jobs"] = (
            f"Number of jobs: “{wanted}” was typed, 1 to {words.thousands(_MAX_JOBS)} is expected."
        )
        return []
    given = {
        each.name: draft.number(each.name, each.label, whole=each.whole) for each in PARAMETERS
    }
    given["priority"] = draft.number("priority", "Priority")
    pattern = NewJob(files=tuple(files), **given)  # type: ignore[arg-type]
    stem = _NOT_IN_NAMES.sub("-", draft.values.get("batch_name", "").strip())[:_MAX_STEM].strip("-")
    command_line = draft.values.get("command_line", "").strip()
    return [
        NewJob(
            name=f"{stem}_{number}" if stem else "",
            command_line=escape(command_line.replace("{n}", str(number))) or None,
        ).over(pattern)
        for number in range(wanted)
    ]
