"""Manages one account on one project: the thread that sends, follows, fetches and ends jobs.

It needs no memory of its own: what there is to do is in the ledger. What it remembers besides, such
as pauses, sizes and failed attempts, only tells when to try, and when to try another way. So a
manager can die at any point, and the next one needs nothing but the ledger: it sends an unfinished
batch again under the same names, fetches unfinished outputs again, and does the aborts and
retirements that are pending.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from boinc_gahp.errors import LedgerError
from boinc_gahp.htcondor._context import ErrorGuard, drop_past, is_ahead
from boinc_gahp.htcondor._fetching import FetchQueue
from boinc_gahp.htcondor._following import Follower
from boinc_gahp.htcondor._sending import Sender
from boinc_gahp.htcondor._upkeep import Upkeep
from boinc_gahp.ledger.account_lock import AccountLock
from boinc_gahp.ledger.rows import ALIVE, UNCLEAR
from boinc_gahp.submit.control import reconcile
from boinc_gahp.threads import Workers, start

if TYPE_CHECKING:
    from boinc_gahp.config.settings import Settings
    from boinc_gahp.fetch.context import FetchContext
    from boinc_gahp.htcondor._context import AccountContext
    from boinc_gahp.htcondor._upkeep import PeriodicTask
    from boinc_gahp.ledger.rows import BatchRow

log = logging.getLogger("boinc_gahp.htcondor")

#: Batches at a time, of each kind: those with long uploads, the others, and those that are rolled
#: back. So small batches do not wait for uploads that take hours.
SLOTS = 4
#: Seconds between attempts to become the manager.
_LOCK_EVERY = 1.0
#: Seconds between checks for what other processes have written: with jobs that are alive, without.
_CHECK_BUSY, _CHECK_IDLE = 0.25, 1.0
#: Checks of the ledger take at most one part in this many of the time ...
_TIME_SHARE = 5.0
#: ... and are at least this many seconds apart, however often the manager is woken.
_SHORTEST_WAIT = 0.02
#: Seconds after which a manager checks everything in any case.
_LONGEST_WAIT = 30.0
#: Seconds that closing waits before it ends pauses between attempts.
_GRACE = 0.25


class AccountManager:
    """Works on the jobs of one account on one project, once no other process does.

    Args:
        context: what its parts share; :meth:`close` closes its project.
    """

    def __init__(self, context: AccountContext) -> None:
        self._context = context
        self._jobs = context.jobs
        self._owner = context.owner
        self._news = context.news
        self._stopping = context.stopping
        self._lock = AccountLock(context.jobs.store.path.parent, *context.owner)
        self._sender = Sender(self._context)
        self._follower = Follower(self._context)
        self._workers = Workers(f"worker {context.url}", context.wake)
        self._guard = ErrorGuard(f"the manager of the jobs for {context.url}")
        self._fetches = FetchQueue(self._context, self._workers, self._guard)
        self._upkeep = Upkeep(
            self._context, lambda batch: self._workers.is_running(("send", batch))
        )
        self._tasks: tuple[PeriodicTask, ...] = (
            *self._upkeep.tasks,
            self._follower.task,
        )
        self._thread: threading.Thread | None = None
        self._seen_version = 0
        self._is_busy = False
        # By batch: the time before which it is not sent again.
        self._next_send: dict[int, float] = {}
        self._has_sent = threading.Event()
        self._next_poll = -math.inf
        # Contexts of earlier settings, with the work that may still use them.
        self._old_projects: list[tuple[FetchContext, frozenset[int]]] = []

    # -- for other threads

    @property
    def is_manager(self) -> bool:
        """Whether this process manages the account."""
        return self._lock.is_held

    def start(self) -> None:
        """Begin, on a separate thread."""
        self._thread = start(self._run, f"manager {self._owner[0]}")

    def change(self, settings: Settings, project: FetchContext | None) -> None:
        """Go on with other settings; work under way keeps the settings it was begun with.

        Args:
            settings: all settings.
            project: a new project, if one is needed; :meth:`close` closes it.
        """
        old = self._context.project
        self._context.change(settings, project or old)
        if project is not None:
            self._old_projects.append((old, self._workers.numbers()))
        self.wake()

    def attempts(self, batch_id: int | None) -> str:
        """Return which attempts at a batch's jobs have failed; "": none are known."""
        return self._follower.attempts(batch_id or 0)

    def wake(self) -> None:
        """Look soon for work to do; returns at once."""
        self._context.wake()

    def stop(self) -> None:
        """Begin nothing more; returns at once."""
        self._stopping.set()
        self.wake()

    def close(self, timeout: float) -> None:
        """Wait at most ``timeout`` seconds for work that is under way, after :meth:`stop`.

        The next manager does interrupted work again. The lock is released only when no work is
        under way any more, or when the process ends.
        """
        deadline = time.monotonic() + timeout
        # It is better to finish work that is nearly done than to do it again.
        self._workers.wait(time.monotonic() + min(_GRACE, timeout / 2))
        self._context.project.close()
        for project, _ in list(self._old_projects):
            project.close()
        if self._thread is not None:
            self._thread.join(max(0.0, deadline - time.monotonic()))
        is_done = self._workers.wait(deadline)
        self._workers.close(max(0.0, deadline - time.monotonic()))
        if is_done and not (self._thread and self._thread.is_alive()):
            self._lock.release()

    def reconcile_once(self, deadline: float) -> tuple[tuple[int, int], ...] | None:
        """Send what is pending for the project, as far as that is possible now, and return.

        That is: aborts of cancelled jobs, retirements of batches that have ended, leases of batches
        that HTCondor asks about, and whatever makes it certain what the project has of half-sent
        batches, and of those being aborted, that have no wanted job any more. Jobs that HTCondor
        still has are not sent, followed or fetched: a daemon does that, now or later.

        Args:
            deadline: ``time.monotonic()`` after which nothing more is begun.

        Returns:
            How much was pending before, and is now: jobs to be aborted; batches to be retired;
            batches without a wanted job for which it is not certain what the project has. None if a
            daemon manages the account, and sends what is pending.

        Raises:
            LedgerError: the ledger cannot be read or written.
        """
        try:
            if self._take_over():
                return None
            before = self._count_pending()
            while not self._stopping.is_set():
                now = time.time()
                self._upkeep.close_overdue(now)
                again = self._resolve_unclear(now, deadline)
                for task in self._tasks:
                    if task.due(now) <= now:
                        task.run(now, lambda: time.monotonic() <= deadline)
                if again is None or time.monotonic() + again - now > deadline:
                    break
                self._stopping.wait(max(0.0, again - now))
            reconcile(self._context.project, alone=True)
            after = self._count_pending()
        finally:
            self._lock.release()
        return tuple(zip(before, after, strict=True))

    # -- the thread

    def _run(self) -> None:
        while (
            not self._stopping.is_set() and self._guard("take over the jobs", self._take_over) > 0
        ):
            self._news.wait(_LOCK_EVERY)
            self._news.clear()
        while not self._stopping.is_set():
            begin = time.monotonic()
            at = self._guard("read the ledger", lambda: self._check_ledger(time.time()))
            wait = min(_LONGEST_WAIT, at - time.time())
            took = time.monotonic() - begin
            self._stopping.wait(min(1.0, max(_SHORTEST_WAIT, took * (_TIME_SHARE - 1))))
            self._wait_for_work(wait)

    def _take_over(self) -> float:
        """Become the manager unless another process is; return when to try again, 0 if it is so."""
        if not self._lock.try_acquire():
            return time.time() + _LOCK_EVERY
        # Marks that only applied to the earlier manager: no process writes into a job's directory
        # now, and a cancel may be waiting for that.
        self._jobs.stop_writing(*self._owner)
        log.info("This process now manages the jobs for %s", self._owner[0])
        return 0.0

    def _check_ledger(self, now: float) -> float:
        """Read the ledger and begin the work that can be begun; return when to do so again."""
        self._seen_version = self._jobs.store.data_version()
        self._close_scopes()
        self._close_old_projects()
        parts = (
            ("plan batches", self._sender.plan),
            ("send batches", self._send),
            ("begin to fetch outputs", self._fetches.begin),
            ("complete jobs", self._upkeep.close_overdue),
            ("begin aborts, retirements and renewals of leases", self._start_tasks),
            ("begin to ask about jobs", self._poll),
        )
        times = [now + _LONGEST_WAIT]
        for what, part in parts:
            # An error of one does not keep the others from their work.
            at = self._guard(what, partial(part, now))
            times.append(times[0] if at is None else at)
        self._is_busy = bool(self._jobs.batches(*self._owner, *UNCLEAR, "submitted", "ended"))
        return min(times)

    def _wait_for_work(self, seconds: float) -> None:
        """Wait, unless somebody wakes the manager or another process writes to the ledger."""
        # By a clock that cannot be set.
        until = time.monotonic() + seconds
        while not self._news.is_set() and (left := until - time.monotonic()) > 0:
            self._news.wait(min(left, _CHECK_BUSY if self._is_busy else _CHECK_IDLE))
            with suppress(LedgerError):  # the next turn runs into it
                if self._jobs.store.data_version() != self._seen_version:
                    break
        self._news.clear()

    # -- batches on their way to the project

    def _send(self, now: float) -> float | None:
        times = []
        drop_past(self._next_send, now, self._context.longest_pause)
        for batch in self._jobs.batches(*self._owner, *UNCLEAR):
            if at := self._wait_for(batch, now):
                times.append(at)
                continue
            slot = self._sender.sizes.slot_of(batch)
            if self._workers.count(slot) < SLOTS:
                self._workers.start(partial(self._send_one, batch.id), ("send", batch.id), slot)
        return min(times, default=None)

    def _send_one(self, batch_id: int) -> None:
        self._guard("send a batch", partial(self._sender.work, batch_id))
        self._next_send[batch_id] = time.time() + self._context.htcondor.poll_shortest
        self._has_sent.set()

    # -- jobs on the project

    def _poll(self, now: float) -> float | None:
        if self._workers.is_running("poll"):
            return None
        if self._has_sent.is_set():
            # New jobs should not wait as long as those that were there before.
            self._has_sent.clear()
            self._next_poll = min(self._next_poll, now + self._context.htcondor.poll_shortest)
        at = max(self._next_poll, self._context.pauses.wait(None, now))
        if is_ahead(at, now, self._context.longest_pause):
            return at
        if not self._jobs.on_project(*self._owner):
            return None
        self._workers.start(self._poll_once, "poll")
        return None

    def _poll_once(self) -> None:
        at = self._guard("ask about jobs", lambda: self._follower.poll(time.time()))
        # If the project has trouble, it waits no longer than the others.
        self._next_poll = -math.inf if self._context.pauses.wait(None, time.time()) else at

    def _close_scopes(self) -> None:
        """Stop fetches of jobs that another process has cancelled; that process waits for it."""
        for job_id in self._context.scopes.jobs():
            job = self._jobs.job(job_id, described=False)
            if job is None or job.state == "cancelled":
                self._context.scopes.close(job_id, clearing=0.0)
                # The fetch itself may not notice before the project answers it.
                self._jobs.writing(job_id, False)

    def _close_old_projects(self) -> None:
        """Close the contexts of settings that have changed, once nothing uses them any more."""
        running = self._workers.numbers()
        for old in [old for old in self._old_projects if old[1].isdisjoint(running)]:
            self._old_projects.remove(old)
            old[0].close()

    # -- what is pending

    def _start_tasks(self, now: float) -> float | None:
        """Start each task that is due; a long one does not delay the others."""
        times = []
        for task in self._tasks:
            if self._workers.is_running(task.name):
                continue
            due = task.due(now)
            if due > now:
                times.append(due)
            else:
                self._workers.start(partial(self._run_task, task), task.name)
        return min(times, default=None)

    def _run_task(self, task: PeriodicTask) -> None:
        work = partial(task.run, time.time(), lambda: not self._stopping.is_set())
        again = self._guard(f"do what is due ({task.name})", work)
        if again is not None:
            task.next = max(task.next, again)

    def _resolve_unclear(self, now: float, deadline: float) -> float | None:
        """Make it certain what the project has of the batches without a wanted job.

        Returns:
            The time at which there is more to do; None if there is nothing more.
        """
        for batch in self._unclear_batches():
            if time.monotonic() <= deadline and not self._wait_for(batch, now):
                self._send_one(batch.id)
        times = (self._wait_for(each, now) or now for each in self._unclear_batches())
        return min(times, default=None)

    def _wait_for(self, batch: BatchRow, now: float) -> float:
        """Return when to work on a batch, if that is in the future; 0 for now."""
        at = max(batch.not_before, self._next_send.get(batch.id, 0.0))
        return at if is_ahead(at, now, self._context.longest_pause) else 0.0

    def _unclear_batches(self) -> list[BatchRow]:
        """Return the batches without a wanted job of which it is unclear what the project has."""
        return [
            batch
            for batch in self._jobs.batches(*self._owner, *UNCLEAR)
            if batch.state == "giving_up"
            or not self._jobs.jobs_of(batch.id, *ALIVE, described=False)
        ]

    def _count_pending(self) -> tuple[int, int, int]:
        """Return how many aborts, retirements and unclear batches are pending."""
        ledger = self._context.project.ledger
        aborts, retirements = (
            0 if ledger is None else len(ledger.owed(*self._owner, command))
            for command in ("abort", "retire")
        )
        return (
            len(self._jobs.pending_aborts(*self._owner)) + aborts,
            len(self._jobs.batches(*self._owner, "ended")) + retirements,
            len(self._unclear_batches()),
        )
