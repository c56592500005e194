"""Turns requests into calls of ``submit``, of ``fetch`` or of the service for HTCondor's jobs.

A handler imports its function when it is called: a daemon that only pings needs few modules.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from boinc_gahp.errors import BadRequest
from boinc_gahp.fetch.types import FetchRequest
from boinc_gahp.gahp import blah_commands, boinc_commands, words
from boinc_gahp.gahp.grammar import is_number
from boinc_gahp.gahp.results import NO_AD, seconds
from boinc_gahp.secret import mask
from boinc_gahp.submit.types import Client, Job, LocalFile, Parameters, SubmitRequest, by_open_name
from boinc_gahp.text import quoted, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from boinc_gahp.fetch.context import FetchContext
    from boinc_gahp.gahp.command import AsyncRequest
    from boinc_gahp.htcondor.refusals import Refusals
    from boinc_gahp.htcondor.service import Service

#: Given as stderr_filename, it means "don't keep it".
_NOWHERE = frozenset({"", words.NULL, os.devnull})


def carry_out(context: FetchContext, request: AsyncRequest, client: Client) -> Iterable[str]:
    """Do what the request asks for; return the values after NULL in its Result Line.

    Raises:
        GahpError: the request failed, or the project cannot be given one of the arguments.
    """
    return _HANDLERS[type(request)](context, request, client)


def _ping(context: FetchContext, _request: boinc_commands.Ping, _client: Client) -> Iterable[str]:
    context.project.ping()
    return ()


def _submit(context: FetchContext, request: boinc_commands.Submit, client: Client) -> Iterable[str]:
    from boinc_gahp.submit.boinc_submit import boinc_submit  # noqa: PLC0415

    boinc_submit(context, _submission(request), client.answer_by)
    return ()


def _query_batches(
    context: FetchContext, request: boinc_commands.QueryBatches, client: Client
) -> Iterable[str]:
    from boinc_gahp.fetch.failures import as_completed  # noqa: PLC0415
    from boinc_gahp.submit.query import query_batches  # noqa: PLC0415

    answer = query_batches(context, request.batches, request.min_mod_time, client)
    values = [visible(answer.server_time)]
    completes = client.gridmanager and context.settings.htcondor.failed_jobs == "complete"
    for batch_name, statuses in zip(request.batches, answer.batches, strict=True):
        batch = as_completed(context, batch_name, statuses) if completes else statuses
        values.append(str(len(batch)))
        # Names are as they were submitted; HTCondor shows people any status it does not know.
        shown = {status: visible(status) for status in {status for _, status in batch}}
        values += [word for name, status in batch for word in (name, shown[status])]
    return values


def _fetch_output(
    context: FetchContext, request: boinc_commands.FetchOutput, _client: Client
) -> Iterable[str]:
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


def _abort_jobs(
    context: FetchContext, request: boinc_commands.AbortJobs, _client: Client
) -> Iterable[str]:
    from boinc_gahp.submit.control import abort_jobs  # noqa: PLC0415

    abort_jobs(context, request.jobs)
    return ()


def _retire_batch(
    context: FetchContext, request: boinc_commands.RetireBatch, _client: Client
) -> Iterable[str]:
    from boinc_gahp.submit.control import retire_batch  # noqa: PLC0415

    retire_batch(context, request.batch)
    return ()


def _set_lease(
    context: FetchContext, request: boinc_commands.SetLease, _client: Client
) -> Iterable[str]:
    from boinc_gahp.submit.control import set_lease  # noqa: PLC0415

    set_lease(context, request.batch, float(request.unix_time))
    return ()


_HANDLERS: dict[type[AsyncRequest], Callable[[FetchContext, Any, Client], Iterable[str]]] = {
    boinc_commands.Ping: _ping,
    boinc_commands.Submit: _submit,
    boinc_commands.QueryBatches: _query_batches,
    boinc_commands.FetchOutput: _fetch_output,
    boinc_commands.AbortJobs: _abort_jobs,
    boinc_commands.RetireBatch: _retire_batch,
    boinc_commands.SetLease: _set_lease,
}


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
        case blah_commands.JobRefreshProxy(job_id=job_id):
            service.refresh_proxy(job_id)
    return ()


def _submission(request: boinc_commands.Submit) -> SubmitRequest:
    given = request.estimates
    version = _number("app_version_num", given.app_version_num)
    if version is not None and version != int(version):
        raise BadRequest(f"app_version_num is {given.app_version_num}; it must be a whole number")
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
            fpops_est=_number("rsc_fpops_est", given.rsc_fpops_est),
            fpops_bound=_number("rsc_fpops_bound", given.rsc_fpops_bound),
            memory_bound=_number("rsc_memory_bound", given.rsc_memory_bound),
            disk_bound=_number("rsc_disk_bound", given.rsc_disk_bound),
            delay_bound=_number("delay_bound", given.delay_bound),
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
    return os.fsdecode(words.encode(text))
