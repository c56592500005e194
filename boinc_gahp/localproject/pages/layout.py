"""Rendering: all pages have one frame, in which the script renews the changing part alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flask import Response, render_template, request

from . import access

if TYPE_CHECKING:
    from ..core import Core


def show(core: Core, template: str, status: int = 200, **context: object) -> Response:
    """Return a page, or, if the script asks, only its changing part."""
    live = request.headers.get("X-Live") == "1"
    user = access.visitor(core)
    text = render_template(
        template,
        frame="live.html" if live else "frame.html",
        core=core,
        user=user,
        form_token="" if live and user is None else access.form_token(),
        **context,
    )
    return Response(text, status=status, content_type="text/html; charset=utf-8")


def page_number(name: str = "page") -> int:
    """Return which page of a list is asked for, from 1."""
    return max(request.args.get(name, 1, int), 1)
