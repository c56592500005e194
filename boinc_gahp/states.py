"""States of jobs and batches: one set of words, and their translations.

People see the words of :class:`JobState` and :class:`BatchState`: on the command line, in the
Python API, on the local project's pages and in the documentation. A project, HTCondor and the
ledger have words of their own; the tables here translate them.
"""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection


class JobState(Enum):
    """A job's state; the values are words for people."""

    QUEUED = "waiting"
    """No volunteer has it yet."""
    IN_PROGRESS = "running"
    """At least one instance was sent."""
    DONE = "done"
    """It has a canonical instance: its outputs can be fetched."""
    FAILED = "failed"
    """It failed for good, or was aborted before it was done; then the reason says so."""
    UNKNOWN = "unknown"
    """A word that this program does not know; never taken for success."""

    @property
    def is_over(self) -> bool:
        """Whether the job is done or has failed."""
        return self in (JobState.DONE, JobState.FAILED)


class BatchState(IntEnum):
    """A batch's state (``web-rpcs.rst``, "Batch states")."""

    INIT = 0
    """Created by create_batch; its submit_batch has not ended, or failed half way."""
    IN_PROGRESS = 1
    """Submitted; the project only notices COMPLETE in query_batch and query_batches."""
    COMPLETE = 2
    """Every job has a canonical instance or an error."""
    ABORTED = 3
    RETIRED = 4
    """Its files and records may be deleted; query_batches leaves it out."""
    UNKNOWN = -1
    """A number that this program does not know; never taken for success."""

    @property
    def words(self) -> str:
        """The state in words for people: ``being made``, ``running``, ``complete``, ..."""
        words = {BatchState.INIT: "being made", BatchState.IN_PROGRESS: JobState.IN_PROGRESS.value}
        return words.get(self, self.name.lower())


class HTCondorState(IntEnum):
    """HTCondor's JobStatus (``gridmanager-batch.rst``, "Result lines")."""

    IDLE = 1
    RUNNING = 2
    REMOVED = 3
    COMPLETED = 4
    HELD = 5
    TRANSFERRING_OUTPUT = 6
    SUSPENDED = 7

    @property
    def words(self) -> str:
        """The state in words for people: ``idle``, ``transferring output``, ..."""
        return self.name.lower().replace("_", " ")


#: BOINC_QUERY_BATCHES' words for jobs: those of query_batch2 (``web-rpcs.rst``, "Queries").
STATUS_WORDS = {
    JobState.QUEUED: "UNSENT",
    JobState.IN_PROGRESS: "IN_PROGRESS",
    JobState.DONE: "DONE",
    JobState.FAILED: "ERROR",
}

#: A project's words for job states (``web-rpcs.rst``, "The RPCs" and "Queries").
_PROJECTS_WORDS = {word: state for state, word in STATUS_WORDS.items()} | {
    # query_batch2 of older projects.
    "QUEUED": JobState.QUEUED,
    # query_batch with details.
    "queued": JobState.QUEUED,
    "in_progress": JobState.IN_PROGRESS,
    "done": JobState.DONE,
    "error": JobState.FAILED,
}


def job_state(word: str) -> JobState:
    """Return the state for a project's word, from query_batch or query_batch2."""
    return _PROJECTS_WORDS.get(word, JobState.UNKNOWN)


#: The ledger's names of states in which jobs are on a project.
LEDGER_STATES: dict[JobState, Literal["queued", "running", "finished"]] = {
    JobState.QUEUED: "queued",
    JobState.IN_PROGRESS: "running",
    JobState.DONE: "finished",
}


class LedgerWords(NamedTuple):
    """HTCondor's equivalent of a state in the ledger, and words for people.

    ``failed`` are the words if the job's program failed, with ``{}`` for its exit code.
    """

    htcondor: HTCondorState
    words: str
    failed: str = ""


#: For the states of HTCondor's jobs in the ledger (:data:`boinc_gahp.ledger.rows.STATES`).
LEDGER_WORDS = {
    "waiting": LedgerWords(HTCondorState.IDLE, "waiting to be sent"),
    "sending": LedgerWords(HTCondorState.IDLE, "being sent"),
    "queued": LedgerWords(HTCondorState.IDLE, "waiting on the project"),
    "running": LedgerWords(HTCondorState.RUNNING, "running on the project"),
    # Running until all files are in place: HTCondor hands them over as soon as it learns of the
    # end.
    "finished": LedgerWords(
        HTCondorState.RUNNING, "outputs to be fetched", "failed, stderr to be written"
    ),
    "fetched": LedgerWords(HTCondorState.RUNNING, "outputs in place", "failed, stderr in place"),
    "done": LedgerWords(HTCondorState.COMPLETED, "completed", "completed with exit code {}"),
    "failed": LedgerWords(HTCondorState.HELD, "on hold"),
    "cancelled": LedgerWords(HTCondorState.REMOVED, "cancelled"),
}

#: A project's words for why a job failed, the bits of its error_mask, and their meanings
#: (``web-rpcs.rst``, "Queries").
ERROR_MEANINGS = {
    "couldnt_send_result": "no volunteer could take it",
    "too_many_error_results": "too many instances failed",
    "too_many_success_results": "too many instances succeeded without agreeing",
    "too_many_total_results": "too many instances were made",
    "cancelled": "it was aborted",
    "canceled": "it was aborted",
    "no_canonical_result": "no instances agreed",
}
#: Those that mean that somebody aborted the job.
CANCELLED = frozenset({"cancelled", "canceled"})


def is_aborted(errors: Collection[str]) -> bool:
    """Tell whether a job with these words failed only because somebody aborted it.

    If a batch is aborted, jobs that had failed before can have that word beside others.
    """
    return bool(errors) and CANCELLED.issuperset(errors)
