"""A project that answers from a script and has one finished job, with an attacker's outputs."""

import re
from contextlib import contextmanager
from xml.sax.saxutils import escape

import pytest

from boinc_gahp.api.outputs.folders import FinishedJob, Folder
from boinc_gahp.config.settings import JobSettings, Settings
from boinc_gahp.errors import OutputError
from boinc_gahp.fetch.destinations import NEVER_CANCELLED
from boinc_gahp.fetch.engine import fetch
from boinc_gahp.fetch.job_directory import fetch_output
from boinc_gahp.fetch.locate import Located
from boinc_gahp.fetch.types import FetchRequest
from boinc_gahp.rpc.types import JobInfo
from boinc_gahp.templates.reading import read_output_template
from tests.contract.replay import Reply
from tests.fetch.jobs import INSTANCE, JOB, completed, instance, templates
from tests.submit.scripted import Script, batch, job


class HostileOutputs(Script):
    """The project.

    Args:
        outputs: by open name, in the template's order; one that is called gives pieces, which may
            be without end.
        compressed: whether the template says that volunteers compress them.
    """

    def __init__(self, outputs, *, compressed=False):
        self.outputs = outputs
        self.sent = 0
        gzip = "<gzip_when_done/>" if compressed else ""
        self.templates = templates(*map(escape, outputs)).replace(
            "<upload_when_present/>", f"<upload_when_present/>{gzip}"
        )
        super().__init__(
            {
                "query_batch": batch(7, "b", 2, job(1, JOB, 119)),
                "query_job": instance(*range(len(outputs))),
                "query_completed_job": completed(),
                "get_templates": self.templates,
            }
        )

    def own_template(self, max_nbytes):
        """Return the output template as the job itself carries it."""
        found = re.search(r"<output_template>.*</output_template>", self.templates, re.DOTALL)
        return read_output_template(re.sub(r"(?<=<max_nbytes>)\d+", str(max_nbytes), found[0]))

    def file(self, arguments):
        number = int(arguments["file_num"][0])
        contents = list(self.outputs.values())[number]
        name = f"{INSTANCE}_r799338679_{number}"
        headers = {
            "Content-Type": "application/octet-stream",
            "Content-Disposition": f"attachment; filename={name}",
        }
        reply = Reply(contents, headers)
        if callable(contents):
            reply.chunks = lambda: map(self._count, contents())
        else:
            headers["Content-Length"] = str(len(contents))
        return reply

    def _count(self, piece):
        self.sent += len(piece)
        return piece

    @contextmanager
    def process(self, jobs=JobSettings()):  # noqa: B008  (frozen)
        """Yield a context to it, as a new process would have it."""
        context = self.context(settings=Settings(jobs=jobs))
        try:
            yield context
        finally:
            context.placed.close()

    def fetch(self, home, *specs, some=False, own=None, **how):
        """Fetch the job's outputs into ``home``, as HTCondor asks for it."""
        mode = "SOME" if some else "ALL"
        is_ad = own is not None
        request = FetchRequest(JOB, str(home), None, mode, specs, is_ad=is_ad, output_template=own)
        with self.process(**how) as context:
            fetch_output(context, request)

    def check_refused(self, why, home, *specs, **how):
        """Assert that the outputs are refused, and that no endless one was read on and on."""
        with pytest.raises(OutputError, match=why):
            self.fetch(home, *specs, **how)
        assert self.sent < 50_000_000

    def collect(self, path, have=()):
        """Fetch the job's outputs into a person's folder for it."""
        folder = Folder(path, FinishedJob(JOB, 1, 119), stderr=False, again=True)
        located = Located(7, "uppercase", JobInfo(1, "j", 119))
        with self.process() as context:
            there = {path / name: 0 for name in have}
            return fetch(context, located, folder, NEVER_CANCELLED, again=True, have=there)
