"""Turns jobs of the Python API into a request to the context: names, words, files."""

from __future__ import annotations

import inspect
import os
import re
import secrets
import string
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from itertools import count
from numbers import Integral, Real
from typing import TYPE_CHECKING, TypedDict

from boinc_gahp.api.rows.jobs import amount, plain
from boinc_gahp.api.rows.texts import NameInBatch, prefix_of, split_args
from boinc_gahp.errors import BadRequest, JobRefused
from boinc_gahp.quantities import JOB_SIZES, LEASE, SIZES
from boinc_gahp.submit.checks import short_name
from boinc_gahp.submit.types import (
    InlineFile,
    Job,
    Parameters,
    RemoteFile,
    StagedFile,
    SubmitRequest,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from typing_extensions import Unpack

    from boinc_gahp.quantities import Duration, Quantity
    from boinc_gahp.submit.types import File, OnProgress

    _Shared = dict[tuple[tuple[str, File], ...], dict[str, File]]

#: A number at the end of a batch's name.
_COUNTED = re.compile(r"[1-9][0-9]{0,5}")


def new_batch_name(app_name: str) -> str:
    """Return a name that no other batch has: ``<app>-<UTC date and time>-<four letters>``.

    For a BUDA app ``buda:NAME`` it is ``<NAME>-…``.
    """
    now = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    letters = "".join(secrets.choice(string.ascii_lowercase) for _ in range(4))
    return f"{short_name(app_name)}-{now}-{letters}"


def similar_names(name: str) -> Iterator[str]:
    """Yield names for batches like another one: ``sweep-2``, ``sweep-3``; after ``sweep-7``, -8."""
    stem, _, tail = name.rpartition("-")
    is_counted = bool(stem and _COUNTED.fullmatch(tail))
    for number in count(int(tail) + 1 if is_counted else 2):
        yield f"{stem if is_counted else name}-{number}"


def job_names(batch_name: str, jobs: Sequence[Job]) -> list[str]:
    """Return the jobs' names; a job without one gets the batch's name and its number, from 0.

    The same jobs in a batch of the same name always get the same names. That is why a repeated
    submit completes the first one.
    """
    width = len(str(len(jobs) - 1))
    prefix = prefix_of(batch_name)
    return [
        f"{prefix}_{number:0{width}d}"
        if job.name is None
        else job.name.within(batch_name)
        if isinstance(job.name, NameInBatch)
        else job.name
        for number, job in enumerate(jobs)
    ]


def build_request(
    app_name: str,
    jobs: Iterable[Job],
    **options: Unpack[Options],
) -> SubmitRequest:
    """Return the request to the context.

    Args:
        app_name: the app.
        jobs: those of the batch.
        options: as :meth:`boinc_gahp.Project.submit` has them.

    Raises:
        BadRequest: a value has the wrong type, or a number is out of range.
        JobRefused: a job's arguments cannot be split, or a job of a BUDA app cannot be made.
    """
    from boinc_gahp.submit.buda import buda_request  # noqa: PLC0415  (not for lists of batches)

    listed = list_of(jobs)
    given: dict[str, Any] = {**options}
    for unknown in given.keys() - Options.__annotations__.keys():
        raise TypeError(f"submit() got an unexpected keyword argument {unknown!r}")
    name = given.pop("name", None)
    batch_name = new_batch_name(app_name) if name is None else name
    _check_texts("the batch's ", name=batch_name)
    for each in ("input_template_filename", "output_template_filename"):
        _check_texts("", optional=True, **{each: given.get(each)})
    for each in ("priority", "app_version_num"):
        _check_whole("", **{each: given.get(each)})
    given["lease"] = _quantity("lease", LEASE, given.get("lease"))
    given["parameters"] = checked(given.get("parameters", Parameters()))
    names = job_names(batch_name, listed)
    for job, job_name in zip(listed, names, strict=True):
        _check_job(job, job_name)
    shared: _Shared = {}
    request = SubmitRequest(
        batch_name,
        app_name,
        [(each, _resolved(job, each, shared)) for job, each in zip(listed, names, strict=True)],
        by_name=True,
        ask_first=True,
        outputs={
            each: tuple(job.outputs)
            for job, each in zip(listed, names, strict=True)
            if job.outputs is not None
        },
        **{each: plain(value) for each, value in given.items()},
    )
    return buda_request(request)


def renamed(request: SubmitRequest, batch_name: str) -> SubmitRequest:
    """Return what :func:`build_request` makes of the same jobs for another name of the batch."""
    jobs = [job for _, job in request.jobs]
    named = list(zip(job_names(batch_name, jobs), request.jobs, strict=True))
    return replace(
        request,
        batch_name=batch_name,
        jobs=[(name, job) for name, (_, job) in named],
        outputs={name: request.outputs[old] for name, (old, _) in named if old in request.outputs},
    )


def list_of(jobs: object) -> list[Job]:
    """Return the jobs as a list; raises BadRequest for anything else."""
    if isinstance(jobs, Job):
        raise BadRequest("jobs is one Job: expected a list, so write [job]")
    if isinstance(jobs, (str, os.PathLike)):
        raise BadRequest(f"jobs is a path: expected a list, so write jobs_from({str(jobs)!r})")
    if not isinstance(jobs, Iterable):
        raise BadRequest(f"jobs is a {type(jobs).__name__}: expected a list of boinc_gahp.Job")
    listed = list(jobs)
    for number, job in enumerate(listed):
        if not isinstance(job, Job):
            hint = "; jobs_from makes jobs of rows" if isinstance(job, Mapping) else ""
            raise BadRequest(
                f"jobs[{number}] is a {type(job).__name__}: expected a boinc_gahp.Job{hint}"
            )
    return listed


def checked(parameters: Parameters) -> Parameters:
    """Return the parameters as Python's own numbers; raises BadRequest."""
    if not isinstance(parameters, Parameters):
        raise BadRequest(
            f"parameters is a {type(parameters).__name__}: expected boinc_gahp.Parameters"
        )
    given = asdict(parameters)
    return Parameters(
        **{s.parameter: _quantity(s.parameter, s.quantity, given[s.parameter]) for s in SIZES}
    )


def _quantity(what: str, kind: Quantity, given: object) -> float | None:
    """Return an amount as a number; None stays None."""
    return None if given is None else amount(what, kind, given)


def _check_whole(where: str, **given: object) -> None:
    for what, found in given.items():
        if found is not None and (isinstance(found, bool) or not isinstance(found, Integral)):
            raise BadRequest(f"{where}{what} is {found!r}: expected a whole number")


def _check_texts(where: str, *, optional: bool = False, **given: object) -> None:
    for what, found in given.items():
        if not isinstance(found, str) and not (optional and found is None):
            raise BadRequest(f"{where}{what} is a {type(found).__name__}: expected a string")


def _check_job(job: Job, name: str) -> None:
    _check_texts("a job's ", name=name)
    where = f"job {name!r}: "
    if not isinstance(job.inputs, Mapping):
        raise BadRequest(
            f"{where}inputs is a {type(job.inputs).__name__}: expected files by name, as in "
            "{'in': 'data.txt'}"
        )
    if not isinstance(job.parameters, Mapping):
        raise BadRequest(
            f"{where}parameters is a {type(job.parameters).__name__}: expected values by name"
        )
    if not isinstance(job.args, Iterable):
        raise BadRequest(
            f"{where}args is a {type(job.args).__name__}: expected words, or one string"
        )
    _check_whole(where, priority=job.priority)
    if isinstance(job.outputs, str) or not isinstance(job.outputs or (), Iterable):
        raise BadRequest(
            f"{where}outputs is a {type(job.outputs).__name__}: expected a list of names"
        )
    for each in job.outputs or ():
        if not isinstance(each, str):
            raise BadRequest(f"{where}outputs has {each!r}: expected a string")
    _check_texts(
        where,
        optional=True,
        input_template=job.input_template,
        output_template=job.output_template,
    )
    for open_name, file in job.files.items():
        at = f"job {name!r}: input {open_name!r}: "
        _check_texts(at, name=open_name)
        if isinstance(file, RemoteFile):
            _check_texts(at, url=file.url, md5=file.md5)
            _check_whole(at, nbytes=file.nbytes)
        elif isinstance(file, (StagedFile, InlineFile)):
            _check_texts(at, **asdict(file))
        elif not isinstance(getattr(file, "path", None), str):
            found = getattr(file, "path", file)
            raise BadRequest(
                f"job {name!r}: input {open_name!r} is a {type(found).__name__}: expected a path, "
                "or a LocalFile, StagedFile, RemoteFile or InlineFile"
            )


def _resolved(job: Job, name: str, shared: _Shared) -> Job:
    """Return a job with its arguments as words, and Python's own numbers.

    Jobs with the same files share one mapping of them: then it is checked once.
    """
    inputs: dict[str, File] = dict(job.inputs)
    with suppress(TypeError):  # a path of a class without a hash
        inputs = shared.setdefault(tuple(inputs.items()), inputs)
    sizes: dict[str, Any] = {}
    if job.sizes:
        sizes = {
            each: _quantity(f"job {name!r}: {each}", size.quantity, getattr(job, each))
            for each, size in JOB_SIZES.items()
        }
    return Job(
        _words(job, name),
        inputs,
        job.name,
        plain(job.priority),
        input_template=job.input_template,
        output_template=job.output_template,
        parameters=job.parameters,
        program=job.program,
        **sizes,
    )


def _words(job: Job, name: str) -> tuple[str, ...]:
    if isinstance(job.args, str):
        try:
            return split_args(job.args)
        except BadRequest as error:
            raise JobRefused(f"job {name!r}: {error}", job_name=name) from error
    words = tuple(job.args)
    if all(type(word) is str for word in words):
        return words
    return tuple(_word(name, word) for word in words)


def _word(name: str, word: object) -> str:
    if isinstance(word, str):
        return word
    # Numbers and paths mean what they look like; True and None do not.
    if not isinstance(word, bool) and isinstance(word, Real):
        return str(word)
    if isinstance(word, os.PathLike):
        return os.fsdecode(word)
    raise BadRequest(
        f"job {name!r}: the argument {word!r} is a {type(word).__name__}: expected a string"
    )


class Options(TypedDict, total=False):
    """Arguments of :meth:`boinc_gahp.Project.submit` besides app and jobs."""

    name: str | None
    parameters: Parameters
    priority: int | None
    app_version_num: int | None
    lease: Duration | None
    input_template_filename: str | None
    output_template_filename: str | None
    progress: OnProgress | bool | None


def tell_keywords(method: Any) -> None:
    """Let ``help()`` and completion see the keywords of a method that takes ``**options``."""
    own, kind = inspect.signature(method), inspect.Parameter.KEYWORD_ONLY
    defaults = {"parameters": Parameters()}
    keywords = [
        inspect.Parameter(name, kind, default=defaults.get(name), annotation=each.__forward_arg__)
        for name, each in Options.__annotations__.items()
    ]
    method.__signature__ = own.replace(parameters=[*own.parameters.values()][:-1] + keywords)
