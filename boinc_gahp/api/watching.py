"""Watches batches until they are over, without burdening the project."""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from boinc_gahp.api import control
from boinc_gahp.backoff import Backoff
from boinc_gahp.errors import (
    BadRequest,
    NotFound,
    PermissionDenied,
    RpcError,
    TransportError,
)
from boinc_gahp.rpc import BatchState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from boinc_gahp import rpc
    from boinc_gahp.api.batch import Batch
    from boinc_gahp.api.session import Session

#: Seconds that the first look may take, retries included, before the trouble is reported. Doubled
#: whenever that was too short, so that even a slow project is heard in the end.
_PATIENCE = 10.0
_LONGEST_PATIENCE = 120.0
#: Seconds for a look even if less time is left, so that the last look can succeed.
_LEAST = 2.0
#: About how many bytes a batch takes in query_batches, and a job in query_batch.
_BATCH_BYTES = 700
_JOB_BYTES = 130
#: How many samples of progress a forecast keeps.
_SAMPLES = 200
_A_DAY = 86400.0
_TOO_FAR = 10 * 365 * 86400.0


@dataclass(frozen=True, slots=True)
class Poll:
    """How often a project is asked, in seconds.

    The pause begins at ``shortest``, grows while nothing changes, and shrinks when something does.
    It is never shorter than a sixtieth of the time since the watch began, or than ten times what
    the project took for its last answer.

    Attributes:
        shortest: the shortest pause between an answer and the next question; more than 0.
        longest: the longest such pause; a day at most.

    Raises:
        BadRequest: the numbers are out of range, or ``shortest`` is larger than ``longest``.
    """

    shortest: float = 1.0
    longest: float = 30.0

    def __post_init__(self) -> None:
        if not 0 < self.shortest <= self.longest <= _A_DAY:
            raise BadRequest(
                f"a poll's pauses are {self.shortest} and {self.longest}: expected seconds, more "
                "than 0 and at most a day, and shortest no greater than longest"
            )


class Forecast:
    """Estimates when a batch will be over, from its progress so far.

    The speed is that of the latest quarter of the progress, so a slow start is soon forgotten; it
    falls while nothing happens.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: deque[tuple[float, float]] = deque(maxlen=_SAMPLES)
        self._end: float | None = None

    @property
    def end(self) -> float | None:
        """Seconds since the epoch; None if it cannot be estimated."""
        return self._end

    def see(self, info: rpc.BatchInfo, now: float | None = None) -> None:
        """Take the project's answer about a batch at ``now`` (None: by this machine's clock)."""
        with self._lock:
            self._end = self._estimated(info, time.time() if now is None else now)

    def _estimated(self, info: rpc.BatchInfo, now: float) -> float | None:
        if info.state is not BatchState.IN_PROGRESS:
            return None
        if not self._seen:
            # All of the progress was made since its creation, if the two clocks agree well enough.
            self._seen.append((min(info.create_time, now), 0.0))
        fraction = min(1.0, info.fraction_done)
        if fraction != self._seen[-1][1]:
            self._seen.append((now, fraction))
        before = next(
            (seen for seen in reversed(self._seen) if seen[1] <= 0.75 * fraction), self._seen[0]
        )
        done, took = fraction - before[1], now - before[0]
        if done > 0 and took > 0:
            left = (1 - fraction) * took / done
            return now + left if left < _TOO_FAR else None
        return info.est_completion_time if info.est_completion_time > now else None


def wait(
    batch: Batch,
    *,
    timeout: float | None,
    progress: Callable[[Batch], None] | None,
    poll: Poll,
) -> Batch:
    """Wait for one batch; see :meth:`Batch.wait`."""
    session = batch.project.session
    until = None if timeout is None else time.monotonic() + timeout
    for _ in watch(session, [batch], poll=poll, until=until):
        if progress is not None:
            progress(batch)
    if not batch.is_over:
        trouble = "" if batch.trouble is None else f"; the last query failed: {batch.trouble}"
        raise TimeoutError(
            f"batch {batch.name!r} (id {batch.id}) of {session.rpc.host} is not over after "
            f"{timeout:g} s: {batch.nover} of {batch.njobs} jobs are; it continues on the "
            f"project{trouble}"
        )
    return batch


def watch(
    session: Session,
    batches: Sequence[Batch],
    *,
    poll: Poll = Poll(),
    until: float | None = None,
) -> Iterator[tuple[Batch, ...]]:
    """Yield the batches after every look at them, until all are over or ``until`` is reached.

    See :meth:`Project.watch`; ``until`` is a time of ``time.monotonic()``.
    """
    handles = tuple(batches)
    rhythm = Rhythm(poll)
    start = time.monotonic()
    look = _Look(session)
    while True:
        began = time.monotonic()
        changed = look.at(handles, until)
        answered = time.monotonic()
        yield handles
        if all(batch.is_over for batch in handles):
            return
        # During a look that failed, the project spent little time on answers.
        cost = 0.0 if changed is None else answered - began
        pause = rhythm.pause(answered - start, cost, changed=bool(changed))
        # Watchers that began together should not keep asking at the same moments.
        pause = rhythm.slower.jittered(pause)
        if until is not None:
            pause = min(pause, until - time.monotonic())
            if pause <= 0:
                return
        session.closing.wait(pause)


class Rhythm:
    """The pauses between looks, as :class:`Poll` describes them."""

    def __init__(self, poll: Poll) -> None:
        self._poll = poll
        self._quiet = poll.shortest
        #: How pauses grow while nothing changes.
        self.slower = Backoff(poll.shortest, poll.longest, factor=1.5, jitter=(0.9, 1.1))

    def pause(self, elapsed: float, cost: float, *, changed: bool) -> float:
        """Return the next pause.

        Args:
            elapsed: seconds since the watch began.
            cost: seconds that the project took to answer.
            changed: whether the answer contained any news.
        """
        poll = self._poll
        self._quiet = (
            max(self._quiet / 2, poll.shortest) if changed else self.slower.after(self._quiet)
        )
        return min(max(self._quiet, elapsed / 60, 10 * cost), poll.longest)


class _Look:
    """Looks at batches with the cheapest RPC."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._patience = _PATIENCE
        self._listed: int | None = None

    def at(self, handles: Sequence[Batch], until: float | None) -> bool | None:
        """Refresh the batches that are not over; return whether anything changed.

        None: the project could not be asked; each of those batches has the reason.
        """
        open_ = [batch for batch in handles if not batch.is_over]
        if not open_:
            return False
        now = time.monotonic()
        patience = self._patience
        if until is not None:
            patience = max(min(patience, until - now), _LEAST)
        project = self._session.rpc.until(now + patience)
        try:
            news = self._news(project, open_)
        except PermissionDenied:
            raise
        except RpcError as error:
            if self._session.closing.is_set():
                raise
            if isinstance(error, TransportError) and error.may_have_happened:
                # The project may have been about to answer.
                self._patience = min(2 * self._patience, _LONGEST_PATIENCE)
            for batch in open_:
                batch.trouble = error
            return None
        changed = False
        for batch in open_:
            info = news.get(batch.id)
            if info is None:
                batch.vanish()
                changed = True
            else:
                changed = batch.see(info) or changed
                control.renew(batch, project)
        return changed

    def _news(self, project: rpc.WebRpcs, open_: Sequence[Batch]) -> dict[int, rpc.BatchInfo]:
        """Return the project's answers about those batches; unknown ones are missing."""
        wanted = {batch.id for batch in open_}
        found: dict[int, rpc.BatchInfo] = {}
        if not self._single_is_cheaper(open_):
            listed = project.query_batches()
            self._listed = len(listed)
            found = {info.id: info for info in listed if info.id in wanted}
        for batch_id in wanted - found.keys():
            # The batch is retired or gone, which the list does not show; or it is asked for alone.
            try:
                found[batch_id] = project.batch(batch_id)
            except NotFound:
                continue
        return found

    def _single_is_cheaper(self, open_: Sequence[Batch]) -> bool:
        """Tell whether listing these batches' few jobs is cheaper than listing all batches."""
        jobs = sum(batch.njobs for batch in open_)
        alone = jobs * _JOB_BYTES + len(open_) * _BATCH_BYTES
        return self._listed is not None and alone < self._listed * _BATCH_BYTES / 2
