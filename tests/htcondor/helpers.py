"""A submit node with a project, as the tests of this room see it."""

from __future__ import annotations

import itertools
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from boinc_gahp.config.settings import (
    HTCondor,
    ProjectSettings,
    Settings,
    StagingSettings,
    State,
    Timeouts,
)
from boinc_gahp.config.urls import ProjectUrl
from boinc_gahp.fetch.context import FetchContext
from boinc_gahp.htcondor._context import AccountContext, CancelScopes
from boinc_gahp.ledger.jobs import JobLedger
from boinc_gahp.ledger.ledger import Ledger
from boinc_gahp.rpc.client import WebRpcs
from boinc_gahp.rpc.options import ClientOptions
from boinc_gahp.secret import Authenticator
from boinc_gahp.states import BatchState
from tests import inside
from tests.daemon.gridmanager import job_ad
from tests.helpers import wait_for
from tests.ledger.jobs import at_work

_numbers = itertools.count(1)

#: Waits as short as they can be on one machine.
QUICK = HTCondor(
    send_after=0.05, longest_wait=0.5, poll_shortest=0.1, poll_longest=0.5, retire_wait=5.0
)
TIMEOUTS = Timeouts(connect=30, read=30, retry=0.3)
PATIENT, ONCE = (replace(TIMEOUTS, retry=seconds) for seconds in (5, 0.0))


@dataclass(frozen=True)
class Job:
    """A job as HTCondor would send it: ``uppercase`` over a file of its own.

    Attributes:
        key: its JobDirectory.
        iwd: its directory.
        ad: its submit ad, unescaped.
        wanted: what its output is to be.
    """

    key: str
    iwd: object
    ad: str
    wanted: bytes

    @property
    def output(self):
        return self.iwd / "out"

    def is_right(self):
        """Whether output, stdout and stderr are in place, the output with the right bytes."""
        return (
            self.output.read_bytes() == self.wanted
            and (self.iwd / "job.out").is_file()
            and (self.iwd / "job.err").is_file()
        )


@dataclass
class Site:
    """A submit node: a ledger, settings with short waits, and a project behind a proxy.

    Attributes:
        htcondor: the section of the settings; tests replace it before they make something.
    """

    directory: object
    local: object
    proxy: object
    authenticator: str
    htcondor: HTCondor = QUICK
    timeouts: Timeouts = field(default_factory=lambda: TIMEOUTS)
    staging: StagingSettings = field(default_factory=StagingSettings)
    max_post_bytes: int = 7_500_000
    container_app: str | None = None
    publish_directory: str | None = None
    publish_url: str | None = None

    # -- what is used as it is in the daemon

    @property
    def project(self):
        return ProjectSettings(
            ProjectUrl(self.proxy.url),
            Authenticator(self.authenticator),
            max_post_bytes=self.max_post_bytes,
            container_app=self.container_app,
            publish_directory=self.publish_directory,
            publish_url=self.publish_url and ProjectUrl(self.publish_url),
        )

    @property
    def settings(self):
        return Settings(
            project=self.project,
            timeouts=self.timeouts,
            staging=self.staging,
            htcondor=self.htcondor,
            state=State(self.directory / "state", self.directory / "cache"),
        )

    @property
    def owner(self):
        """Project URL and account, as the ledger has them."""
        return self.proxy.url, Authenticator(self.authenticator).account

    @contextmanager
    def ledger(self):
        """Yield the ledger, opened as another process would open it."""
        ledger = Ledger(self.directory / "state" / "ledger.sqlite")
        try:
            yield ledger
        finally:
            ledger.close()

    @contextmanager
    def jobs(self):
        """Yield the ledger of jobs, opened as another process would open it."""
        with self.ledger() as ledger:
            yield JobLedger(ledger.store)

    @contextmanager
    def context(self):
        """Yield what a manager gives to its parts, with everything real and no manager at work."""
        settings = self.settings
        options = ClientOptions(
            connect_timeout=settings.timeouts.connect,
            read_timeout=settings.timeouts.read,
            retry_total=settings.timeouts.retry,
        )
        with (
            self.ledger() as ledger,
            WebRpcs(self.proxy.url, self.authenticator, options=options) as project,
        ):
            opened = FetchContext.of(
                project, settings, ledger, self.directory / "cache", self.project
            )
            try:
                owner = (project.url, project.account)
                jobs = JobLedger(ledger.store)
                yield AccountContext(opened, jobs, owner, settings, CancelScopes())
            finally:
                opened.close()

    @contextmanager
    def service(self, settings=None, load=None):
        """Yield a service as a new daemon has it; ``load`` reads the settings again."""
        from boinc_gahp.fetch.context import Opener
        from boinc_gahp.htcondor.service import Service

        opener = Opener()
        service = Service(settings or self.settings, opener, load)
        try:
            yield service
        finally:
            service.close()
            opener.close()

    def held_back(self):
        """Let no manager begin in the block, as if another process were it; lend the lock.

        What is submitted meanwhile goes together.
        """
        return at_work(self.directory / "state", *self.owner)

    def reset(self, **changes):
        """Change values of the section [htcondor] for what is made from now on."""
        self.htcondor = replace(self.htcondor, **changes)

    # -- jobs

    def job(self, arguments="", *, text=None, **attributes):
        """Return a new job; ``attributes`` are ClassAd expressions that the ad gets beside its own.

        Arguments for ``uppercase``: ``--sleep SECONDS``, ``--fail STATUS``.
        """
        number = next(_numbers)
        iwd = self.directory / "home" / f"job{number}"
        iwd.mkdir(parents=True)
        text = b"text of job %d\n" % number if text is None else text
        (iwd / "in").write_bytes(text)
        key = f"home_bl_127.0.0.1_9618_vm_{number}.0_1795261016"
        usual = {"Out": "job.out", "Err": "job.err", "TransferInput": "in", "BoincApp": "uppercase"}
        usual |= {"Cmd": "/usr/bin/uppercase", "JobDirectory": key, "Arguments": arguments}
        given = {name: value.encode() for name, value in attributes.items()}
        return Job(key, iwd, job_ad(str(iwd), **(usual | given)), text.upper())

    # -- what the project has

    def rows(self, statement, *values):
        """Return what the project's database answers."""
        return inside.rows(self.local, statement, *values)

    def change(self, statement, *values):
        """Change the project's database behind its back."""
        inside.change(self.local, statement, *values)

    def of_account(self, column, tables="batch b", order="b.id", where="1"):
        """Return a column of this account's rows, as texts."""
        rows = self.rows(
            f"SELECT {column} FROM {tables} JOIN user u ON b.user_id = u.id "
            f"WHERE u.authenticator = ? AND {where} ORDER BY {order}",
            self.authenticator,
        )
        return [str(value) for (value,) in rows]

    def workunits(self, where="1"):
        """Return the names of all workunits of this account, in the order they were made in."""
        return self.of_account("w.name", "workunit w JOIN batch b ON w.batch = b.id", "w.id", where)

    def batches(self):
        """Return the names of all batches of this account, the oldest first."""
        return self.of_account("b.name")

    def batch_states(self):
        """Return their states."""
        return [BatchState(int(state)) for state in self.of_account("b.state")]

    def failed(self):
        """Return the names of the workunits that were aborted or failed."""
        return self.workunits("w.error_mask != 0")

    def heal(self):
        """Let the project work as it should."""
        self.proxy.heal()
        self.local.core.web_stopped = False
        self.local.core.database_down = False
        self.local.resume_volunteers()


def row_of(jobs, job_id):
    """Return the row of a job that HTCondor knows by ``job_id``."""
    return jobs.job(int(job_id.rpartition(".")[2]))


def assert_held(row, code, *words, subcode=None):
    """Assert that a job is held for that, and that its reason has the words."""
    assert (row.state, row.hold_code) == ("failed", code), row
    assert subcode in (None, row.hold_subcode)
    for each in words:
        assert each in row.hold_reason


def await_state(jobs, job_id, state):
    wait_for(lambda: row_of(jobs, job_id).state == state, f"job {state}")


def await_status(service, job_ids, status, timeout=60.0):
    """Wait until all jobs have a status; fail at once if one of them is held or removed instead."""

    def have():
        words = {job_id: service.status(job_id) for job_id in job_ids}
        wrong = {word for word in words.values() if word[0] in {3, 5} - {status}}
        assert not wrong, wrong
        return all(word == status for word, _ in words.values())

    wait_for(have, f"status {status} of {len(job_ids)} jobs", timeout)


def expire_times(site):
    """Return until when the project keeps the account's batches, the oldest first."""
    return [float(value) for value in site.of_account("b.expire_time")]
