"""BOINC_FETCH_OUTPUT, and the same for job ads: the fetch engine's work for HTCondor's jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boinc_gahp.errors import OutputError
from boinc_gahp.fetch import locate
from boinc_gahp.fetch.cancel import NEVER_CANCELLED
from boinc_gahp.fetch.engine import fetch, write_no_stdout, write_stderr
from boinc_gahp.fetch.failures import failed_job
from boinc_gahp.fetch.job_directory import JobDirectory
from boinc_gahp.fetch.types import FetchResult

if TYPE_CHECKING:
    from boinc_gahp.fetch.cancel import CancelScope
    from boinc_gahp.fetch.context import FetchContext
    from boinc_gahp.fetch.types import FetchRequest


class NoResult(OutputError):
    """A job ad's job has no canonical instance: it is not finished, or it failed."""

    code = "BG-NO-RESULT"


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
        NoResult: only for a job ad; a Request Line gets a failed job's exit status instead.
        NotFound: the project does not know the job.
        OutputError: the job is not finished, or failed and nothing is known about it; a spec does
            not name an output; an output is missing, damaged, or cannot be written.
        RpcError: the project could not be reached.
        TemplateError: the app's output template cannot be read.
        Exception: what the scope raises when it is closed.
    """
    scope.check()
    ad = request.ad
    located, completed = locate.find(context, request.job_name, None if ad is None else ad.batch_id)
    if located is not None and not located.ids.canonical_instance_id:
        if ad is not None:
            raise NoResult(
                f"job {request.job_name!r} has no result on {context.project.host}: it is not "
                "finished, or it failed"
            )
        result, text = failed_job(context, request.job_name, located)
        write_stderr(JobDirectory(request), text, scope)
        return result
    scope.check()
    if completed is None:
        completed = context.project.query_completed_job(request.job_name)
    if not completed.canonical_resultid:
        raise OutputError(
            f"job {request.job_name!r} has no result on {context.project.host}, and is in no batch "
            "of this account that the project still lists: there is nothing to fetch"
        )
    fetch(
        context,
        located,
        JobDirectory(request),
        scope,
        completed=completed,
        own_template=None if ad is None else ad.output_template,
    )
    return FetchResult(completed.exit_status, completed.elapsed_time, completed.cpu_time)


def write_failure(request: FetchRequest, text: str, scope: CancelScope = NEVER_CANCELLED) -> None:
    """Write what is known about a failed job where its stderr is wanted; its stdout is empty.

    The project is not asked: it has no outputs of such a job.

    Raises:
        OutputError: it cannot be written.
        Exception: what the scope raises when it is closed.
    """
    scope.check()
    sink = JobDirectory(request)
    sink.prepare()
    write_stderr(sink, text, scope)
    write_no_stdout(sink, sink.stdout({}), scope)
