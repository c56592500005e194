"""Finds batches by their names, which several accounts may have used.

HTCondor 9 names a batch after schedd, app and second, so batches of two users can have the same
name. The project accepts that, and then only finds the oldest batch of the name, of any account
(``web-rpcs.rst``, "create_batch"). The other is in its own account's list, unless it was retired.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from boinc_gahp.errors import NotOwner
from boinc_gahp.submit import checks

if TYPE_CHECKING:
    from collections.abc import Iterable

    from boinc_gahp.rpc.client import WebRpcs
    from boinc_gahp.rpc.types import BatchDetails, BatchInfo


def oldest(batches: Iterable[BatchInfo], name: str) -> BatchInfo | None:
    """Return the batch of this name with the lowest id, names compared as the project does."""
    wanted = checks.fold(name)
    found = (batch for batch in batches if checks.fold(batch.name) == wanted)
    return min(found, key=lambda batch: batch.id, default=None)


def find(project: WebRpcs, name: str) -> BatchDetails:
    """Return the account's batch of this name.

    Raises:
        NotFound: nobody has a batch of this name.
        NotOwner: another account has one, and this account has none that is not retired.
        RpcError: the project could not be reached.
    """
    try:
        return project.query_batch(batch_name=name)
    except NotOwner:
        own = oldest(project.query_batches(), name)
        if own is None:
            raise
        return project.query_batch(batch_id=own.id)
