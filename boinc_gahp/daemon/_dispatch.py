"""Turns requests into calls of ``submit``, of ``fetch`` or of the service for HTCondor's jobs.

Functions are imported when they are needed: a daemon that only pings needs few modules.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from boinc_gahp.errors import BadRequest
from boinc_gahp.fetch.types import FetchRequest
from boinc_gahp.gahp import blah_commands, boinc_commands, lines
from boinc_gahp.gahp.grammar import is_number
from boinc_gahp.gahp.results import NO_AD, seconds
from boinc_gahp.quantities import SIZES
from boinc_gahp.secret import mask
from boinc_gahp.submit import control
from boinc_gahp.submit.types import Job, LocalFile, Parameters, SubmitRequest, by_open_name
from boinc_gahp.text import quoted, visible

if TYPE_CHECKING:
    from collections.abc import Iterable

    from boinc_gahp.fetch.context import FetchContext
    from boinc_gahp.gahp.command import AsyncRequest
    from boinc_gahp.htcondor.refusals import Refusals
    from boinc_gahp.htcondor.service import Service

#: Given as stderr_filename, it means "don't keep it".
_NOWHERE = frozenset({"", lines.NULL, os.devnull})


def carry_out(
    context: FetchContext, request: AsyncRequest, gridmanager: bool, answer_by: float | None
) -> Iterable[str]:
    """Do what the request asks for; return the values after NULL in its Result Line.

    Args:
        context: the project.
        request: the request.
        gridmanager: whether a response prefix was set when the Request Line was read.
        answer_by: for a gridmanager's submit, ``time.monotonic()`` at which its result is needed;
            otherwise None.

    Raises:
        GahpError: the request failed, or the project cannot be given one of the arguments.
    """
    match request:
        case boinc_commands.Ping():
            context.project.ping()
        case boinc_commands.Submit():
            from boinc_gahp.submit.boinc_submit import boinc_submit  # noqa: PLC0415

            boinc_submit(context, _submission(request), answer_by)
        case boinc_commands.QueryBatches():
            return _query_batches(context, request, gridmanager)
        case boinc_commands.FetchOutput():
            return _fetch_output(context, request)
        case boinc_commands.AbortJobs(jobs=jobs):
            control.abort_jobs(context, jobs)
        case boinc_commands.RetireBatch(batch=batch):
            control.retire_batch(context, batch)
        case boinc_commands.SetLease(batch=batch, unix_time=unix_time):
            control.set_lease(context, batch, float(unix_time))
    return ()


def _query_batches(
    context: FetchContext, request: boinc_commands.QueryBatches, gridmanager: bool
) -> Iterable[str]:
    from boinc_gahp.fetch.failures import as_completed  # noqa: PLC0415
    from boinc_gahp.submit.query import query_batches  # noqa: PLC0415

    answer = query_batches(context, request.batches, request.min_mod_time, gridmanager=gridmanager)
    values = [visible(answer.server_time)]
    completes = gridmanager and context.settings.htcondor.failed_jobs == "complete"
    for batch_name, statuses in zip(request.batches, answer.batches, strict=True):
        batch = as_completed(context, batch_name, statuses) if completes else statuses
        values.append(str(len(batch)))
        # Names are as they were submitted; HTCondor shows people any status it does not know.
        shown = {status: visible(status) for status in {status for _, status in batch}}
        values += [word for name, status in batch for word in (name, shown[status])]
    return values


def _fetch_output(context: FetchContext, request: boinc_commands.FetchOutput) -> Iterable[str]:
    from boinc_gahp.fetch.job_directory import fetch_output  # noqa: PLC0415

    result = fetch_output(
        context,
        FetchRequest(
            job_name=request.job,
            directory=os.path.abspath(_path(request.directory)),  # noqa: PTH100  (bytes as given)
            stderr=None if request.stderr in _NOWHERE else _path(request.stderr),
            mode=request.mode,
            specs=tuple((source, _path(destination)) for source, destination in request.specs),
        ),
    )
    return str(result.exit_status), seconds(result.elapsed_time), seconds(result.cpu_time)


def carry_out_blah(
    service: Service | Refusals, request: blah_commands.BlahRequest
) -> Iterable[str]:
    """Do what the request asks for; return the values after ``0 NULL`` in its Result Line.

    Raises:
        GahpError: the request failed. For a submit, the text becomes the job's HoldReason.
    """
    match request:
        case blah_commands.Ping():
            service.ping()
        case blah_commands.JobSubmit(ad=ad):
            return (service.submit(ad),)
        case blah_commands.JobStatus(job_id=job_id):
            status, ad = service.status(job_id)
            return f"{status:d}", mask(ad) or NO_AD
        case blah_commands.JobCancel(job_id=job_id):
            service.cancel(job_id)
        case blah_commands.JobRefreshProxy():
            pass  # no proxy travels to volunteers
    return ()


def _submission(request: boinc_commands.Submit) -> SubmitRequest:
    given = request.estimates
    word = given.get("app_version_num")
    version = _number("app_version_num", word)
    if version is not None and version != int(version):
        raise BadRequest(f"app_version_num is {word}; it must be a whole number")
    # Jobs with the same files share one mapping of them: then they are only looked at once.
    files = {
        inputs: by_open_name((name, LocalFile(_path(source))) for source, name in inputs)
        for inputs in {job.inputs for job in request.jobs}
    }
    return SubmitRequest(
        batch_name=request.batch,
        app_name=request.app,
        jobs=[(job.name, Job(job.args, files[job.inputs])) for job in request.jobs],
        parameters=Parameters(
            **{size.parameter: _number(size.element, given.get(size.element)) for size in SIZES}
        ),
        app_version_num=None if version is None else int(version),
    )


def _number(name: str, word: str | None) -> float | None:
    """Return the number that a user wrote in a submit file; raises BadRequest."""
    if word is None:
        return None
    if not is_number(word.strip()) or abs(float(word)) == float("inf"):
        raise BadRequest(f"{name} is {quoted(word)}; it must be a number or NULL")
    return float(word)


def _path(text: str) -> str:
    """Return ``text`` as the os module expects it: in a Latin-1 locale, bytes differ from UTF-8."""
    return os.fsdecode(lines.encode(text))
