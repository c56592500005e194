"""Python functions that volunteers call: a program like any other, whose value is read here.

A call is a job that runs :mod:`boinc_gahp.functions.runner` in a container. What is sent and what
comes back is described in :mod:`boinc_gahp.functions`.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from boinc_gahp.api import _control
from boinc_gahp.api._gathering import failed_job
from boinc_gahp.api._mapping import UNNAMED, contents_name, directory_for, free_name
from boinc_gahp.api.finding import find_batch
from boinc_gahp.api.futures import JobFuture, JobFutures, JobResult
from boinc_gahp.api.manifest_files import Manifests
from boinc_gahp.api.programs import ProgramBatch, program_batch
from boinc_gahp.api.progress import StepView, shown
from boinc_gahp.api.request import build_request, job_names
from boinc_gahp.api.retrying import jobs_again
from boinc_gahp.api.types import CommandRecord, InlineFile, Job
from boinc_gahp.errors import BadRequest, BatchConflict, JobFailed, NotFound, RemoteError
from boinc_gahp.functions.payload import (
    PROGRAM,
    PYTHON,
    CallPayload,
    FunctionPayload,
    pack_call,
    pack_function,
    shared_files,
    words,
)
from boinc_gahp.functions.runner import RESULT, RETURNED
from boinc_gahp.functions.values import Raised, WrongResult, read_result
from boinc_gahp.states import BatchState
from boinc_gahp.text import count, shorten

if TYPE_CHECKING:
    import os
    from collections.abc import Callable
    from types import ModuleType

    from boinc_gahp.api._mapping import Sender
    from boinc_gahp.api.batch import Batch
    from boinc_gahp.api.manifest import Manifest
    from boinc_gahp.api.types import OnProgress
    from boinc_gahp.api.watching import Poll
    from boinc_gahp.submit.types import Parameter

__all__ = ["Function"]

T = TypeVar("T")

#: What cannot be in the name of a batch.
_STEM = re.compile(r"[^A-Za-z0-9_]")
#: In what the manifest keeps of a job: a name for all contents.
_CONTENTS = "contents"
#: The most characters of an argument among a job's parameters, and of all in an error.
_SHOWN = 60
_LONG = 300


class Function(Generic[T]):
    """A Python function that volunteers call; made by :meth:`Project.function`.

    It is called like the function itself, and returns a future at once. Each call is a batch of one
    job; many calls belong into one :meth:`map` or :meth:`starmap`.

    Attributes:
        name: the function's name.
        image: the image that it runs in.
    """

    def __init__(
        self,
        project: Sender,
        function: Callable[..., T],
        *,
        image: str | None,
        modules: Iterable[ModuleType],
        python: str,
        poll: Poll,
        how: Mapping[str, Any],
    ) -> None:
        self.image = f"python:{PYTHON}-slim" if image is None else image
        self._project = project
        self._function = function
        self._payload = pack_function(function, tuple(modules))
        self._python = python
        self._poll = poll
        self._how = dict(how)
        self.name = self._payload.name
        if self._how.get("name") is not None:
            raise BadRequest(
                "name is for a batch, and each map() makes one: function.map(..., name=...)"
            )
        try:
            self._signature: inspect.Signature | None = inspect.signature(function)
        except (TypeError, ValueError):
            self._signature = None

    def __call__(self, *args: Any, **kwargs: Any) -> JobFuture[T]:
        """Call the function on a volunteer's computer, and return a future.

        Raises:
            BadRequest: the function takes no such arguments, or they cannot be pickled.
            GahpError: as :meth:`Project.submit`.
        """
        return self._submitted([(args, kwargs)], None, None)[0]

    def map(
        self,
        *iterables: Iterable[Any],
        name: str | None = None,
        directory: str | os.PathLike[str] | None = None,
    ) -> JobFutures[T]:
        """Call the function for each element; return a future for each call, in one batch.

        Args:
            iterables: one for each argument of the function; the shortest one tells how many calls
                there are.
            name: the batch's name; None: one that is made from what is sent, so that the same call
                finds the same batch.
            directory: where the outputs are put, with a folder for each call; None: a folder with
                the batch's name in the working directory.

        Raises:
            BadRequest: the function takes no such arguments, they cannot be pickled, or there are
                none.
            BatchConflict: the function or the arguments are others than those of the batch of this
                name.
            GahpError: as :meth:`Project.submit`.
        """
        if not iterables:
            raise BadRequest("map needs an iterable for each argument of the function")
        for number, each in enumerate(iterables, 1):
            try:
                iter(each)
            except TypeError:
                raise BadRequest(
                    f"argument {number} of map is of the type {type(each).__name__}: expected "
                    "a list or another iterable; to call the function once, write function(...)"
                ) from None
        return self.starmap(zip(*iterables), name=name, directory=directory)  # noqa: B905  (as Python's map)

    def starmap(
        self,
        calls: Iterable[Iterable[Any]],
        *,
        name: str | None = None,
        directory: str | os.PathLike[str] | None = None,
    ) -> JobFutures[T]:
        """Call the function for each tuple of arguments; return a future for each, in one batch.

        Args:
            calls: the arguments of each call: a tuple, or a mapping of arguments by their names.
            name: as for :meth:`map`.
            directory: as for :meth:`map`.

        Raises:
            BadRequest, BatchConflict, GahpError: as :meth:`map`.
        """
        listed = []
        for number, each in enumerate(calls):
            if isinstance(each, Mapping):
                listed.append(((), dict(each)))
            elif isinstance(each, Iterable) and not isinstance(each, (str, bytes)):
                listed.append((tuple(each), {}))
            else:
                raise BadRequest(
                    f"calls[{number}] is of the type {type(each).__name__}: expected a tuple with "
                    "the arguments of a call, or a mapping; for a single argument there is map()"
                )
        return self._submitted(listed, name, directory)

    # -- making the batch

    def _submitted(
        self,
        calls: Sequence[tuple[tuple[Any, ...], dict[str, Any]]],
        name: str | None,
        directory: str | os.PathLike[str] | None,
    ) -> JobFutures[T]:
        if not calls:
            raise BadRequest(f"there are no calls of {self.name}: expected at least one")
        sent, jobs = [], []
        for args, kwargs in calls:
            parameters = self._parameters(args, kwargs)
            sent.append(pack_call(self._payload, args, kwargs))
            jobs.append(Job(parameters=parameters))
        with shown(self._how.get("progress"), StepView) as report:
            options = {**self._how, "progress": report}
            batch = self._batch(_Calls(self._payload, sent, jobs), name, options)
        names = job_names(batch.name, jobs)
        keys = {name: call.key for name, call in zip(names, sent, strict=True)}
        return JobFutures(
            batch,
            [(name, job.parameters) for name, job in zip(names, jobs, strict=True)],
            directory_for(batch, directory),
            _Reader(batch, self.name, keys),
            poll=self._poll,
        )

    def _parameters(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Parameter]:
        """Return the arguments of a call by their names, for tables of people."""
        if self._signature is None:
            named = {f"argument {number}": each for number, each in enumerate(args)} | kwargs
        else:
            try:
                named = dict(self._signature.bind(*args, **kwargs).arguments)
            except TypeError as error:
                raise BadRequest(
                    f"a call of {self.name}{self._signature} has wrong arguments: {error}"
                ) from error
        return {key: _shown(each) for key, each in named.items()}

    def _batch(self, calls: _Calls, name: str | None, options: dict[str, Any]) -> Batch:
        """Return the batch of the calls: it is there already, or is submitted."""
        session = self._project.session  # pickles differ each time, and fingerprints do not
        like = self._program(calls.normal(), {**options, "name": UNNAMED})
        stem = _STEM.sub("", self.name) or "function"
        unnamed = build_request(like.app, like.jobs, **like.options)
        contents = contents_name(session, stem, unnamed)
        batch_name = name or free_name(session, contents)
        found = self._found(calls, batch_name, contents, name)
        if found is not None:
            return found
        made = self._program(calls.real(), {**options, "name": batch_name})
        jobs = [_as_kept(job, contents) for job in made.jobs]
        try:
            return self._project.submit(made.app, jobs, **made.options)
        except BatchConflict:
            # Another process sends the same calls as other pickles, or did when it was killed.
            old = Manifests(session).find(batch_name)
            if old is None or calls.difference(old, contents):
                raise
        return self._completed(batch_name, old, options["progress"])

    def _completed(self, name: str, old: Manifest, progress: OnProgress | None) -> Batch:
        """Return the batch of calls after sending once more what was sent for it before."""
        batch = find_batch(self._project.session, old.batch_id)
        names = {each: each for each in old.jobs}
        jobs = jobs_again(self._project.session, batch, old, names, progress)
        how: dict[str, Any] = {**old.options, "name": name, "progress": progress}
        return self._project.submit(old.app_name, jobs, **how)

    def _program(self, rows: list[Job], options: Mapping[str, Any]) -> ProgramBatch:
        how = dict(options)
        given = how.pop("environment", None) or {}
        # Libraries would use all processors of the computer, and its owner has set these aside.
        environment = {"OMP_NUM_THREADS": str(how.get("cpus", 1)), **given}
        return program_batch(
            self._project.session,
            [self._python, PROGRAM],
            image=self.image,
            rows=rows,
            outputs=[RETURNED],
            environment=environment,
            find_files=False,
            **how,
        )

    def _found(self, calls: _Calls, name: str, contents: str, given: str | None) -> Batch | None:
        """Return the batch of this name if it has these calls; None if it is to be submitted.

        Raises:
            BatchConflict: the batch has other calls.
            RpcError: the project could not be asked.
        """
        session = self._project.session
        try:
            info = session.rpc.query_batch(batch_name=name).batch
        except NotFound:
            return None
        if info.state not in (BatchState.IN_PROGRESS, BatchState.COMPLETE) or not info.njobs:
            return None
        if given is not None:
            manifest = Manifests(session).of(name, info.id)
            if manifest is None:
                return None
            changed = calls.difference(manifest, contents)
            if changed:
                raise BatchConflict(
                    f"batch {name!r} (id {info.id}) of {session.rpc.host} was made by other calls: "
                    f"{changed}; give these calls another name, or none"
                )
        batch = self._project.handle(info)
        batch.existed = batch.compared = True
        _control.renew(batch)
        return batch

    def __repr__(self) -> str:
        return f"<Function {self.name!r} in {self.image} on {self._project.session.rpc.host}>"


class _Calls(NamedTuple):
    """The calls of a batch.

    Attributes:
        function: what is called.
        calls: the arguments of each call.
        jobs: a job for each call, with its parameters.
    """

    function: FunctionPayload
    calls: list[CallPayload]
    jobs: list[Job]

    def real(self) -> list[Job]:
        """Return the jobs with what is sent."""
        shared = {name: _inline(content) for name, content in shared_files().items()}
        shared[self.function.file_name] = _inline(self.function.content)
        return [
            replace(
                job,
                args=words(self.function, call),
                inputs={**shared, call.file_name: _inline(call.content)}
                if call.is_file
                else shared,
            )
            for job, call in zip(self.jobs, self.calls, strict=True)
        ]

    def normal(self) -> list[Job]:
        """Return jobs that are the same each time, for the batch's name."""
        inputs = {PROGRAM: InlineFile(self.function.fingerprint)}
        return [
            replace(job, args=(call.key, PYTHON), inputs=inputs)
            for job, call in zip(self.jobs, self.calls, strict=True)
        ]

    def difference(self, manifest: Manifest, contents: str) -> str:
        """Return what differs between these calls and those that were sent; empty: nothing."""
        sent = [job.program for job in map(manifest.job, manifest.jobs) if job.program is not None]
        told = json.loads(sent[0].shared) if sent else {}
        if told.get(_CONTENTS) == contents:
            return ""
        if not sent or self.function.file_name not in sent[0].command:
            return f"the function {self.function.name}"
        if len(sent) != len(self.calls):
            return "the number of calls"
        pairs = zip(sent, self.calls, strict=True)
        others = [n for n, (job, call) in enumerate(pairs) if call.key not in job.command]
        if others:
            return f"arguments of {count(len(others), 'call')}, first of call {others[0]}"
        return "the image, the input files or the options"


def _as_kept(job: Job, contents: str) -> Job:
    """Return a job whose manifest tells of the call, and not the bytes of its arguments."""
    if job.program is None:
        return job
    told = {**json.loads(job.program.shared), _CONTENTS: contents}
    return replace(job, program=CommandRecord(job.program.command[:-1], json.dumps(told)))


def _inline(content: bytes) -> InlineFile:
    return InlineFile(content.decode("utf-8", "surrogateescape"))


def _shown(value: Any) -> Parameter:
    """Return an argument as it is, or as a short text, for people."""
    if value is None or type(value) in (str, int, float, bool):
        return value if not isinstance(value, str) else shorten(value, _SHOWN)
    try:
        return shorten(repr(value), _SHOWN)
    except Exception:  # noqa: BLE001  (whatever a class of the user does)
        return f"<{type(value).__name__}>"


def _listed(parameters: Mapping[str, Parameter]) -> str:
    return shorten(", ".join(f"{name}={value!r}" for name, value in parameters.items()), _LONG)


# -- reading what came back


class _Reader:
    """Makes the values of a batch's calls, or raises what they raised.

    Args:
        batch: the batch.
        function: the function's name.
        keys: the keys of the calls, by the names of their jobs.
    """

    def __init__(self, batch: Batch, function: str, keys: Mapping[str, str]) -> None:
        self._batch = batch
        self._function = function
        self._keys = keys

    def __call__(self, result: JobResult) -> Any:
        """Return the value of a call.

        Raises:
            RemoteError: it has none.
            JobFailed: the program did not get so far as to say why.
        """
        directory = result.folder / RETURNED
        if not directory.joinpath(RESULT).is_symlink() and not directory.joinpath(RESULT).exists():
            raise self._no_result(result)
        try:
            value, raised = read_result(directory, self._keys[result.name])
        except WrongResult as error:
            # It may not even be of this program.
            raised = Raised("", f"what came back is not the value of this call: {error}", "")
        if raised is None:
            return value
        raise self._error(result, raised)

    def _error(self, result: JobResult, raised: Raised) -> RemoteError:
        said = shorten(f"{raised.type_name}: {raised.message}".removeprefix(": "), _LONG)
        text = (
            f"{self._function}({_listed(result.parameters)}), job {result.name!r} of batch "
            f"{self._batch.name!r} (id {self._batch.id}) of {self._batch.session.rpc.host}, "
            f"{'raised' if raised.type_name else 'has no value:'} {said}"
        )
        error = RemoteError(
            text,
            job=result.name,
            exit_status=result.exit_status,
            why=said,
            stderr=result.stderr,
            type_name=raised.type_name,
            message=raised.message,
            traceback=raised.traceback,
        )
        if raised.traceback and hasattr(error, "add_note"):  # Python 3.11
            error.add_note(f"On the volunteer's computer:\n{raised.traceback.rstrip()}")
        return error

    def _no_result(self, result: JobResult) -> JobFailed:
        return failed_job(
            self._batch,
            result.name,
            f"the call ended without a result: {result.failure or 'its process was ended'}",
            exit_status=result.exit_status,
            stderr=result.stderr,
        )
