"""A project and an account there: the entry point of the API."""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from boinc_gahp.api import _control, finding, submission, watching
from boinc_gahp.api._runs import ProjectRuns, name_of_app
from boinc_gahp.api.app import look_up
from boinc_gahp.api.batch import Batch
from boinc_gahp.api.progress import StepView, shown
from boinc_gahp.api.request import build_request, job_names, list_of, new_batch_name
from boinc_gahp.api.session import impatient, open_session
from boinc_gahp.api.types import Parameters
from boinc_gahp.api.watching import Poll
from boinc_gahp.config import layers
from boinc_gahp.config.accounts import authenticator_of, find_project
from boinc_gahp.errors import GahpError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from typing_extensions import Self, Unpack

    from boinc_gahp.api.app import App
    from boinc_gahp.api.request import Options
    from boinc_gahp.api.session import Session
    from boinc_gahp.api.submission import Plan
    from boinc_gahp.api.types import Job
    from boinc_gahp.config.settings import Settings
    from boinc_gahp.rpc.client import WebRpcs as Rpc
    from boinc_gahp.secret import Authenticator
    from boinc_gahp.submit.types import OnProgress


class Project(ProjectRuns):
    """A BOINC project, as one account sees it.

    ::

        with Project("https://boinc.example.edu/test/", authenticator) as project:
            batch = project.submit("uppercase", [Job(inputs={"in": "a.txt"})], name="first")
            batch.wait()
            batch.fetch("results")
            batch.retire()

    Thread-safe: all threads of a program can share one object. Passing failures are retried; submit
    creates every job exactly once, whatever happens meanwhile. Errors are those of
    :mod:`boinc_gahp.errors`.

    Args:
        url: the project's address, as volunteers use it.
        authenticator: the account's authenticator, from its page on the project's web site.
        settings: None: the defaults; see :meth:`from_settings`.
        name: the NAME of its section ``[projects.NAME]`` in the settings.

    Attributes:
        session: connections and settings, shared by all objects made from this one.
        rpc: the project's web RPCs.
        name: as given.

    Raises:
        BadRequest: ``url`` is not a project's address.
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
        cls,
        name: str | None = None,
        *,
        config: str | os.PathLike[str] | None = None,
        timeout: float | None = None,
    ) -> Self:
        """Return a project from the settings files.

        Args:
            name: the NAME of a section ``[projects.NAME]``, or the project's address; None:
                ``[project]``.
            config: a settings file that is read last and overrides the others. Another user's is
                refused, unless ``[trust] config_of`` of the others names that user.
            timeout: seconds after which a request is given up if the project does not answer,
                however often it was repeated; None: as ``[timeouts]`` says.

        Raises:
            ConfigError: the settings are wrong, or lack the project or its authenticator.
        """
        settings = layers.load(None if config is None else os.fspath(config))
        if timeout is not None:
            settings = impatient(settings, timeout)
        found, project = find_project(settings, name)
        authenticator = authenticator_of(settings, project)
        return cls(project.url, authenticator, settings=settings, name=found or None)

    # -- what it is

    @property
    def rpc(self) -> Rpc:
        """The project's web RPCs, typed, and retried where that is safe."""
        return self.session.rpc

    @property
    def url(self) -> str:
        """The project's address; always ends in ``/``."""
        return self.rpc.url

    @property
    def host(self) -> str:
        """The project's host, with the port unless it is the usual one."""
        return self.rpc.host

    @property
    def account(self) -> str:
        """16 hex digits that identify the account and reveal nothing about it."""
        return self.rpc.account

    def ping(self) -> None:
        """Ask whether the project answers; raises RpcError if it does not."""
        self.rpc.ping()

    def app(self, name: str) -> App:
        """Return an app: which inputs its jobs need, and which outputs they make.

        Raises:
            NotFound: the project has no such app.
            TemplateError: its templates cannot be read.
            RpcError: the project could not be asked.
        """
        return look_up(self.session, name)

    # -- batches

    def batches(self) -> tuple[Batch, ...]:
        """Return the account's batches, newest first, without retired ones.

        Raises:
            RpcError: the project could not be asked.
        """
        return tuple(self.handle(info) for info in finding.of_account(self.session))

    def batch(self, which: int | str) -> Batch:
        """Return one of the account's batches, which may be retired.

        Args:
            which: its id or its name. For a project, names that differ in case, accents or trailing
                spaces are the same: such a batch is returned if no batch has exactly this name and
                only one is like it. Write ``id:5`` or ``name:5`` to say which of the two is meant.

        Raises:
            NoSuchBatch: there is no such batch; suggests similar names.
            WrongBatch: several batches match: lists them, and says how to choose one; or it belongs
                to another account.
            RpcError: the project could not be asked.
        """
        return self.handle(finding.find_batch(self.session, which))

    def submit(
        self,
        app: App | str,
        jobs: Iterable[Job],
        *,
        name: str | None = None,
        parameters: Parameters = Parameters(),  # noqa: B008  (frozen)
        priority: int | None = None,
        app_version_num: int | None = None,
        lease: float | str | None = None,
        input_template_filename: str | None = None,
        output_template_filename: str | None = None,
        progress: OnProgress | bool | None = None,
    ) -> Batch:
        """Send files and jobs, so that each job exists exactly once; return their batch.

        Called again with the same jobs and the same ``name``, at any time and from any process, it
        completes what an earlier call began, or finds it done. So a program that may be killed
        while it submits should choose the name itself. Each file content is sent only once, and not
        at all if the project has it. :attr:`Batch.existed` says whether the batch was found
        complete. Jobs are found by their names, since a project does not tell a job's arguments and
        files. These are recorded on this machine: other jobs under the same name are an error, and
        :attr:`Batch.compared` says whether there was a record to compare with.

        Args:
            app: the app that the jobs run; ``buda:NAME`` for a BUDA app.
            jobs: at least one.
            name: unique over the whole project, for ever; None: ``<app>-<time>-<letters>``.
            parameters: what the jobs need and may use, unless their own values say otherwise.
            priority: for jobs without a priority of their own.
            app_version_num: run the jobs with this version of the app only. A project does not list
                its versions: it accepts jobs for one that does not exist, and they wait for
                ever.
            lease: how long the batch is kept if nobody waits for it, fetches from it or calls
                :meth:`Batch.extend`, in seconds or as a text like ``"30d"``; None: as long as its
                jobs may take with their deadlines and retries, but at least ``[jobs] batch_lease``
                (14 days).
            input_template_filename: a file in the project's own directory of templates; None: the
                app's.
            output_template_filename: likewise, for outputs.
            progress: called with the progress; an exception that it raises ends the submit. True:
                shown on a terminal (stderr) or in a notebook.

        Raises:
            BadRequest: a value has the wrong type.
            JobRefused: the project would mangle a job or choke on it; nothing was created.
            NameInUse: a job of another batch has a job's name. If this is only noticed when the
                project refuses the jobs, the batch that this call made is retired, and no other can
                have its name.
            BatchConflict: the name belongs to another batch, to a batch that takes no more jobs, or
                to one that was submitted with other arguments or files.
            StagingError: an input file cannot be read or sent.
            NotFound: there is no such app.
            PermissionDenied: the account may not submit to it.
            TemplateError: the app's templates cannot be read.
            RpcError: the project refused, or could not be asked.
        """
        app_name = name_of_app(app)
        with shown(progress, StepView) as report:
            request = build_request(
                app_name,
                jobs,
                name=name,
                parameters=parameters,
                priority=priority,
                app_version_num=app_version_num,
                lease=lease,
                input_template_filename=input_template_filename,
                output_template_filename=output_template_filename,
                progress=report,
            )
            try:
                sent = submission.submit(self.session, app_name, request)
            except GahpError as error:
                if name is None and error.is_final:
                    # Only this call knows the made-up name.
                    submission.drop_begun(self.session, request.batch_name)
                raise
        return _control.submitted(self.handle(sent.info), sent)

    def submit_split(
        self, app: App | str, jobs: Iterable[Job], **options: Unpack[Options]
    ) -> list[Batch]:
        """Send jobs like :meth:`submit`, in several batches if they do not fit into one request.

        Called again with the same jobs and the same ``name``, it completes what an earlier call
        began, or finds it done. If the number of jobs that fit into a request has changed
        meanwhile, it raises BatchConflict.

        Args:
            app: the app that the jobs run.
            jobs: at least one.
            options: those of :meth:`submit`. Several batches are called ``<name>-1``, ``<name>-2``,
                …; the jobs have the same names as in one batch.

        Raises:
            BadRequest, JobRefused, BatchConflict, StagingError, NotFound, PermissionDenied,
                TemplateError, RpcError: as :meth:`submit`; the batches before the one that failed
                are submitted.
        """
        parts = split(self.session, name_of_app(app), jobs, **options)
        batches = []
        for name, part in parts:
            options["name"] = name
            batches.append(self.submit(app, part, **options))
        return batches

    def plan(self, app: App | str, jobs: Iterable[Job], **options: Unpack[Options]) -> Plan:
        """Show what :meth:`submit` would do; creates, sends and fetches nothing.

        Args:
            app: the app that the jobs run.
            jobs: at least one.
            options: those of :meth:`submit`.

        Raises:
            BadRequest, StagingError, NotFound, PermissionDenied, TemplateError, RpcError: as
                :meth:`submit`.
            JobRefused: a job's arguments cannot be split; all other problems of jobs are in the
                plan.
        """
        with shown(options.get("progress"), StepView) as report:
            options["progress"] = report
            return submission.plan(self.session, name_of_app(app), jobs, **options)

    def estimate(self, app: App | str, jobs: Iterable[Job], **options: Unpack[Options]) -> float:
        """Return how many seconds the project thinks the jobs would take; creates nothing.

        Args:
            app: the app that the jobs run.
            jobs: at least one.
            options: those of :meth:`submit`.

        Raises:
            BadRequest, JobRefused, NotFound, PermissionDenied, TemplateError, RpcError: as
                :meth:`submit`.
        """
        return submission.estimate(self.session, name_of_app(app), jobs, **options)

    def watch(
        self,
        batches: Iterable[Batch] | Batch,
        *,
        poll: Poll = Poll(),  # noqa: B008  (frozen)
    ) -> Iterator[tuple[Batch, ...]]:
        """Ask for the batches, or one, again and again; yield them each time, until all are over.

        The project is asked for the first time at once. While it is down, the same handles are
        yielded, and :attr:`Batch.trouble` says what is wrong.

        Raises:
            PermissionDenied: the project does not let the account look at them (any more).
            RpcError: the project object was closed meanwhile.
        """
        several = [batches] if isinstance(batches, Batch) else list(batches)
        return watching.watch(self.session, several, poll=poll)

    # -- the end

    def close(self) -> None:
        """Close the connections; a thread that is waiting for a batch stops waiting.

        Futures without a result get a Stopped error; their jobs go on.
        """
        self.session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc_info: object) -> None:
        self.close()

    def __repr__(self) -> str:
        called = f"{self.name!r} " if self.name else ""
        return f"<Project {called}{self.url} account {self.account}>"


def split(
    session: Session, app_name: str, jobs: Iterable[Job], **options: Unpack[Options]
) -> list[tuple[str, list[Job]]]:
    """Return batches, each with its name and jobs, so that each fits into a request.

    A project takes a batch in one request (``web-rpcs.rst``, "submit_batch"), and requests have a
    maximum size.

    There are as few as possible, of about the same size. A single batch has the given name; several
    are called ``<name>-1``, ``<name>-2``, … The jobs have the same names as in one batch. So the
    same jobs, settings and templates always make the same batches; if something differs, submitting
    them raises :class:`BatchConflict` and never duplicates jobs.

    Raises:
        BadRequest: a value has the wrong type.
        JobRefused: a job's arguments cannot be split or would not arrive unchanged.
        NotFound, PermissionDenied, TemplateError, RpcError: the app's templates cannot be had.
    """
    listed = list_of(jobs)
    name = options.get("name")
    options["name"] = name = new_batch_name(app_name) if name is None else name
    request = build_request(app_name, listed, **options)
    limit = session.context.project_settings.max_post_bytes
    size = submission.validator(session, request).size()
    if size <= limit:
        return [(name, listed)]
    named = [
        replace(job, name=job_name)
        for job, job_name in zip(listed, job_names(name, listed), strict=True)
    ]
    count, largest = 1, size
    while largest > limit and count < len(named):
        count = min(len(named), max(count + 1, -(-count * largest // limit)))
        places = _places(len(named), count)
        largest = max(
            submission.validator(session, replace(request, jobs=request.jobs[place])).size()
            for place in places
        )
    width = len(str(count))
    return [
        (f"{name}-{number:0{width}d}", named[place])
        for number, place in enumerate(_places(len(named), count), 1)
    ]


def _places(jobs: int, count: int) -> list[slice]:
    """Return where each of ``count`` batches begins and ends; sizes differ by one job at most."""
    ends = [jobs * number // count for number in range(count + 1)]
    return [slice(begin, end) for begin, end in pairwise(ends)]
