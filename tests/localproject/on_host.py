"""One volunteer that computes single jobs: no project runs, and nothing is in the database."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any

from boinc_gahp.localproject.backend.scheduler import Report, Scheduler, Task
from boinc_gahp.localproject.hosts.volunteer import Volunteer
from boinc_gahp.templates.filling import JobFile, fill_input, fill_output
from boinc_gahp.templates.types import InputFileInfo, InputTemplate, OutputFileInfo, OutputTemplate

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from boinc_gahp.localproject.core import Core


class OnHost:
    """Runs Python programs as jobs on one host."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self.slot: Path = core.directory / "slots" / "0"
        self.files: Path = core.directory / "hosts" / "1"
        self.volunteer = Volunteer(core, Scheduler(core), 1, self.slot)
        self._made = 0

    def stage(self, name: str, contents: bytes) -> JobFile:
        """Put a file where the project's inputs are."""
        self.core.download.add_bytes(name, contents)
        md5 = hashlib.md5(contents).hexdigest()
        return JobFile(name, len(contents), md5, (f"http://127.0.0.1:1/{name}",))

    def task(
        self,
        program: str,
        *,
        inputs: Sequence[InputFileInfo] = (),
        files: Sequence[JobFile] = (),
        outputs: Sequence[OutputFileInfo] = (),
        arguments: str = "",
        wrong: dict[str, float] | None = None,
        **bounds: Any,
    ) -> Task:
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

    def run(self, program: str, **details: Any) -> Report:
        """Compute a job and return what the host reports."""
        report = self.volunteer.compute(self.task(program, **details))
        assert report is not None
        return report

    def sent(self, number: int = 0) -> bytes:
        """Return an output of the newest job, as it came to the server."""
        stored = self.core.upload.find(f"job{self._made}_0_r_{number}")
        assert stored is not None
        return stored.path.read_bytes()

    def has_sent(self, number: int = 0) -> bool:
        return self.core.upload.exists(f"job{self._made}_0_r_{number}")


def out(open_name: str, number: int = 0, **fields: Any) -> OutputFileInfo:
    """Return an output file of a template."""
    return OutputFileInfo(open_name, f"<OUTFILE_{number}/>", **fields)


def message(report: Report) -> str:
    """Return what the client itself says in a report's stderr."""
    match = re.search(r"<message>\n(.*)\n</message>", report.stderr_out, re.DOTALL)
    return match[1] if match else ""


def stderr_text(report: Report) -> str:
    """Return what the app has written to its stderr."""
    return report.stderr_out.partition("<stderr_txt>\n")[2].rpartition("\n</stderr_txt>")[0]
