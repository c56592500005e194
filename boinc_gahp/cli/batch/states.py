"""What batches and jobs are told with: states in words and colours, leases, why jobs failed."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from boinc_gahp.cli.batch.jsons import brief_json
from boinc_gahp.cli.batch.opening import command
from boinc_gahp.errors import GahpError
from boinc_gahp.states import BatchState, JobState
from boinc_gahp.terminal import words
from boinc_gahp.terminal.output import coloured
from boinc_gahp.text import count, printable, span

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Sequence

    from boinc_gahp.api.batch import Batch
    from boinc_gahp.api.family import RetryStatus
    from boinc_gahp.api.outputs.logs import Reason


#: The colours of states; all others are red.
_COLOURS: dict[BatchState | JobState, str] = {
    BatchState.INIT: "faint",
    BatchState.IN_PROGRESS: "yellow",
    BatchState.COMPLETE: "green",
    BatchState.RETIRED: "faint",
    JobState.QUEUED: "faint",
    JobState.IN_PROGRESS: "yellow",
    JobState.DONE: "green",
}

#: Seconds before a lease's end at which messages about it begin.
_SOON = 2 * 86400.0


def called(batch: Batch) -> str:
    """Return what a batch is called in the middle of a sentence."""
    return f"batch {batch.id} ({printable(batch.name)})"


def batch_words(batch: Batch) -> tuple[str, str]:
    """Return a batch's state in words (``complete, 2 failed``), and the colour for it.

    A batch is complete when every job is over, even if all have failed: that is not good news.
    """
    if batch.state is BatchState.COMPLETE and batch.nerror_jobs:
        is_all = batch.nerror_jobs >= batch.njobs
        failed = "all" if is_all else f"{batch.nerror_jobs:,}"
        text = f"{batch.state.words}, {failed} {JobState.FAILED.value}"
        return text, "red" if is_all else "yellow"
    return batch.state.words, _COLOURS.get(batch.state, "red")


def end_words(batch: Batch) -> str:
    """Return when a batch was over, or what is left at its recent rate; empty if unknown."""
    if batch.is_over:
        return words.ago(batch.completion_time, time.time()) if batch.completion_time else ""
    end = batch.expected_end
    return "" if end is None else words.ahead(end, time.time())


def version_words(app_name: str, version: int) -> str:
    """Return a remark on jobs that are for one version of an app."""
    return (
        f"The jobs run only with version {version} of {printable(app_name)}. A project does "
        "not tell which versions it has: if it has no such version for the volunteers' computers, "
        "the jobs wait for ever."
    )


def unsent_lines(batch: Batch) -> Iterator[str]:
    """Yield why no job of a batch may have been sent, as far as this machine knows.

    Only the machine that submitted them knows the version they are for.
    """
    from boinc_gahp.submit.checks import BUDA

    if batch.state is not BatchState.IN_PROGRESS or batch.fraction_done or batch.gone:
        return
    if batch.app_name == BUDA:
        yield (
            f"No job of batch {batch.id} is done yet. Projects send no jobs of BUDA apps that they "
            "do not have, and say nothing: if these wait for long, ask the project's admin for the "
            "app's name."
        )
        return
    version = None if batch.manifest is None else batch.manifest.common.get("app_version_num")
    if version is not None:
        yield f"No job of batch {batch.id} is done yet. {version_words(batch.app_name, version)}"


def lease_words(batch: Batch) -> tuple[str, str]:
    """Return how long the project keeps a batch, and the colour for it; empty: no end is set.

    After that the project may abort and retire it.
    """
    end, now = batch.expire_time, time.time()
    if not end or batch.state is BatchState.RETIRED:
        return "", "faint"
    if end <= now:
        return f"over {span(now - end)}", "red"
    # Of a lease of 14 days, a minute later, almost 14 are left.
    return span(end - now + 60), "yellow" if end < now + 86400 else "faint"


def lease_warning(batch: Batch) -> str:
    """Return a remark on a lease that ends soon, or has ended a batch; empty: nothing to say."""
    end, now = batch.expire_time, time.time()
    if not end or batch.gone:
        return ""
    if batch.lease_is_over:
        return (
            f"The project kept batch {batch.id} until {words.at(end)}: that may be why it is "
            f"{batch.state.words}. wait and fetch extend this time."
        )
    if batch.state in (BatchState.ABORTED, BatchState.RETIRED) or end > now + _SOON:
        return ""
    left = f"for {span(end - now)} more" if end > now else "no longer"
    return (
        f"The project keeps batch {batch.id} {left}, and may then abort it and delete its outputs. "
        "To keep it longer, wait for it, fetch from it, or run"
    )


def renewal_warning(batch: Batch) -> str:
    """Return a remark on a lease of which a quarter is left, and that cannot be extended.

    Empty if there is nothing to say: whoever waits for a batch renews its lease long before.
    """
    end, now = batch.expire_time, time.time()
    settings = batch.project.session.settings.jobs
    trouble = batch.lease_trouble
    if not end or batch.is_over or trouble is None:
        return ""
    if end > now + settings.batch_lease / 4:
        return ""
    left = f"for {span(end - now)} more" if end > now else "no longer"
    return (
        f"The project keeps {called(batch)} {left}, and this cannot be extended: "
        f"{printable(str(trouble))}"
    )


def job_words(state: JobState) -> tuple[str, str]:
    """Return a job's state in words, and the colour for it."""
    return state.value, _COLOURS.get(state, "red")


#: The message for a batch that was not submitted from this machine, or long ago.
NOT_COMPARED = (
    "Their arguments and files were not compared: only the machine that submitted them knows those."
)


#: The most reasons that are printed one by one.
_TOLD = 5


def _failed_in(batch: Batch, jobs: Sequence[str] | None) -> tuple[list[Reason], RetryStatus] | None:
    """Return why jobs failed, without those whose retries are done or not over, and how they stand.

    None: no job has failed, for the project or for people. For the arguments see
    :func:`reason_lines`.

    Raises:
        GahpError: the project could not be asked.
    """
    from boinc_gahp.api.family import may_have_failed_programs, standing_of
    from boinc_gahp.api.outputs.logs import reasons

    if not (batch.nerror_jobs or may_have_failed_programs(batch)):
        return None
    standing = standing_of(batch, jobs)
    return reasons(batch, standing.failed), standing


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
    try:
        found = _failed_in(batch, jobs)
    except GahpError:
        yield f"Why jobs failed: {command(options, 'logs', batch.id, '--failed')}"
        return
    if found is None:
        return
    reasons, standing = found
    if reasons:
        # Of these the project says that they are done.
        programs = sum(job.state is JobState.DONE for job in standing.failed)
        yield from _lines(reasons, programs)
        ends = [each.end for each in reasons]
        # Of an aborted job there is no more to tell.
        told = next((end.name for end in ends if not end.is_aborted), None)
        if told is not None:
            yield f"More: {command(options, 'logs', batch.id, told)}"
        for advice in dict.fromkeys(end.advice for end in ends if end.advice):
            yield f"They would fail again: {printable(advice)}."
        if _can_retry(batch, programs) and not all(end.advice for end in ends):
            yield f"Send them again: {command(options, 'retry', batch.id)}"
    yield from retry_lines(options, standing)


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


def _can_retry(batch: Batch, programs: int) -> bool:
    """Tell whether failed jobs can be sent again from here, and nobody aborted them on purpose."""
    from boinc_gahp.api.family import parent_of

    on_purpose = batch.state is BatchState.ABORTED and not batch.lease_is_over
    # That a program ended badly in a retry is known of the parent's job once that is fetched.
    is_unknown = programs > 0 and parent_of(batch) is not None
    return not (on_purpose or is_unknown) and batch.manifest is not None


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


def reasons_json(batch: Batch | None, jobs: Sequence[str] | None = None) -> dict[str, Any]:
    """Return the keys about failed jobs; the most frequent reason comes first.

    Their lists are empty if the project cannot be asked. For the arguments see
    :func:`reason_lines`; without a batch the lists are empty, too.
    """
    found = None
    with suppress(GahpError):
        found = None if batch is None else _failed_in(batch, jobs)
    reasons = [] if found is None else found[0]
    retries = [] if found is None else found[1].family.retries
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
