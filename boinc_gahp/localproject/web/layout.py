"""Rendering: all pages share a frame; in it, the script renews only the part that changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flask import Response, request, url_for
from jinja2 import Environment, PackageLoader, StrictUndefined

from boinc_gahp.localproject.hosts.engine import engine_notice
from boinc_gahp.localproject.web import access, words

if TYPE_CHECKING:
    from boinc_gahp.localproject.core import Core

#: Larger numbers would be invalid for the database.
_LAST_PAGE = 10**9

#: Our own, not the application's: a process with several projects compiles templates once.
_TEMPLATES = Environment(
    loader=PackageLoader(__package__), autoescape=True, undefined=StrictUndefined
)
_TEMPLATES.filters.update(words.FILTERS)
_TEMPLATES.globals.update(request=request, url_for=url_for)


def show(core: Core, template: str, status: int = 200, **context: object) -> Response:
    """Return a page, or only its changing part if the script asks."""
    live = request.headers.get("X-Live") == "1"
    text = _TEMPLATES.get_template(template).render(
        frame="live.html" if live else "frame.html",
        core=core,
        settings=access.settings_file(core),
        notice=engine_notice(core.db.connection()),
        **context,
    )
    return Response(text, status=status, content_type="text/html; charset=utf-8")


def page_number(name: str = "page") -> int:
    """Return the requested page of a list, from 1."""
    return min(max(request.args.get(name, 1, int), 1), _LAST_PAGE)


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
    page = _PAGE.format(title=title, text=f"{title}. Please try again later.")
    return Response(page, content_type="text/html; charset=utf-8")


def not_found() -> Response:
    """Return Apache's page for an address that does not exist."""
    return Response(
        '<!DOCTYPE HTML PUBLIC "-//W3C//DTD HTML 4.01//EN" "http://www.w3.org/TR/html4/strict.dtd">'
        "\n<html><head>\n<title>404 Not Found</title>\n</head><body>\n<h1>Not Found</h1>\n"
        "<p>The requested URL was not found on this server.</p>\n</body></html>\n",
        status=404,
        content_type="text/html; charset=iso-8859-1",
    )
