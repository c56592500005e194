"""The extra that installs the local project's web server."""

from __future__ import annotations

from importlib.util import find_spec

from boinc_gahp.errors import GahpError


class MissingExtra(GahpError):
    """The packages of an extra are not installed."""

    code = "BG-MISSING-EXTRA"


def need_local_project() -> None:
    """Raise MissingExtra, with the command that helps, if the local project cannot run."""
    missing = [name for name in ("flask", "waitress") if find_spec(name) is None]
    if missing:
        raise MissingExtra(
            f"a local project needs {' and '.join(missing)}; install boinc_gahp with its extra: "
            "pip install 'boinc_gahp[local-project]' (in its source: pip install "
            "'.[local-project]'; after pipx install: pipx inject boinc_gahp flask waitress)"
        )
