"""A project with one's account there: the way in to everything else."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from boinc_gahp import config as settings_files
from boinc_gahp.config.accounts import authenticator_of, find_project
from boinc_gahp.errors import GahpError, RpcError
from boinc_gahp.remote import finding, leases, splitting, submission, watching
from boinc_gahp.remote.app import look_up
from boinc_gahp.remote.batch import Batch
from boinc_gahp.remote.comparing import is_final
from boinc_gahp.remote.session import open_session
from boinc_gahp.remote.types import Parameters
from boinc_gahp.remote.watching import Poll
from boinc_gahp.rpc import BatchInfo, BatchState

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from typing_extensions import Self, Unpack

    from boinc_gahp.bridge import Bridge, OnProgress, Progress
    from boinc_gahp.config import Settings
    from boinc_gahp.remote.app import App
    from boinc_gahp.remote.submission import Options, Plan
    from boinc_gahp.remote.types import Job
    from boinc_gahp.rpc import WebRpcs as Rpc
    from boinc_gahp.secret import Authenticator


class Project:
    """A BOINC project, as one account sees it.

    ::

        with Project("https://boinc.example.edu/test/", authenticator) as project:
            batch = project.submit("uppercase", [Job(inputs={"in": "a.txt"})], name="first")
            batch.wait()
            batch.fetch("results")
            batch.retire()

    Thread-safe: one for all threads of a program. What fails for a moment is tried again; submit
    makes every job exist once, whatever happens on the way. Errors are those of
    :mod:`boinc_gahp.errors`.

    Args:
        url: the project's address, as volunteers use it.
        authenticator: the account's, from its page on the project's web site.
        settings: None: the defaults; see :meth:`from_settings`.
        name: of its section ``[projects.NAME]`` in the settings.

    Attributes:
        session: connections and settings, shared by all that is made from this object.
        rpc: the project's web RPCs themselves.
        name: as given.

    Raises:
        BadRequest: ``url`` is no project's address.
    """

    def __init__(
        self,
        url: str,
        authenticator: str | Authenticator,
        *,
        settings: Settings | None = None,
        name: str | None = None,
    ) -> None:
        self.session = open_session(url, authenticator, settings, name)
        self.name = name

    @classmethod
    def from_settings(
        cls, name: str | None = None, *, config: str | os.PathLike[str] | None = None
    ) -> Self:
        """Return a project of the settings files.

        Args:
            name: of a section ``[projects.NAME]``, or the project's address; None: ``[project]``.
            config: a settings file that is read after the others, over them.

        Raises:
            ConfigError: the settings are wrong, or have no such project, or no authenticator.
        """
        settings = settings_files.load(None if config is None else os.fspath(config))
        found, project = find_project(settings, name)
        authenticator = authenticator_of(settings, project)
        return cls(project.url, authenticator, settings=settings, name=found or None)

    # -- what it is

    @property
    def rpc(self) -> Rpc:
        """The project's web RPCs themselves, typed and repeated where they may be."""
        return self.session.rpc

    @property
    def _bridge(self) -> Bridge:
        return self.session.bridge

    @property
    def url(self) -> str:
        """The project's address; always ends in ``/``."""
        return self.rpc.url

    @property
    def host(self) -> str:
        """Its host, with the port where it is not the usual one."""
        return self.rpc.host

    @property
    def account(self) -> str:
        """16 hex digits that tell accounts apart and give nothing away."""
        return self.rpc.account

    def ping(self) -> None:
        """Ask whether the project answers; raises RpcError if it does not."""
        self.rpc.ping()

    def app(self, name: str) -> App:
        """Return an app: which inputs it wants, and which outputs come of it.

        Raises:
            NotFound: the project has no such app.
            TemplateError: its templates cannot be read.
            RpcError: the project could not be asked.
        """
        return look_up(self.session, name)

    # -- batches

    def batches(self) -> tuple[Batch, ...]:
        """Return the account's batches, newest first; retired ones are not among them.

        Raises:
            RpcError: the project could not be asked.
        """
        return tuple(Batch(self, info) for info in finding.of_account(self.session))

    def batch(self, which: int | str) -> Batch:
        """Return one of the account's batches, also one that is retired.

        Args:
            which: its id or its name. Names that differ in case, accents or spaces at their end
                are the same for the project: such a one is taken if no batch has exactly this name
                and no other is like it. ``id:5`` and ``name:5`` say which of the two is meant.

        Raises:
            NoSuchBatch: there is none; says which one might have been meant.
            AmbiguousBatch: it could be several; says which, and how to name one.
            ForeignBatch: it is another account's.
            RpcError: the project could not be asked.
        """
        return Batch(self, finding.batch(self.session, which))

    def submit(
        self,
        app: App | str,
        jobs: Iterable[Job],
        *,
        name: str | None = None,
        parameters: Parameters = Parameters(),  # noqa: B008  (frozen)
        priority: int | None = None,
        app_version_num: int | None = None,
        lease: float | None = None,
        input_template_filename: str | None = None,
        output_template_filename: str | None = None,
        progress: OnProgress | None = None,
    ) -> Batch:
        """Send files and jobs, so that each job exists exactly once; return their batch.

        Called again with the same jobs and the same ``name``, at any time and from any process, it
        completes what an earlier call began, or finds it done. So a program that may be killed
        while it submits chooses the name itself. Files are sent once, by content, and those that
        the project has are not sent at all. What it finds done is told by :attr:`Batch.existed`: by
        the jobs' names, for a project does not tell what arguments and files a job has. These are
        written down on this machine: where other ones were submitted under the name, that is an
        error, and :attr:`Batch.compared` tells whether that is known.

        Args:
            app: the app that the jobs run.
            jobs: at least one.
            name: unique over the whole project; None: ``<app>-<time>-<letters>``.
            parameters: what the jobs need and may use, where they do not say so themselves.
            priority: of jobs without one of their own.
            app_version_num: run by this version of the app only. No project tells which there are:
                jobs for one that does not exist are taken, and stay queued for ever.
            lease: seconds that the batch is kept if nobody waits for it, fetches from it or calls
                :meth:`Batch.extend`; None: as long as its jobs may take by their deadlines and
                retries, ``[jobs] batch_lease`` (14 days) at least.
            input_template_filename: a file in the project's own directory of templates; None: the
                app's. Likewise for outputs.
            output_template_filename: see there.
            progress: told how far it is; what it raises ends the submit.

        Raises:
            BadRequest: something is not of the type that it should have.
            JobRefused: the project would mangle a job or choke on it; nothing was created.
            BatchConflict: the name belongs to another batch, to one that takes no jobs any more, or
                to one that was submitted with other arguments or files.
            StagingError: an input file cannot be read, measured or sent.
            NotFound: there is no such app.
            PermissionDenied: the account may not submit to it.
            TemplateError: the app's templates cannot be read.
            RpcError: the project said no or could not be asked.
        """
        app_name = _name(app)
        is_made_up = name is None
        name = submission.new_batch_name(app_name) if name is None else name
        began = time.time()
        sending = False

        def told(news: Progress) -> None:
            nonlocal sending
            sending = sending or news.step == "submitting"
            if progress is not None:
                progress(news)

        try:
            batch_id, compared = submission.submit(
                self.session,
                app_name,
                jobs,
                name=name,
                parameters=parameters,
                priority=priority,
                app_version_num=app_version_num,
                lease=lease,
                input_template_filename=input_template_filename,
                output_template_filename=output_template_filename,
                progress=told,
            )
        except GahpError as error:
            if is_made_up and is_final(error):
                # Nobody else knows its name.
                submission.drop_begun(self.session, name)
            raise
        try:
            batch = Batch(self, self.rpc.batch(batch_id))
        except RpcError as error:
            # All jobs are there: whoever heard of an error now would submit them once more.
            batch = Batch(self, _unseen(batch_id, name, app_name, began))
            batch.trouble = error
        batch.existed, batch.compared = not sending, compared
        if batch.existed:
            leases.renew(batch)
        return batch

    def submit_split(
        self, app: App | str, jobs: Iterable[Job], **options: Unpack[Options]
    ) -> list[Batch]:
        """Send jobs as :meth:`submit` does, in several batches if one request cannot hold them.

        Called again with the same jobs and the same ``name`` it completes what an earlier call
        began, or finds it done, unless how much fits into a request has changed meanwhile: that is
        a BatchConflict.

        Args:
            app: the app that the jobs run.
            jobs: at least one.
            options: those of :meth:`submit`. If there are several batches, they are called
                ``<name>-1``, ``<name>-2``, …; the jobs have the names that they would have in one.

        Raises:
            BadRequest, JobRefused, BatchConflict, StagingError, NotFound, PermissionDenied,
                TemplateError, RpcError: as :meth:`submit`; the batches before the one that failed
                are submitted.
        """
        parts = splitting.split(self.session, _name(app), jobs, **options)
        batches = []
        for name, part in parts:
            options["name"] = name
            batches.append(self.submit(app, part, **options))
        return batches

    def plan(self, app: App | str, jobs: Iterable[Job], **options: Unpack[Options]) -> Plan:
        """Look at what :meth:`submit` would do; nothing is created, sent, or fetched.

        Args:
            app: the app that the jobs run.
            jobs: at least one.
            options: those of :meth:`submit`.

        Raises:
            BadRequest, StagingError, NotFound, PermissionDenied, TemplateError, RpcError: as
                :meth:`submit`.
            JobRefused: a job's arguments cannot be split; what else stands against jobs is in the
                plan.
        """
        return submission.plan(self.session, _name(app), jobs, **options)

    def estimate(self, app: App | str, jobs: Iterable[Job], **options: Unpack[Options]) -> float:
        """Return how many seconds the project thinks the jobs would take; nothing is created.

        Args:
            app: the app that the jobs run.
            jobs: at least one.
            options: those of :meth:`submit`.

        Raises:
            BadRequest, JobRefused, NotFound, PermissionDenied, TemplateError, RpcError: as
                :meth:`submit`.
        """
        return submission.estimate(self.session, _name(app), jobs, **options)

    def watch(
        self,
        batches: Sequence[Batch],
        *,
        poll: Poll = Poll(),  # noqa: B008  (frozen)
    ) -> Iterator[tuple[Batch, ...]]:
        """Yield the batches, refreshed, after every look at them; end when all are over.

        The first look is at once. While the project is down, :attr:`Batch.trouble` says so, and the
        same handles are yielded.

        Raises:
            PermissionDenied: the project does not let the account look (any more).
            RpcError: the project was closed meanwhile.
        """
        return watching.watch(self.session, batches, poll=poll)

    # -- the end

    def close(self) -> None:
        """Close the connections; whoever waits for a batch, in any thread, stops waiting."""
        self.session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc_info: object) -> None:
        self.close()

    def __repr__(self) -> str:
        called = f"{self.name!r} " if self.name else ""
        return f"<Project {called}{self.url} account {self.account}>"


def _name(app: App | str) -> str:
    return app if isinstance(app, str) else app.name


def _unseen(batch_id: int, name: str, app_name: str, create_time: float) -> BatchInfo:
    """Return what is known of a batch that was just submitted and cannot be looked at."""
    return BatchInfo(
        id=batch_id,
        name=name,
        app_name=app_name,
        state=BatchState.UNKNOWN,
        create_time=create_time,
        expire_time=0.0,
        est_completion_time=0.0,
        completion_time=0.0,
        njobs=0,
        nerror_jobs=0,
        fraction_done=0.0,
        credit_estimate=0.0,
        credit_canonical=0.0,
    )
