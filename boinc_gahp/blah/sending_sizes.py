"""How large batches are: their requests, and the files that go before them."""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import TYPE_CHECKING

from boinc_gahp.blah.sending_request import local_bytes
from boinc_gahp.errors import BatchTooLarge

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from boinc_gahp.blah.kept import Kept
    from boinc_gahp.errors import GahpError
    from boinc_gahp.ledger.jobs import BatchRow, JobRow

#: What a request has besides its jobs, at most.
_HEAD_BYTES = 5_000
#: A batch's request is not made smaller than this, in bytes of jobs.
_SMALLEST = 10_000
#: Batches whose slots are remembered, and kinds of jobs whose sizes are.
_REMEMBERED = 10_000


class Sizes:
    """What is known of sizes; for one keeper."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept
        #: What was learned of the largest request that goes.
        self._learned = math.inf
        #: The same of jobs that can be in one batch, by what these have in common.
        self._of_kind: dict[str, int] = {}
        self._slots: dict[int, str] = {}

    @property
    def batch_bytes(self) -> int:
        """The most bytes of jobs in a batch's request."""
        allowed = self._kept.bridge.max_post_bytes - _HEAD_BYTES
        return int(min(self._kept.htcondor.batch_bytes, allowed, self._learned))

    @property
    def smaller(self) -> Mapping[str, int]:
        """The most bytes in a batch's request for kinds of jobs that take more than they seemed to.

        By :attr:`JobRow.together`. Jobs take input templates with them of which nobody knows the
        size when they are accepted.
        """
        return MappingProxyType(self._of_kind)

    def learn(self, batch: BatchRow, jobs: Iterable[JobRow], error: GahpError) -> None:
        """Make later batches smaller than one of ``jobs`` that was too large."""
        if not isinstance(error, BatchTooLarge):
            return
        allowed = self._kept.bridge.max_post_bytes
        if error.nbytes <= allowed:  # the project takes less
            self._learned = max(_SMALLEST, min(self.batch_bytes, error.nbytes // 2))
            return
        if len(self._of_kind) >= _REMEMBERED:
            self._of_kind.clear()
        kind = batch.together.partition("/")[0]
        counted = sum(job.size for job in jobs)
        fits = int((allowed - _HEAD_BYTES) * counted / error.nbytes)
        self._of_kind[kind] = max(1, min(self._of_kind.get(kind, fits), fits))

    def slot_of(self, batch: BatchRow) -> str:
        """Return what work on a batch counts as: batches do not wait for those of other slots.

        "give up": it is given up; "stage": its local files take more than one upload, and so
        perhaps hours; "send": all others.
        """
        if batch.state == "giving_up":
            return "give up"
        slot = self._slots.get(batch.id)
        if slot is None:
            if len(self._slots) >= _REMEMBERED:
                self._slots.clear()  # of some that are over, nobody has said so
            nbytes = local_bytes(self._kept.jobs.jobs_of(batch.id, "sending"))
            one_post = self._kept.settings.staging.bytes_per_post
            slot = self._slots[batch.id] = "send" if nbytes <= one_post else "stage"
        return slot

    def forget(self, batch: BatchRow) -> None:
        """Drop what is remembered of a batch."""
        self._slots.pop(batch.id, None)
