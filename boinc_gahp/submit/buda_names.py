"""Names of BUDA apps: ``buda:NAME`` wherever an app can be named."""

from __future__ import annotations

import re

from boinc_gahp.errors import JobRefused
from boinc_gahp.text import quoted

#: The project's app, and what stands before a BUDA app's name where an app is named.
BUDA = "buda"
_PREFIX = f"{BUDA}:"
#: What the form that makes such an app accepts (``is_valid_filename`` in
#: ``html/inc/util_basic.inc``), less names of hidden directories, which BOINC passes over, and
#: spaces at the ends.
_NAME = re.compile(r"[A-Za-z0-9_-](?:[A-Za-z0-9_. -]{0,253}[A-Za-z0-9_.-])?")


def buda_name(app_name: str) -> str | None:
    """Return the NAME of ``buda:NAME``; None for an app of the project's database.

    Raises:
        JobRefused: no BUDA app can have this name.
    """
    if not app_name.startswith(_PREFIX):
        return None
    name = app_name.removeprefix(_PREFIX)
    if not _NAME.fullmatch(name):
        raise JobRefused(
            f"app {quoted(app_name)}: after {_PREFIX} the internal name of a BUDA app is expected, "
            "of letters, digits, spaces and the characters _ . -; the project's admin knows it"
        )
    return name


def project_app(app_name: str) -> str:
    """Return the project's app for an app's name: ``buda`` for ``buda:NAME``.

    Raises:
        JobRefused: no BUDA app can have this name.
    """
    return app_name if buda_name(app_name) is None else BUDA


def short_name(app_name: str) -> str:
    """Return an app's name for those of batches and jobs: ``NAME`` for ``buda:NAME``.

    Files of results begin with it, and some volunteers' systems have no ``:`` in names of files.
    """
    return app_name.removeprefix(_PREFIX).replace(" ", "_")
