"""What all modules of this room share."""

from __future__ import annotations

from dataclasses import dataclass, field

from boinc_gahp.fetch.delivered import Delivered
from boinc_gahp.submit import Context


@dataclass(frozen=True, slots=True)
class FetchContext(Context):
    """A project as one account sees it, and what was fetched from it.

    Attributes:
        delivered: the outputs that were delivered before.
    """

    delivered: Delivered = field(default_factory=lambda: Delivered(None))
