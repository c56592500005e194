"""Splits jobs that do not fit into one request into several batches.

A project takes a batch in one request (``web-rpcs.rst``, "submit_batch"), and requests have a
maximum size.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from boinc_gahp.api.request import build_request, job_names, list_of, new_batch_name
from boinc_gahp.api.submission import validator

if TYPE_CHECKING:
    from collections.abc import Iterable

    from typing_extensions import Unpack

    from boinc_gahp.api.request import Options
    from boinc_gahp.api.session import Session
    from boinc_gahp.api.types import Job


def split(
    session: Session, app_name: str, jobs: Iterable[Job], **options: Unpack[Options]
) -> list[tuple[str, list[Job]]]:
    """Return batches, each with its name and jobs, so that each fits into a request.

    There are as few as possible, of about the same size. A single batch has the given name; several
    are called ``<name>-1``, ``<name>-2``, … The jobs have the same names as in one batch. So the
    same jobs, settings and templates always make the same batches; if something differs, submitting
    them raises :class:`BatchConflict` and never duplicates jobs.

    Raises:
        BadRequest: a value has the wrong type.
        JobRefused: a job's arguments cannot be split or would not arrive unchanged.
        NotFound, PermissionDenied, TemplateError, RpcError: the app's templates cannot be had.
    """
    listed = list_of(jobs)
    name = options.get("name")
    options["name"] = name = new_batch_name(app_name) if name is None else name
    request = build_request(app_name, listed, **options)
    limit = session.context.project_settings.max_post_bytes
    size = validator(session, request).size()
    if size <= limit:
        return [(name, listed)]
    named = [
        replace(job, name=job_name)
        for job, job_name in zip(listed, job_names(name, listed), strict=True)
    ]
    count, largest = 1, size
    while largest > limit and count < len(named):
        count = min(len(named), max(count + 1, -(-count * largest // limit)))
        places = _places(len(named), count)
        largest = max(
            validator(session, replace(request, jobs=request.jobs[place])).size()
            for place in places
        )
    width = len(str(count))
    return [
        (f"{name}-{number:0{width}d}", named[place])
        for number, place in enumerate(_places(len(named), count), 1)
    ]


def _places(jobs: int, count: int) -> list[slice]:
    """Return where each of ``count`` batches begins and ends; sizes differ by one job at most."""
    ends = [jobs * number // count for number in range(count + 1)]
    return [slice(begin, end) for begin, end in pairwise(ends)]
