"""The pages: batches, a batch, a job, hosts, the back end, apps; and a job's single files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flask import Response, abort, redirect, request, send_file, url_for

from boinc_gahp.localproject.backend import views
from boinc_gahp.localproject.web import job_queries, queries, timeline
from boinc_gahp.localproject.web.layout import page_number, show
from boinc_gahp.templates.documents import read_workunit
from boinc_gahp.templates.types import TemplateError

if TYPE_CHECKING:
    from pathlib import Path

    from werkzeug.wrappers import Response as AnyResponse

    from boinc_gahp.localproject.core import Core

#: Larger ids would be invalid for the database.
LAST_ID = 2**62


def batches(core: Core) -> Response:
    """Show the newest batches, what the hosts are doing, and the back end."""
    retired = request.args.get("show") == "retired"
    with core.db.read() as connection:
        overview = queries.overview(connection, page_number(), retired=retired)
        return show(
            core,
            "batches.html",
            overview=overview,
            ends=timeline.ends(connection, overview.batches),
            hosts=queries.hosts(connection),
            programs=queries.programs(connection),
            retired=retired,
            page=page_number(),
            per_page=queries.BATCHES_A_PAGE,
        )


def batch(core: Core, batch_id: int) -> Response:
    """Show a batch and a page of its jobs."""
    state, part = request.args.get("state", ""), request.args.get("name", "")
    with core.db.read() as connection:
        found = queries.batch(connection, batch_id)
        if found is None:
            abort(404)
        jobs, number = job_queries.jobs(connection, batch_id, page_number(), state=state, part=part)
        return show(
            core,
            "batch.html",
            batch=found,
            timeline=timeline.timeline(connection, found),
            jobs=jobs,
            number=number,
            state=state if state in queries.STATES else "",
            part=part,
            page=page_number(),
            per_page=job_queries.JOBS_A_PAGE,
        )


def job(core: Core, job_id: int) -> Response:
    """Show a job, its instances and its history."""
    with core.db.read() as connection:
        found = job_queries.job(core, connection, job_id)
        if found is None:
            abort(404)
        return show(core, "job.html", job=found)


def instance(core: Core) -> AnyResponse:
    """Lead from the address that an instance has on other projects to its place here.

    There it is a page of its own (``html/user/result.php``).
    """
    result_id = request.args.get("resultid", 0, type=int)
    with core.db.read() as connection:
        found = connection.execute(
            "SELECT workunitid FROM result WHERE id = ?", (min(max(result_id, 0), LAST_ID),)
        ).fetchone()
    if found is None:
        abort(404)
    place = url_for("page.job", job_id=found["workunitid"])
    return redirect(f"{place}#instance-{result_id}")


def hosts(core: Core) -> Response:
    """Show the hosts, their properties, and the jobs that they run."""
    with core.db.read() as connection:
        return show(core, "hosts.html", hosts=queries.hosts(connection))


def programs(core: Core) -> Response:
    """Show the work of the back-end programs."""
    with core.db.read() as connection:
        return show(core, "programs.html", programs=queries.programs(connection))


def apps(core: Core) -> Response:
    """Show the apps and what their templates ask for."""
    with core.db.read() as connection:
        found = queries.apps(connection)
    return show(core, "apps.html", apps=[(app, *_templates(core, app.name)) for app in found])


def _templates(core: Core, name: str) -> tuple[object, object, str]:
    """Return an app's two templates, None for one that cannot be read, and the reason."""
    try:
        return (
            core.input_template(core.templates / f"{name}_in"),
            core.output_template(core.templates / f"{name}_out"),
            "",
        )
    except (OSError, TemplateError) as error:
        return None, None, str(error)


def output(core: Core, result_id: int, number: int) -> Response:
    """Hand out the ``number``-th output file of an instance."""
    with core.db.read() as connection:
        result = connection.execute("SELECT * FROM result WHERE id = ?", (result_id,)).fetchone()
    files = views.instance(core, result).files if result is not None else ()
    if number >= len(files):
        abort(404)
    return _attachment(files[number].path, f"{result['name']}_{files[number].open_name}")


def input_file(core: Core, job_id: int, number: int) -> Response:
    """Hand out the ``number``-th input file of a job."""
    with core.db.read() as connection:
        row = connection.execute("SELECT xml_doc FROM workunit WHERE id = ?", (job_id,)).fetchone()
    try:
        name = read_workunit(row["xml_doc"] if row else "").files[number].name
        path = core.download.path(name)
    except (TemplateError, IndexError, ValueError):
        abort(404)
    return _attachment(path, name)


def _attachment(path: Path, name: str) -> Response:
    """Return a file as one to save, never to show: it may contain anything."""
    if not path.is_file():
        abort(404)
    name = "".join(char if char.isprintable() and char not in "/\\" else "_" for char in name)
    response = send_file(
        path.absolute(),
        mimetype="application/octet-stream",
        as_attachment=True,
        download_name=name,
    )
    response.headers["Cache-Control"] = "no-store"
    return response
