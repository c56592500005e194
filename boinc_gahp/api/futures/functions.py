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
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from boinc_gahp.api import submission
from boinc_gahp.api.control import send_again
from boinc_gahp.api.finding import find_batch
from boinc_gahp.api.futures.collecting import failed_job
from boinc_gahp.api.futures.mapping import UNNAMED, contents_name, directory_for, free_name
from boinc_gahp.api.known_batch import KnownBatch
from boinc_gahp.api.programs import ProgramBatch, program_batch
from boinc_gahp.api.progress import StepView, shown
from boinc_gahp.api.request import build_request, job_names, renamed
from boinc_gahp.api.submission import Submitted
from boinc_gahp.containers.job_files import OWN_FILES, WORK
from boinc_gahp.errors import BadRequest, BatchConflict, NotFound, RemoteError
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
from boinc_gahp.submit.types import CommandRecord, InlineFile, Job
from boinc_gahp.text import count, shorten

if TYPE_CHECKING:
    import os
    from collections.abc import Callable
    from types import ModuleType

    from boinc_gahp.api.futures.job_futures import JobFuture, JobFutures, JobResult
    from boinc_gahp.api.manifest import Manifest
    from boinc_gahp.api.session import Session
    from boinc_gahp.submit.types import OnProgress, Parameter, SubmitRequest


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
        session: Session,
        function: Callable[..., T],
        *,
        image: str | None,
        modules: Iterable[ModuleType],
        python: str,
        futures: Callable[..., JobFutures[T]],
        how: Mapping[str, Any],
    ) -> None:
        self.image = f"python:{PYTHON}-slim" if image is None else image
        self._session = session
        self._function = function
        self._payload = pack_function(function, tuple(modules))
        self._python = python
        self._futures = futures
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
        shared = {each: _inline(content) for each, content in shared_files().items()}
        shared[self._payload.file_name] = _inline(self._payload.content)
        sent, jobs = [], []
        for args, kwargs in calls:
            parameters = self._parameters(args, kwargs)
            call = pack_call(self._payload, args, kwargs)
            own = {call.file_name: _inline(call.content)} if call.is_file else {}
            sent.append(call)
            jobs.append(Job(words(self._payload, call), {**shared, **own}, parameters=parameters))
        with shown(self._how.get("progress"), StepView) as report:
            found = self._found_or_sent(_Calls(self._payload, sent, jobs), name, report)
        names = job_names(found.info.name, jobs)
        keys = {name: call.key for name, call in zip(names, sent, strict=True)}
        return self._futures(
            found,
            [(name, job.parameters) for name, job in zip(names, jobs, strict=True)],
            directory_for(found.info.name, directory),
            partial(_value, KnownBatch(self._session, found.info), self.name, keys),
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

    def _found_or_sent(
        self, calls: _Calls, name: str | None, progress: OnProgress | None
    ) -> Submitted:
        """Return the batch of the calls: it is there already, or is submitted."""
        session = self._session
        made = self._program(calls.jobs, {**self._how, "name": UNNAMED, "progress": progress})
        request = build_request(made.app, made.jobs, **made.options)
        like = calls.normal(request)
        if getattr(self._how.get("parameters"), "disk_bound", None) is None:
            # It is made from the sizes of the pickles.
            like = replace(like, parameters=replace(like.parameters, disk_bound=None))
        contents = contents_name(session, _STEM.sub("", self.name) or "function", like)
        batch_name = name or free_name(session, contents)
        found = self._found(calls, batch_name, contents, name)
        if found is not None:
            return found
        request = renamed(request, batch_name)
        jobs = [(each, _as_kept(job, contents)) for each, job in request.jobs]
        try:
            return submission.submit(session, made.app, replace(request, jobs=jobs))
        except BatchConflict:
            # Another process sends the same calls as other pickles, or did when it was killed.
            old = session.manifests.find(batch_name)
            if old is None or calls.difference(old, contents):
                raise
        # What was sent before is sent once more.
        batch = KnownBatch(session, find_batch(session, old.batch_id))
        names = {each: each for each in old.jobs}
        return send_again(batch, old, names, batch_name, progress=progress)

    def _program(self, rows: list[Job], options: Mapping[str, Any]) -> ProgramBatch:
        how = dict(options)
        given = how.pop("environment", None) or {}
        # Libraries would use all processors of the computer, and its owner has set these aside.
        environment = {"OMP_NUM_THREADS": str(how.get("cpus", 1)), **given}
        return program_batch(
            self._session,
            [self._python, PROGRAM],
            image=self.image,
            rows=rows,
            outputs=[RETURNED],
            environment=environment,
            find_files=False,
            **how,
        )

    def _found(
        self, calls: _Calls, name: str, contents: str, given: str | None
    ) -> Submitted | None:
        """Return the batch of this name if it has these calls; None if it is to be submitted.

        Raises:
            BatchConflict: the batch has other calls.
            RpcError: the project could not be asked.
        """
        session = self._session
        try:
            info = session.rpc.query_batch(batch_name=name).batch
        except NotFound:
            return None
        if info.state not in (BatchState.IN_PROGRESS, BatchState.COMPLETE) or not info.njobs:
            return None
        if given is not None:
            manifest = session.manifests.of(name, info.id)
            if manifest is None:
                return None
            changed = calls.difference(manifest, contents)
            if changed:
                raise BatchConflict(
                    f"batch {name!r} (id {info.id}) of {session.rpc.host} was made by other calls: "
                    f"{changed}; give these calls another name, or none"
                )
        return Submitted(info, existed=True, compared=True)

    def __repr__(self) -> str:
        return f"<Function {self.name!r} in {self.image} on {self._session.rpc.host}>"


class _Calls(NamedTuple):
    """The calls of a batch.

    Attributes:
        function: what is called.
        calls: the arguments of each call.
        jobs: a job for each call: the runner's words and files, and parameters for people.
    """

    function: FunctionPayload
    calls: list[CallPayload]
    jobs: list[Job]

    def normal(self, request: SubmitRequest) -> SubmitRequest:
        """Return a request for the calls that is the same each time, for the batch's name.

        Without the pickles, and files that tell of these; with the fingerprints, which are in the
        commands.
        """
        own = {*OWN_FILES, *(WORK + name for job in self.jobs for name in job.inputs)}
        several = {id(job.inputs): job.inputs for _, job in request.jobs}
        others = {
            key: {name: file for name, file in inputs.items() if name not in own}
            for key, inputs in several.items()
        }
        unlike: dict[str, Any] = {"input_template": None, "output_template": None}
        jobs = [
            (name, replace(_as_kept(job, ""), inputs=others[id(job.inputs)], **unlike))
            for name, job in request.jobs
        ]
        return replace(request, jobs=jobs)

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


def _value(batch: KnownBatch, function: str, keys: Mapping[str, str], result: JobResult) -> Any:
    """Return the value of a call.

    Args:
        batch: the batch.
        function: the function's name.
        keys: the keys of the calls, by the names of their jobs.
        result: what came of the call's job.

    Raises:
        RemoteError: it has none.
        JobFailed: the program did not get so far as to say why.
    """
    directory = result.folder / RETURNED
    if not directory.joinpath(RESULT).is_symlink() and not directory.joinpath(RESULT).exists():
        raise failed_job(
            batch,
            result.name,
            f"the call ended without a result: {result.failure or 'its process was ended'}",
            exit_status=result.exit_status,
            stderr=result.stderr,
        )
    try:
        value, raised = read_result(directory, keys[result.name])
    except WrongResult as error:
        # It may not even be of this program.
        raised = Raised("", f"what came back is not the value of this call: {error}", "")
    if raised is None:
        return value
    said = shorten(f"{raised.type_name}: {raised.message}".removeprefix(": "), _LONG)
    remote = RemoteError(
        f"{function}({_listed(result.parameters)}), job {result.name!r} of {batch.called}, "
        f"{'raised' if raised.type_name else 'has no value:'} {said}",
        job=result.name,
        exit_status=result.exit_status,
        why=said,
        stderr=result.stderr,
        type_name=raised.type_name,
        message=raised.message,
        traceback=raised.traceback,
    )
    if raised.traceback and hasattr(remote, "add_note"):  # Python 3.11
        remote.add_note(f"On the volunteer's computer:\n{raised.traceback.rstrip()}")
    raise remote
