"""Makes ordinary jobs of those for a BUDA app, BOINC's own form of apps in containers.

A BUDA app is no app of the project's database but a directory on its server, with a Dockerfile and
a program for each kind of host; all of them belong to the one app ``buda``. So a job names its own
in its input template, which lists nothing but the job's own inputs: the scheduler adds the files of
the variant that fits the host (``containers.rst``, "BUDA apps").
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from boinc_gahp.containers.job_files import DOCKERFILE, MOST_FILES
from boinc_gahp.containers.rules import FPOPS_BOUND
from boinc_gahp.errors import JobRefused
from boinc_gahp.submit.checks import BUDA, buda_name, naming
from boinc_gahp.submit.container_jobs import copied_inputs, copied_outputs, counts
from boinc_gahp.templates.reading import read_input_template
from boinc_gahp.templates.types import InputTemplate, OutputTemplate, TemplateError, safe_open_name
from boinc_gahp.templates.writing import set_parameters, write_input_template, write_output_template
from boinc_gahp.text import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boinc_gahp.submit.types import Job, SubmitRequest

#: The largest output in bytes, as for other jobs in containers.
_MAX_NBYTES = 1e9
#: So many templates are remembered: jobs with inputs of their own often have the same names.
_REMEMBERED = 64

#: The arguments are part of a command for the shell of the volunteer's computer, between ``"``
#: (``containers.rst``, "What the wrapper does").
_IN_SHELL = re.compile(r'[$`"\\]')
#: The wrapper's options that are not for the program. ``--verbose`` is harmless, and useful.
_OPTIONS = frozenset({"--config", "--dockerfile", "--sporadic"})
#: Of the 1,023 bytes of that command, the rest is for names of the project and of the job.
_MOST_BYTES = 500


def buda_request(request: SubmitRequest) -> SubmitRequest:
    """Return the request for a BUDA app as the project takes it; any other request unchanged.

    Args:
        request: for ``buda:NAME``; its ``outputs`` are the open names of the jobs' outputs.

    Raises:
        JobRefused: a job cannot be made, or does not name its outputs.
    """
    name = buda_name(request.app_name)
    if name is None:
        return request
    named = request.input_template_filename is not None
    made_there = request.output_template_filename is not None
    jobs = []
    for job_name, job in request.jobs:
        own_input, own_output = job.input_template, job.output_template
        with naming(job_name):
            check_arguments(job_name, job)
            if own_input is not None or not named:
                own_input = buda_input(job_name, name, tuple(job.inputs), own_input)
            if own_output is None and not made_there:
                own_output = buda_output(job_name, name, request.outputs.get(job_name))
        jobs.append((job_name, replace(job, input_template=own_input, output_template=own_output)))
    bound = request.parameters.fpops_bound or FPOPS_BOUND
    parameters = replace(request.parameters, fpops_bound=bound)
    return replace(request, app_name=BUDA, jobs=jobs, outputs={}, parameters=parameters)


def buda_input(
    job_name: str, name: str, open_names: tuple[str, ...], own: str | None = None
) -> str:
    """Return a job's input template.

    Args:
        job_name: the job, for errors.
        name: the BUDA app.
        open_names: those of the job's inputs, in their order.
        own: the job's own template, which may lack the BUDA app's name.

    Raises:
        JobRefused: it cannot be made.
    """
    try:
        if own is None:
            _check_inputs(job_name, open_names)
            return _input_template(name, open_names)
        there = read_input_template(own).buda_app_name
        if there is None:
            return _named(own, name)
    except TemplateError as error:
        raise JobRefused(f"{_called(job_name)}: its own {error}") from error
    if there != name:
        raise JobRefused(
            f"{_called(job_name)} is for the BUDA app {quoted(name)}, but its own input "
            f"template is for {quoted(there)}: correct one of them"
        )
    return own


def buda_output(job_name: str, name: str, outputs: Sequence[str] | None) -> str:
    """Return a job's output template.

    Args:
        job_name: the job, for errors.
        name: the BUDA app.
        outputs: open names; None: the job names none.

    Raises:
        JobRefused: they are not named, or cannot be open names.
    """
    if outputs is None:
        raise JobRefused(
            f"{_called(job_name)}: a project does not tell which outputs its BUDA app "
            f"{quoted(name)} makes: name them (transfer_output_files in a submit file, --output, "
            "Job.outputs); jobs of HTCondor 9 (BOINC_SUBMIT) cannot name any, so BUDA apps need "
            "HTCondor 10 or batch submit"
        )
    for each in outputs:
        if not each or not safe_open_name(each) or each.endswith("/"):
            raise JobRefused(
                f"{_called(job_name)}: the output {quoted(each)} is not the name of a file in "
                "the directory where the BUDA app runs"
            )
    try:
        return _output_template(tuple(dict.fromkeys(outputs)))
    except TemplateError as error:
        raise JobRefused(f"{_called(job_name)}: {error}") from error


def check_arguments(job_name: str, job: Job) -> None:
    """Raise JobRefused for arguments that docker_wrapper would not pass to the program unchanged.

    It joins them with spaces into the variable ``ARGS``, in a command for a shell of the
    volunteer's computer.
    """
    where = f"{_called(job_name)}: the argument"
    size = 0
    for word in job.args:
        size += len(word.encode("utf-8", "surrogatepass")) + 1
        bad = _IN_SHELL.search(word)
        if bad:
            raise JobRefused(
                f"{where} {quoted(word)} has a {bad[0]}, which a shell of the volunteer's "
                "computer would evaluate: BUDA apps get their arguments through it; put it into an "
                "input file"
            )
        if word.split() != [word]:
            raise JobRefused(
                f"{where} {quoted(word)} is empty or has white space: a BUDA app gets all "
                "arguments as one text, in which nothing tells where such an argument begins and "
                "ends; put it into an input file"
            )
        if word in _OPTIONS:
            raise JobRefused(
                f"{where} {word} would be taken by BOINC's docker_wrapper, and not reach the BUDA "
                "app: put it into an input file"
            )
    if size > _MOST_BYTES:
        raise JobRefused(
            f"{_called(job_name)} has {size} bytes of arguments; a BUDA app gets at most "
            f"{_MOST_BYTES}: put them into an input file"
        )


def _called(job_name: str) -> str:
    """Return how errors call a job, which may have no name yet."""
    return f"job {quoted(job_name)}" if job_name else "the job"


def _check_inputs(job_name: str, open_names: tuple[str, ...]) -> None:
    if DOCKERFILE in open_names:
        raise JobRefused(
            f"{_called(job_name)}: an input of a BUDA app cannot be called {DOCKERFILE}, as the "
            "app has its own: leave it out"
        )
    if len(open_names) > MOST_FILES:
        raise JobRefused(
            f"{_called(job_name)} has {len(open_names)} input files, and at most {MOST_FILES} "
            "are expected: put them into an archive"
        )


@lru_cache(_REMEMBERED)
def _input_template(name: str, open_names: tuple[str, ...]) -> str:
    template = InputTemplate(copied_inputs(open_names), buda_app_name=name, **counts())
    return write_input_template(template, terse=True)


@lru_cache(_REMEMBERED)
def _named(own: str, name: str) -> str:
    return set_parameters(own, {"buda_app_name": name})


@lru_cache(_REMEMBERED)
def _output_template(outputs: tuple[str, ...]) -> str:
    files = copied_outputs([(each, False) for each in outputs], _MAX_NBYTES)
    return write_output_template(OutputTemplate(files), terse=True)
