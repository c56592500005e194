"""BOINC_FETCH_OUTPUT: a finished job's outputs, stderr, exit status and times."""

from __future__ import annotations

import functools
import time
from pathlib import Path
from typing import TYPE_CHECKING

from boinc_gahp.bridge import locate
from boinc_gahp.bridge.deliver import deliver, write_text
from boinc_gahp.bridge.download import Output
from boinc_gahp.bridge.failed import failed_job
from boinc_gahp.bridge.gate import OPEN
from boinc_gahp.bridge.selection import plain_names, select, stderr_path, stdout_path
from boinc_gahp.bridge.stderr import unwrap
from boinc_gahp.bridge.types import FetchResult
from boinc_gahp.bridge.uploaded import Uploaded
from boinc_gahp.errors import NotFound, OutputError, RpcError
from boinc_gahp.templates import read_output_template, read_templates

if TYPE_CHECKING:
    from collections.abc import Callable

    from boinc_gahp.bridge.context import Context
    from boinc_gahp.bridge.gate import Gate
    from boinc_gahp.bridge.locate import Located
    from boinc_gahp.bridge.types import FetchRequest
    from boinc_gahp.rpc import CompletedJob, OutputStream, ResultInfo
    from boinc_gahp.templates import OutputTemplate

#: Seconds for a first question about a job whose batch is not known; where the job failed, most
#: projects cannot answer it.
_PATIENCE = 20.0


class NoResult(OutputError):
    """A job ad's job has no canonical instance: it is not finished, or it failed."""

    code = "BG-NO-RESULT"


def fetch_output(context: Context, request: FetchRequest, gate: Gate = OPEN) -> FetchResult:
    """Deliver a job's outputs and stderr; return its exit status and times.

    Fetching again gives the same files. Every file appears under its name whole, or not at all,
    and is on the disk with its directory when this returns.

    Args:
        context: the project.
        request: what is asked for.
        gate: is entered for each change in the job's directory, and asked before each question
            to the project. When it is closed, temporary files vanish at once.

    Raises:
        NoResult: of a job ad's job only, where a failed job's line would get its exit status.
        NotFound: the project does not know the job.
        OutputError: the job is not finished, or failed and nothing is known of it; a spec names
            no output; an output is missing, damaged, or cannot be written.
        RpcError: the project could not be asked.
        TemplateError: the app's output template cannot be read.
        Exception: what the gate raises when it is closed.
    """
    gate.check()
    located, completed = _look_for(context, request)
    if located is not None and not located.ids.canonical_instance_id:
        if request.ad is not None:
            raise NoResult(
                f"job {request.job_name!r} has no result on {context.project.host}: it is not "
                "finished, or it failed"
            )
        result, text = failed_job(context, request.job_name, located)
        _write_stderr(request, text, gate)
        return result
    gate.check()
    if completed is None:
        completed = context.project.query_completed_job(request.job_name)
    if not completed.canonical_resultid:
        raise OutputError(
            f"job {request.job_name!r} has no result on {context.project.host}, and is in no batch "
            "of this account that the project still lists: there is nothing to fetch"
        )
    instance = None if located is None else context.known.instance(located.ids)
    gate.check()
    outputs = outputs_of(context, request, located, instance)
    is_archive = len(outputs) == 1 and outputs[0].name.lower().endswith(".zip")
    if not is_archive:
        # A wrong name in the line is told before anything is written.
        select(request, plain_names([output.name for output in outputs]))
    if request.ad is not None:
        _check_directory(Path(request.directory))
    _write_stderr(request, unwrap(completed.stderr_out), gate)
    deliver(
        context,
        request,
        outputs,
        Uploaded(opener_of(context, request.job_name, instance), request.job_name),
        request.job_name if instance is None else instance.name,
        gate=gate,
    )
    return FetchResult(completed.exit_status, completed.elapsed_time, completed.cpu_time)


def write_failure(request: FetchRequest, text: str, gate: Gate = OPEN) -> None:
    """Put what is known of a job that failed where its stderr is wanted; its stdout is empty.

    Nothing is asked of the project; it has no outputs of such a job.

    Raises:
        OutputError: it cannot be written.
        Exception: what the gate raises when it is closed.
    """
    gate.check()
    _check_directory(Path(request.directory))
    _write_stderr(request, text, gate)
    stdout = stdout_path(request, {})
    if stdout is not None and stdout != stderr_path(request):
        write_text(request, stdout, "", gate)


def _look_for(
    context: Context, request: FetchRequest
) -> tuple[Located | None, CompletedJob | None]:
    """Return where the job is, and what query_completed_job said if it was asked on the way.

    A job whose name tells nothing is first asked for by its name, so that one that does not exist
    costs one RPC and not a list of every batch.
    """
    job_name = request.job_name
    located = None
    if request.ad is not None and request.ad.batch_id is not None:
        located = locate.in_batch(context, request.ad.batch_id, job_name)
    located = located or locate.near(context, job_name)
    if located is not None:
        return located, None
    project = context.project.until(time.monotonic() + _PATIENCE)
    trouble: RpcError | None = None
    completed: CompletedJob | None = None
    try:
        completed = project.query_completed_job(job_name)
    except NotFound:
        raise
    except RpcError as error:
        trouble = error
    located = locate.far(context, job_name)
    if located is None and trouble is not None:
        raise trouble
    return located, completed


def outputs_of(
    context: Context, request: FetchRequest, located: Located | None, instance: ResultInfo | None
) -> list[Output]:
    """Return the app's outputs, or its own template's, and those the instance has beyond them.

    A job that was submitted with an output template of its own can have more than its app; the
    project does not tell their names (``web-rpcs.rst``, "Queries").
    """
    job_name = request.job_name
    template: OutputTemplate
    is_own = request.ad is not None and request.ad.output_template is not None
    if request.ad is not None and request.ad.output_template is not None:
        template = read_output_template(request.ad.output_template)
    elif located is not None:
        template = context.known.templates(located.app_name).output
    else:
        template = read_templates(context.project.get_templates(job_name=job_name))[1]
    outputs = [
        Output(
            name=info.open_name,
            number=index if info.number is None else info.number,
            numbered=info.number is not None,
            optional=info.optional,
            gzip=info.gzip_when_done,
            max_bytes=_bytes(info.max_nbytes) if is_own else None,
        )
        for index, info in enumerate(template.files)
    ]
    there = 0 if instance is None else len(instance.outfile_sizes)
    if there > len(outputs):
        context.known.warn_once(
            ("extra outputs", job_name),
            "Job %s has %d outputs, its app %d: the others are called output_N",
            job_name,
            there,
            len(outputs),
        )
        outputs += [
            Output(f"output_{number}", number, optional=True)
            for number in range(len(outputs), there)
        ]
    return outputs


def _bytes(limit: float | None) -> int | None:
    """Return a number of bytes of a template's; None where it is no limit."""
    return int(limit) if limit is not None and 0 < limit < 1 << 63 else None


def opener_of(
    context: Context, job_name: str, instance: ResultInfo | None
) -> Callable[[int], OutputStream]:
    """Return what opens the files that the instance uploaded, by their number.

    ``result_file`` has the authenticator in no URL; ``workunit_file`` has, and so in the project's
    access log (``web-rpcs.rst``, "The RPCs"): it is for jobs whose instance cannot be found.
    """
    project = context.project
    if instance is None:
        return functools.partial(project.workunit_file, job_name)
    return functools.partial(project.result_file, instance.name)


def _check_directory(path: Path) -> None:
    """Refuse a job's directory that is not there, before one is made for stdout in its place.

    Where its file system is not mounted, all would go to what is beneath.
    """
    try:
        if path.is_dir():
            return
        path.stat()
    except OSError as error:
        raise OutputError(
            f"the job's directory {str(path)!r} cannot be used: {error.strerror}"
        ) from error
    raise OutputError(f"the job's directory {str(path)!r} is no directory")


def _write_stderr(request: FetchRequest, text: str, gate: Gate) -> None:
    """Write stderr anew: a fetch that is repeated must not double it."""
    path: Path | None = stderr_path(request)
    if path is not None:
        write_text(request, path, text, gate)
