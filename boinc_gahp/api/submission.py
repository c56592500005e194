"""Submits, plans and estimates batches.

:func:`boinc_gahp.submit.engine.submit` creates each job exactly once: a batch is identified by its
name, and a submit of the same jobs under the same name completes the first one, or finds it done.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from boinc_gahp.api.finding import unknown_app
from boinc_gahp.api.manifest_files import ManifestJournal
from boinc_gahp.api.request import build_request, job_names, list_of, new_batch_name
from boinc_gahp.errors import (
    AppNotFound,
    BadRequest,
    BatchConflict,
    BatchTooLarge,
    GahpError,
    JobRefused,
    StagingError,
)
from boinc_gahp.rpc.site import lacks_buda_app
from boinc_gahp.rpc.types import BatchSubmission, JobSubmission
from boinc_gahp.submit.abort import abort_empty
from boinc_gahp.submit.association import absent_names
from boinc_gahp.submit.checks import buda_name, project_app
from boinc_gahp.submit.query import check_names, jobs_there
from boinc_gahp.submit.types import Progress, StagedFile
from boinc_gahp.text import quoted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from typing_extensions import Unpack

    from boinc_gahp.api.manifest import Lineage
    from boinc_gahp.api.request import Options
    from boinc_gahp.api.session import Session
    from boinc_gahp.rpc.types import BatchInfo, UploadFile
    from boinc_gahp.submit.types import Job, OnProgress, SubmitRequest, Validation
    from boinc_gahp.submit.validate import BatchValidator


log = logging.getLogger("boinc_gahp.api")

#: How many requests with part of the jobs are written to learn how many fit.
_MAX_CHECKS = 6


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A local input file.

    Attributes:
        path: as it was given.
        nbytes: its size.
        physical_name: its name on the project.
        present: whether the project has it already, so that it need not be sent.
        url: where everybody could read it, because it would not be sent to the project; None: it
            would not be published.
    """

    path: str
    nbytes: int
    physical_name: str
    present: bool
    url: str | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What a submit would do, as far as this is known beforehand.

    Attributes:
        request: the request to the context.
        refusal: the problem of the batch as a whole; None: there is none.
        problems: problems of jobs, by job name.
        files: the local files that are needed, each content once.
        request_bytes: the size of the request that holds the jobs.
        max_request_bytes: the largest request that the project's settings allow.
        jobs_that_fit: how many of the jobs, counted from the first, one request can hold.
        batch_id: the id of an existing batch of this name; None: there is none.
        jobs_there: how many of the jobs that batch has.
        compared: whether its jobs are known to have these arguments and files.
        lease: seconds that a new batch would be kept without a renewal.
        sizes: the smallest and the largest value that the project would keep for the jobs, by the
            fields of :class:`Parameters`; empty if their template is a file on the project, which
            cannot be read from here.
        jobs_with_template: how many jobs are sent with an input template that has their values
            filled in, because their own template or the app's says otherwise.
        template_bytes: how many bytes of the request these templates take.
    """

    request: SubmitRequest
    refusal: GahpError | None
    problems: Mapping[str, GahpError]
    files: tuple[PlannedFile, ...]
    request_bytes: int
    max_request_bytes: int
    jobs_that_fit: int
    batch_id: int | None = None
    jobs_there: int = 0
    compared: bool = False
    lease: float = 0.0
    sizes: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    jobs_with_template: int = 0
    template_bytes: int = 0

    @property
    def is_good(self) -> bool:
        """Whether there is no problem."""
        return self.refusal is None and not self.problems

    @property
    def nbytes(self) -> int:
        """The total size of the files that would be sent, in bytes."""
        return sum(file.nbytes for file in self.files if not file.present and file.url is None)

    def __repr__(self) -> str:
        verdict = "good" if self.is_good else f"{len(self.problems)} jobs refused"
        if self.refusal is not None:
            verdict = "the batch is refused"
        return (
            f"<Plan {self.request.batch_name!r} {len(self.request.jobs)} jobs, "
            f"{self.nbytes} bytes to be sent, {verdict}>"
        )


class Submitted(NamedTuple):
    """What a submit has found or made.

    Attributes:
        info: the batch as the project shows it with the jobs.
        existed: whether it had all of them, so that nothing was sent.
        compared: whether they are known to have the arguments and files of the request.
        published: the files that were published for them.
    """

    info: BatchInfo
    existed: bool
    compared: bool
    published: Sequence[UploadFile] = ()


def submit(
    session: Session, app_name: str, request: SubmitRequest, lineage: Lineage | None = None
) -> Submitted:
    """Create the jobs on the project, each exactly once.

    Args:
        session: the project and the account.
        app_name: the app, as a person knows it.
        request: as :func:`~boinc_gahp.api.request.build_request` makes it for this app.
        lineage: what the batch repeats, for its manifest; None: nothing.

    Repeated with the same jobs and the same name, at any time and from any process, it completes
    the first submit or finds it done.

    Raises:
        BadRequest: the project has no such BUDA app.
        JobRefused: the project would mangle a job or choke on it; nothing was created.
        BatchConflict: the name belongs to another batch, to a batch that takes no more jobs, or to
            one that was submitted with other arguments or files.
        StagingError: an input file cannot be read or sent.
        NotFound: there is no such app.
        PermissionDenied: the account may not submit to it.
        TemplateError: the app's templates cannot be read.
        RpcError: the project refused, or could not be asked.
    """
    _check_buda(session, app_name)
    comparison = ManifestJournal(session.context, session.manifests, request, lineage)
    comparison.check()
    try:
        from boinc_gahp.submit.engine import submit as send  # noqa: PLC0415  (heavy)

        with app_explained(session, app_name):
            batch_id = send(session.context, request, comparison)
    except BatchTooLarge as error:
        raise _split(session, request, error, lineage) from error
    if not comparison.knows(batch_id):
        comparison.check()  # another process may have filled the batch in the meantime
    assert comparison.batch is not None  # noqa: S101  (a submit that returns has seen its batch)
    session.context.tidy()
    known = comparison.knows(batch_id)
    return Submitted(comparison.batch, comparison.existed, known, comparison.published)


@contextmanager
def app_explained(session: Session, app_name: str) -> Iterator[None]:
    """Let the error for an app that does not exist suggest another."""
    try:
        yield
    except AppNotFound as error:
        raise unknown_app(session, app_name, error) from error


def _check_buda(session: Session, app_name: str) -> None:
    """Refuse jobs of a BUDA app if the project shows that it has no such app.

    Raises:
        BadRequest: it does; the jobs would be accepted, and wait for ever.
    """
    name = buda_name(app_name)
    if name is not None and lacks_buda_app(session.rpc, name):
        raise BadRequest(
            f"the project {session.rpc.host} has no BUDA app {quoted(name)}: ask its admin for the "
            "app's internal name"
        )


def drop_begun(session: Session, batch_name: str) -> None:
    """Retire the batch of a submit that failed for good, if it is empty.

    The name of a retired batch cannot be used again, so this is only for generated names.
    """
    try:
        abort_empty(session.context, batch_name)
    except GahpError as error:
        log.warning("The project did not say whether batch %s was created: %s", batch_name, error)


def plan(session: Session, app_name: str, jobs: Iterable[Job], **options: Unpack[Options]) -> Plan:
    """Show what :func:`submit` would do; creates, sends and fetches nothing.

    Local files whose MD5s are not remembered are read, since the project knows files by their MD5s.

    Raises:
        BadRequest, NotFound, PermissionDenied, TemplateError, RpcError: as :func:`submit`.
        JobRefused: a job's arguments cannot be split, or a job of a BUDA app cannot be made.
        StagingError: a file changed while it was read.
    """
    request = build_request(app_name, jobs, **options)
    _check_buda(session, app_name)
    with app_explained(session, app_name):
        validation = validator(session, request).validation()
    # Only here and in a submit does a project read the app's template file itself.
    probe = BatchSubmission(project_app(app_name), [JobSubmission(rsc_fpops_est=1.0)])
    session.rpc.estimate_batch(probe)
    files = _files(session, validation, request.progress)
    refusal = validation.refusal
    if isinstance(refusal, BatchTooLarge):
        refusal = _split(session, request, refusal)
    problems = dict(validation.refusals)
    for name, absent in _absent_staged(session, request, validation.staged).items():
        problems.setdefault(name, absent)
    batch_id, there, compared = None, 0, False
    if options.get("name") is not None and refusal is None:
        comparison = ManifestJournal(session.context, session.manifests, request)
        try:
            batch_id, there = jobs_there(session.context, request)
            comparison.check()
        except BatchConflict as error:
            refusal = error
        compared = batch_id is not None and comparison.knows(batch_id)
    if batch_id is None and refusal is None and not problems:
        try:
            check_names(session.context.project, request)
        except JobRefused as error:
            problems.setdefault(str(error.job_name), error)
    return Plan(
        request=request,
        refusal=refusal,
        # In the order of the jobs.
        problems={name: problems[name] for name, _ in request.jobs if name in problems},
        files=files,
        request_bytes=validation.request_bytes,
        max_request_bytes=validation.max_post_bytes,
        jobs_that_fit=_fitting(session, request, validation.request_bytes),
        batch_id=batch_id,
        jobs_there=there,
        compared=compared,
        lease=validation.lease if request.lease is None else request.lease,
        sizes=_sizes(validation),
        jobs_with_template=sum(bool(each.elements) for each in validation.filled.values()),
        template_bytes=sum(each.nbytes for each in validation.filled.values()),
    )


def _sizes(validation: Validation) -> dict[str, tuple[float, float]]:
    """Return the smallest and largest values kept for the jobs; empty if any is unknown."""
    if len(validation.filled) < len(validation.inputs):
        return {}
    sizes = [each.stored for each in validation.filled.values()]
    ranges = {}
    for element in sizes[0] if sizes else ():
        values = [each[element] for each in sizes]
        ranges[element.removeprefix("rsc_")] = (min(values), max(values))
    return ranges


# -- what is there


def _files(
    session: Session, validation: Validation, progress: OnProgress | None
) -> tuple[PlannedFile, ...]:
    if progress is not None and validation.files:
        progress(Progress("reading", 0, sum(validation.files.values()), "bytes"))
    from boinc_gahp.submit.staging import physical_names  # noqa: PLC0415  (heavy)

    names = physical_names(session.context, validation.files)
    first = {names[path]: path for path in reversed(list(validation.files))}
    published = session.context.published
    urls = {
        path: remote.url
        for path, nbytes in validation.files.items()
        if published and (remote := published.remote(path, nbytes, names[path][:32]))
    }
    sent = [name for name, path in first.items() if path not in urls]
    there = set(sent).difference(absent_names(session.rpc, sent))
    return tuple(
        PlannedFile(path, nbytes, names[path], names[path] in there, urls.get(path))
        for path, nbytes in validation.files.items()
        if first[names[path]] == path
    )


def _absent_staged(
    session: Session, request: SubmitRequest, staged: Collection[str]
) -> dict[str, StagingError]:
    """Return, by job, errors for files that should be on the project and are not.

    Only names in ``staged`` are looked up: query_files fails at text that cannot be a file's name.
    """
    absent = set(absent_names(session.rpc, staged))
    found: dict[str, StagingError] = {}
    for name, job in request.jobs:
        for open_name, item in job.files.items():
            if isinstance(item, StagedFile) and item.physical_name in absent:
                found.setdefault(
                    name,
                    StagingError(
                        f"job {name!r}: {session.rpc.host} has no file "
                        f"{item.physical_name!r} for its input {open_name!r}: name the "
                        "local file instead, which is uploaded if the project lacks it"
                    ),
                )
    return found


def validator(session: Session, request: SubmitRequest) -> BatchValidator:
    """Return what checks and measures a request; only then its modules are imported."""
    from boinc_gahp.submit.validate import BatchValidator  # noqa: PLC0415

    return BatchValidator(session.context, request)


# -- how many fit


def _fitting(session: Session, request: SubmitRequest, size: int) -> int:
    """Return how many of the jobs, from the first, fit into one request; all have ``size`` bytes.

    Jobs of one batch are similar, so the size of some of them tells which number to try next.
    """
    limit = session.context.project_settings.max_post_bytes
    most = len(request.jobs)
    if size <= limit:
        return most
    fits, guess = 0, max(1, most * limit // size)
    for _ in range(_MAX_CHECKS):
        try:
            found = validator(session, replace(request, jobs=request.jobs[:guess])).size()
        except GahpError:
            return fits
        if found <= limit:
            fits = max(fits, guess)
        else:
            most = min(most, guess)
        following = min(max(guess * limit // found, fits + 1), most - 1)
        if following <= fits or following == guess:
            break
        guess = following
    return fits


def _split(
    session: Session, request: SubmitRequest, error: BatchTooLarge, lineage: Lineage | None = None
) -> BatchTooLarge:
    """Return the error with the numbers needed to split the batch."""
    fits = _fitting(session, request, error.nbytes)
    count = len(request.jobs)
    if not 0 < fits < count:
        return error
    batches = -(-count // fits)
    advice = (
        f"so make {batches} batches of {-(-count // batches)} jobs or fewer (batch submit --split "
        "and Project.submit_split do)"
    )
    if lineage is not None:
        advice = "so retry as many at a time (batch retry --job, or the jobs of Batch.retry)"
    return BatchTooLarge(
        f"{error}; {fits} of these {count} jobs fit into one request, {advice}", nbytes=error.nbytes
    )


# -- several batches


def split(
    session: Session, app_name: str, jobs: Iterable[Job], **options: Unpack[Options]
) -> list[tuple[str, list[Job]]]:
    """Return batches, each with its name and jobs, so that each fits into a request.

    A project takes a batch in one request (``web-rpcs.rst``, "submit_batch"), and requests have a
    maximum size.

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
