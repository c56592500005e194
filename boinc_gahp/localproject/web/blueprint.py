"""The page's addresses, and what they have in common."""

from __future__ import annotations

import hashlib
from functools import partial
from typing import TYPE_CHECKING

from flask import Blueprint, Response, request

from boinc_gahp.localproject.web import access, actions, downloads, shown, signing, submitting
from boinc_gahp.localproject.web.layout import show

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from werkzeug.wrappers import Response as AnyResponse

    from boinc_gahp.localproject.core import Core

    View = Callable[..., AnyResponse | str]
    _Response = TypeVar("_Response", bound=AnyResponse)

#: Address, name, view, and whether forms are sent to it.
_RULES: tuple[tuple[str, str, View, bool], ...] = (
    ("/", "batches", shown.batches, False),
    ("/batches/<int:batch_id>", "batch", shown.batch, False),
    ("/jobs/<int:job_id>", "job", shown.job, False),
    ("/result.php", "instance", shown.instance, False),
    ("/hosts", "hosts", shown.hosts, False),
    ("/programs", "programs", shown.programs, False),
    ("/apps", "apps", shown.apps, False),
    ("/submit", "submit", submitting.form, False),
    ("/submit", "submitted", submitting.submitted, True),
    ("/sign-in", "sign_in", signing.form, False),
    ("/sign-in", "signed_in", signing.signed_in, True),
    ("/sign-out", "signed_out", signing.signed_out, True),
    ("/batches/<int:batch_id>/abort", "abort_batch", actions.abort_batch, True),
    ("/batches/<int:batch_id>/retire", "retire_batch", actions.retire_batch, True),
    ("/batches/<int:batch_id>/abort-jobs", "abort_jobs", actions.abort_jobs, True),
    ("/jobs/<int:job_id>/abort", "abort_job", actions.abort_job, True),
    ("/instances/<int:result_id>/outputs/<int:number>", "output", downloads.output, False),
    ("/jobs/<int:job_id>/inputs/<int:number>", "input", downloads.input_file, False),
    ("/jobs/<int:job_id>/outputs.zip", "job_zip", downloads.job, False),
    ("/batches/<int:batch_id>/outputs.zip", "batch_zip", downloads.batch, False),
)

#: Pages contain our own scripts, styles and forms. Every answer has the other headers.
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
    for rule, name, view, is_action in _RULES:
        bounded = rule.replace("<int:", f"<int(max={shown.LAST_ID}):")
        methods = ["POST" if is_action else "GET"]
        page.add_url_rule(bounded, name, partial(view, core), methods=methods)
    page.record_once(lambda state: access.prepare(state.app, core))
    page.before_request(lambda: access.check_request(core))
    page.register_error_handler(access.Refused, lambda error: _refused(core, error))
    page.register_error_handler(404, lambda _error: missing(core))
    page.after_request(_headers)
    return page


def _refused(core: Core, refused: access.Refused) -> Response:
    return show(core, "message.html", refused.status, title=refused.title, words=str(refused))


def missing(core: Core) -> Response:
    """Return the page for an address that leads to nothing, to those who may see the page."""
    access.check_request(core)
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
