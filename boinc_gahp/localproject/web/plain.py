"""Apache's and PHP's error pages, which programs get when they ask for outputs."""

from __future__ import annotations

from flask import Response

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
