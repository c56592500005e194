"""The project's web server, as a Flask application: the RPC pages, get_output.php and downloads."""

from __future__ import annotations

import gzip
import logging
import sqlite3
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from flask import Flask, Response, redirect, request

from boinc_gahp.localproject.errors import PhpFatal, RpcFailed
from boinc_gahp.localproject.server import rpc_batches, rpc_files, rpc_submit, site_pages
from boinc_gahp.localproject.server.forms import Form, read_form
from boinc_gahp.localproject.server.get_output import output3_page, output_page
from boinc_gahp.localproject.server.messages import (
    CONTENT_TYPE,
    DATABASE_DOWN,
    PROJECT_DOWN,
    PROLOG,
    RpcReply,
    RpcRequest,
    error_element,
    htmlspecialchars,
    parse_request,
    php_message,
    uncaught,
)
from boinc_gahp.localproject.server.site_pages import error_page, file_response, not_found, xml_page
from boinc_gahp.localproject.store import valid_physical_name
from boinc_gahp.serving import hostname

if TYPE_CHECKING:
    from collections.abc import Callable

    from werkzeug.wrappers import Response as AnyResponse

    from boinc_gahp.localproject.core import Core

    Handler = Callable[[Core, RpcRequest, RpcReply], None]

log = logging.getLogger("boinc_gahp.localproject")

SUBMIT_RPCS: dict[str, Handler] = {
    "ping": rpc_batches.ping,
    "create_batch": rpc_batches.create_batch,
    "submit_batch": rpc_submit.submit_batch,
    "estimate_batch": rpc_submit.estimate_batch,
    "query_batches": rpc_batches.query_batches,
    "query_batch": rpc_batches.query_batch,
    "query_batch2": rpc_batches.query_batch2,
    "query_job": rpc_batches.query_job,
    "query_completed_job": rpc_batches.query_completed_job,
    "abort_jobs": rpc_batches.abort_jobs,
    "abort_batch": rpc_batches.abort_batch,
    "retire_batch": rpc_batches.retire_batch,
    "set_expire_time": rpc_batches.set_expire_time,
    "get_templates": rpc_batches.get_templates,
}
FILE_RPCS: dict[str, Handler] = {
    "query_files": rpc_files.query_files,
    "upload_files": rpc_files.upload_files,
}

#: What every answer tells browsers, unless it sets its own: nothing in it runs, no frame shows it,
#: and its type is as declared. Outputs, names and messages may come from anybody.
_TO_BROWSERS = {
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; sandbox",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
#: Bytes of an invalid request to repeat; bytes that the client does not read wait in memory, six
#: times as many if they were quotes.
_ECHO = 64 << 10
#: Replies shorter than this are not worth compressing.
_GZIP_FROM = 1000
_SUBMIT_PAGE = "user/submit_rpc_handler.php"
_FILE_PAGE = "user/job_file.php"


def make_app(core: Core) -> Flask:
    """Return the WSGI application for a project."""
    app = Flask("boinc_gahp.localproject", static_folder=None, template_folder=None)
    rules: tuple[tuple[str, Callable[..., AnyResponse | str]], ...] = (
        ("/", lambda: redirect("/test/")),
        (
            "/test/submit_rpc_handler.php",
            lambda: _rpc_page(core, _SUBMIT_PAGE, "bad command", SUBMIT_RPCS),
        ),
        ("/test/job_file.php", lambda: _rpc_page(core, _FILE_PAGE, "no such action", FILE_RPCS)),
        ("/test/get_output.php", lambda: output_page(core)),
        ("/test/get_output3.php", lambda: output3_page(core)),
        ("/test/lookup_account.php", lambda: site_pages.lookup_account(core)),
        ("/test/apps.php", lambda: site_pages.apps(core)),
        ("/test/get_project_config.php", lambda: site_pages.project_config(core)),
        ("/test/", site_pages.front),
        ("/test/result.php", site_pages.result),
        ("/test/login_form.php", site_pages.login_form),
        ("/test/download/<directory>/<name>", lambda directory, name: _download(core, name)),  # noqa: ARG005
    )
    for number, (rule, view) in enumerate(rules):
        app.add_url_rule(rule, str(number), view, methods=["GET", "POST"])
    app.before_request(lambda: _check_host(core))
    app.register_error_handler(404, lambda _error: not_found())
    for failure in (sqlite3.Error, OSError):
        app.register_error_handler(failure, _failed)
    app.after_request(_compress)
    app.after_request(_protect)
    return app


def _check_host(core: Core) -> Response | None:
    """Refuse requests for a name that is not the project's.

    A page of another site, whose owner lets its name point to 127.0.0.1, could read the answers in
    a user's browser. Browsers always send the name; a program that does not is not a browser.
    """
    host = request.headers.get("Host")
    if host is None or hostname(host) in core.names:
        return None
    text = (
        f"This is not the project's address. The project answers at {core.url}. This request was "
        f"for {hostname(host)[:100]!r}; a page of another site may have sent it. If that is a "
        "name of this machine, start the project with it: boinc_gahp local-project run --name NAME."
    )
    return Response(f"{text}\n", 421, mimetype="text/plain")


def _rpc_page(core: Core, page: str, unknown: str, handlers: dict[str, Handler]) -> Response:
    form = _form(core)
    try:
        return _rpc(core, form, page, unknown, handlers)
    finally:
        form.discard()


def _form(core: Core) -> Form:
    if request.method != "POST":
        return Form()
    try:
        return read_form(
            request.stream,
            request.headers.get("Content-Type", ""),
            request.content_length,
            core.php,
            core.download.incoming,
        )
    except ValueError as error:
        log.info("a form that cannot be read: %s", error)
        return Form()


def _rpc(core: Core, form: Form, page: str, unknown: str, handlers: dict[str, Handler]) -> Response:
    data = form.fields.get("request")
    try:
        parsed = parse_request(data or b"", form.files)
    except ValueError as error:
        return _malformed(core, data, page, error.args)
    handler = handlers.get(parsed.name)
    if handler is None:
        return xml_page(error_element(unknown, -1))
    reply = RpcReply(display_errors=core.php.display_errors)
    root = parsed.name
    begin, end = f"<{root}>\n", f"</{root}>\n"
    try:
        _check_up(core)
        handler(core, parsed, reply)
    except RpcFailed as failed:
        log.info("%s: %s", root, failed.message)
        return xml_page(begin + str(reply) + error_element(failed.message, failed.number) + end)
    except PhpFatal as fatal:
        log.info("%s: %s", root, fatal)
        return _died(core, begin + str(reply), page, str(fatal))
    except (sqlite3.Error, OSError) as error:
        # A full disk, for example: PHP dies of it too.
        log.error("%s: %s", root, error)
        return _died(core, begin + str(reply), page, uncaught(error))
    return xml_page(begin + str(reply) + end)


def _died(core: Core, begun: str, page: str, message: str) -> Response:
    """Answer like PHP when it dies in the middle of a reply."""
    if core.php.display_errors:
        return xml_page(begun + php_message(escape(message), page, 67, "Fatal error"))
    return xml_page(begun, 500)


def _check_up(core: Core) -> None:
    if core.web_stopped:
        raise RpcFailed("project down for maintenance", PROJECT_DOWN)
    if core.database_down:
        raise RpcFailed("Can't connect to database", DATABASE_DOWN)


def _malformed(core: Core, data: bytes | None, page: str, complaint: tuple[str, ...]) -> Response:
    """Answer an invalid request: the echo contains the bytes as they came."""
    messages = ""
    if core.php.display_errors:
        messages = _no_request(page) if data is None else _no_xml(complaint)
    more = f"    <file>/srv/{page}</file>\n    <line>302</line>\n" if page == _FILE_PAGE else ""
    # Latin-1 maps bytes to characters and back, so that the echo is what was sent.
    echo = htmlspecialchars((data or b"")[:_ECHO].decode("latin-1"))
    text = PROLOG + messages + error_element(f"can't parse request message: {echo}", -1, more)
    return Response(text.encode("latin-1", "xmlcharrefreplace"), content_type=CONTENT_TYPE)


def _no_request(page: str) -> str:
    """PHP's message if there is no form field ``request``."""
    place = 1086 if page == _SUBMIT_PAGE else 299
    null = "Passing null to parameter #1 ({}) of type string is deprecated"
    return (
        php_message('Undefined array key "request"', page, place)
        + php_message(
            f"simplexml_load_string(): {null.format('$data')}",
            "inc/util_basic.inc",
            325,
            "Deprecated",
        )
        + php_message(
            f"htmlspecialchars(): {null.format('$string')}",
            page,
            place + 18 if page == _SUBMIT_PAGE else 302,
            "Deprecated",
        )
    )


def _no_xml(complaint: tuple[str, ...]) -> str:
    return "".join(
        php_message(f"simplexml_load_string(): {escape(line)}", "inc/util_basic.inc", 325)
        for line in complaint
    )


def _failed(error: Exception) -> tuple[Response, int]:
    log.error("%s: %s", request.path, error)
    return error_page("Unable to handle request"), 500


def _download(core: Core, name: str) -> AnyResponse | str:
    if not valid_physical_name(name) or not core.download.exists(name):
        return not_found()
    path = core.download.path(name)
    return file_response(path, {"Content-Length": str(path.stat().st_size)})


def _compress(response: AnyResponse) -> AnyResponse:
    if response.direct_passthrough or response.is_streamed:
        return response
    response.headers["Vary"] = "Accept-Encoding"
    body = response.get_data()
    if len(body) >= _GZIP_FROM and request.accept_encodings.quality("gzip") > 0:
        response.set_data(gzip.compress(body, 6, mtime=0))
        response.headers["Content-Encoding"] = "gzip"
    return response


def _protect(response: AnyResponse) -> AnyResponse:
    for name, value in _TO_BROWSERS.items():
        response.headers.setdefault(name, value)
    return response
