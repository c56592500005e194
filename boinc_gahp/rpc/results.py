"""From the elements of a reply to values."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from boinc_gahp.rpc.replies import Incomplete, stderr_text
from boinc_gahp.rpc.types import (
    Batch,
    BatchJob,
    BatchState,
    CompletedJob,
    Instance,
    JobStatus,
    JobStatuses,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lxml import etree


def text(element: etree._Element, tag: str) -> str:
    """Return the text of the child ``tag``; raise :class:`Incomplete` if there is none."""
    child = element.find(tag)
    if child is None:
        raise Incomplete(f"no <{tag}> in its <{element.tag}>")
    return child.text or ""


def decimal(element: etree._Element, tag: str, default: float | None = None) -> float:
    """Return the number in the child ``tag``, ``default`` (unless None) if there is none."""
    if default is not None and element.find(tag) is None:
        return default
    return number(text(element, tag), tag)


def number(found: str, tag: str) -> float:
    """Return ``found`` as a number."""
    try:
        value = float(found)
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise Incomplete(f"<{tag}> holds {found[:40]!r}, not a number")
    return value


def integer(element: etree._Element, tag: str, default: int | None = None) -> int:
    """Return the whole number in the child ``tag``; PHP may have written it as a double."""
    if default is not None and element.find(tag) is None:
        return default
    return whole(text(element, tag), tag)


def whole(found: str, tag: str) -> int:
    """Return ``found`` as a whole number."""
    try:
        return int(found)
    except ValueError:
        pass
    try:
        return int(float(found))
    except (ValueError, OverflowError):
        raise Incomplete(f"<{tag}> holds {found[:40]!r}, not a whole number") from None


_STATES = {int(state): state for state in BatchState}


def batch(element: etree._Element) -> Batch:
    """Return the batch whose fields are children of ``element``.

    Each child is touched once: there are replies with thousands of batches.
    """
    texts: dict[str, str] = {}
    for child in element:
        texts.setdefault(child.tag, child.text or "")

    def said(tag: str) -> str:
        if tag not in texts:
            raise Incomplete(f"no <{tag}> in its <{element.tag}>")
        return texts[tag]

    def decimal_of(tag: str) -> float:
        return number(texts[tag], tag) if tag in texts else 0.0

    return Batch(
        id=whole(said("id"), "id"),
        name=said("name"),
        app_name=said("app_name"),
        state=_STATES.get(whole(said("state"), "state"), BatchState.UNKNOWN),
        create_time=decimal_of("create_time"),
        expire_time=decimal_of("expire_time"),
        est_completion_time=decimal_of("est_completion_time"),
        completion_time=decimal_of("completion_time"),
        njobs=whole(said("njobs"), "njobs"),
        nerror_jobs=whole(texts.get("nerror_jobs", "0"), "nerror_jobs"),
        fraction_done=decimal_of("fraction_done"),
        credit_estimate=decimal_of("credit_estimate"),
        credit_canonical=decimal_of("credit_canonical"),
        total_cpu_time=decimal_of("total_cpu_time") if "total_cpu_time" in texts else None,
    )


def batch_job(element: etree._Element) -> BatchJob:
    """Return one ``<job>`` of query_batch; written for replies with 100,000 of them."""
    texts: dict[str, str] = {}
    errors: list[str] = []
    exit_statuses: list[int] = []
    for child in element:
        tag, found = child.tag, child.text or ""
        if tag == "error":
            errors.append(found.strip())
        elif tag == "exit_status":
            exit_statuses.append(whole(found, tag))
        else:
            texts.setdefault(tag, found)
    try:
        return BatchJob(
            id=whole(texts["id"], "id"),
            name=texts["name"],
            canonical_instance_id=whole(
                texts.get("canonical_instance_id", "0"), "canonical_instance_id"
            ),
            status=texts.get("status", "").strip(),
            errors=tuple(errors),
            exit_statuses=tuple(exit_statuses),
            cpu_time=decimal(element, "cpu_time") if "cpu_time" in texts else None,
        )
    except KeyError as lacking:
        raise Incomplete(f"no <{lacking.args[0]}> in its <job>") from None


def job_status(element: etree._Element) -> JobStatus:
    """Return one ``<job>`` of query_batch2; written for replies with 100,000 of them."""
    texts = {child.tag: child.text for child in element}
    try:
        return JobStatus(texts["job_name"] or "", (texts["status"] or "").strip())
    except KeyError:
        raise Incomplete("a <job> without <job_name> or <status>") from None


def instance(element: etree._Element) -> Instance:
    """Return one ``<instance>`` of query_job."""
    return Instance(
        id=integer(element, "id"),
        name=text(element, "name"),
        state=text(element, "state").strip(),
        outfile_sizes=tuple(integer(file, "size") for file in element.iterfind("outfile")),
    )


def completed_job(root: etree._Element) -> CompletedJob:
    """Return what query_completed_job answers."""
    element = root.find("completed_job")
    if element is None:
        raise Incomplete("no <completed_job>")
    return CompletedJob(
        error_mask=integer(element, "error_mask"),
        canonical_resultid=integer(element, "canonical_resultid", 0) or None,
        error_resultid=integer(element, "error_resultid", 0) or None,
        exit_status=integer(element, "exit_status"),
        elapsed_time=decimal(element, "elapsed_time"),
        cpu_time=decimal(element, "cpu_time"),
        stderr_out=stderr_text(text(element, "stderr_out")),
    )


def size_or_status(element: etree._Element) -> int | JobStatus:
    """Return what query_batch2 answers, one element at a time: a batch's size, then its jobs."""
    return index(element) if element.tag == "batch_size" else job_status(element)


def success(root: etree._Element) -> None:
    """Return nothing, from a reply that has nothing to say."""
    text(root, "success")


def index(element: etree._Element) -> int:
    """Return the whole number that is the element's text."""
    return whole(element.text or "", str(element.tag))


def statuses(root: etree._Element, listed: Sequence[int | JobStatus], batches: int) -> JobStatuses:
    """Return what query_batch2 answers about so many batches."""
    return JobStatuses(text(root, "server_time").strip(), _grouped(listed, batches))


def _grouped(found: Sequence[int | JobStatus], batches: int) -> tuple[tuple[JobStatus, ...], ...]:
    """Return the jobs by batch: each batch's number of jobs stands before them."""
    groups: list[list[JobStatus]] = []
    sizes: list[int] = []
    for item in found:
        if isinstance(item, int):
            sizes.append(item)
            groups.append([])
        elif not groups:
            raise Incomplete("a <job> before the first <batch_size>")
        else:
            groups[-1].append(item)
    if len(groups) != batches:
        raise Incomplete(f"{batches} batches were asked for, {len(groups)} came")
    if sizes != [len(group) for group in groups]:
        raise Incomplete("a <batch_size> that is not the number of the jobs after it")
    return tuple(tuple(group) for group in groups)
