"""Packages that only some uses need: the extras of ``setup.cfg``."""

from __future__ import annotations

from importlib.util import find_spec

from boinc_gahp.errors import GahpError


class MissingExtra(GahpError, ImportError):
    """The packages of an extra are not installed."""

    code = "BG-MISSING-EXTRA"


def need_extra(extra: str, what: str, *packages: str) -> None:
    """Raise MissingExtra, with the command that helps, unless an extra's packages are installed.

    Args:
        extra: the extra's name.
        what: what needs it, for the error.
        packages: the names under which its packages are imported.
    """
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        raise MissingExtra(
            f"{what} needs {' and '.join(missing)}; install boinc_gahp with its extra: "
            f"pip install 'boinc_gahp[{extra}]' (in its source: pip install '.[{extra}]'; after "
            f"pipx install: pipx inject boinc_gahp {' '.join(missing)})"
        )
