"""What an error answered to a BOINC_SUBMIT means, and how that is kept true.

A gridmanager that gets an error submits the jobs again under new names (``gahp.rst``,
"BOINC_SUBMIT"), so none of the old ones may run.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from boinc_gahp.bridge import naming
from boinc_gahp.errors import BatchConflict, GahpError, LedgerError, RpcError
from boinc_gahp.rpc import BatchState

if TYPE_CHECKING:
    from collections.abc import Callable

    from boinc_gahp.bridge.context import Context
    from boinc_gahp.bridge.types import Client, SubmitRequest
    from boinc_gahp.rpc import BatchDetails, Project

log = logging.getLogger("boinc_gahp.bridge")

#: Seconds kept back for undoing a submission before its answer is due.
UNDO_TIME = 10.0
#: A second abort this much later: a running submit undoes an early one (``web-rpcs.rst``,
#: "submit_batch").
_ABORT_AGAIN = 60.0
#: Seconds past the client's patience after which a submission that nobody asked about is given up.
_PATIENCE_MARGIN = 30.0


class Promise:
    """What an error answered to a gridmanager means, kept across crashes.

    Before submit_batch is sent, the ledger says that it may have been; when the answer is to be
    an error, the ledger says that an abort is owed, and then the abort is tried. What this process
    cannot do any more, the next one does (:meth:`Bridge.settle`). Without a gridmanager nothing is
    promised: a person submits the same batch again.
    """

    def __init__(self, context: Context, request: SubmitRequest, client: Client) -> None:
        self._context = context
        self._name = request.batch_name
        self._wanted = {name for name, _ in request.jobs}
        self._client = client
        self._ledger = context.ledger
        self._batch_id: int | None = None
        self._mine = True
        self._jobs_exist = False
        self._unclear = False

    @property
    def _key(self) -> tuple[str, str, str]:
        project = self._context.project
        return project.url, project.account, self._name

    # -- what the submission reports

    def check_nothing_is_owed(self) -> None:
        """Raise BatchConflict if this batch was given up before, and an error answered for it."""
        if self._ledger is None:
            return
        try:
            debts = self._ledger.debts(*self._key[:2], time.time())
        except LedgerError:
            # What an earlier process has left is unknown.
            self._unclear = True
            if self._client.gridmanager:
                raise
            return
        for debt in debts:
            if debt.batch_name == self._name:
                self._batch_id = debt.batch_id
                self._unclear = True
                if debt.kind == "abort":
                    raise self._given_up()

    def found(self, details: BatchDetails) -> None:
        """Take note of the batch that has the name; one that is not ours is not to be touched."""
        if details.batch.name != self._name:
            return  # the project ignores case, accents and trailing spaces
        self._batch_id = details.batch.id
        names = {job.name for job in details.jobs}
        self._mine = names <= self._wanted
        # A retired batch has no job that runs; to abort it would take it back to the living ones.
        if names and details.batch.state is not BatchState.RETIRED:
            self._jobs_exist = True

    def about_to_send(self, batch_id: int) -> None:
        """Write down that submit_batch may have been sent from now on.

        Raises:
            LedgerError: it could not be written, so it must not be sent.
            BatchConflict: another process has given the batch up.
        """
        if (
            self._client.gridmanager
            and self._ledger is not None
            and not self._ledger.begin_submit(*self._key, batch_id, self._give_up_at())
        ):
            raise self._given_up()
        self._jobs_exist = True

    def unclear(self) -> None:
        """Take note that a submit_batch may still be running on the project."""
        self._unclear = True

    def _give_up_at(self) -> float:
        answer_by = self._client.answer_by
        left = 0.0 if answer_by is None else max(0.0, answer_by - time.monotonic())
        return time.time() + left + _PATIENCE_MARGIN

    def _given_up(self) -> BatchConflict:
        return BatchConflict(
            f"batch {self._name!r} was given up before, and is being aborted on "
            f"{self._context.project.host}: choose another batch name"
        )

    # -- how it ended

    def fulfilled(self) -> None:
        """Strike out what stood in the ledger: all jobs are there."""
        if self._ledger is None:
            return
        try:
            self._ledger.end_submit(*self._key)
        except LedgerError as error:
            log.error("Batch %s is submitted, but the ledger cannot say so: %s", self._name, error)

    def keep(self, error: BaseException) -> None:
        """See to it that none of the batch's jobs exists or appears."""
        if not self._client.gridmanager:
            return
        project = self._context.project.until(time.monotonic() + UNDO_TIME)
        if self._batch_id is None:
            self._look_for_jobs(project)
        if self._batch_id is None or not self._mine:
            return
        log.info("Batch %s is given up: %s", self._name, error)
        if self._jobs_exist or self._unclear:
            self._abort(project, self._batch_id)
        else:
            self._try("retired", lambda: project.retire_batch(batch_id=self._batch_id))

    def _look_for_jobs(self, project: Project) -> None:
        """Look for what an earlier process made: this one ended before it knew the batch."""
        try:
            self.found(naming.find(project, self._name))
        except GahpError as error:  # not only of the project: the name may be what was refused
            log.info("Batch %s is not known to exist: %s", self._name, error)

    def _abort(self, project: Project, batch_id: int) -> None:
        """Abort the batch, now and once more if a submit_batch may still be running."""
        again = time.time() + (_ABORT_AGAIN if self._unclear else 0.0)
        try:
            if self._ledger is not None:
                self._ledger.owe_abort(*self._key, batch_id, again)
        except LedgerError as trouble:
            log.error("The abort of batch %s is not in the ledger: %s", self._name, trouble)
        done = self._try("aborted", lambda: project.abort_batch(batch_id=batch_id))
        if done and not self._unclear and self._ledger is not None:
            ledger = self._ledger
            self._try("paid", lambda: ledger.paid(*self._key[:2], batch_id))

    def _try(self, what: str, step: Callable[[], None]) -> bool:
        try:
            step()
        except (RpcError, LedgerError) as error:
            log.warning("Batch %s could not be %s now: %s", self._name, what, error)
            return False
        return True
