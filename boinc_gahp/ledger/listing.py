"""People's side of the ledger: what there is, found by whatever name, and dropped."""

from __future__ import annotations

from boinc_gahp.ledger.requests import Requests


class Listing(Requests):
    """What ``boinc_gahp ledger`` shows and drops."""
