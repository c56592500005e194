"""The few HTML pages of the project."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flask import Response

if TYPE_CHECKING:
    from .core import Core

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


def front(core: Core) -> Response:
    """Say what this is."""
    connection = core.db.connection()
    count = {
        table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608
        for table in ("batch", "workunit", "host")
    }
    text = (
        "This is a BOINC project in one process, made by boinc_gahp for trying out and for tests. "
        "Programs talk to it through BOINC's web RPCs at this address; this page only tells that "
        f"it is there. It holds {count['workunit']} jobs in {count['batch']} batches and has "
        f"{count['host']} volunteer hosts, all on this machine."
    )
    return _page("A local BOINC project", text)


def error_page(title: str) -> Response:
    """Return a page that says what the real server's page says, with its status 200."""
    return _page(title, f"{title}. Please try again later.")


def not_found() -> Response:
    """Return Apache's page for an address that is not there."""
    return Response(
        '<!DOCTYPE HTML PUBLIC "-//W3C//DTD HTML 4.01//EN" "http://www.w3.org/TR/html4/strict.dtd">'
        "\n<html><head>\n<title>404 Not Found</title>\n</head><body>\n<h1>Not Found</h1>\n"
        "<p>The requested URL was not found on this server.</p>\n</body></html>\n",
        status=404,
        content_type="text/html; charset=iso-8859-1",
    )


def _page(title: str, text: str) -> Response:
    return Response(_PAGE.format(title=title, text=text), content_type="text/html; charset=utf-8")
