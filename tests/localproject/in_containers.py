"""Jobs of a container app on a project that runs: what is sent, and what comes back."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest
import requests

from boinc_gahp.localproject.commands.apps import add_app
from boinc_gahp.localproject.core import STOCK
from boinc_gahp.localproject.project import LocalProject
from boinc_gahp.localproject.states import ServerState
from boinc_gahp.templates.types import InputFileInfo, InputTemplate, OutputFileInfo, OutputTemplate
from boinc_gahp.templates.writing import write_input_template, write_output_template
from tests.containers_engine import IMAGE
from tests.helpers import wait_for
from tests.localproject.client import Client, job, value

APP = "docker"

#: As ``containers.rst``, "Files".
DOCKERFILE = f'FROM {IMAGE}\nUSER 0\nWORKDIR /app\nENTRYPOINT []\nCMD ["sh","./run.sh"]\n'.encode()
JOB_TOML = b'workdir = "/app"\nimage_name = "boinc__test__shared"\n'


@pytest.fixture(scope="module")
def local_project(tmp_path_factory):
    """A project with an app for containers, and without volunteers."""
    with LocalProject(tmp_path_factory.mktemp("project"), hosts=0, php=STOCK) as project:
        project.add_container_app(APP)
        yield project


def add_container_app(directory, *more):
    assert add_app([str(directory), APP, "--container", *more], None) == 0


def files(script="", **others):
    """Return the contents of a job's inputs by open name; in the names, ``__`` is a dot."""
    all_files = {"Dockerfile": DOCKERFILE, "job__toml": JOB_TOML, "run__sh": script, **others}
    return {
        name.replace("__", "."): content.encode() if isinstance(content, str) else content
        for name, content in all_files.items()
    }


def output(open_name, number=0, **fields):
    more = {"max_nbytes": 1e6, "copy_file": True, "no_delete": True, **fields}
    return OutputFileInfo(open_name, f"<OUTFILE_{number}/>", **more)


def templates(names, outputs=(), **fields):
    """Return a job's own templates; all inputs are copied."""
    infos = tuple(InputFileInfo(open_name=name, copy_file=True, no_delete=True) for name in names)
    given = {
        "rsc_fpops_est": 1e9,
        "rsc_fpops_bound": 1e12,
        "rsc_disk_bound": 1e8,
        "delay_bound": 86400.0,
        "max_error_results": 1,
        "max_total_results": 1,
        **fields,
    }
    return write_input_template(InputTemplate(infos, **given)) + write_output_template(
        OutputTemplate(tuple(outputs))
    )


@dataclass(frozen=True, slots=True)
class Done:
    """A result that has ended, and the job's outputs as far as they can be fetched.

    An optional output that is absent has no number: those after it move up, and None is at the end.
    """

    row: object
    outputs: tuple[bytes | None, ...]

    @property
    def stderr(self):
        return str(self.row["stderr_out"])

    @property
    def message(self):
        match = re.search(r"<message>\n(.*)\n</message>", self.stderr, re.DOTALL)
        return match[1] if match else ""

    @property
    def ended(self):
        """Outcome and exit status."""
        return self.row["outcome"], self.row["exit_status"]


class ContainerJobs:
    """Submits jobs of the container app; each in a batch of its own."""

    def __init__(self, project):
        self.project = project
        self.client = Client(project)
        self._made = 0
        self._staged = {}

    def submit(self, inputs, outputs=(), *, command_line="", own=None, reply=False, **fields):
        """Submit a job, and return its name, or the project's reply; ``own`` are its templates."""
        self._made += 1
        name = f"job{self._made}"
        batch_id = self.client.create_batch(f"batch of {name}", APP)
        staged = self._stage(inputs.values())
        more = templates(list(inputs), outputs, **fields) if own is None else own
        one = job(
            name, *(staged[data] for data in inputs.values()), command_line=command_line, more=more
        )
        said = self.client.submit(batch_id, [one], APP)
        if reply:
            return said
        assert value(said, "batch_id") == str(batch_id), said
        return name

    def _stage(self, contents):
        """Stage what is not there yet; return all physical names."""
        waiting = list(dict.fromkeys(each for each in contents if each not in self._staged))
        while waiting:
            # PHP takes 20 files a request.
            some, waiting = waiting[:20], waiting[20:]
            self._staged.update(zip(some, self.client.upload(*some), strict=True))
        return self._staged

    def result(self, name):
        """Return the newest result of a job."""
        rows = self.client.rows(
            "SELECT r.* FROM result r JOIN workunit w ON w.id = r.workunitid WHERE w.name = ? "
            "ORDER BY r.id DESC LIMIT 1",
            name,
        )
        return rows[0] if rows else None

    def in_progress(self, name):
        row = self.result(name)
        return row is not None and row["server_state"] == ServerState.IN_PROGRESS

    def over(self, name):
        """Wait until a job's result is over; return it."""

        def over():
            self.project.check()
            row = self.result(name)
            return row if row is not None and row["server_state"] == ServerState.OVER else None

        return wait_for(over, f"the end of {name}", 120)

    def run(self, inputs, outputs=(), **more):
        """Submit a job, and wait for its end."""
        return self.done(self.submit(inputs, outputs, **more), len(outputs))

    def done(self, name, number=0):
        """Wait for a job's end; fetch as many outputs of its canonical result."""
        row = self.over(name)
        wait_for(
            lambda: self.client.rows(
                "SELECT 1 FROM workunit WHERE name = ? AND (canonical_resultid OR error_mask)", name
            ),
            f"a decision about {name}",
        )
        fetched = []
        for place in range(number):
            fetched.append(self._output(name, place))
        return Done(row, tuple(fetched))

    def _output(self, name, place):
        try:
            reply = self.client.output(name, place)
        except requests.exceptions.ChunkedEncodingError:
            # After the last file that was uploaded, the server promises bytes and sends none.
            return None
        return reply.content if reply.status_code == 200 else None
