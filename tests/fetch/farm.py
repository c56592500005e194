"""A project on which a batch of each kind has run, for tests that fetch."""

from __future__ import annotations

import hashlib
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from boinc_gahp.config.settings import Settings, Timeouts
from boinc_gahp.errors import ProtocolError, RpcError, TransportError
from boinc_gahp.fetch.context import FetchContext
from boinc_gahp.fetch.job_directory import fetch_output
from boinc_gahp.fetch.types import FetchRequest
from boinc_gahp.localproject.core import STOCK
from boinc_gahp.localproject.project import LocalProject
from boinc_gahp.rpc.client import WebRpcs
from boinc_gahp.rpc.options import ClientOptions
from boinc_gahp.submit.control import abort_jobs
from boinc_gahp.submit.engine import submit
from boinc_gahp.submit.types import Job, LocalFile, SubmitRequest
from tests import faultproxy
from tests.faultproxy import FaultProxy
from tests.helpers import wait_for
from tests.inside import unfinished_jobs

TEXT = b"some text, as long as it takes\n" * 3000
OPTIONS = ClientOptions(connect_timeout=30, read_timeout=30, retry_total=3)

passing_faults = pytest.mark.parametrize(
    "fault",
    [
        pytest.param(faultproxy.lose_reply(), id="reply lost"),
        pytest.param(faultproxy.reset(), id="reset"),
        pytest.param(faultproxy.status(500), id="500"),
        pytest.param(faultproxy.cut(0.5), id="cut"),
        pytest.param(faultproxy.drip(0.0), id="dripping"),
    ],
)
lasting_faults = pytest.mark.parametrize(
    ("fault", "kind"),
    [
        pytest.param(faultproxy.cut(0.5), (ProtocolError, TransportError), id="cut"),
        pytest.param(faultproxy.reset(), TransportError, id="reset"),
        pytest.param(faultproxy.html(), ProtocolError, id="a page for people"),
        pytest.param(faultproxy.body(b"ERROR: no way"), RpcError, id="an ERROR: page"),
        pytest.param(faultproxy.body(b""), ProtocolError, id="nothing"),
    ],
)


@dataclass
class Farm:
    """A project on which a batch of each kind has run."""

    local: LocalProject
    proxy: FaultProxy
    settings: Settings = field(
        default_factory=lambda: Settings(timeouts=Timeouts(connect=30, read=30, retry=3))
    )

    @contextmanager
    def context(self, cache=None, settings=None):
        """Yield a new context, as a new process would have it."""
        project = WebRpcs(self.proxy.url, self.local.authenticator, options=OPTIONS)
        context = FetchContext.of(project, settings or self.settings, None, cache)
        try:
            yield context
        finally:
            context.close()

    def fetch(self, request, **more):
        """Fetch a job's outputs, as a process of its own does."""
        with self.context(**more) as context:
            return fetch_output(context, request)

    def count(self, rpc):
        return self.proxy.count(rpc)


#: App, arguments and the first input of each job; a batch has its key's name.
BATCHES = {
    "upper": ("uppercase", [((), TEXT)] * 20),
    "multi": ("multi", [((), b"one "), (("--optional",), b"one ")]),
    "optmid": ("optmid", [((), b"one "), (("--optional",), b"one ")]),
    "zip": ("zipped", [(("-v", "x"), b"packed")]),
    "gzip": ("gzipped", [((), TEXT)]),
    "fail": ("uppercase", [(("--fail", "11"), b"x"), ((), b"well")]),
    "gone": ("uppercase", [(("--sleep", "60"), b"x")]),
}


def make_batch(context, room, name, prefix=""):
    app, jobs = BATCHES[name]
    requests = []
    for number, (args, data) in enumerate(jobs):
        first = room / hashlib.md5(data).hexdigest()
        first.write_bytes(data)
        second = room / "second"
        second.write_bytes(b"two\n")
        names = ["in0", "in1"] if app == "multi" else ["in"]
        files = {each: LocalFile(path) for each, path in zip(names, [first, second], strict=False)}
        requests.append((f"{prefix or name + '#1'}.{number}", Job(args, files)))
    request = SubmitRequest(name, app, requests)
    submit(context, request)
    return request


@pytest.fixture(scope="module")
def farm(tmp_path_factory):
    """The project; PHP's messages are in its replies."""
    room = tmp_path_factory.mktemp("inputs")
    directory = tmp_path_factory.mktemp("project")
    with LocalProject(directory, hosts=3, php=STOCK) as local, FaultProxy(local.url) as proxy:
        farm = Farm(local, proxy)
        # A volunteer that had begun the job that is aborted would work on it to its end.
        local.pause_volunteers()
        with farm.context() as context:
            for name in BATCHES:
                make_batch(context, room, name, prefix="foreign" if name == "gzip" else "")
            abort_jobs(context, ["gone#1.0"])
            local.resume_volunteers()
            wait_for(lambda: unfinished_jobs(local) == 0, "the jobs' end", timeout=60)
        yield farm


@pytest.fixture
def healthy(farm):
    """The farm without the faults of the test before."""
    farm.proxy.heal()
    farm.local.core.web_stopped = False
    yield farm
    farm.proxy.heal()
    farm.local.core.web_stopped = False


@pytest.fixture
def home(tmp_path):
    """The job's directory."""
    home = tmp_path / "job"
    home.mkdir()
    return home


def pairs(text):
    """Return pairs that are written as "source>destination, ..."."""
    return tuple(tuple(each.split(">")) for each in text.split(", ") if each)


def everything(job, home, *specs):
    return FetchRequest(job, str(home), "job.err", "ALL", specs)


def some(job, home, specs):
    return FetchRequest(job, str(home), "job.err", "SOME", pairs(specs))


def contents(home):
    """Return all files below a directory, hidden ones included."""
    return {
        str(path.relative_to(home)): path.read_bytes()
        for path in sorted(home.rglob("*"))
        if path.is_file()
    }
