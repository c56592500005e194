"""Why jobs of a batch failed, as ``wait``, ``show`` and ``fetch`` tell it at their end."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from boinc_gahp.cli.batch.opening import command
from boinc_gahp.errors import RpcError
from boinc_gahp.states import CANCELLED
from boinc_gahp.terminal import coloured
from boinc_gahp.text import count

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Sequence

    from boinc_gahp.api import Batch

#: The most reasons that are printed one by one.
_TOLD = 5


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
    if not batch.nerror_jobs:
        return
    try:
        found = batch.reasons(jobs=jobs)
    except RpcError:
        yield f"Why jobs failed: {command(options, 'logs', batch.id, '--failed')}"
        return
    if not found:
        return
    number = sum(reason.count for reason in found)
    head = coloured(f"{count(number, 'job')} failed:", "red", sys.stdout)
    if len(found) == 1:
        yield f"{head} {found[0]}"
    else:
        yield head
        for reason in found[:_TOLD]:
            yield f"  {reason}"
        rest = found[_TOLD:]
        if rest:
            others = sum(reason.count for reason in rest)
            yield f"  … and {count(others, 'job')} for {count(len(rest), 'more reason')}"
    # Of an aborted job there is no more to tell.
    told = next((each.job for each in found if CANCELLED.isdisjoint(each.errors)), None)
    if told is not None:
        yield f"More: {command(options, 'logs', batch.id, told)}"


def reasons_json(batch: Batch, jobs: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """Return why jobs failed, the most frequent reason first; empty if the project does not say."""
    if not batch.nerror_jobs:
        return []
    try:
        found = batch.reasons(jobs=jobs)
    except RpcError:
        return []
    return [
        {
            "reason": reason.text,
            "jobs": reason.count,
            "job": reason.job,
            "exit_status": reason.exit_status,
            "errors": list(reason.errors),
            "stderr": reason.stderr or None,
        }
        for reason in found
    ]
