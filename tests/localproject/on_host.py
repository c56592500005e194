"""One volunteer that computes single jobs: no project runs, and nothing is in the database."""

import hashlib
import re

from boinc_gahp.localproject.backend.scheduler import Scheduler, Task
from boinc_gahp.localproject.hosts.engine import Containers
from boinc_gahp.localproject.hosts.volunteer import Volunteer
from boinc_gahp.templates.filling import JobFile, fill_input, fill_output
from boinc_gahp.templates.types import InputTemplate, OutputFileInfo, OutputTemplate


class OnHost:
    """Runs Python programs as jobs on one host."""

    def __init__(self, core):
        self.core = core
        self.slot = core.directory / "slots" / "0"
        self.volunteer = Volunteer(
            core, Scheduler(core), 1, self.slot, Containers(core.db, core.directory)
        )
        self._made = 0

    def stage(self, name, contents):
        """Put a file where the project's inputs are."""
        self.core.download.add_bytes(name, contents)
        md5 = hashlib.md5(contents).hexdigest()
        return JobFile(name, len(contents), md5, (f"http://127.0.0.1:1/{name}",))

    def task(self, program, *, inputs=(), files=(), outputs=(), arguments="", wrong=None, **bounds):
        """Return a job; ``bounds`` are fields of the task."""
        self._made += 1
        document = fill_input(InputTemplate(tuple(inputs)), files, command_line=arguments)
        name = f"job{self._made}_0"
        return Task(
            result_id=self._made,
            result_name=name,
            command=("{python}", "-I", "-S", "-c", program),
            xml_doc=document,
            xml_doc_in=fill_output(OutputTemplate(tuple(outputs)), name, "http://h/", "r"),
            behaviours=wrong or {},
            **{"time_limit": 60.0, "memory_bound": 1e9, "disk_bound": 1e8, **bounds},
        )

    def run(self, program, **details):
        """Compute a job and return what the host reports."""
        return self.volunteer.compute(self.task(program, **details))

    def sent(self, number=0):
        """Return an output of the newest job, as it came to the server."""
        stored = self.core.upload.find(f"job{self._made}_0_r_{number}")
        return stored.path.read_bytes()

    def has_sent(self, number=0):
        return self.core.upload.exists(f"job{self._made}_0_r_{number}")


def out(open_name, number=0, **fields):
    """Return an output file of a template."""
    return OutputFileInfo(open_name, f"<OUTFILE_{number}/>", **fields)


def message(report):
    """Return what the client itself says in a report's stderr."""
    match = re.search(r"<message>\n(.*)\n</message>", report.stderr_out, re.DOTALL)
    return match[1] if match else ""


def stderr_text(report):
    """Return what the app has written to its stderr."""
    return report.stderr_out.partition("<stderr_txt>\n")[2].rpartition("\n</stderr_txt>")[0]
