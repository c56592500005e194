"""What a project runs for somebody who waits for results: apps, programs, functions; futures."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeVar, cast

from boinc_gahp.api import _control
from boinc_gahp.api.batch import Batch
from boinc_gahp.api.watching import Poll
from boinc_gahp.containers.rules import MAX_ERRORS
from boinc_gahp.errors import BadRequest

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from types import ModuleType
    from typing import Any

    from typing_extensions import Unpack

    from boinc_gahp.api.app import App
    from boinc_gahp.api.futures.functions import Function
    from boinc_gahp.api.futures.job_futures import JobFutures, JobResult
    from boinc_gahp.api.futures.mapping import MappedJobs
    from boinc_gahp.api.request import Options
    from boinc_gahp.api.session import Session
    from boinc_gahp.api.types import File, Job
    from boinc_gahp.rpc.types import BatchInfo

__all__ = ["ProjectRuns", "name_of_app"]

T = TypeVar("T")


class ProjectRuns:
    """The part of a :class:`~boinc_gahp.Project` that returns futures."""

    session: Session

    def handle(self, info: BatchInfo) -> Batch:
        """Return the handle of a batch as the project has described it.

        :meta private:
        """
        return Batch(cast("Any", self), info)

    def futures(self, mapped: MappedJobs[T], poll: Poll) -> JobFutures[T]:
        """Return the futures of jobs that were submitted.

        :meta private:
        """
        from boinc_gahp.api.futures.job_futures import JobFutures  # noqa: PLC0415  (not for lists of batches)

        batch = _control.submitted(self.handle(mapped.sent.info), mapped.sent)
        return JobFutures(batch, mapped.jobs, mapped.directory, mapped.make, poll=poll)

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
        from boinc_gahp.api.futures.mapping import map_jobs  # noqa: PLC0415  (not for lists of batches)

        mapped = map_jobs(
            self.session,
            name_of_app(app),
            rows,
            args=args,
            inputs=inputs,
            outputs=outputs,
            directory=directory,
            **options,
        )
        return self.futures(mapped, poll)

    def run(
        self,
        command: Sequence[object] | str,
        *,
        image: str,
        rows: str | os.PathLike[str] | Iterable[Mapping[str, Any]] | Iterable[Job] | None = None,
        inputs: Iterable[str | os.PathLike[str]] | Mapping[str, File] = (),
        outputs: Sequence[str] | None = None,
        environment: Mapping[str, str] | None = None,
        network: bool = False,
        cpus: int = 1,
        max_errors: int = MAX_ERRORS,
        app: str | None = None,
        find_files: bool = True,
        allow_environment: Iterable[str] = (),
        follow_links: bool = False,
        directory: str | os.PathLike[str] | None = None,
        poll: Poll = Poll(),  # noqa: B008  (frozen)
        **options: Unpack[Options],
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
        from boinc_gahp.api.futures.mapping import run_program  # noqa: PLC0415  (not for lists of batches)

        mapped = run_program(
            self.session,
            command,
            image=image,
            rows=rows,
            inputs=inputs,
            outputs=outputs,
            environment=environment,
            network=network,
            cpus=cpus,
            max_errors=max_errors,
            app=app,
            find_files=find_files,
            allow_environment=allow_environment,
            follow_links=follow_links,
            directory=directory,
            **options,
        )
        return self.futures(mapped, poll)

    def function(
        self,
        function: Callable[..., T],
        *,
        image: str | None = None,
        modules: Iterable[ModuleType] = (),
        inputs: Iterable[str | os.PathLike[str]] | Mapping[str, File] = (),
        environment: Mapping[str, str] | None = None,
        network: bool = False,
        cpus: int = 1,
        max_errors: int = MAX_ERRORS,
        app: str | None = None,
        allow_environment: Iterable[str] = (),
        follow_links: bool = False,
        python: str = "python3",
        poll: Poll = Poll(),  # noqa: B008  (frozen)
        **options: Unpack[Options],
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

        how = {
            "inputs": inputs,
            "environment": environment,
            "network": network,
            "cpus": cpus,
            "max_errors": max_errors,
            "app": app,
            "allow_environment": allow_environment,
            "follow_links": follow_links,
            **options,
        }
        return Function(
            self.session,
            function,
            image=image,
            modules=modules,
            python=python,
            futures=partial(self.futures, poll=poll),
            how=how,
        )


def name_of_app(app: App | str) -> str:
    """Return an app's name; raises BadRequest for anything else."""
    name = app if isinstance(app, str) else getattr(app, "name", None)
    if not isinstance(name, str):
        raise BadRequest(f"app is a {type(app).__name__}: expected the app's name")
    return name
