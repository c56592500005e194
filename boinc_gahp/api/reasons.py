"""The distinct reasons for which jobs of a batch failed.

The project tells the errors and exit statuses of all jobs in one reply. Only the last line of a
stderr takes RPCs of its own: two for each reason, about one of its jobs. Of programs that ended
badly, the folders of the last fetch tell all of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from boinc_gahp import client_exits
from boinc_gahp.api.endings import program_note, stream
from boinc_gahp.api.family import standing_of
from boinc_gahp.api.folders import folder_name
from boinc_gahp.fetch.failures import failure_of
from boinc_gahp.fetch.stderr import last_line, meaning
from boinc_gahp.states import ERROR_MEANINGS, JobState, is_aborted
from boinc_gahp.text import printable, quoted, shorten

if TYPE_CHECKING:
    from collections.abc import Iterable

    from boinc_gahp.api.batch import Batch
    from boinc_gahp.rpc.types import JobInfo

__all__ = ["Reason", "reasons", "reasons_of", "why"]

#: About so many reasons one job each is asked about, the most frequent ones.
ASKED = 5
#: Characters of a line of stderr that are kept.
_LONGEST = 200


@dataclass(frozen=True, slots=True)
class Reason:
    """A reason for which jobs of a batch failed.

    Attributes:
        text: the reason on one line, such as ``exit status 3``, ``aborted``.
        count: how many jobs failed for it.
        job: the name of the first of them.
        exit_status: the exit status that the reason is about; None if it is about none.
        errors: the project's words for what went wrong with the first job.
        stderr: the last line of that job's stderr; "" if there is none, or the project does not
            tell it, or it was not asked.
    """

    text: str
    count: int
    job: str
    exit_status: int | None
    errors: tuple[str, ...]
    stderr: str = ""

    def __str__(self) -> str:
        said = f": {quoted(self.stderr, _LONGEST)}" if self.stderr else ""
        return f"{self.count:,} × {printable(self.text)} ({printable(self.job)}){said}"


def why(job: JobInfo, *, lease_is_over: bool = False) -> str:
    """Return on one line why a job failed, as far as query_batch tells.

    Args:
        job: a job that failed.
        lease_is_over: whether its batch was aborted, and its lease is over.
    """
    if is_aborted(job.errors):
        return "its batch's lease ended, or it was aborted" if lease_is_over else "aborted"
    status = client_exits.telling(job.exit_statuses)
    if status is not None:
        meaning = client_exits.MEANINGS.get(status)
        return f"exit status {status}" + (f": {meaning}" if meaning else "")
    words = [ERROR_MEANINGS.get(word, word.replace("_", " ")) for word in job.errors]
    return ", ".join(words) or "the project gives no reason"


def reasons(
    batch: Batch, *, jobs: Iterable[int | str] | None = None, stderr: bool = True
) -> list[Reason]:
    """Return the distinct reasons for which jobs of a batch failed, the most frequent first.

    Jobs that were sent again, and are done or not over, are left out.

    Args:
        batch: the batch.
        jobs: names or ids of jobs; None: all.
        stderr: whether to ask for the last line of stderr. It takes two RPCs for each of the five
            most frequent reasons, and few projects tell it (``web-rpcs.rst``,
            "query_completed_job").

    Raises:
        NoSuchJob: one of ``jobs`` does not exist.
        RpcError: the project could not be asked for the jobs.
    """
    return reasons_of(batch, standing_of(batch, jobs).failed, stderr=stderr)


def reasons_of(batch: Batch, failed: Iterable[JobInfo], *, stderr: bool = True) -> list[Reason]:
    """Return the distinct reasons for which these jobs failed; see :func:`reasons`."""
    first: dict[Reason, JobInfo] = {}
    counts: dict[Reason, int] = {}
    is_over = batch.lease_is_over
    root = batch.directory
    for job in failed:
        note = program_note(batch, job, root)
        if note is None:
            status = None if is_aborted(job.errors) else client_exits.telling(job.exit_statuses)
            alike = Reason(why(job, lease_is_over=is_over), 0, "", status, ())
        else:
            text = stream(Path(root or "", folder_name(job.name)), note.stderr, tail=True)
            line = shorten(last_line(text), _LONGEST)
            alike = Reason(note.failure, 0, "", note.exit_status or None, (), line)
        first.setdefault(alike, job)
        counts[alike] = counts.get(alike, 0) + 1
    found = [
        replace(alike, count=counts[alike], job=job.name, errors=job.errors)
        for alike, job in first.items()
    ]
    found.sort(key=lambda reason: -reason.count)
    jobs = {job.name: job for job in first.values()}
    return _with_stderr(batch, found, jobs) if stderr else found


def _with_stderr(batch: Batch, found: list[Reason], jobs: dict[str, JobInfo]) -> list[Reason]:
    """Return the reasons with lines of stderr, and with what became of instances."""
    told = list(found)
    context = batch.project.session.context
    for number, reason in enumerate(found[:ASKED]):
        job = jobs[reason.job]
        if is_aborted(job.errors) or job.state is JobState.DONE:
            continue
        failure = failure_of(context, job)
        text = reason.text
        if reason.exit_status is None and failure.states:
            # The project's words only say that there were too many instances.
            text += f" ({', '.join(dict.fromkeys(failure.states))})"
        line = shorten(last_line(failure.stderr), _LONGEST)
        if meaning(line):
            text += f": {meaning(line)}"
        told[number] = replace(reason, text=text, stderr=line)
        if failure.trouble is not None:
            # The project stopped answering: what is known is enough.
            break
    return told
