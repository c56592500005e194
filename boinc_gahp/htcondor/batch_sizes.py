"""How large batches are: their requests, and the files that are sent before."""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import TYPE_CHECKING

from boinc_gahp.errors import BatchTooLarge
from boinc_gahp.htcondor.sending_request import local_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from boinc_gahp.errors import GahpError
    from boinc_gahp.htcondor.context import Kept
    from boinc_gahp.ledger.jobs import BatchRow, JobRow

#: Bytes of a request besides its jobs, at most.
_HEAD_BYTES = 5_000
#: A batch's request is not made smaller than this, in bytes of jobs.
_SMALLEST = 10_000
#: How many batches' slots, and how many kinds of jobs' sizes, are remembered.
_REMEMBERED = 10_000


class Sizes:
    """What a keeper knows about sizes."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept
        #: The largest request that the project accepts, as far as learned.
        self._learned = math.inf
        #: The same for kinds of jobs, by their ``together``.
        self._of_kind: dict[str, int] = {}
        self._slots: dict[int, str] = {}

    @property
    def batch_bytes(self) -> int:
        """The most bytes of jobs in a batch's request."""
        allowed = self._kept.bridge.max_post_bytes - _HEAD_BYTES
        return int(min(self._kept.htcondor.batch_bytes, allowed, self._learned))

    @property
    def smaller(self) -> Mapping[str, int]:
        """The most bytes in a batch's request for kinds of jobs that are larger than estimated.

        By :attr:`JobRow.together`. Jobs take input templates with them whose size is not known
        when the jobs are accepted.
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
        """Return a batch's kind of slot; batches do not wait for those in slots of other kinds.

        "give up": it is given up; "stage": its local files need more than one upload, and so
        perhaps hours; "send": all others.
        """
        if batch.state == "giving_up":
            return "give up"
        slot = self._slots.get(batch.id)
        if slot is None:
            if len(self._slots) >= _REMEMBERED:
                self._slots.clear()  # some are over, but nobody has called forget
            nbytes = local_bytes(self._kept.jobs.jobs_of(batch.id, "sending"))
            one_post = self._kept.settings.staging.bytes_per_post
            slot = self._slots[batch.id] = "send" if nbytes <= one_post else "stage"
        return slot

    def forget(self, batch: BatchRow) -> None:
        """Forget a batch's slot."""
        self._slots.pop(batch.id, None)
