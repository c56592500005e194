"""Compares a submit with what was submitted from this machine under the same name before."""

from __future__ import annotations

import errno
import logging
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from boinc_gahp.api.records import Records, describe, difference, readable_md5s
from boinc_gahp.errors import (
    BatchConflict,
    GahpError,
    JobRefused,
    JobsNotListed,
    NotFound,
    NotOwner,
    ProjectDown,
    ProtocolError,
    RpcError,
    StagingError,
    TransportError,
)
from boinc_gahp.submit import Journal, LocalFile

if TYPE_CHECKING:
    from collections.abc import Mapping

    from boinc_gahp.api.records import Record
    from boinc_gahp.api.session import Session
    from boinc_gahp.rpc import BatchInfo
    from boinc_gahp.submit import Sending, SubmitRequest

log = logging.getLogger("boinc_gahp.api")

#: After a submit_batch without an answer, its jobs may still appear for so many seconds: one as
#: large as PHP takes needs 2.2 s, and one of 100,000 jobs 6.6 s (``web-rpcs.rst``, "Timings").
_AT_WORK = 60.0


class Comparison(Journal):
    """Compares a request with the records, and records what is sent.

    Args:
        session: the project and the account.
        request: what is to be submitted.

    Attributes:
        batch: after the submit, the batch as the project showed it with all its jobs.
    """

    def __init__(self, session: Session, request: SubmitRequest) -> None:
        self._session = session
        self._request = request
        self._records = Records(session)
        self._old: Record | None = None
        self._same = False
        self._md5s: Mapping[str, str] = {}
        self._sent = False
        self.batch: BatchInfo | None = None

    def check(self) -> None:
        """Compare the request with what was sent under its name; reads local files.

        Raises:
            BatchConflict: other jobs were sent, and exist or may still appear; says how they
                differ.
            StagingError: a local file changed while it was read.
            RpcError: the project could not be asked about jobs that differ.
        """
        self._old = self._records.find(self._request.batch_name)
        if self._old is None:
            return
        paths = (
            item.path
            for _, job in self._request.jobs
            for item in job.files.values()
            if isinstance(item, LocalFile)
        )
        self._md5s = readable_md5s(self._session, paths, progress=self._request.progress)
        text = difference(self._old, describe(self._request, self._md5s))
        self._same = not text
        if text:
            self._check_none_is_there(self._old, text)

    def knows(self, batch_id: int) -> bool:
        """Return whether the batch's jobs are known to be those of the request."""
        old = self._old
        return self._sent or (old is not None and self._same and old.batch_id == batch_id)

    def files_read(self, md5s: Mapping[str, str]) -> None:
        """See :class:`~boinc_gahp.submit.Journal`."""
        self._md5s = {**self._md5s, **md5s}

    def about_to_send(self, batch_id: int) -> None:
        """Record what is about to be sent; see :class:`~boinc_gahp.submit.Journal`.

        Raises:
            BatchConflict: another process is sending other jobs into the batch.
        """
        name = self._request.batch_name
        if self._old is None and self._has_jobs(batch_id):
            return  # this machine has no record of those jobs
        new = describe(self._request, self._md5s)
        if self._old is not None and self._same and self._old.batch_id == batch_id:
            # The old record knows the contents of files that may be deleted by now.
            new = self._old
        new = replace(new, batch_id=batch_id, at=time.time(), refused=False)
        try:
            if not self._records.write(name, new, new=self._old is None):
                old = self._records.find(name)
                text = "" if old is None or old.batch_id != batch_id else difference(old, new)
                if text:
                    raise self._conflict(batch_id, text)
                self._records.write(name, new, new=False)
        except OSError as error:
            log.warning("Cannot record what is submitted as batch %s: %s", name, error)
        self._old, self._same, self._sent = new, True, True

    def _has_jobs(self, batch_id: int) -> bool:
        """Whether the batch was already filled from elsewhere."""
        try:
            return bool(self._session.rpc.query_batch(batch_id=batch_id).jobs)
        except RpcError as error:
            log.warning("The project did not say whether batch %d has jobs: %s", batch_id, error)
            return True

    def done(self, batch_id: int, sending: Sending) -> None:  # noqa: ARG002
        """See :class:`~boinc_gahp.submit.Journal`."""
        self.batch = sending.batch

    def failed(self, sending: Sending, error: BaseException) -> None:
        """Note a final refusal: jobs that do not exist by now will not appear.

        If the same jobs would be refused again, their batch is retired, though nobody can use its
        name again: otherwise it would be listed as a batch that is being made, and one would wait
        for it in vain. After any other refusal (of a template's name, a quota, by a full disk) the
        same request may succeed later: then the batch stays, so that it can be completed under its
        name.
        """
        if isinstance(error, (JobRefused, JobsNotListed)) and sending.made and sending.ours:
            self._drop(sending.batch_id or 0)
        if not (self._sent and self._old is not None and is_final(error)):
            return
        try:
            self._records.write(
                self._request.batch_name, replace(self._old, refused=True), new=False
            )
        except OSError as trouble:
            log.warning("%s", trouble)

    def _drop(self, batch_id: int) -> None:
        try:
            self._session.bridge.drop(batch_id, self._request.batch_name)
        except GahpError as error:
            log.warning("Batch %d stays on the project: %s", batch_id, error)

    def _check_none_is_there(self, old: Record, text: str) -> None:
        name = self._request.batch_name
        try:
            details = self._session.rpc.query_batch(batch_name=name)
        except (NotFound, NotOwner):
            return  # the submit reports these
        if details.batch.id != old.batch_id:
            return
        if details.jobs:
            raise self._conflict(old.batch_id, text)
        if not old.refused and time.time() < old.at + _AT_WORK:
            raise BatchConflict(
                f"batch {name!r} (id {old.batch_id}) of {self._session.rpc.host} was "
                f"submitted with other jobs a moment ago, and they may still appear: {text}; wait "
                "a minute and try again, or choose another name"
            )

    def _conflict(self, batch_id: int, text: str) -> BatchConflict:
        return BatchConflict(
            f"batch {self._request.batch_name!r} (id {batch_id}) of {self._session.rpc.host} was "
            f"submitted with other jobs than these: {text}; choose another name"
        )


def is_final(error: BaseException) -> bool:
    """Whether the same submit would fail in the same way, and no part of it is still running."""
    if isinstance(error, StagingError):
        # Other StagingErrors are about files that change, or about time.
        return error.errno in (errno.EFBIG, errno.EEXIST)
    passing = (TransportError, ProtocolError, ProjectDown)
    return isinstance(error, GahpError) and not isinstance(error, passing)
