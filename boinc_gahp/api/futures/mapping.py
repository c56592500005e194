"""From a table of parameters to futures: over the jobs of an app, and over those of a program.

The batch's name is made from the contents: the same jobs have the same name. So a program that was
killed and runs again finds its batch, without a name that somebody has to choose. The name is
``<stem>-<12 hex digits>``. If the batch of that name was aborted or retired, it takes no more jobs,
and the next one is ``<stem>-<12 hex digits>-2``, ``-3`` and so on.
"""

from __future__ import annotations

import hashlib
import json
import os
import posixpath
import re
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boinc_gahp.api import submission
from boinc_gahp.api.finding import look_up
from boinc_gahp.api.futures.collecting import failed_job
from boinc_gahp.api.known_batch import ENDED, KnownBatch
from boinc_gahp.api.manifest import describe
from boinc_gahp.api.manifest_files import request_md5s
from boinc_gahp.api.outputs.folders import folder_name
from boinc_gahp.api.progress import StepView, shown
from boinc_gahp.api.request import build_request, list_of, renamed, similar_names
from boinc_gahp.api.rows.reading import jobs_from, rows_or_jobs
from boinc_gahp.api.rows.texts import BATCH
from boinc_gahp.errors import BadRequest, NotFound, NotOwner
from boinc_gahp.submit.checks import MAX_BATCH_NAME, buda_name, short_name
from boinc_gahp.text import did_you_mean, listed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from typing_extensions import Unpack

    from boinc_gahp.api.futures.job_futures import JobFutures, JobResult
    from boinc_gahp.api.programs import ProgramBatch
    from boinc_gahp.api.request import Options
    from boinc_gahp.api.session import Session
    from boinc_gahp.submit.types import File, Job, SubmitRequest


#: The name of a batch whose name is not known yet.
UNNAMED = f"{{{BATCH}}}"

#: How many hex digits of the digest a name has. Should two requests have the same, the second is
#: refused, because its jobs are others than those of the first.
_DIGITS = 12
#: The most characters of a name's stem, so that there is room for the digits and a number.
_STEM = MAX_BATCH_NAME - 40
#: What a job's line in the manifest has besides what is sent to the project.
_NOT_SENT = ("sources", "parameters", "retry_of")
#: How many names an error lists.
_NAMED = 5
#: Characters of a program's name that its batch's name does not have.
_ODD = re.compile(r"[^A-Za-z0-9._-]+")


def mapped(
    session: Session,
    app_name: str,
    jobs: Sequence[Job],
    futures: Callable[..., JobFutures[JobResult]],
    *,
    directory: str | os.PathLike[str] | None,
    wanted: Collection[str] = (),
    stem: str | None = None,
    **options: Unpack[Options],
) -> JobFutures[JobResult]:
    """Submit jobs, and return a future for each; see :meth:`Project.map`.

    Args:
        session: the project and the account.
        app_name: the app that runs the jobs.
        jobs: the jobs.
        futures: makes the futures (:meth:`Project.futures`).
        directory: where the outputs are put; None: a folder with the batch's name in the working
            directory.
        wanted: open names of the outputs that each job has to have.
        stem: what the batch's name begins with, if none is given; None: the app's name.
        options: those of :meth:`Project.submit`.

    Raises:
        GahpError: as :meth:`Project.submit`.
    """
    with shown(options.get("progress"), StepView) as report:
        options["progress"] = report
        is_unnamed = options.get("name") is None
        if is_unnamed:
            options["name"] = UNNAMED
        request = build_request(app_name, jobs, **options)
        if is_unnamed:
            name = contents_name(session, stem or short_name(app_name), request)
            request = renamed(request, free_name(session, name))
        sent = submission.submit(session, app_name, request)
    return futures(
        sent,
        [(name, job.parameters) for name, job in request.jobs],
        directory_for(request.batch_name, directory),
        partial(_checked, wanted, KnownBatch(session, sent.info)),
    )


def directory_for(batch_name: str, directory: str | os.PathLike[str] | None) -> Path:
    """Return where the outputs of a batch's futures go: a folder of its name, if none is named."""
    # The working directory may change before the first job is over. A link's target is not used.
    return Path(os.path.abspath(directory or folder_name(batch_name)))  # noqa: PTH100


def _checked(wanted: Collection[str], batch: KnownBatch, result: JobResult) -> JobResult:
    """Return a job's result, if it ended well and has its outputs.

    Args:
        wanted: open names of the outputs that it has to have.
        batch: its batch.
        result: the result.

    Raises:
        JobFailed: it failed, or lacks an output.
    """
    reason = result.failure
    missing = [name for name in wanted if name not in result.outputs]
    if missing and not reason:
        there = listed([repr(name) for name in result.outputs], _NAMED)
        reason = f"it has no output {missing[0]!r}; its outputs are: {there}"
    if reason:
        status = result.exit_status
        raise failed_job(batch, result.name, reason, exit_status=status, stderr=result.stderr)
    return result


def jobs_of(
    rows: Any, args: Sequence[object] | str | None, inputs: Mapping[str, File] | None
) -> list[Job]:
    """Return a job for each row; rows may be jobs already."""
    rows, are_jobs = rows_or_jobs(rows)
    if not are_jobs:
        return jobs_from(rows, args=args, inputs=inputs)
    if args is not None or inputs is not None:
        raise BadRequest(
            "rows has jobs, which have arguments and inputs of their own: leave out args and "
            "inputs, or give mappings"
        )
    return list_of(rows)


def with_outputs(
    session: Session,
    app_name: str,
    jobs: list[Job],
    outputs: Collection[str] | None,
    options: Options,
) -> tuple[list[Job], Collection[str]]:
    """Return jobs, and the open names of the outputs that each has to have; see Project.map.

    A project does not tell the outputs of a BUDA app, so its jobs name them. Other names are
    checked before jobs are sent that could not have them.

    Raises:
        BadRequest: the app's jobs make no such output.
        NotFound, PermissionDenied, TemplateError, RpcError: the app's templates cannot be read.
    """
    wanted = (outputs,) if isinstance(outputs, str) else tuple(outputs or ())
    if not wanted:
        return jobs, ()
    if buda_name(app_name) is not None:
        return [job if job.outputs else replace(job, outputs=wanted) for job in jobs], wanted
    if options.get("output_template_filename") or any(job.output_template for job in jobs):
        return jobs, wanted
    made = [info.open_name for info in look_up(session, app_name).outputs if info.open_name]
    for name in wanted:
        if name not in made:
            there = listed([repr(each) for each in made], _NAMED)
            raise BadRequest(
                f"outputs has {name!r}, which jobs of {app_name} do not make; their outputs are: "
                f"{there}{did_you_mean(name, made, show=repr)}"
            )
    return jobs, wanted


# -- names of batches


def stem_of(made: ProgramBatch) -> str:
    """Return what the name of a batch of programs begins with: the program's name."""
    words = made.jobs[0].program
    called = "" if words is None else _ODD.sub("", posixpath.basename(words.command[0]))
    return called or made.app


def contents_name(session: Session, stem: str, request: SubmitRequest) -> str:
    """Return the name for the contents of a request; see :func:`free_name`.

    The name depends on the account, the app, and on all that is sent for the jobs: arguments, open
    names and contents of the files, sizes, priorities and templates. It does not depend on where
    the files are, on the parameters of rows, or on the lease.

    Args:
        session: the project and the account.
        stem: what the name begins with.
        request: for a batch of the name :data:`UNNAMED`.

    Raises:
        StagingError: a file changed while it was read.
    """
    digest = hashlib.sha256()
    # Two accounts cannot have batches of the same name.
    for each in chain([session.rpc.account], _contents(session, request)):
        digest.update(json.dumps(each, sort_keys=True).encode() + b"\n")
    return f"{stem[:_STEM]}-{digest.hexdigest()[:_DIGITS]}"


def free_name(session: Session, name: str) -> str:
    """Return the name, or the first like it whose batch was neither aborted nor retired.

    Raises:
        RpcError: the project could not be asked.
    """
    for each in chain([name], similar_names(name)):
        try:
            found = session.rpc.query_batch(batch_name=each).batch
        except NotFound:
            return each
        except NotOwner:
            continue
        if found.state not in ENDED:
            return each
    raise AssertionError("there is always another name")


def _contents(session: Session, request: SubmitRequest) -> Iterator[object]:
    """Yield what is sent for a request; reads files whose MD5s are not remembered."""
    manifest = describe(request, request_md5s(session.context, request))
    yield manifest.common
    for name, line in manifest.jobs.items():
        sent = json.loads(line)
        yield name, {key: value for key, value in sent.items() if key not in _NOT_SENT}
