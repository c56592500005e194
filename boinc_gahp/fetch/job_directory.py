"""A job's directory: which outputs HTCondor wants there, and where each goes.

The rules are in ``gahp.rst``, "BOINC_FETCH_OUTPUT"; those for a job ad are described at
:class:`~boinc_gahp.fetch.types.AdRequest`.
"""

from __future__ import annotations

import logging
import os.path
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from boinc_gahp.errors import GahpError, OutputError
from boinc_gahp.fetch import locate
from boinc_gahp.fetch.destinations import NEVER_CANCELLED, CancelScope
from boinc_gahp.fetch.engine import FailedAttempt, fetch
from boinc_gahp.fetch.failures import failed_job
from boinc_gahp.fetch.placements import (
    DEV_NULL,
    JobPlace,
    Placement,
    Placements,
    new_file,
    remapped,
)
from boinc_gahp.fetch.types import FetchRequest, FetchResult
from boinc_gahp.submit.checks import base_name, find_output
from boinc_gahp.text import listed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence, Set

    from boinc_gahp.fetch.context import FetchContext
    from boinc_gahp.fetch.placements import Read
    from boinc_gahp.fetch.types import AdRequest

log = logging.getLogger("boinc_gahp.fetch")

#: If stderr has one of these names, it is not kept.
_NOWHERE = (DEV_NULL, "NULL")
#: Names of outputs that are a job's stdout, under any name in the ad.
_STDOUTS = ("stdout", "stdout.txt")

#: How many outputs an error lists; archives can have very many.
_NAMED = 50


class JobDirectory(JobPlace):
    """A job's directory, with the files that HTCondor asks for.

    Args:
        request: a BOINC_FETCH_OUTPUT, or what a job ad asks for.
        streams_only: whether only stderr and an empty stdout are wanted.
    """

    def __init__(self, request: FetchRequest, *, streams_only: bool = False) -> None:
        super().__init__(request.job_name, Path(os.path.normpath(request.directory)))
        self.makes_directories = request.is_ad
        self._request = request
        self._streams_only = streams_only
        self._takes_all = request.mode == "ALL"
        path = request.stderr
        self._stderr = None if path is None or path in _NOWHERE else self._placement("stderr", path)
        self._archive = ""

    def outputs(self, outputs: Mapping[str, str], read: Read) -> Placements:  # noqa: ARG002
        """Return what is wanted; an app's only output is unpacked if it is a zip archive."""
        if len(outputs) == 1 and (name := next(iter(outputs))).lower().endswith(".zip"):
            self._archive = name
            return Placements((), self._streams({}), self._stderr, name)
        wanted = () if self._streams_only else self._select(outputs)
        return Placements(wanted, self._streams(outputs), self._stderr)

    def members(self, what: str, files: Sequence[str], directories: Sequence[str]) -> Placements:
        """Return what is wanted of the archive, in the form of outputs."""
        home = self.directory
        members = {name: name for name in files}
        if not self._takes_all:
            # A request that names files can still name the archive itself.
            members.setdefault(self._archive, self._archive)
        wanted = tuple(
            replace(item, inside=home) if item.destination == home / item.output else item
            for item in self._select(members)
        )
        made = [(home / new_file(name, what), home) for name in directories if self._takes_all]
        return Placements(wanted, self._streams(members), directories=tuple(made))

    def _select(self, outputs: Mapping[str, str]) -> tuple[Placement, ...]:
        """Return what is to be put in place, each pair once."""
        if self._request.is_ad:
            wanted = self._of_ad(outputs)
        else:
            wanted = self._all(outputs) if self._takes_all else self._some(outputs)
        # A file for both gets the stdout, or stderr if there is no stdout.
        is_one = self._stderr is None or self._stderr.is_at(self._stdout(outputs))
        return self.distinct(wanted, None if is_one else self._stderr)

    def _stdout(self, outputs: Mapping[str, str]) -> Placement | None:
        """Return where a job ad wants stdout, or a Request Line whose stdout is not an output."""
        request = self._request
        if not request.is_ad:
            at = self._stdout_at(outputs)
            return None if at is None else self._placement("stdout", request.specs[at][1])
        if request.stdout is None or request.stdout == DEV_NULL:
            return None
        return self._placement("stdout", request.stdout)

    def _streams(self, outputs: Mapping[str, str]) -> tuple[Placement, ...]:
        stdout = self._stdout(outputs)
        return () if stdout is None or stdout.is_at(self._stderr) else (stdout,)

    def _all(self, outputs: Mapping[str, str]) -> list[Placement]:
        renames: dict[str, list[str]] = {}
        for source, destination in self._request.specs:
            name = find_output(source, outputs)
            if name is not None:
                renames.setdefault(name, []).append(destination)
            elif not self._request.is_ad:
                raise self._no_such_output(source, outputs)
        wanted = []
        for name, plain in outputs.items():
            if name in renames:
                paths = [path for path in renames[name] if path != DEV_NULL]
                wanted += [self._placement(name, path) for path in paths]
            else:
                path = new_file(plain, self.describe(name))
                wanted.append(self._placement(name, path, self.directory))
        return wanted

    def _some(self, outputs: Mapping[str, str]) -> list[Placement]:
        stderr = self._stderr_paths()
        stdout = self._stdout_at(outputs)
        wanted = []
        for at, (source, destination) in enumerate(self._request.specs):
            if self.absolute(destination) in stderr or destination == DEV_NULL:
                continue  # stderr is written already, and /dev/null keeps nothing
            name = find_output(source, outputs)
            if name is not None:
                wanted.append(self._placement(name, destination))
            elif at != stdout:
                raise self._no_such_output(source, outputs)
        return wanted

    def _of_ad(self, outputs: Mapping[str, str]) -> list[Placement]:
        request = self._request
        specs = request.specs
        claimed = {find_output(source, outputs) for source, _ in specs}
        stdout = self._stdout(outputs)
        standard: list[Placement] = []
        if stdout is not None:
            name = find_output(base_name(request.stdout or ""), outputs)
            if name is None:
                name = next((name for name in _STDOUTS if name in outputs), None)
            if name is not None:
                standard.append(Placement(name, stdout.destination))
        if self._takes_all:
            # An output that is put in place as stdout is not also under its own name.
            own = {item.output for item in standard} - claimed
            others = {name: plain for name, plain in outputs.items() if name not in own}
            return self._all(others) + standard
        wanted = []
        written = {base_name(name) for name in (request.stdout, request.stderr) if name is not None}
        for source, destination in specs:
            name = find_output(source, outputs)
            if name is not None and destination != DEV_NULL:
                wanted.append(self._placement(name, destination))
            elif name is None and base_name(source) not in written:
                raise self._no_such_output(source, outputs)
        return wanted + standard

    def _stdout_at(self, outputs: Mapping[str, str]) -> int | None:
        """Return the index of the pair that is for the job's stdout; None if there is none.

        For a job with ``output``, a gridmanager appends ``basename(Out) Out`` and, unless Err is
        the same, ``basename(Err) Err``. So it is the pair before that of stderr, which is the last;
        if another pair is the last, all names are the user's own (``gahp.rst``,
        "BOINC_FETCH_OUTPUT"). Volunteers do not send stdout back: if the app has no output of that
        name, it is an empty file.
        """
        specs = self._request.specs
        if self._takes_all:
            return None
        stderr = self._stderr_paths()
        paths = [self.absolute(destination) for _, destination in specs]
        last = len(paths) - 1
        if last < 1 or paths[last] not in stderr:
            return None
        source, destination = specs[last - 1]
        if destination == DEV_NULL or source != base_name(destination) or paths[last - 1] in stderr:
            return None
        return last - 1 if find_output(source, outputs) is None else None

    def _stderr_paths(self) -> Set[Path]:
        if self._stderr is not None:
            return {self._stderr.destination}
        return {self.absolute(name) for name in _NOWHERE}

    def _no_such_output(self, source: str, outputs: Mapping[str, str]) -> OutputError:
        names = listed([repr(name) for name in outputs], _NAMED)
        return OutputError(
            f"job {self.job_name!r} has no output {source!r}; its outputs are: {names}"
        )

    def _placement(self, output: str, path: str, inside: Path | None = None) -> Placement:
        return Placement(output, self.absolute(path), inside)


def of_ad(ad: AdRequest) -> FetchRequest:
    """Return what a job ad wants of an installed app, each output with the file it goes to.

    As in HTCondor, an output that goes to a directory (its path ends in a slash, or is one) keeps
    its base name there.
    """

    def pair(name: str, path: str) -> tuple[str, str]:
        at = os.path.join(ad.directory, path)  # noqa: PTH118  (keeps bytes that are not UTF-8)
        if path.endswith("/") or os.path.isdir(at):  # noqa: PTH112
            path = os.path.join(path, base_name(name))  # noqa: PTH118
        return name, path

    specs = [pair(*remap) for remap in ad.remaps]
    if ad.outputs is not None:
        specs = [
            pair(name, path)
            for name in ad.outputs
            for path in remapped(ad.remaps, name) or [base_name(name)]
        ]
    return FetchRequest(
        ad.job_name,
        ad.directory,
        ad.stderr,
        "ALL" if ad.outputs is None else "SOME",
        tuple(specs),
        is_ad=True,
        stdout=ad.stdout,
        batch_id=ad.batch_id,
        output_template=ad.output_template,
    )


def fetch_output(
    context: FetchContext, request: FetchRequest, scope: CancelScope = NEVER_CANCELLED
) -> FetchResult:
    """Put a job's outputs and stderr in place; return its exit status and times.

    Fetching again gives the same files. Every file appears under its name complete, or not at all,
    and is on the disk with its directory when this returns.

    Args:
        context: the project.
        request: the request.
        scope: is entered for each change in the job's directory, and checked before each request
            to the project. When it is closed, temporary files are removed at once.

    Raises:
        JobFailed: the job has no canonical instance; only for a job ad: a Request Line gets a
            failed job's exit status instead.
        NotFound: the project does not know the job.
        OutputError: the job is not finished, or failed and nothing is known about it; a spec does
            not name an output; an output is missing, damaged, or cannot be written.
        RpcError: the project could not be reached.
        TemplateError: the app's output template cannot be read.
        Exception: what the scope raises when it is closed.
    """
    scope.check()
    located, completed = locate.find(context, request.job_name, request.batch_id)
    if located is not None and not (request.is_ad or located.job.canonical_instance_id):
        result, text = failed_job(context, request.job_name, located)
        fetch_failed(context, request, text, scope)
        return result
    completed = locate.completed_job(context, request.job_name, located, completed, scope)
    fetched = fetch(
        context,
        located,
        JobDirectory(request),
        scope,
        completed=completed,
        own_template=request.output_template,
    )
    return FetchResult.of(completed, fetched.nbytes)


def fetch_failed(
    context: FetchContext,
    request: FetchRequest,
    text: str,
    scope: CancelScope = NEVER_CANCELLED,
    *,
    is_late: bool = False,
) -> int:
    """Put a failed job's stderr in place, and the outputs that its last instance uploaded.

    BOINC's client uploads what a failed program has made, until it reports the failure
    (``client/cs_apps.cpp``, app_finished): there may be all outputs, a few, or none. Other outputs
    are left out; its stdout is then empty.

    Args:
        context: the project.
        request: the request.
        text: what is known about the failure; it is written where stderr is wanted.
        scope: see :func:`fetch_output`.
        is_late: whether the job has waited long enough: then it goes without outputs that cannot
            be had now.

    Returns:
        The bytes of the files that are in place.

    Raises:
        OutputError: a file cannot be written.
        RpcError: the project does not answer now.
        Exception: what the scope raises when it is closed.
    """
    scope.check()
    try:
        located, _ = locate.find(context, request.job_name, request.batch_id)
        instances = () if located is None else context.project.query_job(located.job.id)
        uploaded = next((each for each in reversed(instances) if each.outfile_sizes), None)
        if uploaded is not None:
            attempt = FailedAttempt(uploaded, text)
            template = request.output_template
            place = JobDirectory(request)
            fetched = fetch(context, located, place, scope, attempt=attempt, own_template=template)
            return fetched.nbytes
    except GahpError as error:
        if isinstance(error.__cause__, OSError) or (error.passes and not is_late):
            raise
        log.warning("No outputs of the failed job %s are fetched: %s", request.job_name, error)
    place = JobDirectory(request, streams_only=True)
    return fetch(context, None, place, scope, attempt=FailedAttempt(None, text)).nbytes
