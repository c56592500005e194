"""What was submitted for a batch's jobs, as ``batch show`` shows it."""

from __future__ import annotations

import math
import shlex
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from boinc_gahp.states import BatchState

if TYPE_CHECKING:
    from boinc_gahp.api.batch import Batch
    from boinc_gahp.api.job import BatchJob
    from boinc_gahp.api.manifest import SubmittedJob


def not_known(batch: Batch) -> str:
    """Return what to say about the jobs of a batch that has no manifest here."""
    if batch.state is BatchState.RETIRED:
        return "the batch is retired, so what was submitted is forgotten"
    return "what was submitted is known only on the machine that did it"


@lru_cache(64)
def _submitted(job: BatchJob) -> SubmittedJob | None:
    """Return what was submitted for a job; None: it is not known here."""
    manifest = job.batch.manifest
    return manifest.job(job.name) if manifest is not None and job.name in manifest.jobs else None


def parameters(job: BatchJob) -> str:
    """Return a job's parameters on one line: ``seed=1 n=100``; empty: it has none."""
    sent = _submitted(job)
    if sent is None:
        return ""
    return " ".join(f"{name}={_text(value)}" for name, value in sent.parameters.items())


def arguments(job: BatchJob) -> str:
    """Return a job's arguments as in a shell."""
    sent = _submitted(job)
    return "" if sent is None else shlex.join(sent.words)


def inputs(job: BatchJob) -> str:
    """Return a job's inputs, as ``--input`` has them."""
    sent = _submitted(job)
    if sent is None:
        return ""
    return " ".join(f"{name}={item.source}" for name, item in sent.files.items())


def submitted_json(job: BatchJob) -> dict[str, Any]:
    """Return what was submitted for a job; nulls: it is not known here."""
    sent = _submitted(job)
    if sent is None:
        return {"args": None, "parameters": None, "inputs": None}
    return {
        "args": list(sent.words),
        "parameters": {name: _finite(value) for name, value in sent.parameters.items()},
        "inputs": [
            {"name": name, "md5": item.md5, "source": item.source}
            for name, item in sent.files.items()
        ],
    }


def _text(value: object) -> str:
    text = "" if value is None else str(value)
    return text if text == shlex.quote(text) else repr(text)


def _finite(value: Any) -> Any:
    """Return a value that JSON has."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
