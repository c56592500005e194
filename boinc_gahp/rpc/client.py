"""A project's web RPCs as methods."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeVar

from boinc_gahp.errors import BadRequest
from boinc_gahp.rpc import _build, _regular_form, _results, _table
from boinc_gahp.rpc._bodies import FormBody, size_of
from boinc_gahp.rpc._caller import RpcCall
from boinc_gahp.rpc._connection import Connection
from boinc_gahp.rpc._replies import RepeatedElements
from boinc_gahp.rpc._spool import Dropped, SpooledJobs
from boinc_gahp.rpc.types import BatchDetails

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from boinc_gahp.rpc.outputs import OutputStream
    from boinc_gahp.rpc.types import (
        BatchInfo,
        BatchSubmission,
        CompletedJob,
        JobInfo,
        JobStatuses,
        ResultInfo,
        UploadFile,
    )

T = TypeVar("T")


class WebRpcs(Connection):
    """A BOINC project's web RPCs, called with one account's authenticator.

    Thread-safe. Every method raises :class:`~boinc_gahp.errors.RpcError`, whose subclass tells who
    must act, and :class:`~boinc_gahp.errors.BadRequest` for an argument that no request can hold.
    RPCs that may be repeated are retried with growing pauses for ``options.retry_total`` seconds
    while the trouble looks passing. create_batch, submit_batch and upload_files are sent once, and
    again only if no connection was made. Times are given by this machine's clock, and converted to
    the project's clock (:mod:`boinc_gahp.rpc._transport`).

    Attributes:
        url: the project's address; always ends in ``/``.
        host: its host, with the port unless it is the scheme's default.
        account: 16 hex digits that identify the authenticator in the ledger.
    """

    # -- batches

    def create_batch(self, batch_name: str, app_name: str, *, expire_time: float = 0) -> int:
        """Create a batch in state INIT; return its id.

        The name need not be new: then two batches have it, and the project finds the older one by
        it (``web-rpcs.rst``, "create_batch"). ``expire_time`` 0 means never.
        """
        return self._simple(
            _table.CREATE_BATCH,
            lambda root: _results.integer(root, "batch_id"),
            _build.leaf("batch_name", batch_name),
            _build.leaf("app_name", app_name),
            _build.leaf("expire_time", _build.number(self._to_project(expire_time), "expire_time")),
            subject=f"app {app_name!r}",
        )

    def submit_batch(self, submission: BatchSubmission) -> int:
        """Send a batch's jobs in one request; return its id.

        The id does not prove that all jobs exist: ask query_batch (``web-rpcs.rst``,
        "submit_batch").
        """
        return self._ask(
            _table.SUBMIT_BATCH,
            self._submission("submit_batch", submission),
            lambda root: _results.integer(root, "batch_id"),
        )

    def request_size(self, submission: BatchSubmission) -> int:
        """Return the bytes that submit_batch would send for ``submission``."""
        return size_of(self._submission("submit_batch", submission))

    def estimate_batch(self, submission: BatchSubmission) -> float:
        """Return how many seconds the project thinks the batch takes."""
        return self._ask(
            _table.ESTIMATE_BATCH,
            self._submission("estimate_batch", submission),
            lambda root: _results.decimal(root, "seconds"),
        )

    def query_batches(self, *, get_cpu_time: bool = False) -> tuple[BatchInfo, ...]:
        """Return the account's batches, without retired ones."""
        batches = RepeatedElements(("batch",), _results.batch, _table.MOST_BATCHES)
        return self._simple(
            _table.QUERY_BATCHES,
            lambda _: tuple(batches.items),
            *_build.flags(get_cpu_time=get_cpu_time),
            records=batches,
        )

    def query_batch(
        self,
        *,
        batch_id: int | None = None,
        batch_name: str | None = None,
        get_cpu_time: bool = False,
        get_job_details: bool = False,
    ) -> BatchDetails:
        """Return one batch with its jobs; by name the oldest of that name, of any user.

        ``get_job_details`` adds each job's status, errors and exit statuses.
        """
        jobs = RepeatedElements(("job",), _results.batch_job, _table.MOST_JOBS, _regular_form.JOB)
        return self._simple(
            _table.QUERY_BATCH,
            lambda root: BatchDetails(_results.batch(root), tuple(jobs.items)),
            _build.batch_element(batch_id, batch_name),
            *_build.flags(get_job_details=get_job_details, get_cpu_time=get_cpu_time),
            records=jobs,
            subject=_build.named(batch_id, batch_name),
        )

    def batch(self, batch_id: int, *, get_cpu_time: bool = False) -> BatchInfo:
        """Return one batch without its jobs, which are read but not kept."""
        jobs = Dropped(("job",), _results.batch_job, _table.MOST_JOBS, _regular_form.JOB)
        return self._one_batch(batch_id, jobs, get_cpu_time=get_cpu_time)

    def iter_jobs(self, batch_id: int) -> Iterator[JobInfo]:
        """Yield a batch's jobs with their details, in the order of their submission.

        The request is sent when the first job is wanted. Jobs are yielded only after the reply was
        found complete, so none can be missing; a long reply waits in a temporary file, and needs no
        more memory than a short one.

        Raises:
            NoRoom: there is no room for the temporary file.
        """
        with SpooledJobs(f"batch {batch_id}") as jobs:
            self._one_batch(batch_id, jobs, get_job_details=True)
            yield from jobs

    def _one_batch(
        self, batch_id: int, jobs: RepeatedElements[JobInfo], **flags: bool
    ) -> BatchInfo:
        return self._simple(
            _table.QUERY_BATCH,
            _results.batch,
            _build.batch_element(batch_id, None),
            *_build.flags(**flags),
            records=jobs,
            subject=_build.named(batch_id, None),
        )

    def query_batch2(
        self, batch_names: Sequence[str], *, min_mod_time: float | str = 0
    ) -> JobStatuses:
        """Return the jobs of batches whose status changed after ``min_mod_time``.

        ``min_mod_time`` is sent unchanged. One unknown batch makes the whole RPC fail.
        """
        if not isinstance(min_mod_time, str):
            min_mod_time = _build.number(min_mod_time, "min_mod_time")
        most = len(batch_names) + (_table.MOST_JOBS if batch_names else 0)
        listed = RepeatedElements(
            ("batch_size", "job"), _results.size_or_status, most, _regular_form.STATUS
        )
        return self._simple(
            _table.QUERY_BATCH2,
            lambda root: _results.statuses(root, listed.items, len(batch_names)),
            _build.leaf("min_mod_time", min_mod_time),
            *(_build.leaf("batch_name", name) for name in batch_names),
            records=listed,
        )

    def abort_batch(self, *, batch_id: int | None = None, batch_name: str | None = None) -> None:
        """Abort a batch's jobs; it becomes ABORTED, unless a submit_batch for it still runs."""
        self._simple(
            _table.ABORT_BATCH,
            _results.success,
            _build.batch_element(batch_id, batch_name),
            subject=_build.named(batch_id, batch_name),
        )

    def retire_batch(self, *, batch_id: int | None = None, batch_name: str | None = None) -> None:
        """Let the project delete a batch's files and records; may be repeated."""
        self._simple(
            _table.RETIRE_BATCH,
            _results.success,
            _build.batch_element(batch_id, batch_name),
            subject=_build.named(batch_id, batch_name),
        )

    def set_expire_time(
        self, expire_time: float, *, batch_id: int | None = None, batch_name: str | None = None
    ) -> None:
        """Set when the project may abort and retire a batch."""
        self._simple(
            _table.SET_EXPIRE_TIME,
            _results.success,
            _build.batch_element(batch_id, batch_name),
            _build.leaf("expire_time", _build.number(self._to_project(expire_time), "expire_time")),
            subject=_build.named(batch_id, batch_name),
        )

    # -- jobs

    def query_job(self, job_id: int) -> tuple[ResultInfo, ...]:
        """Return a job's instances."""
        instances = RepeatedElements(("instance",), _results.instance, _table.MOST_INSTANCES)
        return self._simple(
            _table.QUERY_JOB,
            lambda _: tuple(instances.items),
            _build.leaf("job_id", str(job_id)),
            records=instances,
            subject=f"job {job_id}",
        )

    def query_completed_job(self, job_name: str) -> CompletedJob:
        """Return what is known of a job that has a canonical instance.

        For any other job the project's PHP crashes: ProtocolError with ``php_fatal``
        (``web-rpcs.rst``, "query_completed_job").
        """
        return self._simple(
            _table.QUERY_COMPLETED_JOB,
            _results.completed_job,
            _build.leaf("job_name", job_name),
            subject=f"job {job_name!r}",
        )

    def abort_jobs(self, job_names: Sequence[str]) -> None:
        """Abort jobs; stops at the first unknown one, with the jobs before it aborted."""
        self._simple(
            _table.ABORT_JOBS,
            _results.success,
            *(_build.leaf("job_name", name) for name in job_names),
        )

    def get_templates(self, *, app_name: str | None = None, job_name: str | None = None) -> str:
        """Return an app's two template files, one after the other, unchanged."""
        if app_name is not None:
            what, name = "app", app_name
        elif job_name is not None:
            what, name = "job", job_name
        else:
            raise BadRequest("get_templates needs app_name or job_name")
        return self._simple(
            _table.GET_TEMPLATES,
            lambda root: _results.text(root, "templates"),
            _build.leaf(f"{what}_name", name),
            subject=f"{what} {name!r}",
        )

    # -- input files

    def query_files(
        self,
        physical_names: Sequence[str],
        *,
        batch_id: int | None = None,
    ) -> tuple[int, ...]:
        """Return the indices of the names that the project does not have.

        With ``batch_id``, the files that it has are associated with the batch, and PHP crashes if
        one already was (``web-rpcs.rst``, "Files", also for why no ``delete_time`` is sent).
        """
        absent = RepeatedElements(("file",), _results.index, _table.MOST_FILES)
        return self._simple(
            _table.QUERY_FILES if batch_id is None else _table.ASSOCIATE_FILES,
            lambda root: _results.absent(root, absent.items, len(physical_names)),
            *_build.files(physical_names, batch_id),
            records=absent,
        )

    def upload_files(
        self,
        files: Sequence[UploadFile],
        *,
        batch_id: int | None = None,
        delete_time: float | None = None,
        sent: Callable[[int], None] = lambda _: None,
    ) -> None:
        """Send files, streamed from disk.

        ``sent`` is called with the bytes of each block before it is sent, in total more than the
        files' sizes; it can raise to break off the request.

        Raises:
            StagingError: a file cannot be read, or has another size or MD5 than expected; the
                request is broken off.
        """
        names = [file.physical_name for file in files]
        described = _build.files(names, batch_id, delete_time and self._to_project(delete_time))
        xml = _build.document("upload_files", self._authenticator, described)
        form = partial(FormBody, xml, files, sent)
        call = RpcCall(_table.UPLOAD_FILES, self.url + _table.UPLOAD_FILES.handler, form)
        self._caller.ask(call, _results.success, self._until)

    # -- outputs

    def result_file(self, result_name: str, file_num: int) -> OutputStream:
        """Return an instance's output; ``file_num`` counts the files that it uploaded."""
        return self._output(
            _table.RESULT_FILE,
            {
                "cmd": "result_file",
                "result_name": result_name,
                "file_num": str(file_num),
                "auth_str": self._derived(_build.check_text(result_name, "result_name")),
            },
            f"file {file_num} of {result_name!r}",
        )

    def workunit_file(self, wu_name: str, file_num: int) -> OutputStream:
        """Return an output of a job's canonical instance.

        The authenticator itself is in this request's URL, and so in the project's access log.
        """
        return self._output(
            _table.WORKUNIT_FILE,
            {
                "cmd": "workunit_file",
                "wu_name": _build.check_text(wu_name, "wu_name"),
                "file_num": str(file_num),
                "auth_str": self._authenticator.reveal(),
            },
            f"file {file_num} of {wu_name!r}",
        )

    def moved_file(self, result_id: int, index: int) -> OutputStream:
        """Return an output that BOINC's batch_collect_assimilator has moved away.

        ``index`` counts the files of the instance's output template. If the file is not there, an
        empty one may come, or one without a length (``web-rpcs.rst``, "get_output3").
        """
        return self._output(
            _table.MOVED_FILE,
            {
                "action": "get_file",
                "result_id": str(result_id),
                "index": str(index),
                "download": "1",
            },
            f"output {index} of result {result_id}",
        )
