"""Volunteers that run the jobs of a soak in their own process: one for each job would take longer
than the job."""

import os
import threading
import time
import traceback
from contextlib import contextmanager

from boinc_gahp.localproject.backend.scheduler import Scheduler
from boinc_gahp.localproject.hosts import hosts
from boinc_gahp.localproject.hosts.engine import Containers
from boinc_gahp.localproject.hosts.execution import ProcessEnd
from boinc_gahp.localproject.hosts.transfers import bring
from boinc_gahp.localproject.hosts.volunteer import Volunteer
from boinc_gahp.localproject.states import Outcome
from boinc_gahp.templates.documents import read_workunit
from tests.soak.work import FAILURE, work_of


class SoakVolunteer(Volunteer):
    """A host that has its outputs at once, and reports when the job would have been done."""

    def _run_app(self, task, stderr, _):
        workunit = read_workunit(task.xml_doc)
        for file in workunit.files:
            bring(self._core, file, self._slot)
        work = work_of(task.xml_doc)
        stderr.write(b"job %d\n" % work.number)
        if work.fails:
            return ProcessEnd(status=FAILURE, elapsed_time=1.0, cpu_time=1.0)
        text = (self._slot.directory / "in").read_bytes()
        (self._slot.directory / "out").write_bytes(work.output(text))
        return ProcessEnd(elapsed_time=work.seconds, cpu_time=work.seconds)

    def _hand_in(self, task, report):
        if report.outcome is Outcome.SUCCESS:
            self._late.append((time.time() + work_of(task.xml_doc).seconds, task, report))
        else:
            super()._hand_in(task, report)


@contextmanager
def at_work(project, number):
    """Let so many hosts work for a project that was started without any."""
    core = project.core
    scheduler, containers = Scheduler(core), Containers(core.db, core.directory)
    volunteers = [
        SoakVolunteer(core, scheduler, host_id, core.directory / "slots" / str(place), containers)
        for place, host_id in enumerate(hosts.register(core.db, number))
    ]
    threads = [threading.Thread(target=_run, args=(one,), name="volunteer") for one in volunteers]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for volunteer in volunteers:
            volunteer.stop()
        core.wake.ring()
        for thread in threads:
            thread.join()


def _run(volunteer):
    try:
        volunteer.run()
    except BaseException:  # noqa: BLE001  (the process ends)
        # Without its volunteers a project would be waited for in vain.
        traceback.print_exc()
        os._exit(1)
