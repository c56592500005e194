"""Validates a batch before anything is created, and makes the request for its jobs."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from boinc_gahp.errors import (
    BadRequest,
    BatchTooLarge,
    GahpError,
    JobRefused,
    StagingError,
    TemplatesMissing,
)
from boinc_gahp.rpc.types import BatchSubmission, InputFile, JobSubmission
from boinc_gahp.submit import checks
from boinc_gahp.submit._parameters import RequestedSizes, check_sizes
from boinc_gahp.submit.digests import stat_input
from boinc_gahp.submit.types import LocalFile, RemoteFile, StagedFile, Validation, sizes_of
from boinc_gahp.templates.reading import read_input_template, read_output_template
from boinc_gahp.templates.rules import faults
from boinc_gahp.templates.types import DEFAULTS, Severity, TemplateError
from boinc_gahp.templates.writing import OwnText

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterable, Mapping

    from boinc_gahp.rpc.client import WebRpcs
    from boinc_gahp.submit.context import AppTemplates, Context
    from boinc_gahp.submit.types import FilledSizes, Input, Job, SubmitRequest
    from boinc_gahp.templates.types import InputTemplate, OutputTemplate

    _Template = TypeVar("_Template", InputTemplate, OutputTemplate)

#: As long as the path that a project gives a job's own template (``templates/tmp/<md5>``), with
#: the option before it.
_OWN_TEMPLATE = "--result_template templates/tmp/" + "0" * 36
#: Returns what follows names, arguments and files in a job's part of the request.
_rest = attrgetter(*JobSubmission._fields[3:])
#: As long as the name that a project gives an inline file (``jf_<md5>``).
_INLINE = "jf_" + "0" * 32


class _Shape(NamedTuple):
    """What is the same for all jobs that only differ in their names, arguments, and files.

    Attributes:
        order: the open names of their files, in template order.
        rest: what follows names, arguments and files in their part of the request.
        words: the words in their lines besides those and names of files.
        filled: what becomes of the sizes that they ask for, if that is known.
    """

    order: tuple[str, ...]
    rest: tuple[Any, ...]
    words: tuple[str, ...]
    filled: FilledSizes | None


class _Files(NamedTuple):
    """The files of jobs that share a mapping of them: in template order, with placeholders."""

    inputs: tuple[Input, ...]
    placeholders: tuple[InputFile, ...]
    words: tuple[str, ...]


class BatchValidator:
    """Checks a request against the app's templates and this program's limits; for one thread.

    Args:
        context: the project.
        request: the batch to submit.
        project: the project with a separate deadline, if need be.
    """

    def __init__(
        self, context: Context, request: SubmitRequest, project: WebRpcs | None = None
    ) -> None:
        self._context = context
        self._request = request
        self._project = project or context.project
        self._escape = context.project_settings.escape_command_lines
        self._of_app: AppTemplates | None = None
        self._has_no_templates = False
        self._requested_sizes = RequestedSizes(request)
        self._filled: dict[str, FilledSizes] = {}
        self._templates: dict[str, InputTemplate] = {}
        self._output_templates: dict[str, OutputTemplate] = {}
        self._shapes: dict[Hashable, _Shape] = {}
        self._files: dict[Hashable, _Files] = {}
        #: By job: what :meth:`submission` only has to put the names of files into.
        self._lines: dict[str, JobSubmission] = {}

    def inputs(self) -> dict[str, tuple[Input, ...]]:
        """Return each job's files in template order.

        Raises:
            JobRefused: the project would mangle a job or choke on it.
            RpcError: the app's templates cannot be asked for.
            TemplateError: they cannot be read.
        """
        self._check_batch()
        names: dict[str, str] = {}
        inputs: dict[str, tuple[Input, ...]] = {}
        with checks.naming() as naming:
            for name, _ in self._request.jobs:
                naming.job_name = name
                checks.check_job_name(name, names)
            for name, job in self._request.jobs:
                naming.job_name = name
                inputs[name], self._lines[name] = self._job(name, job)
        self._check_size(self._size_of(self._request_for(0, self._lines.values())))
        return inputs

    def validation(self) -> Validation:
        """Return all reasons to refuse the request; input files are looked at, not read.

        Raises:
            RpcError: the app's templates cannot be asked for.
            TemplateError: they cannot be read.
        """
        found: dict[str, tuple[tuple[Input, ...], JobSubmission]] = {}
        refusals: dict[str, GahpError] = {}
        names: dict[str, str] = {}
        seen: dict[str, StagingError | tuple[int, int]] = {}
        for name, job in self._request.jobs:
            try:
                with checks.naming(name):
                    checks.check_job_name(name, names)
                    made = self._job(name, job)
                _check_files(made[0], seen)
            except (JobRefused, StagingError) as error:
                refusals.setdefault(name, error)
                found.pop(name, None)
            else:
                found[name] = made
        size = 0
        refusal: GahpError | None = None
        try:
            self._check_batch()
            lines = (line for _, line in found.values())
            size = self._size_of(self._request_for(0, lines))
            self._check_size(size)
        except BadRequest as error:  # a text that XML cannot hold: whose?
            refusal = error
            for name, (_, line) in found.items():
                try:
                    self._project.request_size(self._request_for(0, [line]))
                except BadRequest as of_job:
                    refusals[name] = of_job
        except GahpError as error:
            refusal = error
        inputs = {name: files for name, (files, _) in found.items() if name not in refusals}
        items = [item for ordered in inputs.values() for item in ordered]
        paths = dict.fromkeys(item.path for item in items if isinstance(item, LocalFile))
        stats = ((path, seen[path]) for path in paths)
        return Validation(
            refusal=refusal,
            refusals=refusals,
            inputs=inputs,
            files={path: stat[0] for path, stat in stats if isinstance(stat, tuple)},
            staged=frozenset(i.physical_name for i in items if isinstance(i, StagedFile)),
            request_bytes=size,
            max_post_bytes=self._context.project_settings.max_post_bytes,
            lease=self.lease(),
            filled={name: self._filled[name] for name in inputs if name in self._filled},
        )

    def lease(self) -> float:
        """Return the seconds that a person's batch is kept without a renewal.

        That is as long as its jobs may take, by their deadlines and retries.

        Raises:
            RpcError: the app's templates cannot be asked for.
            TemplateError: they cannot be read.
        """
        of_app = self._input_of_app
        templates = [*self._templates.values(), *([] if of_app is None else [of_app])]
        of_batch = self._requested_sizes.params.get("delay_bound")
        shapes = {sizes_of(job): job for _, job in self._request.jobs}
        delays = {job.sizes.get("delay_bound", of_batch) for job in shapes.values()}
        longest = (_longest(each, delay) for each in templates for delay in delays)
        return max([self._context.settings.jobs.batch_lease, *longest])

    def estimate(self) -> float:
        """Return how many seconds the project thinks the jobs take; nothing is created.

        Raises:
            JobRefused, RpcError, TemplateError: as :meth:`inputs`.
        """
        self.inputs()
        # A project uses each job's own number, or else the app's template.
        of_app = self._input_of_app
        usual = None if of_app is None else of_app.rsc_fpops_est
        jobs = []
        for line in self._lines.values():
            stored = self._filled.get(line.name)
            operations = line.rsc_fpops_est if stored is None else stored.stored["rsc_fpops_est"]
            jobs.append(line._replace(rsc_fpops_est=None if operations == usual else operations))
        return self._project.estimate_batch(self._request_for(None, jobs))

    def submission(
        self,
        batch_id: int | None,
        names: Collection[str],
        inputs: Mapping[str, tuple[Input, ...]],
        placed: Callable[[LocalFile], StagedFile | RemoteFile],
    ) -> BatchSubmission:
        """Return the submit_batch request for those of the jobs that are in ``names``.

        ``placed`` tells where a local file is now. :meth:`inputs` was called before.
        """
        jobs = []
        known: dict[int, tuple[InputFile, ...]] = {}  # by the identity of those in ``inputs``
        for name, _ in self._request.jobs:
            if name in names:
                items = inputs[name]
                if id(items) not in known:
                    known[id(items)] = tuple([_input_file(item, placed) for item in items])
                jobs.append(self._lines[name]._replace(input_files=known[id(items)]))
        return self._request_for(batch_id, jobs)

    def _request_for(self, batch_id: int | None, lines: Iterable[JobSubmission]) -> BatchSubmission:
        request = self._request
        return BatchSubmission(
            app_name=request.app_name,
            batch_id=batch_id,
            app_version_num=request.app_version_num,
            priority=request.priority,
            input_template_filename=request.input_template_filename,
            output_template_filename=request.output_template_filename,
            job_params=self._requested_sizes.params,
            jobs=list(lines),
        )

    def size(self) -> int:
        """Return the bytes of the request with all jobs; nothing else is checked.

        Raises:
            JobRefused: an argument would not arrive as it is.
            RpcError: the app's templates cannot be asked for.
            TemplateError: they cannot be read.
            BadRequest: there is a text that XML cannot hold.
        """
        lines = []
        with checks.naming() as naming:
            for name, job in self._request.jobs:
                naming.job_name = name
                command = checks.command_line(name, job.args, escape=self._escape)
                files = tuple([_input_file(item, self._placeholder) for item in job.files.values()])
                lines.append(
                    self._line(name, job)._replace(command_line=command, input_files=files)
                )
        return self._size_of(self._request_for(0, lines))

    def _size_of(self, submission: BatchSubmission) -> int:
        """Return the bytes of a request; an estimate if its templates alone are too large.

        Such a request's templates are not even written to measure it: a project's may have 64 KB,
        and there may be 100,000 jobs.
        """
        texts = (job.input_template for job in submission.jobs)
        templates = sum(_nbytes(text) for text in texts if text is not None)
        if templates <= self._context.project_settings.max_post_bytes:
            return self._project.request_size(submission)
        without = [job._replace(input_template=None) for job in submission.jobs]
        return templates + self._project.request_size(replace(submission, jobs=without))

    def too_large(self, size: int, why: str) -> BatchTooLarge:
        """Return the error for a request of ``size`` bytes."""
        filled = [self._filled[name] for name, _ in self._request.jobs if name in self._filled]
        nbytes = sum(each.nbytes for each in filled)
        advice = ""
        if nbytes:
            elements = dict.fromkeys(name for each in filled for name in each.elements)
            advice = (
                f"; {nbytes} of these bytes are input templates, sent with each job whose "
                f"{' or '.join(elements)} differs from that of app {self._request.app_name}: use "
                "the app's values, or have the project's admin change them"
            )
        return BatchTooLarge(
            f"batch {self._request.batch_name!r}: its {len(self._request.jobs)} jobs make a "
            f"request of {size} bytes, {why}; a project accepts a batch only in one request: split "
            f"it, or have post_max_size raised in the php.ini of {self._project.host} and set "
            f"max_post_bytes to match{advice}",
            nbytes=size,
        )

    def _check_batch(self) -> None:
        request = self._request
        if not request.jobs:
            raise JobRefused(
                f"batch {request.batch_name!r} has no jobs: the project would wait for them "
                "for ever"
            )
        checks.check_batch_name(request.batch_name)
        checks.check_template_filename(request.input_template_filename)
        checks.check_template_filename(request.output_template_filename)
        self._requested_sizes.check()

    def _check_size(self, size: int) -> None:
        limit = self._context.project_settings.max_post_bytes
        if size > limit:
            raise self.too_large(size, f"more than max_post_bytes allows ({limit})")

    # -- one job

    def _job(self, name: str, job: Job) -> tuple[tuple[Input, ...], JobSubmission]:
        """Return a job's files in template order, and its part of the request.

        Raises:
            JobRefused: the project would mangle it or choke on it.
            RpcError: the app's templates cannot be asked for.
            TemplateError: they cannot be read.
        """
        key = (
            tuple(job.inputs),
            job.input_template,
            job.output_template,
            sizes_of(job),
            job.priority,
            bool(job.args),
            tuple(self._request.outputs.get(name, ())),
        )
        shape = self._shapes.get(key)
        if shape is None:
            shape = self._shapes[key] = self._shape(name, job)
        elif shape.filled is not None:
            self._filled[name] = shape.filled
        shared = id(job.inputs), shape.order  # the request keeps the former
        files = self._files.get(shared)
        if files is None:
            files = self._files[shared] = self._ordered(name, job, shape.order)
        command = checks.command_line(name, job.args, escape=self._escape)
        checks.check_job_line(name, command, (*shape.words, *files.words))
        return files.inputs, JobSubmission(name, command, files.placeholders, *shape.rest)

    def _shape(self, name: str, job: Job) -> _Shape:
        order = self._order(name, job)
        line = self._line(name, job)
        own = [text for text in (line.input_template, line.output_template) if text is not None]
        words = [_OWN_TEMPLATE for _ in own]
        if job.priority is not None:
            words.append(f"--priority {job.priority}")
        return _Shape(order, _rest(line), tuple(words), self._filled.get(name))

    def _ordered(self, name: str, job: Job, order: Iterable[str]) -> _Files:
        """Return a job's files in this order; raises JobRefused if the project would mangle one."""
        given = job.files
        for open_name, item in given.items():
            checks.check_input(name, open_name, item)
        inputs = tuple([given[open_name] for open_name in order])
        placeholders = tuple([_input_file(item, self._placeholder) for item in inputs])
        return _Files(inputs, placeholders, tuple(map(_word, placeholders)))

    def _placeholder(self, item: LocalFile) -> StagedFile | RemoteFile:
        """Return what stands for a file in a request's size before its MD5 is known."""
        published, remote = self._context.published, None
        if published is not None:
            with suppress(StagingError):  # reported elsewhere
                nbytes = item.expected[0] if item.expected else stat_input(item.path).st_size
                remote = published.remote(item.path, nbytes)
        return remote or StagedFile("0" * 32 + checks.extension(item.path))

    @property
    def _app_templates(self) -> AppTemplates:
        # No cached_property: before Python 3.12 it has one lock for the requests to all projects.
        if self._of_app is None:
            self._of_app = self._context.cache.templates(self._request.app_name, self._project)
        return self._of_app

    @property
    def _input_of_app(self) -> InputTemplate | None:
        """The app's input template; None if it has none and each job brings its own."""
        if not self._has_no_templates:
            try:
                return self._app_templates.input
            except TemplatesMissing:
                if any(job.input_template is None for _, job in self._request.jobs):
                    raise
                self._has_no_templates = True
        return None

    def _order(self, name: str, job: Job) -> tuple[str, ...]:
        request, of_app = self._request, self._input_of_app
        given = job.files
        check_sizes(name, job)
        # No RPC tells the names in a template file on the project, nor how many there are.
        named = request.input_template_filename is not None
        own = self._own_template(name, job)
        template = own or of_app
        if job.args and template is not None and (own is not None or not named):
            checks.check_one_command_line(name, template, request.app_name)
        if own is not None and of_app is not None and not named:
            wanted, counted = len(own.per_job_files), len(of_app.per_job_files)
            if wanted != counted:
                raise JobRefused(
                    f"job {name!r}: its own input template has {wanted} files, but that of app "
                    f"{request.app_name} has {counted}, and a project counts a job's files by the "
                    f"app's template: use an app whose template has {wanted} files"
                )
        outputs = request.outputs.get(name, ())
        own_output = job.output_template is not None
        if own_output or (outputs and request.output_template_filename is None):
            made = self._output_template(name, job)
            checks.check_outputs(name, outputs, made, request.app_name)
        if template is None or (own is None and named):
            return tuple(given)
        return checks.order_of_inputs(
            name, given, template, request.app_name, by_name=request.by_name
        )

    def _own_template(self, name: str, job: Job) -> InputTemplate | None:
        text = job.input_template
        if text is None:
            return None
        if text not in self._templates:
            self._templates[text] = _own("input", read_input_template, text, name)
        template = self._templates[text]
        checks.check_own_command_line(name, template)
        return template

    def _input_template(self, name: str, job: Job) -> str | None:
        """Return the text of the template that a job takes with it.

        Raises:
            JobRefused: its own cannot be read, or the sizes it asks for cannot be filled in.
        """
        own = self._own_template(name, job)
        if own is not None:
            filled = self._requested_sizes.filled(name, job, own, job.input_template or "")
        elif self._request.input_template_filename is not None:
            return None  # its values cannot be known
        else:
            of_app = self._app_templates
            filled = self._requested_sizes.filled(name, job, of_app.input, of_app.text)
        self._filled[name] = filled
        return filled.template

    def _output_template(self, name: str, job: Job) -> OutputTemplate:
        text = job.output_template
        if text is None:
            return self._app_templates.output
        if text not in self._output_templates:
            self._output_templates[text] = _own("output", read_output_template, text, name)
        return self._output_templates[text]

    def _line(self, name: str, job: Job) -> JobSubmission:
        """Return a job's part of the request without its arguments and files."""
        return JobSubmission(
            name=name,
            rsc_fpops_est=job.sizes.get("rsc_fpops_est"),
            priority=job.priority,
            input_template=self._input_template(name, job),
            output_template=job.output_template,
        )


def _nbytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _input_file(item: Input, placed: Callable[[LocalFile], StagedFile | RemoteFile]) -> InputFile:
    if isinstance(item, LocalFile):
        item = placed(item)
    if isinstance(item, RemoteFile):
        return InputFile.remote(item.url, item.nbytes, item.md5)
    if isinstance(item, StagedFile):
        return InputFile.local_staged(item.physical_name)
    return InputFile.inline(item.text)


def _word(file: InputFile) -> str:
    """Return the words for a file in the job's line, or a text of the same length."""
    if file.mode == "remote":
        return f"--remote_file {file.url} {file.nbytes} {file.md5}"
    return _INLINE if file.mode == "inline" else file.source


def check_unchanged(item: LocalFile, nbytes: int, mtime_ns: int) -> None:
    """Raise StagingError if a file is not as it was when its job was accepted."""
    if item.expected is None or item.expected == (nbytes, mtime_ns):
        return
    then, now = _state(*item.expected), _state(nbytes, mtime_ns)
    raise StagingError(
        f"input file {item.path!r} changed after the job was submitted (it had {then}, it has "
        f"{now}): put it back, or release the job to send it as it is",
        path=item.path,
    )


def _state(nbytes: int, mtime_ns: int) -> str:
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(mtime_ns // 10**9))
    return f"{nbytes} bytes of {when} UTC"


def _check_files(inputs: Iterable[Input], seen: dict[str, StagingError | tuple[int, int]]) -> None:
    """Raise StagingError for a file that cannot be read or has changed; the others are caches."""
    for item in inputs:
        if not isinstance(item, LocalFile):
            continue
        found = seen.get(item.path)
        if found is None:
            try:
                status = stat_input(item.path)
                found = (status.st_size, status.st_mtime_ns)
            except StagingError as error:
                found = error
            seen[item.path] = found
        if isinstance(found, StagingError):
            raise found
        check_unchanged(item, *found)


def _own(kind: str, read: Callable[[str], _Template], text: str, job_name: str) -> _Template:
    """Return a job's own template; raises JobRefused if it cannot be used."""
    if isinstance(text, OwnText):
        return cast("_Template", text.template)
    try:
        template = read(text)
    except TemplateError as error:
        raise JobRefused(f"job {job_name!r}: its own {error}") from error
    for problem in faults(template):
        if problem.severity is Severity.ERROR:
            text = f"job {job_name!r}: its own {kind} template: {problem}"
            raise JobRefused(text)
    return template


def _longest(template: InputTemplate, delay_bound: float | None = None) -> float:
    """Return the seconds after which the last instance of a job is over in any case.

    Each instance may take until its deadline, and is followed by another until there are too many
    errors; one more deadline is for the time that instances wait to be sent.

    Args:
        template: the job's input template.
        delay_bound: what is asked for, which is filled into the template if that has another value
            (:mod:`boinc_gahp.submit._parameters`).
    """
    deadline = delay_bound or template.delay_bound or DEFAULTS["delay_bound"]
    counts = template.counts
    return deadline * (min(counts["max_error_results"] + 1, counts["max_total_results"]) + 1)
