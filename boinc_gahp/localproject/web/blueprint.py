"""The page's addresses, and what they have in common."""

from __future__ import annotations

import hashlib
from functools import partial
from typing import TYPE_CHECKING

from flask import Blueprint, Response, request

from boinc_gahp.localproject.web import access, shown
from boinc_gahp.localproject.web.layout import show

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from werkzeug.wrappers import Response as AnyResponse

    from boinc_gahp.localproject.core import Core

    View = Callable[..., AnyResponse]
    _Response = TypeVar("_Response", bound=AnyResponse)

_RULES: tuple[tuple[str, View], ...] = (
    ("/", shown.batches),
    ("/batches/<int:batch_id>", shown.batch),
    ("/jobs/<int:job_id>", shown.job),
    ("/result.php", shown.instance),
    ("/hosts", shown.hosts),
    ("/programs", shown.programs),
    ("/apps", shown.apps),
    ("/instances/<int:result_id>/outputs/<int:number>", shown.output),
    ("/jobs/<int:job_id>/inputs/<int:number>", shown.input_file),
)

#: Pages contain our own scripts and styles. Every answer has the other headers.
_POLICY = (
    "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)


def make_blueprint(core: Core) -> Blueprint:
    """Return a project's page, to be registered with its Flask application."""
    page = Blueprint(
        "page",
        __name__,
        url_prefix="/test",
        static_folder="static",
    )
    for rule, view in _RULES:
        bounded = rule.replace("<int:", f"<int(max={shown.LAST_ID}):")
        page.add_url_rule(bounded, view.__name__, partial(view, core), methods=["GET"])
    page.before_request(partial(_check, core))
    page.register_error_handler(access.Refused, lambda error: _refused(core, error))
    page.register_error_handler(404, lambda _error: missing(core))
    page.after_request(_headers)
    return page


def _check(core: Core) -> AnyResponse | None:
    # Scripts and styles tell nothing, and the page that refuses needs them.
    return None if request.endpoint == "page.static" else access.check_token(core)


def _refused(core: Core, refused: access.Refused) -> Response:
    return show(core, "message.html", refused.status, title=refused.title, words=str(refused))


def missing(core: Core) -> Response:
    """Return the page for an address that leads to nothing, to those who may see the page."""
    access.check_token(core)
    page = show(
        core,
        "message.html",
        404,
        title="There is nothing here",
        words="The project has no such batch, job or page. When a batch is deleted, its jobs are "
        "deleted, too.",
    )
    # An address that no rule knows has no blueprint.
    return _headers(page)


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
