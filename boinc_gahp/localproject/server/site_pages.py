"""Pages of the web site that are made for programs (``web-rpcs.rst``, "Pages for programs")."""

from __future__ import annotations

import platform
import time
from itertools import groupby
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from flask import Response, abort, redirect, request
from werkzeug.wsgi import wrap_file

from boinc_gahp.localproject import accounts
from boinc_gahp.localproject.new_app import renew_versions
from boinc_gahp.localproject.server.messages import (
    CONTENT_TYPE,
    DATABASE_DOWN,
    PROJECT_DOWN,
    PROLOG,
    error_element,
)

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator
    from pathlib import Path

    from werkzeug.wrappers import Response as AnyResponse

    from boinc_gahp.localproject.core import Core

NAME = "Local project"
BINARY = "application/octet-stream"
NOT_FOUND = -136
BAD_PASSWORD = -206
#: The words that the real server has for its numbers.
_WORDS = {
    NOT_FOUND: "Not found",
    DATABASE_DOWN: "Can't access database",
    PROJECT_DOWN: "Project is temporarily offline",
    BAD_PASSWORD: "Invalid password",
}

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
</head>
<body style="font-family: sans-serif; max-width: 40em; margin: 2em auto; padding: 0 1em">
<h2>{title}</h2>
<p>{text}</p>
</body>
</html>
"""


def error_page(title: str) -> Response:
    """Return a page with the real server's text, and its status 200."""
    return _page(title, f"{title}. Please try again later.")


def _page(title: str, text: str) -> Response:
    page = _PAGE.format(title=title, text=text)
    return Response(page, content_type="text/html; charset=utf-8")


def file_response(path: Path, headers: dict[str, str]) -> Response:
    """Return a file; it may be removed from its directory meanwhile."""
    return Response(
        wrap_file(request.environ, path.open("rb")),
        headers=headers,
        content_type=BINARY,
        direct_passthrough=True,
    )


def not_found() -> Response:
    """Return Apache's page for an address that does not exist."""
    return Response(
        '<!DOCTYPE HTML PUBLIC "-//W3C//DTD HTML 4.01//EN" "http://www.w3.org/TR/html4/strict.dtd">'
        "\n<html><head>\n<title>404 Not Found</title>\n</head><body>\n<h1>Not Found</h1>\n"
        "<p>The requested URL was not found on this server.</p>\n</body></html>\n",
        status=404,
        content_type="text/html; charset=iso-8859-1",
    )


def check_project(core: Core) -> None:
    """End the request for a page if the project is down."""
    if core.web_stopped:
        abort(error_page("Project down for maintenance"))
    if core.database_down:
        abort(error_page("Unable to handle request"))


def lookup_account(core: Core) -> AnyResponse:
    """Return the authenticator of the account with an e-mail address and a password's hash."""
    if core.web_stopped or core.database_down:
        return _error(PROJECT_DOWN if core.web_stopped else DATABASE_DOWN)
    email = request.args.get("email_addr")
    if email is None:
        return error_page("missing or bad parameter: email_addr")
    with core.db.read() as connection:
        user = accounts.by_email(connection, email)
        if user is None:
            return _error(NOT_FOUND)
        digest = request.args.get("passwd_hash")
        if not digest:
            return xml_page("<account_out>\n   <success/>\n</account_out>\n")
        if not accounts.is_password_of(user, digest):
            return _error(BAD_PASSWORD)
    key = user["authenticator"]
    return xml_page(f"<account_out>\n<authenticator>{key}</authenticator>\n</account_out>\n")


def apps(core: Core) -> AnyResponse:
    """Return the apps and their newest versions, as XML."""
    check_project(core)
    renew_versions(core.db)
    with core.db.read() as connection:
        logged_in(connection)
        if not request.args.get("xml"):
            return error_page("This project shows its apps only to programs: apps.php?xml=1")
        return xml_page("".join(("<app_versions>\n", *_applications(connection), _APPS_END)))


_APPS_END = "</app_versions>\n"


def project_config(core: Core) -> AnyResponse:
    """Return what the project says of itself; also while it is down."""
    stopped = (
        f"\n        <error_num>{PROJECT_DOWN}</error_num>\n        <web_stopped>1</web_stopped>\n"
        if core.web_stopped
        else "    <web_stopped>0</web_stopped>\n"
    )
    name, long_name = _platform()
    return xml_page(
        f"<project_config>\n    <name>{NAME}</name>\n    <master_url>{core.url}</master_url>\n"
        f"    <web_rpc_url_base>{core.url}</web_rpc_url_base>\n{stopped}"
        "    <account_creation_disabled/>\n    <min_passwd_length>6</min_passwd_length>\n"
        "    <sched_stopped>0</sched_stopped>\n"
        f"    <platforms>\n            <platform>\n"
        f"                <platform_name>{name}</platform_name>\n"
        f"                <user_friendly_name>{long_name}</user_friendly_name>\n"
        "            </platform>\n    </platforms>\n</project_config>"
    )


def front() -> Response:
    """Return a page that says where people see the project."""
    return _page(NAME, f"Programs ask this address. {_PEOPLE}")


def result() -> Response:
    """Return a page where the real server shows an instance, to people who are logged in."""
    return _page("Log in", f"What a volunteer did to a job is not shown here. {_PEOPLE}")


_PEOPLE = "For people there is a page, whose address boinc_gahp local-project run has printed."


def login_form() -> Response:
    """Return a page where the real server has its form."""
    return _page("Log in", "This stands for the real server's form.")


def logged_in(connection: sqlite3.Connection) -> sqlite3.Row:
    """Return who has logged in, and their rights; without a login the request ends."""
    user: sqlite3.Row | None = connection.execute(
        "SELECT u.id, s.manage_all FROM user u LEFT JOIN user_submit s ON s.user_id = u.id "
        "WHERE u.authenticator = ?",
        (unquote(request.cookies.get("auth", "")),),
    ).fetchone()
    if user is None:
        wanted = quote(request.full_path.rpartition("/")[2], safe="")
        abort(redirect(f"/test/login_form.php?next_url={wanted}"))
    return user


def _applications(connection: sqlite3.Connection) -> Iterator[str]:
    versions = connection.execute(
        "SELECT appid, plan_class, max(version_num) AS version_num, create_time "
        "FROM app_version GROUP BY appid, plan_class ORDER BY appid, plan_class"
    )
    by_app = {key: list(rows) for key, rows in groupby(versions, lambda row: row["appid"])}
    name, long_name = _platform()
    for app in connection.execute("SELECT * FROM app WHERE deprecated = 0 ORDER BY id"):
        yield (
            "<application>\n"
            f"    <user_friendly_name>{app['user_friendly_name']}"
            f"</user_friendly_name>\n    <name>{app['name']}</name>\n"
            f"    <id>{app['id']}</id>\n"
        )
        for row in by_app.get(app["id"], ()):
            date = time.strftime("%d %b %Y, %H:%M:%S UTC", time.gmtime(row["create_time"]))
            yield (
                f"    <version>\n        <platform_short>{name}</platform_short>\n"
                f"        <platform_long>{long_name}</platform_long>\n"
                f"        <version_num>{row['version_num']}</version_num>\n"
                f"        <plan_class>{row['plan_class']}</plan_class>\n"
                f"        <date>{date}</date>\n"
                f"        <date_unix>{int(row['create_time'])}</date_unix>\n    </version>\n"
            )
        yield "    </application>\n"


def _platform() -> tuple[str, str]:
    """Return this machine's platform, on which all hosts run, with BOINC's name and in words."""
    machine = platform.machine()
    if machine == "x86_64":
        return "x86_64-pc-linux-gnu", "Linux running on an AMD x86_64 or Intel EM64T CPU"
    return f"{machine}-unknown-linux-gnu", f"Linux running on {machine}"


def _error(number: int) -> Response:
    return xml_page(error_element(_WORDS[number], number))


def xml_page(text: str, status: int = 200) -> Response:
    """Return a text as XML, after its prolog."""
    return Response((PROLOG + text).encode("utf-8", "replace"), status, content_type=CONTENT_TYPE)
