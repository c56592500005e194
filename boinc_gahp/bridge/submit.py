"""BOINC_SUBMIT: a batch of jobs becomes workunits, once, whatever fails and whoever repeats it.

The order of the steps is the whole point:

1. everything that can be judged without the project's help is judged
   (:mod:`boinc_gahp.bridge.judging`), so that a refusal leaves nothing behind;
2. the batch is looked up by name: its job list on the project, not anything remembered, tells
   what is still to be done;
3. files are staged before the jobs that use them;
4. jobs go into the batch in one request, and a request whose outcome is unclear is followed by
   a look at the batch, never by a blind repetition. Jobs carry names that are unique over the
   whole project, so a workunit cannot be made twice (``web-rpcs.rst``, "Job names").

For a gridmanager an error is a promise that none of the jobs exists or will appear (``gahp.rst``,
"BOINC_SUBMIT"): :class:`~boinc_gahp.bridge.promise.Promise` keeps it.
"""

from __future__ import annotations

import errno
import logging
import time
from typing import TYPE_CHECKING

from boinc_gahp.backoff import Backoff
from boinc_gahp.bridge import checks, naming
from boinc_gahp.bridge.association import Association
from boinc_gahp.bridge.judging import Judged, check_unchanged
from boinc_gahp.bridge.meter import Interrupted, Meter
from boinc_gahp.bridge.needs import Needs
from boinc_gahp.bridge.promise import UNDO_TIME, Promise
from boinc_gahp.bridge.staging import Physical, Staging, out_of_time
from boinc_gahp.bridge.types import LocalFile, StagedFile
from boinc_gahp.errors import (
    BatchConflict,
    BatchSubmitted,
    DuplicateJob,
    InputGone,
    JobRefused,
    JobsNotListed,
    NotFound,
    NotOwner,
    PermissionDenied,
    ProjectDown,
    ProjectError,
    RequestTooLarge,
    RpcError,
    StagingError,
    TransportError,
)
from boinc_gahp.rpc import BatchState

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from boinc_gahp.bridge.context import Context
    from boinc_gahp.bridge.types import Client, Input, SubmitRequest
    from boinc_gahp.rpc import BatchDetails

log = logging.getLogger("boinc_gahp.bridge")

#: Looks at the batch, without progress between them, after which the last error is passed on.
_ROUNDS = 5
#: Between them.
_BACKOFF = Backoff(0.25, 8.0, jitter=(0.5, 1.5))
#: Times that files are staged again because the project deleted one meanwhile.
_STAGINGS = 3

#: HTTP's status for a request that is too large.
_TOO_LARGE = 413


def submit(context: Context, request: SubmitRequest, client: Client) -> int:
    """Make the batch's jobs exist on the project, each exactly once; return the batch's id there.

    Submitting the same request again, at any time and from any process, completes it or finds it
    done.

    Raises:
        JobRefused: the project would mangle a job or choke on it; nothing was created.
        BatchConflict: the name belongs to another batch, or to one that takes no jobs any more.
        StagingError: an input file cannot be read or sent, or is not on the project as was said.
        RpcError: the project said no or could not be asked.
        LedgerError: for a gridmanager, what may be owed could not be written down first.
        Exception: what the request's ``progress`` raises.
    """
    promise = Promise(context, request, client)
    try:
        batch_id = _Submission(context, request, client, promise).run()
    except BaseException as error:  # whatever it is, the client is told that it failed
        promise.keep(error)
        if isinstance(error, Interrupted):
            raise error.error from None
        raise
    context.known.remember_submitted(request.batch_name)
    promise.fulfilled()
    return batch_id


def _is_over(end: float | None) -> bool:
    return end is not None and time.monotonic() > end


def _check_time(end: float | None, what: str) -> None:
    """Raise StagingError if the time for a step is over; ``what`` says how far the submit is."""
    if _is_over(end):
        raise out_of_time(what)


def _local(inputs: Mapping[str, tuple[Input, ...]]) -> Iterator[LocalFile]:
    return (i for items in inputs.values() for i in items if isinstance(i, LocalFile))


def _staged(inputs: Mapping[str, tuple[Input, ...]]) -> dict[str, str]:
    """Return, by physical name, a job that wants the file on the project."""
    return {
        item.physical_name: name
        for name, items in inputs.items()
        for item in items
        if isinstance(item, StagedFile)
    }


class _Submission:
    """One run through the steps above."""

    def __init__(
        self, context: Context, request: SubmitRequest, client: Client, promise: Promise
    ) -> None:
        self._context = context
        self._request = request
        self._client = client
        self._promise = promise
        self._project = context.project
        self._until: float | None = None
        self._stop_staging: float | None = None
        if client.gridmanager and client.answer_by is not None:
            self._until = client.answer_by - UNDO_TIME
            self._project = context.project.until(self._until)
            self._stop_staging = client.answer_by - context.settings.timeouts.submit_margin
        self._judged = Judged(context, request, self._project)
        self._wanted = {name for name, _ in request.jobs}
        self._stagings = 0
        self._staged: Mapping[str, str] = {}
        self._meter = Meter(request.progress)
        self._duplicates: set[str] = set()

    def run(self) -> int:
        self._promise.check_nothing_is_owed()
        _check_time(self._until, "nothing is sent: other requests came first")
        inputs: Mapping[str, tuple[Input, ...]] = self._judged.inputs()
        details = self._look_up()
        missing = self._wanted
        if details is not None:
            missing = self._missing(details)
            if not missing:
                return details.batch.id
        # The files of jobs that are there have done their duty; they may be gone by now.
        inputs = {name: items for name, items in inputs.items() if name in missing}
        needs = Needs(self._request.wanted)

        def keep_going() -> None:
            _check_time(self._stop_staging, "input files are being read, none is sent")
            needs.check()

        paths = (item.path for item in _local(inputs))
        files = self._context.digests.of(paths, keep_going, self._meter)
        for item in _local(inputs):
            check_unchanged(item, files[item.path].nbytes, files[item.path].mtime_ns)
        if self._request.files_read is not None:
            self._request.files_read({path: file.md5 for path, file in files.items()})
        physical = Physical(files)
        brought = physical.by_name(files)
        self._staged = {n: job for n, job in _staged(inputs).items() if n not in brought}
        self._check_staged(Association(self._project, 0, 1).absent(list(self._staged)))
        if details is None:
            details = self._create()
            self._missing(details)  # raises if somebody else has filled it meanwhile
        batch_id = details.batch.id
        self._context.known.remember_batch(self._request.batch_name, batch_id)
        self._stage(physical, inputs, batch_id)
        self._send_until_all_are_there(details, inputs, physical)
        return batch_id

    @property
    def _lease(self) -> float:
        lease = self._request.lease
        if lease is not None:
            return lease
        if self._client.gridmanager:
            return self._context.settings.jobs.lease
        return self._judged.lease()

    # -- step 2

    def _look_up(self) -> BatchDetails | None:
        """Return the batch that the project finds under this name, or None."""
        name = self._request.batch_name
        try:
            details = naming.find(self._project, name)
        except NotFound:
            return None
        except NotOwner as error:
            if self._client.gridmanager:
                return None  # its users cannot choose another name
            raise BatchConflict(
                f"{self._project.host} has a batch named {name!r} that belongs to another "
                "account: choose another name"
            ) from error
        self._promise.found(details)
        if details.batch.name != name:
            raise BatchConflict(
                f"{self._project.host} finds the batch {details.batch.name!r} under the name "
                f"{name!r}, since it ignores case, accents and trailing spaces: choose another name"
            )
        return details

    def _missing(self, details: BatchDetails) -> set[str]:
        """Return the names of the jobs that are still to be sent into this batch.

        Raises:
            BatchConflict: the batch holds other jobs, or takes no more.
        """
        batch = details.batch
        there = {job.name for job in details.jobs}
        strangers = there - self._wanted
        missing = self._wanted - there
        what = f"batch {batch.name!r} (id {batch.id}) of {self._project.host}"
        if strangers:
            raise BatchConflict(
                f"{what} holds {len(strangers)} jobs that are not in this request, for example "
                f"{min(strangers)!r}: choose another batch name"
            )
        if batch.state in (BatchState.ABORTED, BatchState.RETIRED):
            raise BatchConflict(
                f"{what} is {batch.state.name} with {len(there)} of these {len(self._wanted)} "
                "jobs: choose another batch name"
            )
        if batch.state is BatchState.INIT:
            return missing
        if batch.state is BatchState.UNKNOWN:
            raise BatchConflict(
                f"{what} is in a state that this program does not know: look at it on the "
                "project's web site"
            )
        if missing:
            raise BatchConflict(
                f"{what} is {batch.state.name} with {len(there)} of these {len(self._wanted)} "
                "jobs, and a batch takes jobs only once: choose another batch name"
            )
        return set()

    def _create(self) -> BatchDetails:
        """Create the batch; return what its name then gives.

        create_batch takes a name twice, and the older batch is found afterwards: so the id that
        counts is the one that a look-up gives (:mod:`boinc_gahp.bridge.naming`).
        """
        request = self._request
        created: int | None = None
        for round_ in range(_ROUNDS):
            trouble: RpcError | None = None
            try:
                created = self._project.create_batch(
                    request.batch_name,
                    request.app_name,
                    expire_time=time.time() + self._lease,
                )
            except PermissionDenied:
                raise
            except RpcError as error:
                trouble = error
            details = self._look_up()
            if details is not None:
                if created is not None and created != details.batch.id:
                    self._drop(created)
                return details
            if trouble is None:
                raise BatchConflict(
                    f"{self._project.host} created batch {request.batch_name!r} (id {created}) and "
                    "does not find it under that name: choose a plainer name"
                )
            refused = isinstance(trouble, ProjectError) and not isinstance(trouble, ProjectDown)
            if refused or round_ == _ROUNDS - 1:
                raise trouble
            _BACKOFF.wait(round_)
        raise AssertionError  # pragma: no cover  (the loop returns or raises)

    def _drop(self, batch_id: int) -> None:
        """Retire an empty batch that lost a race for its name."""
        try:
            self._project.retire_batch(batch_id=batch_id)
        except RpcError as error:
            log.warning("The empty batch %d stays on the project: %s", batch_id, error)

    # -- step 3

    def _stage(
        self,
        physical: Physical,
        inputs: Mapping[str, tuple[Input, ...]],
        batch_id: int,
    ) -> None:
        self._stagings += 1
        # A file that others have staged stays on the project as long as a batch needs it.
        concurrent = self._context.settings.staging.concurrent_posts
        association = Association(self._project, batch_id, concurrent)
        self._check_staged(association.associate(list(self._staged)))
        users: dict[str, list[str]] = {}
        for name, items in inputs.items():
            for item in items:
                if isinstance(item, LocalFile):
                    users.setdefault(physical.name_of(item.path), []).append(name)
        Staging(
            self._project
            if self._stop_staging is None
            else self._context.project.until(self._stop_staging),
            self._context.settings.staging,
            physical.by_name(item.path for item in _local(inputs)),
            batch_id,
            uploads=self._context.uploads,
            needs=Needs(self._request.wanted, users),
            deadline=self._stop_staging,
            meter=self._meter,
        ).run()

    def _check_staged(self, absent: Iterable[str]) -> None:
        """Raise StagingError if a file is absent that the request says is on the project."""
        for name in absent:
            job = self._staged.get(name)
            if job is not None:
                raise StagingError(
                    f"{self._project.host} does not have the file {name!r} that job {job!r} takes "
                    "for staged: name a local file to have it sent, or one that is there",
                    path=name,
                    errno=errno.ENOENT,
                )

    # -- step 4

    def _send_until_all_are_there(
        self,
        details: BatchDetails,
        inputs: Mapping[str, tuple[Input, ...]],
        physical: Physical,
    ) -> None:
        fruitless = 0
        while missing := self._missing(details):
            self._meter.begin("submitting", len(self._wanted), "jobs")
            self._meter.add(len(self._wanted) - len(missing))
            trouble = self._send(details.batch.id, missing, inputs, physical)
            details = self._look_again(details.batch.id, trouble)
            if trouble is None and not details.jobs and details.batch.state is not BatchState.INIT:
                raise self._never_appear(details, len(missing))
            left = self._missing(details)
            if not left:
                break
            self._give_up_on_names_in_use(trouble, left)
            fruitless = fruitless + 1 if len(left) >= len(missing) else 0
            if fruitless >= _ROUNDS or _is_over(self._stop_staging):
                raise trouble or self._never_appear(details, len(left))
            _BACKOFF.wait(fruitless)
        self._meter.finish()

    def _look_again(self, batch_id: int, trouble: RpcError | None) -> BatchDetails:
        try:
            details = self._project.query_batch(batch_id=batch_id)
        except RpcError as error:
            # What went wrong first tells more than that the project cannot be asked about it.
            raise trouble or error from None
        self._promise.found(details)
        return details

    def _send(
        self,
        batch_id: int,
        missing: set[str],
        inputs: Mapping[str, tuple[Input, ...]],
        physical: Physical,
    ) -> RpcError | None:
        """Send the missing jobs; return the trouble there was, if the batch has to tell."""
        submission = self._judged.submission(batch_id, missing, inputs, physical.name_of)
        self._promise.about_to_send(batch_id)
        _check_time(self._stop_staging, "all input files are there, but there is no time left")
        if self._request.about_to_send is not None:
            self._request.about_to_send(batch_id)
        try:
            self._project.submit_batch(submission)
        except ProjectDown as error:
            return error
        except ProjectError as error:
            gone = isinstance(error, InputGone)
            if gone:
                self._check_staged([error.named])
            if gone and self._stagings < _STAGINGS and any(_local(inputs)):
                self._stage(physical, inputs, batch_id)
                return error
            if isinstance(error, BatchSubmitted | DuplicateJob):
                return error
            if isinstance(error, RequestTooLarge):
                size = self._project.request_size(submission)
                raise self._judged.too_large(size, "which the project did not take") from error
            raise
        except RpcError as error:
            if isinstance(error, TransportError) and error.status == _TOO_LARGE:
                size = self._project.request_size(submission)
                raise self._judged.too_large(
                    size, "more than its web server takes (HTTP 413)"
                ) from error
            if error.may_have_happened:
                self._promise.unclear()
            return error
        return None

    def _give_up_on_names_in_use(self, trouble: RpcError | None, left: set[str]) -> None:
        """Raise if a job's name is taken by a job of another batch.

        "Duplicate entry" alone may come from a submit of the same batch that is still running:
        then the job is in the batch's list, or will be at the next look.
        """
        if not isinstance(trouble, DuplicateJob):
            return
        folded = {checks.fold(name): name for name in left}
        name = folded.get(checks.fold(trouble.named))
        if name is None:
            return
        if name not in self._duplicates:
            self._duplicates.add(name)
            return
        raise JobRefused(
            f"job name {name!r} is in use on {self._project.host}, in another batch: job names are "
            "unique over the whole project (case and accents are ignored), also after a batch is "
            "retired; choose another",
            job_name=name,
        ) from trouble

    def _never_appear(self, details: BatchDetails, missing: int) -> JobsNotListed:
        filename = self._request.output_template_filename
        if filename is not None:
            # That is how a project answers when there is no such file (``web-rpcs.rst``,
            # "submit_batch").
            return JobsNotListed(
                f"{self._project.host} took batch {details.batch.name!r} (id {details.batch.id}) "
                f"and made none of its jobs: most likely the output template {filename!r} is not "
                "in its templates directory; correct that name, submit under another batch name, "
                "and retire this batch, which stays without jobs (boinc_gahp batch retire "
                f"id:{details.batch.id})"
            )
        return JobsNotListed(
            f"{self._project.host} took {missing} jobs of batch {details.batch.name!r} without an "
            "error, and does not list them: the project's admin should look at the templates of "
            f"app {self._request.app_name}"
        )
