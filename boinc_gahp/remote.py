"""The name that :mod:`boinc_gahp.api` had in 0.1; the next version drops it."""

from __future__ import annotations

import warnings
from typing import Any

from boinc_gahp import api

warnings.warn(
    f"{__name__} is called {api.__name__} now; the next version drops the old name",
    DeprecationWarning,
    stacklevel=2,
)


def __getattr__(name: str) -> Any:
    return getattr(api, name)
