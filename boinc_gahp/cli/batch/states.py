"""The states of batches and jobs, in words and colours for people."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from boinc_gahp.states import BatchState, JobState
from boinc_gahp.terminal import words

if TYPE_CHECKING:
    from boinc_gahp.api.batch import Batch

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
        f"The jobs run only with version {version} of {words.printable(app_name)}. A project does "
        "not tell which versions it has: if it has no such version for the volunteers' computers, "
        "the jobs wait for ever."
    )


def unsent_words(batch: Batch) -> str | None:
    """Return why no job of a batch may have been sent, as far as this machine knows.

    Only the machine that submitted them knows the version they are for.
    """
    from boinc_gahp.api.manifest_files import Manifests
    from boinc_gahp.submit.buda_names import BUDA

    if batch.state is not BatchState.IN_PROGRESS or batch.fraction_done or batch.gone:
        return None
    if batch.app_name == BUDA:
        return (
            f"No job of batch {batch.id} is done yet. Projects send no jobs of BUDA apps that they "
            "do not have, and say nothing: if these wait for long, ask the project's admin for the "
            "app's name."
        )
    version = Manifests(batch.project.session).common(batch.name, batch.id).get("app_version_num")
    if version is None:
        return None
    return f"No job of batch {batch.id} is done yet. {version_words(batch.app_name, version)}"


def lease_words(batch: Batch) -> tuple[str, str]:
    """Return how long the project keeps a batch, and the colour for it; empty: no end is set.

    After that the project may abort and retire it.
    """
    end, now = batch.expire_time, time.time()
    if not end or batch.state is BatchState.RETIRED:
        return "", "faint"
    if end <= now:
        return f"over {words.span(now - end)}", "red"
    # Of a lease of 14 days, a minute later, almost 14 are left.
    return words.span(end - now + 60), "yellow" if end < now + 86400 else "faint"


def lease_warning(batch: Batch) -> str:
    """Return a remark on a lease that ends soon, or has ended a batch; empty: nothing to say."""
    end, now = batch.expire_time, time.time()
    if not end or batch.gone:
        return ""
    if batch.lease_is_over:
        return (
            f"The lease of batch {batch.id} ended at {words.at(end)}. A project ends a batch "
            f"then: that may be why it is {batch.state.words}. Waiting for a batch, or "
            "fetching from it, renews its lease."
        )
    if batch.state in (BatchState.ABORTED, BatchState.RETIRED) or end > now + _SOON:
        return ""
    left = f"ends in {words.span(end - now)}" if end > now else "is over"
    return (
        f"The lease of batch {batch.id} {left}: then the project may abort and retire it, and "
        "delete its outputs. To keep it longer, wait for it, fetch from it, or run"
    )


def renewal_warning(batch: Batch) -> str:
    """Return a remark on a lease of which a quarter is left, and that cannot be renewed.

    Empty if there is nothing to say: whoever waits for a batch renews its lease long before.
    """
    end, now = batch.expire_time, time.time()
    settings = batch.project.session.settings.jobs
    trouble = batch.lease_trouble
    if not end or batch.is_over or trouble is None:
        return ""
    if end > now + settings.batch_lease / 4:
        return ""
    left = f"ends in {words.span(end - now)}" if end > now else "is over"
    return (
        f"The lease of batch {batch.id} ({words.printable(batch.name)}) {left}, and cannot be "
        f"renewed: {words.printable(str(trouble))}"
    )


def job_words(state: JobState) -> tuple[str, str]:
    """Return a job's state in words, and the colour for it."""
    return state.value, _COLOURS.get(state, "red")


#: The message for a batch that was not submitted from this machine, or long ago.
NOT_COMPARED = (
    "Their arguments and files were not compared: only the machine that submitted them knows those."
)
