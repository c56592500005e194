"""A project over HTTP that has one finished job, with the outputs that an attacker chose."""

import re
import threading
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit
from xml.sax.saxutils import escape

import pytest

from boinc_gahp.api.outputs.folders import FinishedJob, Folder
from boinc_gahp.config.settings import JobSettings, ProjectSettings, Settings, Timeouts
from boinc_gahp.config.urls import ProjectUrl
from boinc_gahp.errors import OutputError
from boinc_gahp.fetch.context import FetchContext
from boinc_gahp.fetch.destinations import NEVER_CANCELLED
from boinc_gahp.fetch.engine import fetch
from boinc_gahp.fetch.job_directory import fetch_output
from boinc_gahp.fetch.locate import Located
from boinc_gahp.fetch.types import FetchRequest
from boinc_gahp.rpc.client import WebRpcs
from boinc_gahp.rpc.options import ClientOptions
from boinc_gahp.rpc.types import JobInfo
from boinc_gahp.templates.reading import read_output_template
from tests.fetch.jobs import INSTANCE, JOB, completed, instance, templates
from tests.submit.scripted import batch, job

SECRET = "a11ce000000000000000000000000002"


class HostileOutputs:
    """The project; a context manager.

    Args:
        outputs: by open name, in the template's order.
        compressed: whether the template says that volunteers compress them.
    """

    def __init__(self, outputs, *, compressed=False):
        self.outputs = outputs
        self.sent = 0
        gzip = "<gzip_when_done/>" if compressed else ""
        self.templates = templates(*map(escape, outputs)).replace(
            "<upload_when_present/>", f"<upload_when_present/>{gzip}"
        )
        project = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                project.send_file(self)

            def do_POST(self):
                project.answer(self)

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/test/"

    def own_template(self, max_nbytes):
        """Return the output template as the job itself carries it."""
        found = re.search(r"<output_template>.*</output_template>", self.templates, re.DOTALL)
        return read_output_template(re.sub(r"(?<=<max_nbytes>)\d+", str(max_nbytes), found[0]))

    def answer(self, handler):
        body = handler.rfile.read(int(handler.headers["Content-Length"]))
        found = re.search(rb"<(\w+)>.*</\1>", body, re.DOTALL)
        root = found[1].decode()
        replies = {
            "query_batch": batch(7, "b", 2, job(1, JOB, 119)),
            "query_job": instance(*range(len(self.outputs))),
            "query_completed_job": completed(),
            "get_templates": self.templates,
        }
        text = f'<?xml version="1.0" ?>\n<{root}>{replies[root]}</{root}>'.encode()
        handler.send_response(200)
        handler.send_header("Content-Type", "text/xml")
        handler.send_header("Content-Length", str(len(text)))
        handler.end_headers()
        handler.wfile.write(text)

    def send_file(self, handler):
        number = int(parse_qs(urlsplit(handler.path).query)["file_num"][0])
        contents = list(self.outputs.values())[number]
        handler.send_response(200)
        handler.send_header("Content-Type", "application/octet-stream")
        handler.send_header(
            "Content-Disposition", f"attachment; filename={INSTANCE}_r799338679_{number}"
        )
        if isinstance(contents, bytes):
            handler.send_header("Content-Length", str(len(contents)))
        handler.end_headers()
        with suppress(ConnectionError):
            for piece in (contents,) if isinstance(contents, bytes) else contents():
                handler.wfile.write(piece)
                self.sent += len(piece)

    @contextmanager
    def context(self, jobs=JobSettings()):  # noqa: B008  (frozen)
        """Yield a context to it, as a new process would have it."""
        project = ProjectSettings(ProjectUrl(self.url))
        settings = Settings(project=project, timeouts=Timeouts(retry=0), jobs=jobs)
        options = ClientOptions(connect_timeout=20, read_timeout=20, retry_total=0)
        context = FetchContext.of(
            WebRpcs(self.url, SECRET, options=options), settings, None, None, project
        )
        try:
            yield context
        finally:
            context.close()

    def fetch(
        self,
        home,
        *specs,
        some=False,
        own=None,
        jobs=JobSettings(),  # noqa: B008  (frozen)
    ):
        """Fetch the job's outputs into ``home``, as HTCondor asks for it."""
        mode = "SOME" if some else "ALL"
        request = FetchRequest(
            JOB, str(home), None, mode, specs, is_ad=own is not None, output_template=own
        )
        with self.context(jobs) as context:
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
        with self.context() as context:
            there = {path / name: 0 for name in have}
            return fetch(context, located, folder, NEVER_CANCELLED, again=True, have=there)

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()
