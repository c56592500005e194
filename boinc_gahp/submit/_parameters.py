"""The sizes that jobs ask for, compared with input templates, and what is sent for them.

A template's values win over the request's ``job_params``, and a job's own ``rsc_fpops_est`` is only
used for estimates (``web-rpcs.rst``, "The template wins"). So a job that asks for other values than
its template takes a template with it that has them filled in. If the template lacks an element,
``job_params`` are used; if it already has the value, nothing has to be sent.
"""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING

from boinc_gahp.errors import JobRefused
from boinc_gahp.submit.types import FilledSizes, Parameters, sizes_of
from boinc_gahp.templates.types import DEFAULTS, TemplateError
from boinc_gahp.templates.writing import set_parameters
from boinc_gahp.text import quoted

if TYPE_CHECKING:
    from boinc_gahp.submit.types import Job, SubmitRequest
    from boinc_gahp.templates.types import InputTemplate

#: What can be asked for: the elements of ``job_params``.
ELEMENTS = tuple(Parameters().by_element)
#: The columns are doubles, except delay_bound, which is whole seconds in 32 bits: 68 years.
_MOST = dict.fromkeys(ELEMENTS, sys.float_info.max) | {"delay_bound": 2**31 - 1}


def check_sizes(name: str, job: Job) -> None:
    """Raise JobRefused if a job asks for a size that a project cannot store."""
    for element, value in job.sizes.items():
        if not 0 < value <= _MOST[element]:
            raise JobRefused(
                f"job {quoted(name)}: {element} is {value}; expected a number above 0, at most "
                f"{_MOST[element]:.15g}"
            )


def _whole(element: str, value: float) -> float:
    return math.ceil(value) if element == "delay_bound" else value


class RequestedSizes:
    """The sizes that the jobs of a request ask for; for one thread.

    Args:
        request: the request.

    Attributes:
        params: ``job_params`` of the request, by element: without values that are not set (PHP
            takes 0 for that), and without those that :meth:`check` refuses.
    """

    def __init__(self, request: SubmitRequest) -> None:
        self._request = request
        given = request.parameters.by_element
        self._given = {name: value for name, value in given.items() if value}
        self.params = {
            name: _whole(name, value)
            for name, value in self._given.items()
            if 0 < value <= _MOST[name]
        }
        self._filled: dict[tuple[object, ...], FilledSizes] = {}

    def check(self) -> None:
        """Raise JobRefused for bad sizes, and for sizes that may have no effect."""
        request = self._request
        for name, value in self._given.items():
            if name not in self.params:
                raise JobRefused(
                    f"batch {quoted(request.batch_name)}: {name} is {value}; expected a number "
                    f"from 0 to {_MOST[name]:.15g}"
                )
        if request.input_template_filename is None:
            return
        for _, job in request.jobs:
            sizes = {**self.params, **job.sizes}
            if sizes and job.input_template is None:
                raise JobRefused(
                    f"batch {quoted(request.batch_name)}: its jobs ask for {', '.join(sizes)}, but "
                    f"use the project's template {request.input_template_filename}, whose own "
                    "values win and cannot be read from here: leave these out, or give the "
                    "template itself with the jobs"
                )

    def filled(self, name: str, job: Job, template: InputTemplate, text: str) -> FilledSizes:
        """Return what becomes of the sizes that a job asks for.

        Args:
            name: the job's name.
            job: one of the request.
            template: its own template, or else the app's.
            text: that template's text.

        Raises:
            JobRefused: a value cannot be filled in.
        """
        key = (job.input_template, sizes_of(job))
        if key not in self._filled:
            self._filled[key] = self._fill(name, job, template, text)
        return self._filled[key]

    def _fill(self, name: str, job: Job, template: InputTemplate, text: str) -> FilledSizes:
        otherwise: dict[str, float] = {}
        for each in ELEMENTS:
            given: float | None = getattr(template, each)
            otherwise[each] = self.params.get(each) or DEFAULTS[each] if given is None else given
        asked = {**self.params, **{each: _whole(each, v) for each, v in job.sizes.items()}}
        values = {each: v for each, v in asked.items() if v != otherwise[each]}
        if not values:
            return FilledSizes(job.input_template, (), otherwise)
        try:
            own = set_parameters(text, values)
        except TemplateError as error:
            raise JobRefused(
                f"job {quoted(name)}: its own values cannot be written into its {error}"
            ) from error
        return FilledSizes(own, tuple(values), {**otherwise, **values})
