"""BOINC_SUBMIT and its journals: what an error as its answer means, and how that is ensured.

A gridmanager that gets an error submits the jobs again under new names (``gahp.rst``,
"BOINC_SUBMIT"), so none of the old ones may run. A person may submit the same batch again.
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from boinc_gahp.errors import BatchConflict, GahpError, LedgerError, RpcError
from boinc_gahp.submit.abort import ABORT_AGAIN
from boinc_gahp.submit.buda import buda_request
from boinc_gahp.submit.engine import submit
from boinc_gahp.submit.journal import UNDO_TIME, Journal, SubmitState
from boinc_gahp.submit.query import find_batch

if TYPE_CHECKING:
    from collections.abc import Callable

    from boinc_gahp.rpc.client import WebRpcs
    from boinc_gahp.submit.context import Context
    from boinc_gahp.submit.types import SubmitRequest

log = logging.getLogger("boinc_gahp.submit")

#: Seconds after the gridmanager has stopped waiting, when a submission that nobody asked about is
#: aborted.
_GRIDMANAGER_MARGIN = 30.0


def boinc_submit(context: Context, request: SubmitRequest, answer_by: float | None) -> int:
    """Submit the batch of a BOINC_SUBMIT; return its id on the project.

    Args:
        context: the project.
        request: the batch.
        answer_by: ``time.monotonic()`` at which a gridmanager needs the result: if the submit
            fails, none of the batch's jobs exists or appears. Its lease is ``[jobs] lease``,
            because a gridmanager renews it. None: a person typed the request.

    Raises:
        JobRefused: the jobs are for a BUDA app: a BOINC_SUBMIT cannot name their outputs.
        LedgerError: for a gridmanager, the submission could not be written into the ledger first.
    """
    request = buda_request(request)
    context.cache.mentioned.set(request.batch_name, True)
    if answer_by is None:
        return submit(context, request, ConsoleJournal(context, request))
    lease = context.settings.jobs.lease
    request = replace(request, lease=lease, answer_by=answer_by)
    return submit(context, request, GridmanagerJournal(context, request))


class ConsoleJournal(Journal):
    """For a BOINC_SUBMIT typed at the console: nothing is recorded, but pending aborts count."""

    def __init__(self, context: Context, request: SubmitRequest) -> None:
        self._context = context
        self._request = request
        self._ledger = context.ledger
        self._key = (*context.owner, request.batch_name)
        #: Whether the batch was given up before.
        self._is_given_up = False

    def begin(self) -> SubmitState:
        """Return how far an earlier process has come with the batch.

        Raises:
            BatchConflict: it has given this batch up, and has answered an error.
        """
        try:
            return self._left()
        except LedgerError as error:
            log.warning("%s; it is not known whether batch %s was given up", error, self._key[-1])
            return SubmitState()

    def _left(self) -> SubmitState:
        pending_aborts = (
            () if self._ledger is None else self._ledger.pending_aborts(*self._key[:2], time.time())
        )
        for batch in pending_aborts:
            if batch.name == self._request.batch_name:
                if batch.state == "giving_up":
                    raise self._being_aborted()
                return SubmitState(batch.project_batch_id, sent=True, unclear=True)
        return SubmitState()

    def _being_aborted(self) -> BatchConflict:
        self._is_given_up = True
        return BatchConflict(
            f"batch {self._request.batch_name!r} was given up before, and is being aborted on "
            f"{self._context.project.host}: choose another batch name"
        )

    def done(self, batch_id: int, sending: SubmitState) -> None:  # noqa: ARG002
        """Delete the submission's note in the ledger."""
        self._context.note(
            lambda ledger: ledger.end_submit(*self._key),
            f"batch {self._request.batch_name} (id {batch_id}) is submitted",
        )


class GridmanagerJournal(ConsoleJournal):
    """Keeps the ledger of a gridmanager's BOINC_SUBMIT, across crashes.

    Before submit_batch is sent, the ledger notes that it may have been. If the answer will be an
    error, the ledger notes that an abort is pending, and then the abort is tried. The next process
    does what this one no longer can (:func:`~boinc_gahp.submit.control.reconcile`).
    """

    _is_unread = False

    def begin(self) -> SubmitState:
        """Return how far an earlier process has come with the batch.

        Raises:
            BatchConflict: it has given this batch up, and has answered an error.
            LedgerError: the ledger cannot be read.
        """
        try:
            return self._left()
        except LedgerError:
            self._is_unread = True
            raise

    def about_to_send(self, batch_id: int) -> None:
        """See :class:`Journal`.

        Raises:
            BatchConflict: another process has given the batch up.
            LedgerError: the ledger could not be written.
        """
        if self._ledger is not None and not self._ledger.begin_submit(
            *self._key, batch_id, self._abort_at()
        ):
            raise self._being_aborted()

    def _abort_at(self) -> float:
        answer_by = self._request.answer_by
        left = 0.0 if answer_by is None else max(0.0, answer_by - time.monotonic())
        return time.time() + left + _GRIDMANAGER_MARGIN

    def failed(self, sending: SubmitState, error: BaseException) -> None:
        """Make sure that none of the batch's jobs exists now or appears later."""
        if self._is_given_up:
            return
        project = self._context.project.until(time.monotonic() + UNDO_TIME)
        if self._is_unread:
            sending = replace(sending, unclear=True)  # an earlier process may have sent it
        if sending.batch_id is None:
            sending = self._find_batch(project, sending)
        if sending.batch_id is None or not sending.ours:
            return
        batch_id = sending.batch_id
        log.info("Batch %s is given up: %s", self._request.batch_name, error)
        if sending.sent or sending.unclear:
            self._abort(project, batch_id, unclear=sending.unclear)
        else:
            self._try("retired", lambda: project.retire_batch(batch_id=batch_id))

    def _find_batch(self, project: WebRpcs, sending: SubmitState) -> SubmitState:
        """Look for a batch that an earlier process made: this submit failed before it did so."""
        try:
            return sending.seen(find_batch(project, self._request.batch_name), self._request)
        except GahpError as error:  # of any kind: the name may be what was refused
            log.info("It is not known whether batch %s exists: %s", self._request.batch_name, error)
            return sending

    def _abort(self, project: WebRpcs, batch_id: int, *, unclear: bool) -> None:
        """Abort the batch now, and again later if a submit_batch may still be running."""
        again = time.time() + (ABORT_AGAIN if unclear else 0.0)
        name = self._request.batch_name
        self._context.note(
            lambda ledger: ledger.record_abort(*self._key, batch_id, again),
            f"the abort of batch {name} is tried only now",
        )
        # The id may be an earlier process's, and another batch's by now.
        done = self._try("aborted", lambda: project.abort_batch(batch_name=name))
        if done and not unclear:
            self._context.note(
                lambda ledger: ledger.abort_done(*self._context.owner, batch_id),
                f"batch {name} is aborted once more",
            )

    def _try(self, what: str, step: Callable[[], None]) -> bool:
        try:
            step()
        except RpcError as error:
            log.warning("Batch %s could not be %s now: %s", self._request.batch_name, what, error)
            return False
        return True
