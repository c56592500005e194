"""The periodic tasks of a manager, run by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boinc_gahp.htcondor._cleanup import BatchCleanup
from boinc_gahp.htcondor._leases import Leases

if TYPE_CHECKING:
    from collections.abc import Callable

    from boinc_gahp.htcondor._context import AccountContext


class TaskRunner:
    """Runs the periodic tasks that are due, as a manager does."""

    def __init__(
        self, context: AccountContext, is_sending: Callable[[int], bool] = lambda _: False
    ) -> None:
        self._context = context
        self.cleanup = BatchCleanup(context, is_sending)
        self._tasks = (Leases(context).task, *self.cleanup.tasks)

    def due(self, now: float) -> float:
        return min(task.due(now) for task in self._tasks)

    def run(self, now: float, *, goes_on: bool = True) -> None:
        for task in self._tasks:
            if task.due(now) <= now:
                task.run(now, lambda: goes_on and not self._context.stopping.is_set())
