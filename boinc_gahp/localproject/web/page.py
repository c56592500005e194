"""The pages: who may see them, their addresses, and what each shows.

A page of another site in the same browser can send requests here, and, if that site's owner lets
its name point to 127.0.0.1, even read the answers. So the Host header must name this machine, also
for files and RPCs. Who opens the page needs its token: the address that ``run`` prints has it, and
afterwards a cookie. Other users of this machine do not know it, nor do browsers elsewhere.
"""

from __future__ import annotations

import hashlib
import secrets
import shlex
from contextlib import suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from flask import Blueprint, Response, abort, redirect, request, send_file, url_for
from jinja2 import Environment, PackageLoader, StrictUndefined

from boinc_gahp.files import write_whole
from boinc_gahp.localproject.accounts import SUBMITTER, settings_path
from boinc_gahp.localproject.backend import views
from boinc_gahp.localproject.hosts.engine import engine_notice
from boinc_gahp.localproject.web import queries

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from werkzeug.wrappers import Response as AnyResponse

    from boinc_gahp.localproject.core import Core

    _Response = TypeVar("_Response", bound=AnyResponse)

_TOKEN_FILE = "page_token"  # noqa: S105  (its name)
_KEPT_FOR = timedelta(days=7)
#: Larger ids, and numbers of pages, would be invalid for the database.
_LAST_ID = 2**62
_LAST_PAGE = 10**9
#: Pages contain our own scripts and styles. Every answer has the other headers.
_POLICY = (
    "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)

#: Our own, not the application's: a process with several projects compiles templates once.
_TEMPLATES = Environment(
    loader=PackageLoader(__package__), autoescape=True, undefined=StrictUndefined
)
_TEMPLATES.filters.update(queries.FILTERS)
_TEMPLATES.globals.update(request=request, url_for=url_for)


def page_address(core: Core) -> str:
    """Return the address that opens the page, with its token."""
    return f"{core.url}?token={_token(core)}"


def _token(core: Core) -> str:
    """Return the page's token, which stays the same; it is made when it is first asked for."""
    path = core.directory / _TOKEN_FILE
    token = path.read_text("ascii") if path.exists() else ""
    if not token:
        token = secrets.token_urlsafe(24)
        write_whole(path, token, 0o600)
    return token


def check_host(core: Core) -> Response | None:
    """Refuse requests for a name that is not the project's, as another site's page sends them.

    Browsers always send the name; a program that does not is not a browser.
    """
    host = request.headers.get("Host")
    name = _hostname(host or "")
    if host is None or name in core.names:
        return None
    title = "This is not the project's address"
    words = (
        f"The project answers at {core.url}. This request was for {name[:100]!r}; a page of "
        "another site may have sent it. If that is a name of this machine, start the project "
        "with it: boinc_gahp local-project run --name NAME."
    )
    if request.blueprint is None:
        return Response(f"{title}. {words}\n", 421, mimetype="text/plain")
    return _show(core, "message.html", 421, title=title, words=words)


def _hostname(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _check_token(core: Core) -> AnyResponse | None:
    """Refuse browsers without the token; put one from an address into a cookie."""
    if request.endpoint == "page.static":
        # Scripts and styles tell nothing, and the page that refuses needs them.
        return None
    token = _token(core)
    # Cookies ignore ports: two projects on one machine need two names.
    name = f"local_project_{hashlib.sha256(token.encode()).hexdigest()[:12]}"
    given = request.args.get("token", request.cookies.get(name, ""))
    if not secrets.compare_digest(given.encode(), token.encode()):
        return _show(
            core,
            "message.html",
            401,
            title="Open the page by its whole address",
            words="This page is shown only with its token. Open the address that boinc_gahp "
            "local-project run printed: it ends with ?token= and the token.",
        )
    if "token" not in request.args or request.endpoint is None:
        return None
    answer = redirect(url_for(request.endpoint, **(request.view_args or {})))
    answer.set_cookie(name, token, _KEPT_FOR, path="/test/", httponly=True, samesite="Lax")
    return answer


def _settings_file(core: Core) -> str:
    """Return the path of the submitter's settings file, quoted for a shell."""
    path = settings_path(core.directory.absolute(), SUBMITTER)
    with suppress(RuntimeError, ValueError):  # no home, or the file is not in it
        return f"~/{shlex.quote(str(path.relative_to(Path.home())))}"
    return shlex.quote(str(path))


def make_blueprint(core: Core) -> Blueprint:
    """Return a project's page, to be registered with its Flask application."""
    page = Blueprint("page", __name__, url_prefix="/test", static_folder="static")
    rules: tuple[tuple[str, Callable[..., AnyResponse]], ...] = (
        ("/", batches),
        ("/batches/<int:batch_id>", batch),
        ("/jobs/<int:job_id>", job),
        ("/result.php", instance),
        ("/instances/<int:result_id>/outputs/<int:number>", output),
    )
    for rule, view in rules:
        bounded = rule.replace("<int:", f"<int(max={_LAST_ID}):")
        page.add_url_rule(bounded, view.__name__, partial(view, core), methods=["GET"])
    page.before_request(partial(_check_token, core))
    page.register_error_handler(404, partial(_missing, core))
    page.after_request(_headers)
    return page


def _missing(core: Core, _error: object) -> Response:
    return _show(
        core,
        "message.html",
        404,
        title="There is nothing here",
        words="The project has no such batch, job or file.",
    )


def _headers(response: _Response) -> _Response:
    headers = response.headers
    headers["Content-Security-Policy"] = _POLICY
    if response.mimetype == "text/html":
        headers["Cache-Control"] = "no-store"
    if request.headers.get("X-Live") == "1" and response.status_code == 200:
        # The script asks again every few seconds; mostly nothing has changed.
        response.set_etag(hashlib.sha256(response.get_data()).hexdigest()[:32])
        response.make_conditional(request)
    return response


def _show(core: Core, template: str, status: int = 200, **context: object) -> Response:
    """Return a page; in its frame, or alone if the script asks for the part that changes."""
    live = request.headers.get("X-Live") == "1"
    text = _TEMPLATES.get_template(template).render(
        frame="live.html" if live else "frame.html",
        core=core,
        settings=_settings_file(core),
        notice=engine_notice(core.db.connection()),
        **context,
    )
    return Response(text, status=status, content_type="text/html; charset=utf-8")


def _page_number() -> int:
    """Return the requested page of a list, from 1."""
    return min(max(request.args.get("page", 1, int), 1), _LAST_PAGE)


def batches(core: Core) -> Response:
    """Show the newest batches, what the hosts are doing, and the back end."""
    with core.db.read() as connection:
        return _show(
            core,
            "batches.html",
            overview=queries.overview(connection, _page_number()),
            hosts=queries.hosts(connection),
            programs=queries.programs(connection),
            page=_page_number(),
            per_page=queries.BATCHES_A_PAGE,
        )


def batch(core: Core, batch_id: int) -> Response:
    """Show a batch and a page of its jobs."""
    with core.db.read() as connection:
        found = queries.batch(connection, batch_id)
        if found is None:
            abort(404)
        return _show(
            core,
            "batch.html",
            batch=found,
            jobs=queries.jobs(connection, batch_id, _page_number()),
            page=_page_number(),
            per_page=queries.JOBS_A_PAGE,
        )


def job(core: Core, job_id: int) -> Response:
    """Show a job and its instances."""
    with core.db.read() as connection:
        found = queries.job(core, connection, job_id)
        if found is None:
            abort(404)
        return _show(core, "job.html", job=found)


def instance(core: Core) -> AnyResponse:
    """Lead from the address that an instance has on other projects to its place here.

    There it is a page of its own (``html/user/result.php``).
    """
    result_id = request.args.get("resultid", 0, type=int)
    with core.db.read() as connection:
        found = connection.execute(
            "SELECT workunitid FROM result WHERE id = ?", (min(max(result_id, 0), _LAST_ID),)
        ).fetchone()
    if found is None:
        abort(404)
    place = url_for("page.job", job_id=found["workunitid"])
    return redirect(f"{place}#instance-{result_id}")


def output(core: Core, result_id: int, number: int) -> Response:
    """Hand out the ``number``-th output file of an instance, to be saved: it may hold anything."""
    with core.db.read() as connection:
        result = connection.execute("SELECT * FROM result WHERE id = ?", (result_id,)).fetchone()
    files = views.instance(core, result).files if result is not None else ()
    if number >= len(files):
        abort(404)
    name = f"{result['name']}_{files[number].open_name}"
    response = send_file(
        files[number].path.absolute(),
        mimetype="application/octet-stream",
        as_attachment=True,
        download_name="".join(
            char if char.isprintable() and char not in "/\\" else "_" for char in name
        ),
    )
    response.headers["Cache-Control"] = "no-store"
    return response
