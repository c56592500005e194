"""HTCondor jobs on a BOINC project's volunteers.

Importing this package is cheap on purpose: the daemon prints its banner before anything heavy is
loaded. The Python API is fetched at first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from boinc_gahp._version import __version__

if TYPE_CHECKING:
    from boinc_gahp.rpc import Project

__all__ = ["Project", "__version__"]


def __getattr__(name: str) -> Any:
    if name == "Project":
        from boinc_gahp.rpc import Project  # noqa: PLC0415  (kept out of the daemon's start-up)

        return Project
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
