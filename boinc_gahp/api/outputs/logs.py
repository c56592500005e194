"""How jobs ended, and what they wrote to their streams."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from boinc_gahp.api import finding
from boinc_gahp.api.family import failed_programs, program_note, ran_programs
from boinc_gahp.api.outputs.fetching_batch import check_answers, fetch_streams
from boinc_gahp.api.outputs.folders import folder_name
from boinc_gahp.errors import OutputError, RpcError
from boinc_gahp.fetch.failures import attempts_words, learn, unfinished_jobs, with_instances
from boinc_gahp.fetch.job_end import JobEnd, last_line
from boinc_gahp.fetch.types import FetchResult
from boinc_gahp.states import JobState
from boinc_gahp.text import printable, quoted, shorten
from boinc_gahp.threads import in_order

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from boinc_gahp.api.known_batch import KnownBatch
    from boinc_gahp.api.outputs.folders import FetchRecord
    from boinc_gahp.rpc.client import WebRpcs
    from boinc_gahp.rpc.types import JobInfo, ResultInfo


#: How many jobs are asked about at a time.
_THREADS = 4
#: How many jobs are asked about, one by one, where the list of all does not tell why they failed.
ASKED = 100
#: A project's web page about an instance; it shows the stderr (``html/user/result.php``).
_PAGE = "result.php?resultid="


def page_of(project: str, instance: ResultInfo) -> str:
    """Return the address of a project's web page that shows the stderr of an instance.

    On a project as BOINC ships it, one must be logged in to see it (``html/user/result.php``).
    """
    return f"{project}{_PAGE}{instance.id}"


def ends_of(batch: KnownBatch, jobs: Iterable[JobInfo]) -> dict[int, JobEnd]:
    """Return how jobs ended, without their streams, by their ids.

    The list of a batch's jobs tells most. Where it only says that instances failed, the project is
    asked for the job's instances, a request for each of the first hundred; until it does not
    answer.

    Args:
        batch: the batch.
        jobs: jobs of it, or of retries with the names of the jobs that they repeat.
    """
    listed = list(jobs)
    bad = failed_programs(batch, listed)
    image, lease_is_over = _image_of(batch), batch.lease_is_over
    ends = {
        job.id: JobEnd(job, image, lease_is_over, *_program(bad.get(job.name))) for job in listed
    }
    untold = islice((end for end in ends.values() if not end.is_told), ASKED)
    ask = partial(with_instances, batch.session.context)
    for end in in_order(ask, untold, threads=_THREADS, name="ends"):
        ends[end.id] = end
        if end.trouble is not None:
            break
    return ends


def attempts_of(batch: KnownBatch, project: WebRpcs) -> str:
    """Return in words which attempts at a batch's jobs have failed; "": none of those seen.

    A few jobs that are not over are looked at, with a request for each, and one for the list.

    Args:
        batch: the batch.
        project: asks.

    Raises:
        RpcError: the project could not be asked.
    """
    image = _image_of(batch)
    jobs = [replace(job, image=image) for job in unfinished_jobs(project, batch.id)]
    return attempts_words(jobs, none_is_done=not batch.ndone)


def logs_of(
    batch: KnownBatch,
    *,
    jobs: Iterable[int | str] | None = None,
    wanted: Callable[[JobState], bool] | None = None,
) -> Iterator[JobEnd]:
    """Yield how each job ended, in order; asks the project about each job.

    Args:
        batch: the batch.
        jobs: names or ids of jobs; None: all.
        wanted: tells by their states which of these to yield; None: all. A job whose program is
            known to have ended badly counts as failed.

    Raises:
        NoSuchJob: one of ``jobs`` does not exist.
        RpcError: the project could not be asked for the jobs, or stopped answering.
    """
    listed = list(finding.find_jobs(batch, jobs))
    bad = failed_programs(batch, listed)

    def counts_as(job: JobInfo) -> JobState:
        return JobState.FAILED if job.name in bad else job.state

    chosen = (job for job in listed if wanted is None or wanted(counts_as(job)))
    yield from in_order(partial(log_of, batch), chosen, threads=_THREADS, name="logs")


def log_of(batch: KnownBatch, job: JobInfo) -> JobEnd:
    """Return how a job ended, with its streams, or which attempts at it failed so far.

    Raises:
        RpcError: the project does not answer any more, or refuses the account.
    """
    session = batch.session
    end = JobEnd(job, _image_of(batch), batch.lease_is_over)
    if job.state is not JobState.DONE:
        ask = learn if job.state is JobState.FAILED else with_instances
        end = ask(session.context, end)
        if isinstance(end.trouble, RpcError):
            check_answers(session, end.trouble)
        return end
    try:
        if end.image is not None:
            return _of_program(batch, end)
        return end.with_completed(session.rpc.query_completed_job(job.name))
    except RpcError as error:
        check_answers(session, error)
        return replace(end, trouble=error)
    except OutputError as error:
        return replace(end, trouble=error)


def _of_program(batch: KnownBatch, end: JobEnd) -> JobEnd:
    """Return how a program has ended; what was fetched is not asked for again."""
    root = batch.directory
    note = program_note(batch, end.job, root)
    if note is not None and root is not None:
        return _told(end, note, root / folder_name(end.name))
    with TemporaryDirectory(prefix="boinc_gahp-") as room:
        note = fetch_streams(batch, end.job, Path(room, "job"))
        return end if note is None else _told(end, note, Path(room, "job"))


def _asked_program(batch: KnownBatch, end: JobEnd) -> JobEnd:
    """Return how a program ended badly that was not fetched, with its streams."""
    try:
        return _of_program(batch, end)
    except (RpcError, OutputError) as error:
        return replace(end, trouble=error)


def _told(end: JobEnd, note: FetchRecord, folder: Path) -> JobEnd:
    failure, result = _program(note)
    return replace(
        end,
        failure=failure,
        result=result,
        stderr=_stream(folder, note.stderr),
        stdout=_stream(folder, note.stdout),
    )


def _program(note: FetchRecord | None) -> tuple[str, FetchResult | None]:
    """Return why a program counts as failed, and its exit status and times."""
    if note is None:
        return "", None
    if note.exit_status is None:  # it was not run
        return note.failure, None
    return note.failure, note.result or FetchResult(note.exit_status, 0.0, 0.0)


def _image_of(batch: KnownBatch) -> str | None:
    """Return the image of a batch's jobs, "" if it is not known; None: they run an app."""
    if not ran_programs(batch):
        return None
    manifest = batch.manifest
    name = None if manifest is None else next(iter(manifest.jobs), None)
    program = None if manifest is None or name is None else manifest.job(name).program
    return "" if program is None else str(json.loads(program.shared).get("image", ""))


#: Bytes of a stream that are read for its last line.
_TAIL = 1 << 16
#: For so many reasons, the most frequent ones, the project is asked about one job each.
REASONS_ASKED = 5
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


def reasons(batch: KnownBatch, failed: Iterable[JobInfo], *, stderr: bool = True) -> list[Reason]:
    """Return the distinct reasons for which jobs of a batch failed, the most frequent first.

    Args:
        batch: the batch.
        failed: the jobs; those that were sent again, and are done or not over, are left out
            (:func:`~boinc_gahp.api.family.standing_of`).
        stderr: whether to ask for the stderr. It takes two RPCs for each of the five most frequent
            reasons, and few projects tell it (``web-rpcs.rst``, "query_completed_job").
    """
    counts: dict[tuple[str, str], Reason] = {}
    for found in ends_of(batch, failed).values():
        end = _with_stream(batch, found)
        alike = end.why, last_line(end.stderr or "")
        before = counts.get(alike)
        counts[alike] = (
            Reason(1, end) if before is None else replace(before, count=before.count + 1)
        )
    told = sorted(counts.values(), key=lambda reason: -reason.count)
    for number, reason in enumerate(told[:REASONS_ASKED] if stderr else ()):
        end = reason.end
        if end.is_aborted or end.stderr is not None:
            continue
        end = learn(batch.session.context, end) if not end.failure else _asked_program(batch, end)
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
    text = _stream(Path(root or "", folder_name(end.name)), note.stderr, tail=True)
    return replace(end, stderr=text)


def _stream(folder: Path, name: str | None, *, tail: bool = False) -> str:
    """Return what a program wrote to a stream; empty: nothing, or the file is not there.

    Args:
        folder: the job's folder.
        name: the stream's file; None: there is none.
        tail: whether its end is enough.
    """
    if name is None:
        return ""
    try:
        with (folder / name).open("rb") as file:
            if tail:
                file.seek(max(0, file.seek(0, 2) - _TAIL))
            return file.read().decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""
