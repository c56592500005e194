"""The templates that ``--input-template`` and ``--output-template`` name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from boinc_gahp.errors import BadRequest

if TYPE_CHECKING:
    from boinc_gahp.templates.types import InputTemplate

#: Stands for a template in the project's own directory.
_ON_PROJECT = "project:"


def on_project(given: str | None) -> str | None:
    """Return the name of a template of the project's, if the option means one."""
    if given is None or not given.startswith(_ON_PROJECT):
        return None
    return given.removeprefix(_ON_PROJECT)


def own_template(given: str | None, *, is_input: bool) -> str | None:
    """Return the text of a template file; reading it makes sure that it is a template."""
    from boinc_gahp.templates.reading import read_output_template
    from boinc_gahp.templates.types import TemplateError

    if given is None or on_project(given) is not None:
        return None
    text = _text(given)
    if is_input:
        read_input(given)
        return text
    try:
        read_output_template(text)
    except TemplateError as error:
        raise _wrong_template(given, error) from error
    return text


def read_input(path: str) -> InputTemplate:
    """Return an input template of one's own; raises BadRequest."""
    from boinc_gahp.templates.reading import read_input_template
    from boinc_gahp.templates.types import TemplateError

    try:
        return read_input_template(_text(path))
    except TemplateError as error:
        raise _wrong_template(path, error) from error


def _wrong_template(path: str, error: Exception) -> BadRequest:
    return BadRequest(f"{path}: {error}; boinc_gahp template check tells more")


def _text(path: str) -> str:
    try:
        return Path(path).read_text("utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BadRequest(f"the template {path!r} cannot be read: {reason}") from error
