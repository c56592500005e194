"""Asks whether jobs' names are in use on a project, before a batch is created for them."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from boinc_gahp.errors import (
    JobNotFound,
    NameInUse,
    PermissionDenied,
    RpcError,
    TemplatesMissing,
)

if TYPE_CHECKING:
    from boinc_gahp.rpc.client import WebRpcs
    from boinc_gahp.submit.types import SubmitRequest

log = logging.getLogger("boinc_gahp.submit")


def check_names(project: WebRpcs, request: SubmitRequest) -> None:
    """Raise NameInUse if the first or the last name that the jobs brought is in use.

    That costs two RPCs, and finds names of a table that was submitted before. No RPC asks for
    several. A name in between is noticed when the project refuses the jobs.
    """
    brought = [name for name, job in request.jobs if job.name is not None]
    for name in dict.fromkeys((*brought[:1], *brought[-1:])):
        if _is_in_use(project, name):
            raise name_in_use(project, name)


def _is_in_use(project: WebRpcs, name: str) -> bool:
    # query_completed_job fails in several ways for jobs that are there (``web-rpcs.rst``,
    # "query_completed_job"). This RPC answers for jobs of all accounts, whatever their state.
    try:
        project.get_templates(job_name=name)
    except (PermissionDenied, TemplatesMissing):
        return True
    except JobNotFound:
        return False
    except RpcError as trouble:
        log.info("The project did not say whether it has a job %s: %s", name, trouble)
        return False
    return True


def name_in_use(project: WebRpcs, name: str) -> NameInUse:
    """Return the error for a job's name that is in use."""
    return NameInUse(
        f"job name {name!r} is in use on {project.host}, in another batch: job names are unique "
        "over the whole project (case and accents are ignored), also after a batch is retired; "
        "choose another",
        job_name=name,
    )
