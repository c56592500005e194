"""Makes an ordinary description of one for a BUDA app (``+BoincApp = "buda:NAME"``)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from boinc_gahp.errors import JobRefused
from boinc_gahp.htcondor.attributes import AdRefused
from boinc_gahp.submit.buda import buda_request
from boinc_gahp.submit.types import Job, SubmitRequest, by_open_name

if TYPE_CHECKING:
    from boinc_gahp.htcondor._description import JobDescription


def with_buda_app(description: JobDescription) -> JobDescription:
    """Return a description with the project's app, and templates that name the BUDA app.

    That of a job for another app is returned unchanged.

    Raises:
        AdRefused: the job cannot be made, or does not name its outputs.
    """
    job = Job(
        description.args,
        by_open_name(description.inputs),
        input_template=description.input_template,
        output_template=description.output_template,
    )
    request = SubmitRequest(
        "",
        description.app_name,
        [("", job)],
        parameters=description.parameters,
        outputs={} if description.outputs is None else {"": description.outputs},
    )
    try:
        made = buda_request(request)
    except JobRefused as error:
        raise AdRefused(str(error)) from error
    if made is request:
        return description
    _, job = made.jobs[0]
    return replace(
        description,
        app_name=made.app_name,
        parameters=made.parameters,
        input_template=job.input_template,
        output_template=job.output_template,
    )
