"""A project's web RPCs as methods."""

from __future__ import annotations

import copy
import hashlib
import math
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, quote_plus

from boinc_gahp.config.urls import ProjectUrl
from boinc_gahp.errors import BadRequest, RpcError
from boinc_gahp.rpc import _build, _results, _table
from boinc_gahp.rpc._build import FormBody
from boinc_gahp.rpc._caller import Caller, RpcCall, beginning, upgraded
from boinc_gahp.rpc._pages import page_beginning
from boinc_gahp.rpc._redact import Redactor
from boinc_gahp.rpc._replies import RepeatedElements
from boinc_gahp.rpc._spool import Dropped, SpooledJobs
from boinc_gahp.rpc._transport import Clock, HttpTransport
from boinc_gahp.rpc.options import ClientOptions
from boinc_gahp.rpc.outputs import OutputStream
from boinc_gahp.rpc.types import BatchDetails
from boinc_gahp.secret import Authenticator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from lxml import etree
    from typing_extensions import Self

    from boinc_gahp.rpc._reply_errors import ReplyErrors
    from boinc_gahp.rpc._table import Rpc
    from boinc_gahp.rpc._transport import HttpReply, Transport
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


class WebRpcs:
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

    def __init__(
        self,
        url: str,
        authenticator: str | Authenticator,
        *,
        options: ClientOptions = ClientOptions(),  # noqa: B008  (frozen)
        transport: Transport | None = None,
    ) -> None:
        self.url = ProjectUrl(url)
        self.host = self.url.host
        if not isinstance(authenticator, Authenticator):
            authenticator = Authenticator(authenticator)
        self._authenticator = authenticator
        self._until: float | None = None
        self._clock = Clock()
        # Another transport's replies may be recordings, with the time of another day.
        self._tells_time = transport is None
        self._transport = HttpTransport(options, self._clock) if transport is None else transport
        self._caller = Caller(self.host, options, self._transport, Redactor(authenticator))

    @property
    def account(self) -> str:
        """16 hex digits that identify the authenticator."""
        return self._authenticator.account

    @property
    def https_url(self) -> str | None:
        """The project's URL with https, if it has redirected a request there from http."""
        return upgraded(self.url) if self._caller.speaks_https.is_set() else None

    @property
    def is_private(self) -> bool:
        """Whether nobody on the way to the project can read requests."""
        return self.url.is_private or self._caller.speaks_https.is_set()

    def until(self, deadline: float) -> Self:
        """Return a view whose RPCs, retries included, end by ``time.monotonic() == deadline``."""
        view = copy.copy(self)
        view._until = deadline if self._until is None else min(deadline, self._until)  # noqa: SLF001
        return view

    def once(self) -> Self:
        """Return a view whose RPCs are not repeated if they fail."""
        view = copy.copy(self)
        options = replace(self._caller.options, retry_total=0.0)
        view._caller = replace(self._caller, options=options)  # noqa: SLF001
        return view

    @property
    def deadline(self) -> float:
        """``time.monotonic()`` by which this view's RPCs end; infinite without a deadline."""
        return math.inf if self._until is None else self._until

    def close(self) -> None:
        """Close the connections of all views; pauses between attempts end at once."""
        self._caller.closing.set()
        if isinstance(self._transport, HttpTransport):
            self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r}, account {self.account})"

    def ping(self) -> None:
        """Ask whether the project answers; needs no account."""
        self._ask(_table.PING, _build.document("ping", None), _results.success)

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
            self._expire_time(expire_time),
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
        return _build.size_of(self._submission("submit_batch", submission))

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
        jobs = RepeatedElements(("job",), _results.batch_job, _table.MOST_JOBS, _results.JOB_FORM)
        flags = _build.flags(get_job_details=get_job_details, get_cpu_time=get_cpu_time)
        return self._of_batch(
            _table.QUERY_BATCH,
            lambda root: BatchDetails(_results.batch(root), tuple(jobs.items)),
            batch_id,
            batch_name,
            *flags,
            records=jobs,
        )

    def batch(self, batch_id: int, *, get_cpu_time: bool = False) -> BatchInfo:
        """Return one batch without its jobs, which are read but not kept."""
        jobs = Dropped(("job",), _results.batch_job, _table.MOST_JOBS, _results.JOB_FORM)
        flags = _build.flags(get_cpu_time=get_cpu_time)
        return self._of_batch(
            _table.QUERY_BATCH, _results.batch, batch_id, None, *flags, records=jobs
        )

    def iter_jobs(self, batch_id: int) -> Iterator[JobInfo]:
        """Yield a batch's jobs with their details, in the order of their submission.

        The request is sent when the first job is wanted. Jobs are yielded only after the reply was
        found complete, so none can be missing; a long reply waits in a temporary file, and needs no
        more memory than a short one.

        Raises:
            OutputError: there is no room for the temporary file.
        """
        with SpooledJobs(f"batch {batch_id}") as jobs:
            flags = _build.flags(get_job_details=True)
            self._of_batch(_table.QUERY_BATCH, _results.batch, batch_id, None, *flags, records=jobs)
            yield from jobs

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
            ("batch_size", "job"), _results.size_or_status, most, _results.STATUS_FORM
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
        self._of_batch(_table.ABORT_BATCH, _results.success, batch_id, batch_name)

    def retire_batch(self, *, batch_id: int | None = None, batch_name: str | None = None) -> None:
        """Let the project delete a batch's files and records; may be repeated."""
        self._of_batch(_table.RETIRE_BATCH, _results.success, batch_id, batch_name)

    def set_expire_time(
        self, expire_time: float, *, batch_id: int | None = None, batch_name: str | None = None
    ) -> None:
        """Set when the project may abort and retire a batch."""
        until = self._expire_time(expire_time)
        self._of_batch(_table.SET_EXPIRE_TIME, _results.success, batch_id, batch_name, until)

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
        call = self._call(_table.UPLOAD_FILES, make_body=form)
        self._caller.ask(call, _results.success)

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

    # -- the web site

    def page(
        self,
        page: Rpc,
        query: dict[str, str],
        answer: Callable[[etree._Element], T],
        *,
        records: RepeatedElements[Any] | None = None,
        secret: Authenticator | None = None,
    ) -> T:
        """Request a page of the web site that is made for programs; return what ``answer`` reads.

        ``secret`` is in the query, and in no error or log.
        """
        call = self._call(page, query, records=records)
        caller = self._caller
        if secret is not None:
            caller = replace(caller, redact=Redactor(secret))
        return caller.ask(call, answer)

    def beginning_of(self, page: Rpc, query: dict[str, str]) -> str:
        """Return the beginning of a page that is made for people."""
        return page_beginning(self._beginning(page, query)[1])

    def beginning_of_file(self, path: str) -> tuple[str, bytes]:
        """Return the length of a file on this web server, in its words, and the file's beginning.

        No account is named.
        """
        return self._beginning(replace(_table.FILE, handler=path))

    def _beginning(self, rpc: Rpc, query: dict[str, str] | None = None) -> tuple[str, bytes]:
        call = self._call(rpc, query, plain=True)

        def begin(reply: HttpReply, errors: ReplyErrors) -> tuple[str, bytes]:
            with closing(reply):
                length = reply.headers.get("Content-Length", "")
                found = length, beginning(errors.chunks(reply.chunks()))
            self._caller.log_line(call, "ok")
            return found

        return self._caller.open(call, begin)

    def _cookie(self) -> str:
        """Return the cookie of an account that has logged in."""
        return f"auth={quote(self._authenticator.reveal(), safe='', errors='surrogateescape')}"

    # -- what the methods have in common

    def _derived(self, of: str) -> str:
        """Return the ``auth_str`` made of the authenticator and one object."""
        text = self._authenticator.reveal() + of
        encoded = text.encode("utf-8", "surrogateescape")
        return hashlib.md5(encoded, usedforsecurity=False).hexdigest()

    def _to_project(self, at: float) -> float:
        """Convert a time of this machine's clock to the project's clock; 0 stays 0."""
        if not at:
            return at
        if self._tells_time and not self._clock.is_known:
            try:
                self.ping()
            except RpcError:
                if not self._clock.is_known:  # any reply tells the time
                    raise
        return self._clock.to_project(at)

    def _submission(self, rpc: str, submission: BatchSubmission) -> bytes:
        return _build.submission_document(rpc, self._authenticator, submission)

    def _expire_time(self, at: float) -> str:
        return _build.leaf("expire_time", _build.number(self._to_project(at), "expire_time"))

    def _of_batch(
        self,
        rpc: Rpc,
        answer: Callable[[etree._Element], T],
        batch_id: int | None,
        batch_name: str | None,
        *parts: str,
        records: RepeatedElements[Any] | None = None,
    ) -> T:
        batch = _build.batch_element(batch_id, batch_name)
        subject = _build.named(batch_id, batch_name)
        return self._simple(rpc, answer, batch, *parts, records=records, subject=subject)

    def _simple(
        self,
        rpc: Rpc,
        answer: Callable[[etree._Element], T],
        *parts: str,
        records: RepeatedElements[Any] | None = None,
        subject: str = "",
    ) -> T:
        xml = _build.document(rpc.name, self._authenticator, parts)
        return self._ask(rpc, xml, answer, records=records, subject=subject)

    def _ask(
        self,
        rpc: Rpc,
        xml: bytes,
        answer: Callable[[etree._Element], T],
        *,
        records: RepeatedElements[Any] | None = None,
        subject: str = "",
    ) -> T:
        form = partial(FormBody, xml)
        call = self._call(rpc, make_body=form, records=records, subject=subject)
        return self._caller.ask(call, answer)

    def _call(self, rpc: Rpc, query: dict[str, str] | None = None, **more: Any) -> RpcCall:
        url = self.url + rpc.handler
        if query:
            quoted = (quote_plus(value, errors="surrogateescape") for value in query.values())
            url += "?" + "&".join(map("=".join, zip(query, quoted, strict=True)))
        cookie = self._cookie if rpc.cookie else None
        return RpcCall(rpc, url, self._until, cookie=cookie, **more)

    def _output(self, rpc: Rpc, query: dict[str, str], subject: str) -> OutputStream:
        call = self._call(rpc, query, subject=subject, plain=True)

        def begin(reply: HttpReply, errors: ReplyErrors) -> OutputStream:
            def ended(outcome: str, received: int) -> None:
                call.received += received
                self._caller.log_line(call, outcome)

            return OutputStream(reply, errors, ended)

        return self._caller.open(call, begin)
