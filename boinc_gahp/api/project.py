"""A project and an account there: the entry point of the API."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from boinc_gahp.api import control, finding, submission, watching
from boinc_gahp.api.batch import Batch
from boinc_gahp.api.finding import look_up
from boinc_gahp.api.progress import StepView, shown
from boinc_gahp.api.request import build_request, tell_keywords
from boinc_gahp.api.session import impatient, open_session
from boinc_gahp.api.watching import Poll
from boinc_gahp.config import layers
from boinc_gahp.config.accounts import authenticator_of, find_project
from boinc_gahp.errors import BadRequest, GahpError
from boinc_gahp.quantities import SPAN

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path
    from types import ModuleType
    from typing import Any

    from typing_extensions import Self, Unpack

    from boinc_gahp.api.finding import App
    from boinc_gahp.api.futures.functions import Function
    from boinc_gahp.api.futures.job_futures import JobFutures, JobResult
    from boinc_gahp.api.programs import ProgramKeywords
    from boinc_gahp.api.request import Options
    from boinc_gahp.api.submission import Plan, Submitted
    from boinc_gahp.config.settings import Settings
    from boinc_gahp.quantities import Duration
    from boinc_gahp.rpc.types import BatchInfo
    from boinc_gahp.secret import Authenticator
    from boinc_gahp.submit.types import File, Job, Parameter

T = TypeVar("T")


class Project:
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
        rpc: the project's web RPCs, typed, and retried where that is safe.
        name: as given.
        url: the project's address; always ends in ``/``.
        host: the project's host, with the port unless it is the usual one.
        account: 16 hex digits that identify the account and reveal nothing about it.

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
        self.rpc = self.session.rpc
        self.url, self.host, self.account = self.rpc.url, self.rpc.host, self.rpc.account

    @classmethod
    def from_settings(
        cls,
        name: str | None = None,
        *,
        config: str | os.PathLike[str] | None = None,
        timeout: Duration | None = None,
    ) -> Self:
        """Return a project from the settings files.

        Args:
            name: the NAME of a section ``[projects.NAME]``, or the project's address; None:
                ``[project]``.
            config: a settings file that is read last and overrides the others. Another user's is
                refused, unless ``[trust] config_of`` of the others names that user.
            timeout: a request is given up if the project has not answered for this long, however
                often it was repeated; None: as ``[timeouts]`` says.

        Raises:
            ConfigError: the settings are wrong, or lack the project or its authenticator.
        """
        settings = layers.load(None if config is None else os.fspath(config))
        if timeout is not None:
            settings = impatient(settings, SPAN.read(timeout))
        found, project = find_project(settings, name)
        authenticator = authenticator_of(settings, project)
        return cls(project.url, authenticator, settings=settings, name=found or None)

    # -- what it is

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

    def submit(self, app: App | str, jobs: Iterable[Job], **options: Unpack[Options]) -> Batch:
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
                :meth:`Batch.extend`, such as ``"30d"``; None: as long as its jobs may take with
                their deadlines and retries, but at least ``[jobs] batch_lease`` (14 days).
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
        with shown(options.get("progress"), StepView) as report:
            options["progress"] = report
            request = build_request(app_name, jobs, **options)
            try:
                sent = submission.submit(self.session, app_name, request)
            except GahpError as error:
                if options.get("name") is None and error.is_final:
                    # Only this call knows the made-up name.
                    submission.drop_begun(self.session, request.batch_name)
                raise
        return control.submitted(self.handle(sent.info), sent)

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
        parts = submission.split(self.session, name_of_app(app), jobs, **options)
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
        app_name = name_of_app(app)
        request = build_request(app_name, jobs, **options)
        with submission.app_explained(self.session, app_name):
            return submission.validator(self.session, request).estimate()

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

    # -- results that are waited for

    def handle(self, info: BatchInfo) -> Batch:
        """Return the handle of a batch as the project has described it.

        :meta private:
        """
        return Batch(self, info)

    def futures(
        self,
        sent: Submitted,
        jobs: Iterable[tuple[str, Mapping[str, Parameter]]],
        directory: Path,
        make: Callable[[JobResult], T],
        *,
        poll: Poll,
    ) -> JobFutures[T]:
        """Return the futures of jobs that were submitted; see :class:`JobFutures`.

        :meta private:
        """
        from boinc_gahp.api.futures.job_futures import JobFutures  # noqa: PLC0415  (not for lists of batches)

        batch = control.submitted(self.handle(sent.info), sent)
        return JobFutures(batch, jobs, directory, make, poll=poll)

    def map(
        self,
        app: App | str,
        rows: str | os.PathLike[str] | Iterable[Mapping[str, Any]] | Iterable[Job],
        *,
        args: Sequence[object] | str | None = None,
        inputs: Mapping[str, File] | None = None,
        outputs: Collection[str] | None = None,
        directory: str | os.PathLike[str] | None = None,
        poll: Poll = Poll(),  # noqa: B008  (frozen)
        **options: Unpack[Options],
    ) -> JobFutures[JobResult]:
        """Run an app for each row of a table; return a future for each job, in one batch.

        ::

            rows = [{"seed": seed} for seed in range(100)]
            futures = project.map("uppercase", rows, args="--seed {seed}", inputs={"in": "a.txt"})
            for future in futures.as_completed():
                print(future.parameters["seed"], future.result().outputs["out"].read_text())

        A thread fetches the outputs as the jobs end. They outlive this program: the same call, at
        any time later, finds the same batch, submits nothing twice, and fetches only what is
        missing. For this the batch's name is made from the contents of the request: the app,
        arguments, contents of files, sizes and templates. If that batch was aborted or retired,
        the call submits a new one.

        Args:
            app: the app that the jobs run.
            rows: as for :func:`jobs_from`: the path of a file, mappings, or a DataFrame; or jobs.
            args: as for :func:`jobs_from`.
            inputs: as for :func:`jobs_from`.
            outputs: open names of the outputs that each job has to have; None: whatever there is.
            directory: where the outputs are put, with a folder for each job; None: a folder with
                the batch's name in the working directory.
            poll: how often to ask the project.
            options: those of :meth:`Project.submit`. With ``name`` the batch has this name; then
                the same call with other jobs is an error.

        Raises:
            BadRequest: a row is wrong, or the file cannot be read.
            JobRefused, BatchConflict, StagingError, NotFound, PermissionDenied,
                TemplateError, RpcError: as :meth:`Project.submit`.
        """
        from boinc_gahp.api.futures import mapping  # noqa: PLC0415  (not for lists of batches)

        name, jobs = name_of_app(app), mapping.jobs_of(rows, args, inputs)
        jobs, wanted = mapping.with_outputs(self.session, name, jobs, outputs, options)
        futures = partial(self.futures, poll=poll)
        return mapping.mapped(
            self.session, name, jobs, futures, wanted=wanted, directory=directory, **options
        )

    def run(
        self,
        command: Sequence[object] | str,
        *,
        image: str,
        rows: str | os.PathLike[str] | Iterable[Mapping[str, Any]] | Iterable[Job] | None = None,
        inputs: Iterable[str | os.PathLike[str]] | Mapping[str, File] = (),
        outputs: Sequence[str] | None = None,
        find_files: bool = True,
        directory: str | os.PathLike[str] | None = None,
        poll: Poll = Poll(),  # noqa: B008  (frozen)
        **options: Unpack[ProgramKeywords],
    ) -> JobFutures[JobResult]:
        """Run a program in containers on volunteers' computers; return a future for each job.

        ::

            futures = project.run(
                ["./fit.py", "--seed", "{seed}", "data.csv"],
                image="python:3.12-slim",
                rows=[{"seed": seed} for seed in range(100)],
            )
            print(futures.results()[0].stdout)

        The same call, at any time later, finds the same batch, as :meth:`map` describes. A program
        that ends with another status than 0 raises JobFailed, with the last line of its stderr; its
        files are in its folder.

        Args:
            command: the program and its arguments: words, or one string, which is split as a shell
                would. It may have placeholders, as the ``args`` of :func:`jobs_from`. A program
                with a slash in its name, such as ``./fit.py``, goes with the job, if it is a file
                here; ``python3`` is the image's. Other words that name files or directories of this
                machine, and the part of a word behind ``=``, send these along. A relative path
                stays as it is; of an absolute one, or one with ``..``, the job has the last part.
            image: in a registry (``python:3.12-slim``), or a file (``oci-archive:FILE``,
                ``rootfs:FILE``).
            rows: as for :func:`jobs_from`; or jobs, whose arguments are added to the command, and
                whose inputs are files in the program's directory. None: one job.
            inputs: further files and directories: paths, or files by the names that they have in
                the program's directory. Both may have placeholders.
            outputs: files and directories that the program makes, relative to its directory; None:
                all new and changed files there (then the image needs ``tar``).
            environment: variables in addition to the image's.
            network: whether the program may use the network.
            cpus: processors for each job.
            max_errors: how many errors of a job are followed by another attempt; 0: one attempt.
            app: the project's app for such jobs; None: the setting ``container_app``.
            find_files: whether files are looked for in the command. The program itself always is.
            allow_environment: names of variables that are no secrets, though they look so.
            follow_links: whether symbolic links in input directories may lead out of them; what
                they lead to is sent then, but no secrets.
            directory: as for :meth:`map`.
            poll: how often to ask the project.
            options: those of :meth:`Project.submit`.

        Raises:
            BadRequest: a row is wrong, or the file cannot be read.
            JobRefused, BatchConflict, StagingError, NotFound, PermissionDenied,
                TemplateError, RpcError: as :meth:`Project.submit`.
        """
        from boinc_gahp.api.futures.mapping import mapped, stem_of  # noqa: PLC0415  (as above)
        from boinc_gahp.api.programs import program_batch  # noqa: PLC0415  (not for apps)

        made = program_batch(
            self.session,
            command,
            image=image,
            rows=rows,
            inputs=inputs,
            outputs=outputs,
            find_files=find_files,
            **options,
        )
        name, stem, futures = made.app, stem_of(made), partial(self.futures, poll=poll)
        return mapped(
            self.session, name, made.jobs, futures, stem=stem, directory=directory, **made.options
        )

    def function(
        self,
        function: Callable[..., T],
        *,
        image: str | None = None,
        modules: Iterable[ModuleType] = (),
        inputs: Iterable[str | os.PathLike[str]] | Mapping[str, File] = (),
        python: str = "python3",
        poll: Poll = Poll(),  # noqa: B008  (frozen)
        **options: Unpack[ProgramKeywords],
    ) -> Function[T]:
        """Return a function that volunteers call, in containers with the same version of Python.

        ::

            def area(radius):
                return 3.14 * radius**2

            futures = project.function(area).map(range(100))
            print(sum(futures.results()))

        The function and its arguments are sent as pickles, made by cloudpickle. Values come back as
        JSON and files, and are never unpickled (:doc:`/functions`). They can be numbers, texts,
        bytes, dates, lists, tuples, sets and dictionaries of these; arrays of numpy; tables of
        pandas; and the Paths of files that the function wrote. What a call raises is a
        :class:`~boinc_gahp.errors.RemoteError` here.

        The same call of ``map`` later, also from another process, finds the same batch: it is known
        by the function's code, its arguments, and all that is sent with them.

        Args:
            function: anything that can be called. What its own module defines goes with it.
            image: an image with Python and all that the function imports; None:
                ``python:X.Y-slim`` of this Python's version.
            modules: other modules of your own that the function uses.
            inputs: files and directories that the function reads: paths, or files by the names that
                they have in its working directory.
            environment: variables in addition to the image's.
            network: whether the function may use the network.
            cpus: processors for each call; libraries are told by ``OMP_NUM_THREADS``.
            max_errors: as for :meth:`run`.
            app: the project's app for containers; None: the setting ``container_app``.
            allow_environment: as for :meth:`run`.
            follow_links: as for :meth:`run`.
            python: the image's Python.
            poll: how often to ask the project.
            options: those of :meth:`Project.submit`, for each batch, without ``name``.

        Raises:
            BadRequest: the function cannot be pickled.
            MissingExtra: cloudpickle is not installed.
        """
        from boinc_gahp.api.futures.functions import Function  # noqa: PLC0415  (not for lists of batches)

        return Function(
            self.session,
            function,
            image=image,
            modules=modules,
            python=python,
            futures=partial(self.futures, poll=poll),
            how={"inputs": inputs, **options},
        )

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


for _each in (Project.submit, Project.submit_split, Project.plan, Project.estimate):
    tell_keywords(_each)


def name_of_app(app: App | str) -> str:
    """Return an app's name; raises BadRequest for anything else."""
    name = app if isinstance(app, str) else getattr(app, "name", None)
    if not isinstance(name, str):
        instead = "; to call it on volunteers: project.function(…).map(…)" if callable(app) else ""
        raise BadRequest(f"app is a {type(app).__name__}: expected the app's name{instead}")
    return name
