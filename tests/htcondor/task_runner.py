"""The periodic tasks of a manager, run by hand."""

from boinc_gahp.htcondor._upkeep import Upkeep


class TaskRunner:
    """Runs the periodic tasks that are due, as a manager does."""

    def __init__(self, context, is_sending=lambda _: False):
        self._context = context
        self.upkeep = Upkeep(context, is_sending)

    def due(self, now):
        return min(task.due(now) for task in self.upkeep.tasks)

    def run(self, now, *, goes_on=True):
        for task in self.upkeep.tasks:
            if task.due(now) <= now:
                task.run(now, lambda: goes_on and not self._context.stopping.is_set())
