"""Why jobs failed, and what became of them: the end of ``wait``, ``show`` and ``fetch``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from boinc_gahp.cli.batch.jsons import brief_json
from boinc_gahp.cli.batch.opening import command
from boinc_gahp.errors import GahpError
from boinc_gahp.states import BatchState, JobState
from boinc_gahp.terminal.output import coloured
from boinc_gahp.text import count, printable

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Sequence

    from boinc_gahp.api.batch import Batch
    from boinc_gahp.api.family import RetryStatus
    from boinc_gahp.api.outputs.logs import Reason

#: The most reasons that are printed one by one.
_TOLD = 5


class Failed(NamedTuple):
    """Failed jobs of a batch.

    Attributes:
        reasons: why they failed, without those whose retries are done or not over.
        standing: how they stand, with their retries.
    """

    reasons: list[Reason]
    standing: RetryStatus


def failed_in(batch: Batch, jobs: Sequence[str] | None = None) -> Failed | None:
    """Return what there is to say about failed jobs; None: nothing, or the project does not say.

    Args:
        batch: the batch, as the project last described it.
        jobs: names or ids of the jobs that matter; None: all.
    """
    from boinc_gahp.api.family import standing_of
    from boinc_gahp.api.outputs.logs import reasons_of

    if not _may_have_failed(batch):
        return None
    try:
        standing = standing_of(batch, jobs)
        return Failed(reasons_of(batch, standing.failed), standing)
    except GahpError:
        return None


def _may_have_failed(batch: Batch) -> bool:
    """Tell whether jobs may have failed, for the project or for people; asks nothing."""
    from boinc_gahp.api.family import may_have_failed_programs

    return bool(batch.nerror_jobs) or may_have_failed_programs(batch)


def reason_lines(
    options: Namespace, batch: Batch, jobs: Sequence[str] | None = None
) -> Iterator[str]:
    """Yield the lines that say why jobs failed, and what to do; none if no job has failed.

    If the project cannot be asked, they name the command that asks again.

    Args:
        options: those of the command, for ``--project`` and ``--config``.
        batch: the batch, as the project last described it.
        jobs: names or ids of the jobs that matter; None: all.
    """
    if not _may_have_failed(batch):
        return
    found = failed_in(batch, jobs)
    if found is None:
        yield f"Why jobs failed: {command(options, 'logs', batch.id, '--failed')}"
        return
    if found.reasons:
        # Of these the project says that they are done.
        programs = sum(job.state is JobState.DONE for job in found.standing.failed)
        yield from _lines(found.reasons, programs)
        ends = [each.end for each in found.reasons]
        # Of an aborted job there is no more to tell.
        told = next((end.name for end in ends if not end.is_aborted), None)
        if told is not None:
            yield f"More: {command(options, 'logs', batch.id, told)}"
        for advice in dict.fromkeys(end.advice for end in ends if end.advice):
            yield f"They would fail again: {printable(advice)}."
        if _can_retry(batch) and not all(end.advice for end in ends):
            yield f"Send them again: {command(options, 'retry', batch.id)}"
    yield from retry_lines(options, found.standing)


def _lines(reasons: Sequence[Reason], programs: int) -> Iterator[str]:
    """Yield the reasons; ``programs``: of how many jobs the program ended badly."""
    number = sum(reason.count for reason in reasons)
    text = f"{count(number, 'job')} failed"
    if programs:
        text = f"{count(programs, 'program')} ended badly"
        if number > programs:
            text += f", and {count(number - programs, 'job')} failed"
    head = coloured(f"{text}:", "red", sys.stdout)
    if len(reasons) == 1:
        yield f"{head} {reasons[0]}"
        return
    yield head
    for reason in reasons[:_TOLD]:
        yield f"  {reason}"
    rest = reasons[_TOLD:]
    if rest:
        others = sum(reason.count for reason in rest)
        yield f"  … and {count(others, 'job')} for {count(len(rest), 'more reason')}"


def _can_retry(batch: Batch) -> bool:
    """Tell whether failed jobs can be sent again from here, and nobody aborted them on purpose."""
    on_purpose = batch.state is BatchState.ABORTED and not batch.lease_is_over
    return not on_purpose and batch.manifest is not None


def retry_lines(options: Namespace, standing: RetryStatus) -> Iterator[str]:
    """Yield the line that says which jobs were sent again before; none if there are none."""
    if not standing.retries:
        return
    parts = [
        f"{len(found):,} {words}"
        for found, words in ((standing.saved, "done"), (standing.under_way, "not over"))
        if found
    ]
    names = ", ".join(f"{each.id} {printable(each.name)}" for each in standing.retries)
    number = len(standing.saved) + len(standing.under_way)
    wait = ""
    if standing.under_way:
        ids = dict.fromkeys(attempt.batch.id for attempt in standing.under_way.values())
        wait = f" To wait for them: {command(options, 'wait', *ids)}"
    yield f"{count(number, 'failed job')} sent again as {names}: {', '.join(parts)}.{wait}"


def outputs_line(options: Namespace, batch: Batch) -> str:
    """Return how to fetch a batch's outputs: those of a retry belong to the batch it repeats."""
    from boinc_gahp.api.family import parent_of

    parent = parent_of(batch)
    if parent is None:
        return f"Its outputs: {command(options, 'fetch', batch.id)}"
    return f"Its outputs, with those of batch {parent}: {command(options, 'fetch', parent)}"


def reasons_json(found: Failed | None) -> dict[str, Any]:
    """Return the keys about failed jobs; the most frequent reason comes first."""
    reasons = [] if found is None else found.reasons
    retries = [] if found is None else found.standing.family.retries
    return {
        "reasons": [
            {
                "reason": reason.end.why,
                "jobs": reason.count,
                "job": reason.end.name,
                "exit_status": reason.end.exit_status,
                "errors": list(reason.end.job.errors),
                "stderr": reason.stderr or None,
                "advice": reason.end.advice or None,
            }
            for reason in reasons
        ],
        "retries": [brief_json(each.info) for each in retries],
    }
