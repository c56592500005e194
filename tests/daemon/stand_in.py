"""A context without a project, a service without a ledger: what happens depends on names."""

import threading
from functools import partial

from boinc_gahp.config.settings import LimitSettings, ProjectSettings, Settings
from boinc_gahp.config.urls import ProjectUrl
from boinc_gahp.daemon._projects import Projects
from boinc_gahp.errors import GahpError
from boinc_gahp.fetch import job_directory
from boinc_gahp.fetch.types import FetchResult
from boinc_gahp.rpc.types import JobStatuses
from boinc_gahp.secret import Authenticator
from boinc_gahp.submit import boinc_submit, control, query

SETTINGS = Settings(
    project=ProjectSettings(ProjectUrl("http://127.0.0.1:9/test/"), Authenticator("5ecre7-key"))
)

#: What requests are carried out with; a :class:`StandIn` has a method for each.
FORWARDED = {
    "boinc_submit": boinc_submit,
    "query_batches": query,
    "fetch_output": job_directory,
    "abort_jobs": control,
    "retire_batch": control,
    "set_lease": control,
    "reconcile": control,
}


def forward(replace):
    """Have ``replace(module, name, function)`` make the functions call a stand-in's methods."""
    for name, module in FORWARDED.items():
        replace(module, name, partial(_called, name, getattr(module, name)))


def _called(name, real, context, *arguments, **options):
    if isinstance(context, StandIn):
        return getattr(context, name)(*arguments, **options)
    # A module that is first imported meanwhile keeps this function.
    return real(context, *arguments, **options)


def limited(**limits):
    return Settings(project=SETTINGS.project, limits=LimitSettings(**limits))


def end(engine):
    """Let an engine start no more requests, and wait for those under way."""
    for pool in engine._pools.values():
        pool.close(20)


class StoodIn(Projects):
    """Projects with stand-ins for what opens their contexts, and for the service."""

    def __init__(self, load_settings, opener, service=None):
        super().__init__(load_settings)
        self._opener = opener
        self.make_service = lambda: service

    def _new_service(self, _settings):
        return self.make_service()


class Actor:
    """``hang...`` waits until :attr:`go` is set; ``fail TEXT`` raises; ``bug`` is a bug."""

    def __init__(self):
        self.go = threading.Event()
        self.hanging = threading.Semaphore(0)
        self.calls = []

    def calls_of(self, what):
        return [call for call in self.calls if call[0] == what]

    def act(self, *call, name=""):
        self.calls.append(call)
        if "hang" in name:
            self.hanging.release()
            self.go.wait(60)
        elif name.startswith("fail "):
            raise GahpError(name.removeprefix("fail "))
        elif name == "bug":
            raise ZeroDivisionError("5ecre7-key")
        elif name == "exit":
            raise SystemExit(3)


class StandIn(Actor):
    """A project's context."""

    #: As what opens it: no ledger is open.
    opened = None

    def __init__(self, url="http://127.0.0.1:9/test/", account=""):
        super().__init__()
        self.url = url
        self.account = account
        self.reconciled = threading.Event()
        self.closed = False

    def open(self, _settings, project):
        """Be the context of any project."""
        self.calls.append(("open", project.url, project.authenticator.account))
        return self

    @property
    def project(self):
        return self

    def ping(self):
        self.act("ping")

    def boinc_submit(self, request, answer_by):
        self.act("submit", request, answer_by, name=request.batch_name)

    def query_batches(self, names, min_mod_time, *, gridmanager):
        self.act("query", tuple(names), min_mod_time, gridmanager, name=names[0] if names else "")
        return JobStatuses("1795261323.469543", tuple(((f"{n}#1.0", "DONE"),) for n in names))

    def fetch_output(self, request):
        self.act("fetch", request, name=request.job_name)
        return FetchResult(3, 12.5, 11.75)

    def abort_jobs(self, names):
        self.act("abort", tuple(names), name=names[0])

    def retire_batch(self, name):
        self.act("retire", name, name=name)

    def set_lease(self, name, unix_time):
        self.act("lease", name, unix_time, name=name)

    def reconcile(self):
        self.reconciled.set()

    def close(self):
        self.closed = True


class StandInService(Actor):
    """The service of HTCondor's jobs; ads and ids as the names of :class:`StandIn`.

    A job that was submitted is idle, until :attr:`statuses` has another status for it. Of ids that
    were never given out, ``held`` and ``completed`` are known, and ``big``: completed, with an ad
    of 1 MB.
    """

    def __init__(self):
        super().__init__()
        self.ads = []
        self.tells = []
        self.statuses = {
            "held": (5, '[ HoldReason = "bad"; HoldReasonCode = 2304; HoldReasonSubCode = 0 ]'),
            "completed": (4, "[ ExitCode = 0 ]"),
            "big": (4, f'[ A = "{"a" * 1_000_000}"; ExitCode = 0 ]'),
        }
        self.closed = threading.Event()

    def ping(self):
        self.act("ping")

    def submit(self, ad):
        self.act("submit", name=ad)
        self.ads.append(ad)
        job_id = f"boinc/0a1b2c3d.{len(self.ads)}"
        self.statuses[job_id] = (1, "[ ]")
        return job_id

    def status(self, job_id):
        self.act("status", job_id, name=job_id)
        if job_id not in self.statuses:
            raise GahpError("there is no such job")
        return self.statuses[job_id]

    def cancel(self, job_id):
        self.act("cancel", job_id, name=job_id)

    def end_reported(self, job_id):
        self.act("told", job_id, name=job_id)
        self.tells.append(job_id)

    def close(self):
        self.closed.set()
