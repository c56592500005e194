"""What is known of a batch: the project's last answer, and what was submitted; it asks nothing."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from boinc_gahp.states import BatchState

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from boinc_gahp.api.manifest import Manifest
    from boinc_gahp.api.outputs.folders import FetchRecord
    from boinc_gahp.api.session import Session
    from boinc_gahp.errors import GahpError
    from boinc_gahp.rpc.types import BatchInfo, UploadFile

#: States of a batch that takes no more jobs, and whose jobs need not be done.
ENDED = (BatchState.ABORTED, BatchState.RETIRED)
#: How many samples of progress are kept.
_SAMPLES = 200
#: The rate is that of this part of the progress, the latest.
_RECENT = 0.25
_TOO_FAR = 10 * 365 * 86400.0


@dataclass(frozen=True, slots=True)
class Counts:
    """How many jobs of a batch are in which state."""

    queued: int = 0
    in_progress: int = 0
    done: int = 0
    failed: int = 0
    unknown: int = 0

    @property
    def total(self) -> int:
        """The sum of all states."""
        return self.queued + self.in_progress + self.done + self.failed + self.unknown


class KnownBatch:
    """The part of a :class:`~boinc_gahp.Batch` that asks nothing."""

    def __init__(self, session: Session, info: BatchInfo) -> None:
        #: :meta private:
        self.session = session
        self.info = info
        self.trouble: GahpError | None = None
        self.gone = False
        self.existed = False
        self.compared = False
        #: Files that this submit has published: volunteers fetch them from a web server of ours.
        self.published: Sequence[UploadFile] = ()
        #: The lease is not renewed before this time of time.monotonic().
        self.renew_from = -math.inf
        self.lease_trouble: GahpError | None = None
        #: Which attempts have failed, in words, while no more jobs get done or more fail; "": none,
        #: or not known.
        self.attempts = ""
        #: How programs ended that were asked about and not fetched, by the ids of their jobs.
        self.endings: dict[int, FetchRecord] = {}
        self._running: int | None = None
        self._longest: float | None = None
        self._forecast = Forecast()
        self._forecast.see(info)
        self._manifest: Manifest | None = None

    # -- what it is

    @property
    def id(self) -> int:
        """The batch's number on the project."""
        return self.info.id

    @property
    def name(self) -> str:
        """The batch's name; other batches may have the same."""
        return self.info.name

    @property
    def called(self) -> str:
        """What errors call it: ``batch 'sweep' (id 5) of boinc.example.edu``.

        :meta private:
        """
        return f"batch {self.name!r} (id {self.id}) of {self.session.rpc.host}"

    @property
    def app_name(self) -> str:
        """The app that its jobs run."""
        return self.info.app_name

    @property
    def state(self) -> BatchState:
        """The batch's state, as the project counts it."""
        return self.info.state

    @property
    def is_over(self) -> bool:
        """Whether the batch is complete, aborted, retired or gone, or has no jobs to wait for."""
        # Jobs are created before the batch is in progress: without jobs it stays in progress for
        # ever (web-rpcs.rst, "submit_batch").
        is_empty = self.state is BatchState.IN_PROGRESS and not self.njobs
        return self.gone or is_empty or self.state in (BatchState.COMPLETE, *ENDED)

    @property
    def njobs(self) -> int:
        """How many jobs the batch has, or will have once it is submitted."""
        return self.info.njobs

    @property
    def nerror_jobs(self) -> int:
        """How many of the jobs failed or were aborted."""
        return self.info.nerror_jobs

    @property
    def fraction_done(self) -> float:
        """The part of the jobs that are done or have failed, from 0 to 1."""
        return min(1.0, max(0.0, self.info.fraction_done))

    @property
    def nover(self) -> int:
        """How many of the jobs are done or have failed."""
        return min(self.njobs, round(self.fraction_done * self.njobs))

    @property
    def ndone(self) -> int:
        """How many of the jobs are done.

        :meta private:
        """
        return max(0, self.nover - self.nerror_jobs)

    @property
    def create_time(self) -> float:
        """When the batch was created, in seconds since the epoch, by the project's clock."""
        return self.info.create_time

    @property
    def expire_time(self) -> float | None:
        """When the lease ends; after that the project may abort and retire the batch. None: never.

        :meth:`wait`, :meth:`Project.watch`, :meth:`fetch` and :meth:`fetch_zip` renew the lease for
        ``[jobs] batch_lease`` seconds; :meth:`extend` sets it.
        """
        return self.info.expire_time or None

    @property
    def lease_is_over(self) -> bool:
        """Whether the batch was aborted or retired, perhaps because its lease is over."""
        return self.state in ENDED and 0 < self.info.expire_time <= time.time()

    @property
    def manifest(self) -> Manifest | None:
        """What was submitted; None: this machine does not know.

        Only the machine that submitted a batch knows it, until the batch is retired.

        :meta private:
        """
        if self._manifest is None:
            self._manifest = self.session.manifests.of(self.name, self.id)
        return self._manifest

    @property
    def directory(self) -> Path | None:
        """Where the batch was last fetched on this machine; None: it was not, or is not known."""
        return self.session.manifests.fetched_into(self.id)

    @property
    def completion_time(self) -> float | None:
        """When the batch was first seen to be over, by the project's clock; None: it was not yet.

        A project notes this when somebody asks about the batch for the first time after its last
        job; it does not tell when that job ended.
        """
        return self.info.completion_time or None

    @property
    def expected_end(self) -> float | None:
        """When the last job ends if jobs go on ending as they did recently; None: not known.

        In seconds since the epoch. It is no promise: the last jobs often take longer.
        """
        end = self._forecast.end
        return None if self.is_over or end is None or end <= time.time() else end

    @property
    def longest_running(self) -> float | None:
        """For how many seconds a job has been seen running, at least; None: not known.

        It is known while the batch is watched.
        """
        return None if self.is_over else self._longest

    @property
    def latest_counts(self) -> Counts | None:
        """How many jobs were in which state when the batch was last watched; asks nothing.

        None: that is not known. :meth:`wait` and :meth:`Project.watch` count the jobs of batches
        with up to 40,000 jobs; :meth:`counts` asks the project for all jobs.
        """
        if self.gone or self.state in (BatchState.INIT, BatchState.UNKNOWN):
            return None
        failed = min(self.nerror_jobs, self.nover)
        done = self.ndone
        if self.is_over:
            return Counts(done=done, failed=failed)
        if self._running is None:
            return None
        left = self.njobs - self.nover
        return Counts(max(0, left - self._running), min(left, self._running), done, failed)

    def __len__(self) -> int:
        """How many jobs the batch has; see :attr:`njobs`."""
        return self.njobs

    def __bool__(self) -> bool:
        """True, also for a batch without jobs."""
        return True

    # -- what is learned

    def see(
        self, info: BatchInfo, running: int | None = None, longest: float | None = None
    ) -> bool:
        """Take the project's answer about the batch; return whether anything changed.

        Args:
            info: the answer.
            running: how many jobs run; None: not known.
            longest: see :attr:`longest_running`.

        :meta private:
        """
        changed = (self.info, self._running) != (info, running)
        changed = changed or self.trouble is not None or self.gone
        self.info, self.trouble, self.gone = info, None, False
        self._running, self._longest = running, longest
        self._forecast.see(info)
        return changed

    def vanish(self) -> None:
        """Note that the project no longer knows the batch.

        :meta private:
        """
        self.gone, self.trouble = True, None

    # -- for people

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, KnownBatch):
            return NotImplemented
        return (self.session.rpc.url, self.id) == (other.session.rpc.url, other.id)

    def __hash__(self) -> int:
        return hash((self.session.rpc.url, self.id))

    def __repr__(self) -> str:
        words = [f"<Batch {self.id} {self.name!r} {self.state.words}"]
        words.append(f"{self.nover}/{self.njobs} jobs")
        text = " ".join(words)
        if self.nerror_jobs:
            text += f", {self.nerror_jobs} failed"
        if self.gone:
            text += ", gone"
        return text + ">"


class Forecast:
    """The end of a batch at its recent rate: that of the latest quarter of its progress.

    So a slow start is soon forgotten. While no job ends, the rate falls, and the end moves away.
    It promises nothing: the last jobs of a batch often run on slow computers, and a job whose
    volunteer has vanished is only sent again after its deadline.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: deque[tuple[float, float]] = deque(maxlen=_SAMPLES)
        self._end: float | None = None

    @property
    def end(self) -> float | None:
        """Seconds since the epoch; None: no job has ended yet, or the batch is not in progress."""
        return self._end

    def see(self, info: BatchInfo, now: float | None = None) -> None:
        """Take the project's answer about a batch.

        Args:
            info: the answer.
            now: when it came, in seconds since the epoch; None: now, by this machine's clock.
        """
        with self._lock:
            self._end = self._at_this_rate(info, time.time() if now is None else now)

    def _at_this_rate(self, info: BatchInfo, now: float) -> float | None:
        if info.state is not BatchState.IN_PROGRESS:
            return None
        fraction = min(1.0, info.fraction_done)
        if not self._seen:
            # All of the progress was made since its creation, if the two clocks agree well enough.
            self._seen.append((min(info.create_time, now), 0.0))
        if fraction != self._seen[-1][1]:
            self._seen.append((now, fraction))
        since, before = next(
            (seen for seen in reversed(self._seen) if seen[1] <= (1 - _RECENT) * fraction),
            self._seen[0],
        )
        done, took = fraction - before, now - since
        if done <= 0 or took <= 0:
            return None
        left = (1 - fraction) / done * took
        return now + left if left < _TOO_FAR else None
