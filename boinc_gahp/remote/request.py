"""Jobs of the Python API become a request of the bridge: names, words, files."""

from __future__ import annotations

import math
import os
import re
import secrets
import string
import time
from typing import TYPE_CHECKING

from boinc_gahp.bridge import (
    InlineInput,
    JobRequest,
    LocalInput,
    RemoteInput,
    StagedInput,
    SubmitRequest,
)
from boinc_gahp.errors import BadRequest, JobRefused, StagingError
from boinc_gahp.remote.files import split_args
from boinc_gahp.remote.types import (
    InlineFile,
    Job,
    LocalFile,
    Parameters,
    RemoteFile,
    StagedFile,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from boinc_gahp.bridge import Input, OnProgress
    from boinc_gahp.remote.types import File

    Measure = Callable[[Sequence[str]], Mapping[str, RemoteFile]]

#: What a batch's name may have and a job's may not (``web-rpcs.md``, "submit_batch").
_NOT_IN_JOB_NAMES = re.compile(r"[\s/]")
#: As long as what stands for a large file.
_NO_SIZE = 10**12
_NO_MD5 = "0" * 32
_BOUNDS = ("fpops_est", "fpops_bound", "memory_bound", "disk_bound", "delay_bound")


def new_batch_name(app_name: str) -> str:
    """Return a name that no other batch has: ``<app>-<UTC date and time>-<four letters>``."""
    now = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    letters = "".join(secrets.choice(string.ascii_lowercase) for _ in range(4))
    return f"{app_name}-{now}-{letters}"


def job_names(batch_name: str, jobs: Sequence[Job]) -> list[str]:
    """Return the jobs' names; one that has none gets the batch's and its number, from 0.

    The same jobs in a batch of the same name always get the same names: that is what makes a
    submit that is repeated complete the first one.
    """
    width = len(str(len(jobs) - 1))
    prefix = _NOT_IN_JOB_NAMES.sub("_", batch_name)
    return [
        f"{prefix}_{number:0{width}d}" if job.name is None else job.name
        for number, job in enumerate(jobs)
    ]


def build_request(
    app_name: str,
    jobs: Iterable[Job],
    *,
    measure: Measure | None,
    name: str | None = None,
    parameters: Parameters = Parameters(),  # noqa: B008  (frozen)
    priority: int | None = None,
    app_version_num: int | None = None,
    lease: float | None = None,
    input_template_filename: str | None = None,
    output_template_filename: str | None = None,
    progress: OnProgress | None = None,
) -> SubmitRequest:
    """Return what the bridge is asked.

    Args:
        app_name: the app.
        jobs: those of the batch.
        measure: returns remote files with their sizes and MD5s, by URL; None: nothing is fetched,
            and what is not known of them is a placeholder.
        name: of the batch; None: a new one.
        parameters: of all jobs.
        priority: of jobs without one of their own.
        app_version_num: as in :class:`~boinc_gahp.bridge.SubmitRequest`, like what follows.
        lease: likewise.
        input_template_filename: likewise.
        output_template_filename: likewise.
        progress: likewise.

    Raises:
        BadRequest: something is not of the type that it should have, or no number that it can be.
        JobRefused: a job's arguments cannot be split.
        StagingError: a remote file cannot be fetched, or has another size or MD5 than it should.
    """
    listed = _listed(jobs)
    batch_name = new_batch_name(app_name) if name is None else name
    _check_numbers(parameters, lease)
    names = job_names(batch_name, listed)
    urls = unmeasured(listed)
    remote = measure(urls) if measure is not None and urls else {}
    return SubmitRequest(
        batch_name,
        app_name,
        [_job(job, name, remote) for job, name in zip(listed, names, strict=True)],
        rsc_fpops_est=parameters.fpops_est,
        rsc_fpops_bound=parameters.fpops_bound,
        rsc_memory_bound=parameters.memory_bound,
        rsc_disk_bound=parameters.disk_bound,
        delay_bound=parameters.delay_bound,
        app_version_num=app_version_num,
        priority=priority,
        input_template_filename=input_template_filename,
        output_template_filename=output_template_filename,
        by_name=True,
        lease=lease,
        progress=progress,
    )


def _listed(jobs: Iterable[Job]) -> list[Job]:
    if isinstance(jobs, Job):
        raise BadRequest("jobs is one Job: expected several, so write [job]")
    listed = list(jobs)
    for number, job in enumerate(listed):
        if not isinstance(job, Job):
            raise BadRequest(f"jobs[{number}] is a {type(job).__name__}: expected a boinc_gahp.Job")
    return listed


def _check_numbers(parameters: Parameters, lease: float | None) -> None:
    said = [(field, getattr(parameters, field)) for field in _BOUNDS]
    for field, number in [*said, ("lease", lease)]:
        if number is not None and not 0 < number < math.inf:
            raise BadRequest(f"{field} is {number}: expected a positive number")


def _job(job: Job, name: str, remote: Mapping[str, RemoteFile]) -> JobRequest:
    if not isinstance(name, str):
        raise BadRequest(f"a job's name is {name!r}: expected a string")
    if job.fpops is not None and not 0 < job.fpops < math.inf:
        raise BadRequest(f"job {name!r}: fpops is {job.fpops}: expected a positive number")
    return JobRequest(
        name,
        _words(job, name),
        tuple(_input(name, open_name, file, remote) for open_name, file in job.inputs.items()),
        priority=job.priority,
        input_template=job.input_template,
        output_template=job.output_template,
        rsc_fpops_est=job.fpops,
    )


def _words(job: Job, name: str) -> tuple[str, ...]:
    if isinstance(job.args, str):
        try:
            return split_args(job.args)
        except BadRequest as error:
            raise JobRefused(f"job {name!r}: {error}", job_name=name) from error
    return tuple(_word(name, word) for word in job.args)


def _word(name: str, word: object) -> str:
    if isinstance(word, str):
        return word
    # Numbers and paths mean what they look like; True and None would not.
    if isinstance(word, (int, float)) and not isinstance(word, bool):
        return str(word)
    if isinstance(word, os.PathLike):
        return str(os.fspath(word))
    raise BadRequest(
        f"job {name!r}: the argument {word!r} is a {type(word).__name__}: expected a string"
    )


def _input(name: str, open_name: str, file: File, remote: Mapping[str, RemoteFile]) -> Input:
    if isinstance(file, LocalFile):
        file = file.path
    if isinstance(file, (str, os.PathLike)):
        return LocalInput(str(os.fspath(file)), open_name)
    if isinstance(file, StagedFile):
        return StagedInput(file.physical_name, open_name)
    if isinstance(file, InlineFile):
        return InlineInput(file.text, open_name)
    if not isinstance(file, RemoteFile):
        raise BadRequest(
            f"job {name!r}: input {open_name!r} is a {type(file).__name__}: expected a path, or a "
            "LocalFile, StagedFile, RemoteFile or InlineFile"
        )
    return _remote_input(file, open_name, remote.get(file.url, file))


def _remote_input(said: RemoteFile, open_name: str, found: RemoteFile) -> RemoteInput:
    for what, expected, came in (
        ("size", said.nbytes, found.nbytes),
        ("MD5", said.md5, found.md5),
    ):
        if None not in (expected, came) and str(expected).lower() != str(came).lower():
            raise StagingError(
                f"remote file {said.url!r}: expected the {what} {expected}, what came has {came}: "
                "correct what was said of it, or the file",
                path=said.url,
            )
    nbytes = found.nbytes if said.nbytes is None else said.nbytes
    md5 = said.md5 or found.md5
    return RemoteInput(said.url, _NO_SIZE if nbytes is None else nbytes, md5 or _NO_MD5, open_name)


def unmeasured(jobs: Iterable[Job]) -> list[str]:
    """Return the URLs of remote files of which something is not known, each once."""
    urls = dict.fromkeys(
        file.url
        for job in jobs
        for file in job.inputs.values()
        if isinstance(file, RemoteFile) and (file.nbytes is None or file.md5 is None)
    )
    return list(urls)
