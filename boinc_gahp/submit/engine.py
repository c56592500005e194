"""A batch of jobs becomes workunits, exactly once, also after failures and repeated submits.

The order of the steps matters:

1. everything that can be checked without the project is checked
   (:mod:`boinc_gahp.submit.validate`), so that a refusal leaves nothing behind;
2. the batch is looked up by name: its job list on the project, not anything remembered, tells
   what is still to be done;
3. files are staged before the jobs that use them; for people, before the batch is created, so that
   a file that the project does not take leaves no batch behind;
4. jobs go into the batch in one request. If its outcome is unclear, the batch is looked at; the
   request is never simply repeated. Job names are unique over the whole project, so a workunit
   cannot be made twice (``web-rpcs.rst``, "Job names").

The submitters differ only in their journal (:class:`~boinc_gahp.submit.journal.Journal`):
BOINC_SUBMIT (:mod:`boinc_gahp.submit.boinc_submit`), HTCondor's BLAH jobs
(:mod:`boinc_gahp.htcondor._ledger_journal`), people (:mod:`boinc_gahp.api.manifest_files`).
"""

from __future__ import annotations

import errno
import logging
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from boinc_gahp.backoff import Backoff
from boinc_gahp.errors import (
    BatchConflict,
    BatchSubmitted,
    DuplicateJob,
    InputGone,
    JobsNotListed,
    PermissionDenied,
    ProjectDown,
    ProjectError,
    RequestTooLarge,
    RpcError,
    StagingError,
    TransportError,
)
from boinc_gahp.states import BatchState
from boinc_gahp.submit import checks, query
from boinc_gahp.submit.association import Association, absent_names
from boinc_gahp.submit.journal import (
    UNDO_TIME,
    Interrupted,
    Journal,
    Meter,
    SubmitState,
    WantedFiles,
)
from boinc_gahp.submit.staging import Staging, out_of_time
from boinc_gahp.submit.types import LocalFile, StagedFile
from boinc_gahp.submit.validate import BatchValidator, check_unchanged

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from boinc_gahp.rpc.types import BatchDetails, BatchSubmission
    from boinc_gahp.submit.context import Context
    from boinc_gahp.submit.digests import Digest
    from boinc_gahp.submit.types import Input, RemoteFile, SubmitRequest

log = logging.getLogger("boinc_gahp.submit")

#: Queries of the batch without progress, after which the last error is raised.
_ROUNDS = 5
#: Pauses between them.
_BACKOFF = Backoff(0.25, 8.0, jitter=(0.5, 1.5))
#: How often files are staged in all, if the project deletes one in the meantime.
_STAGINGS = 3

#: HTTP's status for a request that is too large.
_TOO_LARGE = 413


def submit(context: Context, request: SubmitRequest, journal: Journal | None = None) -> int:
    """Make the batch's jobs exist on the project, each exactly once; return the batch's id there.

    Submitting the same request again, at any time and from any process, completes it or finds it
    complete.

    Args:
        context: the project.
        request: the batch.
        journal: None: nothing is written down.

    Raises:
        JobRefused: the project would mangle a job or choke on it; nothing was created.
        BatchConflict: the name belongs to another batch, or to one that takes no jobs any more.
        StagingError: an input file cannot be read or sent, or is not on the project as claimed.
        RpcError: the project refused or could not be reached.
        Exception: what the journal and the request's ``progress`` raise.
    """
    journal = journal or Journal()
    submission = _Submission(context, request, journal)
    try:
        batch_id = submission.run()
    except BaseException as error:  # the journal has to hear of every failure
        journal.failed(submission.sending, error)
        if isinstance(error, Interrupted):
            raise error.error from None
        raise
    context.cache.submitted.set(request.batch_name, True)
    journal.done(batch_id, submission.sending)
    return batch_id


def _is_over(end: float | None) -> bool:
    return end is not None and time.monotonic() > end


def _check_time(end: float | None, what: str) -> None:
    """Raise StagingError if the time for a step is up; ``what`` says how far the submit is."""
    if _is_over(end):
        raise out_of_time(what)


class _Submission:
    """One run through the steps above."""

    def __init__(self, context: Context, request: SubmitRequest, journal: Journal) -> None:
        self._context = context
        self._request = request
        self._journal = journal
        self.sending = SubmitState()
        self._project = self._uploading = context.project
        self._until: float | None = None
        self._stop_staging: float | None = None
        if request.answer_by is not None:
            self._until = request.answer_by - UNDO_TIME
            self._project = context.project.until(self._until)
            self._stop_staging = request.answer_by - context.settings.timeouts.submit_margin
            self._uploading = context.project.until(self._stop_staging)
        self._validator = BatchValidator(context, request, self._project)
        self._wanted = {name for name, _ in request.jobs}
        self._stagings = 0
        #: Files of the jobs that are to be sent; and those of them that are here, by path.
        self._inputs: Mapping[str, tuple[Input, ...]] = {}
        self._files: Mapping[str, Digest] = {}
        #: By physical name: what is sent from here, equal contents once; and a job that takes the
        #: file for staged.
        self._brought: Mapping[str, Digest] = {}
        #: By path: what volunteers fetch from elsewhere.
        self._remote: Mapping[str, RemoteFile] = {}
        self._staged: Mapping[str, str] = {}
        self._needs = WantedFiles(journal.wanted, self._users)
        self._meter = Meter(request.progress)
        self._duplicates: set[str] = set()

    def run(self) -> int:
        self.sending = self._journal.begin()
        _check_time(self._until, "nothing was sent yet because other requests came first")
        inputs = self._validator.inputs()
        details = self._find_batch()
        missing = self._wanted
        if details is not None:
            missing = self._missing(details)
            if not missing:
                return details.batch.id
        # Jobs that are there do not need their files any more, which may be gone by now.
        self._inputs = {name: items for name, items in inputs.items() if name in missing}

        def keep_going() -> None:
            _check_time(self._stop_staging, "input files are being read, and none was sent yet")
            self._needs.ask(now=False)

        # Many jobs may have the same files.
        distinct = {id(items): items for items in self._inputs.values()}
        local = [i for items in distinct.values() for i in items if isinstance(i, LocalFile)]
        paths = (item.path for item in local)
        self._files = files = self._context.digests.of(paths, keep_going, self._meter)
        for item in local:
            check_unchanged(item, files[item.path].nbytes, files[item.path].mtime_ns)
        self._journal.files_read({path: file.md5 for path, file in files.items()})
        self._choose_ways()
        self._staged = {
            item.physical_name: name
            for name, items in self._inputs.items()
            for item in items
            if isinstance(item, StagedFile) and item.physical_name not in self._brought
        }
        self._check_staged(absent_names(self._project, self._staged))
        self._publish()
        if details is None:
            if self._request.ask_first:
                query.check_names(self._project, self._request)
                if self._brought:
                    self._stage(0)
            details = self._create()
            self._missing(details)  # raises if somebody else has filled it in the meantime
        batch_id = details.batch.id
        self._stage(batch_id)
        self._send_until_all_are_there(details)
        return batch_id

    # -- step 2

    def _find_batch(self) -> BatchDetails | None:
        details = query.look_up(self._project, self._request)
        if details is not None:
            self.sending = self.sending.seen(details, self._request)
        return details

    def _missing(self, details: BatchDetails) -> set[str]:
        return query.missing(self._project, self._request, details)

    def _create(self) -> BatchDetails:
        """Create the batch; return the batch that a look-up of its name finds.

        create_batch accepts a name twice, and look-ups then find the older batch: so the id that
        counts is the one from a look-up (:func:`boinc_gahp.submit.context.find_batch`).
        """
        request = self._request
        lease = self._lease()
        created: int | None = None
        for round_ in range(_ROUNDS):
            trouble: RpcError | None = None
            try:
                created = self._project.create_batch(
                    request.batch_name,
                    request.app_name,
                    expire_time=time.time() + lease,
                )
            except PermissionDenied:
                raise
            except RpcError as error:
                trouble = error
            details = self._find_batch()
            if details is not None:
                if created == details.batch.id:
                    self.sending = replace(self.sending, made=True)
                elif created is not None:
                    self._drop(created)
                return details
            if trouble is None:
                raise BatchConflict(
                    f"{self._project.host} created batch {request.batch_name!r} (id {created}) but "
                    "does not find it under that name: choose a simpler name"
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

    def _choose_ways(self) -> None:
        """Choose for each file whether the project or another web server hands it out."""
        published, files = self._context.published, self._files.values()
        self._remote = {
            file.path: remote
            for file in files
            if published and (remote := published.remote(file.path, file.nbytes, file.md5))
        }
        self._brought = {f.physical_name: f for f in files if f.path not in self._remote}

    def _publish(self) -> None:
        """Publish what the project is not to be sent."""
        chosen = {self._files[path].md5: self._files[path] for path in self._remote}
        published = self._context.published
        if published is None or not chosen:
            return

        def read(count: int) -> None:
            _check_time(self._stop_staging, "large input files are being published")
            self._needs.ask(now=False)
            self._meter.add(count)

        self._meter.begin("reading", sum(file.nbytes for file in chosen.values()), "bytes")
        until = time.time() + self._lease() + self._context.settings.staging.keep
        published.publish(self._request.batch_name, chosen.values(), until, read)
        self._meter.finish()
        self._journal.files_published(list(chosen.values()))
        log.info("Published for batch %s: %s", self._request.batch_name, ", ".join(self._remote))

    def _publish_instead(self, error: StagingError) -> bool:
        """Publish what the project has refused as too large; return whether that is possible."""
        published, file = self._context.published, self._files.get(error.path or "")
        if error.errno != errno.EFBIG or published is None or file is None:
            return False
        published.above = min(published.above, file.nbytes - 1)
        self._choose_ways()
        if file.path not in self._remote:
            return False
        # The jobs' lines are longer now.
        self._validator = BatchValidator(self._context, self._request, self._project)
        self._validator.inputs()
        self._publish()
        return True

    def _lease(self) -> float:
        lease = self._request.lease
        return self._validator.lease() if lease is None else lease

    def _stage(self, batch_id: int) -> None:
        try:
            self._stage_once(batch_id)
        except StagingError as error:
            if not self._publish_instead(error):
                raise
            self._stage(batch_id)

    def _stage_once(self, batch_id: int) -> None:
        self._stagings += batch_id > 0
        # A file that others have staged stays on the project as long as a batch needs it.
        concurrent = self._context.settings.staging.concurrent_posts
        association = Association(self._project, batch_id, concurrent)
        self._check_staged(association.associate(list(self._staged)))
        Staging(
            self._uploading,
            self._context.settings.staging,
            self._brought,
            batch_id,
            uploads=self._context.uploads,
            needs=self._needs,
            deadline=self._stop_staging,
            meter=self._meter,
        ).run()

    def _users(self) -> dict[str, list[str]]:
        """Return, by physical name, the jobs that use each file that is sent from here."""
        found: dict[str, list[str]] = {}
        for name, items in self._inputs.items():
            for item in items:
                if isinstance(item, LocalFile):
                    found.setdefault(self._files[item.path].physical_name, []).append(name)
        return found

    def _check_staged(self, absent: Iterable[str]) -> None:
        """Raise StagingError if a file that the request takes for staged is absent."""
        for name in absent:
            job = self._staged.get(name)
            if job is not None:
                raise StagingError(
                    f"{self._project.host} does not have the file {name!r} that job {job!r} "
                    "expects there: name a local file, which is then sent, or a file that is there",
                    path=name,
                    errno=errno.ENOENT,
                )

    # -- step 4

    def _send_until_all_are_there(self, details: BatchDetails) -> None:
        fruitless = 0
        while missing := self._missing(details):
            self._meter.begin("submitting", len(self._wanted), "jobs")
            self._meter.add(len(self._wanted) - len(missing))
            trouble = self._send(details.batch.id, missing)
            details = self._query_again(details.batch.id, trouble)
            if trouble is None and not details.jobs and details.batch.state is not BatchState.INIT:
                raise self._never_appear(details, len(missing))
            left = self._missing(details)
            if not left:
                break
            self._raise_on_names_in_use(trouble, left)
            fruitless = fruitless + 1 if len(left) >= len(missing) else 0
            if fruitless >= _ROUNDS or _is_over(self._stop_staging):
                raise trouble or self._never_appear(details, len(left))
            _BACKOFF.wait(fruitless)
        self._meter.finish()

    def _query_again(self, batch_id: int, trouble: RpcError | None) -> BatchDetails:
        try:
            details = self._project.query_batch(batch_id=batch_id)
        except RpcError as error:
            # The first error tells more than that the query of the batch failed, too.
            raise trouble or error from None
        self.sending = self.sending.seen(details, self._request)
        return details

    def _send(self, batch_id: int, missing: set[str]) -> RpcError | None:
        """Send the missing jobs; see :meth:`_trouble` for what is returned and raised."""
        submission = self._validator.submission(
            batch_id,
            missing,
            self._inputs,
            lambda item: (
                self._remote.get(item.path) or StagedFile(self._files[item.path].physical_name)
            ),
        )
        _check_time(
            self._stop_staging, "all input files are there, but no time is left to send the jobs"
        )
        self._journal.about_to_send(batch_id)
        before = self.sending
        self.sending = replace(before, sent=True, unclear=True)
        try:
            self._project.submit_batch(submission)
        except RpcError as error:
            if not error.may_be_running:
                self.sending = replace(self.sending, unclear=before.unclear)
            return self._trouble(error, batch_id, submission)
        self.sending = replace(self.sending, unclear=before.unclear)
        return None

    def _trouble(self, error: RpcError, batch_id: int, submission: BatchSubmission) -> RpcError:
        """Return a submit_batch's error if only the batch can tell what became of the request.

        Raises:
            RpcError: the project has refused it.
            BatchTooLarge: it is larger than the project accepts.
            StagingError: a file that the request takes for staged is absent.
        """
        if isinstance(error, ProjectDown | BatchSubmitted | DuplicateJob):
            return error
        if isinstance(error, InputGone):
            self._check_staged([error.named])
            if self._stagings < _STAGINGS and self._brought:
                self._stage(batch_id)
                return error
        why = "which the project did not accept" if isinstance(error, RequestTooLarge) else ""
        if isinstance(error, TransportError) and error.status == _TOO_LARGE:
            why = "more than its web server accepts (HTTP 413)"
        if why:
            size = self._project.request_size(submission)
            raise self._validator.too_large(size, why) from error
        if isinstance(error, ProjectError):
            raise error
        return error

    def _raise_on_names_in_use(self, trouble: RpcError | None, left: set[str]) -> None:
        """Raise if a job's name is taken by a job of another batch.

        "Duplicate entry" alone may come from a submit of the same batch that is still running:
        then the job is in the batch's list, or will be at the next query.
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
        raise query.name_in_use(self._project, name) from trouble

    def _never_appear(self, details: BatchDetails, missing: int) -> JobsNotListed:
        filename = self._request.output_template_filename
        if filename is not None:
            # A project answers like this if there is no such file (``web-rpcs.rst``,
            # "submit_batch").
            return JobsNotListed(
                f"{self._project.host} took batch {details.batch.name!r} (id {details.batch.id}) "
                f"but made none of its jobs: most likely the output template {filename!r} is not "
                "in its templates directory; correct that name, submit under another batch name, "
                "and retire this batch, which has no jobs and cannot get any (boinc_gahp batch "
                f"retire id:{details.batch.id})"
            )
        return JobsNotListed(
            f"{self._project.host} took {missing} jobs of batch {details.batch.name!r} without an "
            "error, but does not list them: the project's admin should look at the templates of "
            f"app {self._request.app_name}"
        )
