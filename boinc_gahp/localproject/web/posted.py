"""Forms sent to the page: read into the spool, and accepted only with our own token."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flask import request

from boinc_gahp.localproject.php import Php
from boinc_gahp.localproject.server.forms import BadForm, Form, FormFile, read_form
from boinc_gahp.localproject.web import access

if TYPE_CHECKING:
    from collections.abc import Iterator

    from boinc_gahp.localproject.core import Core


@dataclass(frozen=True, slots=True)
class Posted:
    """A form that was sent."""

    form: Form

    def text(self, name: str) -> str:
        """Return a field; empty if it is missing."""
        return self.form.fields.get(name, b"").decode("utf-8", "replace")

    def texts(self) -> dict[str, str]:
        """Return all fields."""
        return {name: self.text(name) for name in self.form.fields}

    def file(self, name: str) -> FormFile | None:
        """Return an uploaded file; browsers send a nameless one if none was chosen."""
        return next((f for f in self.form.files if f.field_name == name and f.filename), None)


@contextmanager
def posted(core: Core) -> Iterator[Posted]:
    """Read the request's form; its files are removed afterwards, unless they were staged.

    PHP's limits do not apply to this page, which is not PHP's.

    Raises:
        Refused: it was too large to keep, cannot be read, or does not have the token.
    """
    if (request.content_length or 0) > access.STRANGERS_BODY and access.visitor(core) is None:
        raise access.Refused(
            "Nothing was done",
            "The form is too large: only signed-in users can send one of this size. Sign in, and "
            "send it again.",
            413,
        )
    try:
        form = read_form(
            request.stream,
            request.headers.get("Content-Type", ""),
            request.content_length,
            Php(),
            core.download.incoming,
        )
    except BadForm as error:
        raise access.Refused(
            "Nothing was done", f"The form cannot be read: {error}. Load the page again.", 400
        ) from error
    try:
        sent = Posted(form)
        access.check_token(sent.text("token"))
        yield sent
    finally:
        form.discard()
