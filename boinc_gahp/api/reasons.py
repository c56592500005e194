"""The distinct reasons for which jobs of a batch failed.

Only the last line of a stderr takes RPCs of its own: two for each reason, about one of its jobs. Of
programs that ended badly, the folders of the last fetch tell all of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from boinc_gahp.api.endings import program_note, stream
from boinc_gahp.api.family import standing_of
from boinc_gahp.api.folders import folder_name
from boinc_gahp.api.logs import ends_of
from boinc_gahp.fetch.failures import learn
from boinc_gahp.fetch.stderr import last_line
from boinc_gahp.text import printable, quoted, shorten

if TYPE_CHECKING:
    from collections.abc import Iterable

    from boinc_gahp.api.known_batch import KnownBatch
    from boinc_gahp.fetch.job_end import JobEnd
    from boinc_gahp.rpc.types import JobInfo

__all__ = ["Reason", "reasons", "reasons_of"]

#: About so many reasons one job each is asked about, the most frequent ones.
ASKED = 5
#: Characters of a line of stderr that are kept.
_LONGEST = 200


@dataclass(frozen=True, slots=True)
class Reason:
    """A reason for which jobs of a batch failed.

    Attributes:
        count: how many jobs failed for it.
        end: how the first of them ended.
    """

    count: int
    end: JobEnd

    @property
    def stderr(self) -> str:
        """The last line of the first job's stderr; "": there is none, or it is not known."""
        return shorten(last_line(self.end.stderr or ""), _LONGEST)

    def __str__(self) -> str:
        said = f": {quoted(self.stderr, _LONGEST)}" if self.stderr else ""
        return f"{self.count:,} × {printable(self.end.why)} ({printable(self.end.name)}){said}"


def reasons(
    batch: KnownBatch, *, jobs: Iterable[int | str] | None = None, stderr: bool = True
) -> list[Reason]:
    """Return the distinct reasons for which jobs of a batch failed, the most frequent first.

    Jobs that were sent again, and are done or not over, are left out.

    Args:
        batch: the batch.
        jobs: names or ids of jobs; None: all.
        stderr: whether to ask for the stderr. It takes two RPCs for each of the five most frequent
            reasons, and few projects tell it (``web-rpcs.rst``, "query_completed_job").

    Raises:
        NoSuchJob: one of ``jobs`` does not exist.
        RpcError: the project could not be asked for the jobs.
    """
    return reasons_of(batch, standing_of(batch, jobs).failed, stderr=stderr)


def reasons_of(
    batch: KnownBatch, failed: Iterable[JobInfo], *, stderr: bool = True
) -> list[Reason]:
    """Return the distinct reasons for which these jobs failed; see :func:`reasons`."""
    counts: dict[tuple[str, str], Reason] = {}
    for found in ends_of(batch, failed).values():
        end = _with_stream(batch, found)
        alike = end.why, last_line(end.stderr or "")
        before = counts.get(alike)
        counts[alike] = (
            Reason(1, end) if before is None else replace(before, count=before.count + 1)
        )
    told = sorted(counts.values(), key=lambda reason: -reason.count)
    for number, reason in enumerate(told[:ASKED] if stderr else ()):
        if not (reason.end.is_aborted or reason.end.failure):
            end = learn(batch.session.context, reason.end)
            told[number] = replace(reason, end=end)
            if end.trouble is not None:
                # The project stopped answering: what is known is enough.
                break
    return told


def _with_stream(batch: KnownBatch, end: JobEnd) -> JobEnd:
    """Return how a program ended badly, with the end of its stderr."""
    root = batch.directory
    note = program_note(batch, end.job, root)
    if note is None:
        return end
    text = stream(Path(root or "", folder_name(end.name)), note.stderr, tail=True)
    return replace(end, stderr=text)
