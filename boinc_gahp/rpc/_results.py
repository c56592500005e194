"""Turns the elements of a reply into values."""

from __future__ import annotations

import math
import re
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any, cast

from boinc_gahp.rpc._replies import IncompleteReply, stderr_text
from boinc_gahp.rpc.types import (
    AppInfo,
    AppVersionInfo,
    BatchInfo,
    CompletedJob,
    JobInfo,
    JobStatus,
    JobStatuses,
    ResultInfo,
)
from boinc_gahp.states import BatchState

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lxml import etree


def text(element: etree._Element, tag: str) -> str:
    """Return the text of the child ``tag``; raise :class:`IncompleteReply` if there is none."""
    child = element.find(tag)
    if child is None:
        raise IncompleteReply(f"<{element.tag}> has no <{tag}>")
    return child.text or ""


#: The most characters of a project's names and words.
LONGEST_WORD = 255
#: The whole numbers that SQLite and a project's database can hold.
_WHOLE = range(-(2**63), 2**63)
#: Larger than any amount of seconds, credits or jobs; also limits a number's digits.
_LARGEST = 1e12
_LONGEST_NUMBER = 40
#: The most versions of an app that are read; there is one for each platform and plan class.
_MOST_VERSIONS = 1000
#: The end of the year 9999, in seconds since the epoch.
_LAST_TIME = 253_402_300_800


def word(found: str, tag: str) -> str:
    """Return ``found`` if it can be a name or a word."""
    if len(found) > LONGEST_WORD:
        raise IncompleteReply(f"<{tag}> has {len(found):,} characters: at most 255 are expected")
    return found


def decimal(element: etree._Element, tag: str) -> float:
    """Return the number in the child ``tag``."""
    return number(text(element, tag), tag)


def number(found: str, tag: str) -> float:
    """Return ``found`` as a number of plausible size."""
    value = _float(found)
    if not -_LARGEST <= value <= _LARGEST:
        raise IncompleteReply(f"<{tag}> is {found[:40]!r}: expected a number of at most 1e12")
    return value


def time(found: str, tag: str) -> float:
    """Return ``found`` as a point in time, in seconds since the epoch; 0 means none."""
    value = _float(found)
    if not 0 <= value < _LAST_TIME:
        raise IncompleteReply(f"<{tag}> is {found[:40]!r}: expected a time in seconds since 1970")
    return value


def _float(found: str) -> float:
    """Return ``found`` as a number, NaN if it is not one."""
    if len(found) > _LONGEST_NUMBER or not found.isascii() or "_" in found:
        return math.nan
    try:
        return float(found)
    except ValueError:
        return math.nan


def integer(element: etree._Element, tag: str, default: int | None = None) -> int:
    """Return the whole number in the child ``tag``; PHP may have written it as a double."""
    if default is not None and element.find(tag) is None:
        return default
    return whole(text(element, tag), tag)


def whole(found: str, tag: str) -> int:
    """Return ``found`` as a whole number of at most 63 bits and a sign."""
    plain = found.strip()
    if plain.removeprefix("-").isdecimal() and plain.isascii() and len(plain) < _LONGEST_NUMBER:
        value = int(plain)
    else:
        real = _float(found)
        value = int(real) if math.isfinite(real) else _WHOLE.stop
    if value not in _WHOLE:
        raise IncompleteReply(
            f"<{tag}> is {found[:40]!r}: expected a whole number of at most 64 bits"
        )
    return value


_STATES = {int(state): state for state in BatchState}


def _state(found: str, tag: str) -> BatchState:
    return _STATES.get(whole(found, tag), BatchState.UNKNOWN)


#: How a batch's fields are read, and the text for one that the reply lacks; None: it must have it.
_BATCH: dict[str, tuple[Callable[[str, str], Any], str | None]] = {
    "id": (whole, None),
    **dict.fromkeys(("name", "app_name"), (word, None)),
    "state": (_state, None),
    **dict.fromkeys(("create_time", "expire_time", "completion_time"), (time, "0")),
    "njobs": (whole, None),
    "nerror_jobs": (whole, "0"),
    **dict.fromkeys(("fraction_done", "credit_estimate", "credit_canonical"), (number, "0")),
}


def batch(element: etree._Element) -> BatchInfo:
    """Return the batch whose fields are children of ``element``.

    Each child is read only once: some replies have thousands of batches.
    """
    texts: dict[str, str] = {}
    for child in element:
        texts.setdefault(child.tag, child.text or "")
    values = {}
    for tag, (read, otherwise) in _BATCH.items():
        found = texts.get(tag, otherwise)
        if found is None:
            raise IncompleteReply(f"<{element.tag}> has no <{tag}>")
        values[tag] = read(found, tag)
    cpu_time = texts.get("total_cpu_time")
    if cpu_time is not None:
        values["total_cpu_time"] = number(cpu_time, "total_cpu_time")
    return BatchInfo(**values)


def batch_job(element: etree._Element) -> JobInfo:
    """Return one ``<job>`` of query_batch."""
    return JobInfo(
        id=integer(element, "id"),
        name=word(text(element, "name"), "name"),
        canonical_instance_id=integer(element, "canonical_instance_id", 0),
        status=word((element.findtext("status") or "").strip(), "status"),
        errors=tuple(word((e.text or "").strip(), "error") for e in element.iterfind("error")),
        exit_statuses=tuple(map(index, element.iterfind("exit_status"))),
        cpu_time=None if element.find("cpu_time") is None else decimal(element, "cpu_time"),
    )


def job_status(element: etree._Element) -> JobStatus:
    """Return one ``<job>`` of query_batch2."""
    return JobStatus(
        word(text(element, "job_name"), "job_name"),
        word(text(element, "status").strip(), "status"),
    )


def instance(element: etree._Element) -> ResultInfo:
    """Return one ``<instance>`` of query_job."""
    return ResultInfo(
        id=integer(element, "id"),
        name=word(text(element, "name"), "name"),
        state=word(text(element, "state").strip(), "state"),
        outfile_sizes=tuple(integer(file, "size") for file in element.iterfind("outfile")),
    )


def completed_job(root: etree._Element) -> CompletedJob:
    """Return the result of query_completed_job."""
    element = root.find("completed_job")
    if element is None:
        raise IncompleteReply("no <completed_job>")
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
    """Return one element of a query_batch2 reply: a batch's size, or one of the jobs after it."""
    return index(element) if element.tag == "batch_size" else job_status(element)


def success(root: etree._Element) -> None:
    """Return None for a reply without values."""
    text(root, "success")


def index(element: etree._Element) -> int:
    """Return the element's text as a whole number."""
    return whole(element.text or "", str(element.tag))


def absent(root: etree._Element, listed: Sequence[int], count: int) -> tuple[int, ...]:
    """Return the result of query_files for so many names."""
    text(root, "absent_files")
    if len(listed) > count or not all(0 <= each < count for each in listed):
        raise IncompleteReply("<absent_files> has numbers of files that were not asked for")
    return tuple(listed)


def statuses(root: etree._Element, listed: Sequence[int | JobStatus], batches: int) -> JobStatuses:
    """Return the result of query_batch2 for so many batches."""
    server_time = word(text(root, "server_time").strip(), "server_time")
    with suppress(ValueError):  # its user checks whether it is a time
        float(server_time)
        time(server_time, "server_time")
    return JobStatuses(server_time, _grouped(listed, batches))


def _grouped(found: Sequence[int | JobStatus], batches: int) -> tuple[tuple[JobStatus, ...], ...]:
    """Return the jobs by batch; each batch's number of jobs comes before its jobs."""
    starts = [at for at, item in enumerate(found) if isinstance(item, int)]
    if found and starts[:1] != [0]:
        raise IncompleteReply("a <job> before the first <batch_size>")
    if len(starts) != batches:
        raise IncompleteReply(f"{batches} batches were asked for, {len(starts)} came")
    groups = [found[start + 1 : end] for start, end in pairwise([*starts, len(found)])]
    if [found[start] for start in starts] != [len(group) for group in groups]:
        raise IncompleteReply("a <batch_size> differs from the number of jobs after it")
    return tuple(cast("tuple[JobStatus, ...]", tuple(group)) for group in groups)


def app(element: etree._Element) -> AppInfo:
    """Return the app of ``<application>`` in the list of apps."""
    return AppInfo(
        id=integer(element, "id"),
        name=word(text(element, "name"), "name"),
        user_friendly_name=word(element.findtext("user_friendly_name") or "", "user_friendly_name"),
        beta=element.find("beta") is not None,
        versions=tuple(
            _app_version(each) for each in islice(element.iterchildren("version"), _MOST_VERSIONS)
        ),
    )


def _app_version(element: etree._Element) -> AppVersionInfo:
    return AppVersionInfo(
        platform_short=word(text(element, "platform_short"), "platform_short"),
        platform_long=word(element.findtext("platform_long") or "", "platform_long"),
        version_num=integer(element, "version_num"),
        plan_class=word(element.findtext("plan_class") or "", "plan_class"),
        date_unix=time(element.findtext("date_unix") or "0", "date_unix"),
        beta=element.find("beta") is not None,
    )


@dataclass(frozen=True, slots=True)
class RegularForm:
    """The form of nearly all ``<job>``s of a list.

    For 100,000 of them an XML parser and its objects take seconds, most of it for the same few tags
    around a name and a word. Records of exactly this form need no repair and no parser, and are
    read with the same result. Everything else is left to those.

    Attributes:
        pattern: matches one record and the white space after it, up to the next tag: a text there
            may be a message of PHP.
        make: makes the record's value from the texts of the pattern's groups.
    """

    pattern: re.Pattern[str]
    make: Callable[[Sequence[Any]], Any]


def _form(record: str, make: Callable[[Sequence[Any]], Any]) -> RegularForm:
    return RegularForm(re.compile(rf"<job>\s*{record}</job>\s*(?=<)", re.ASCII), make)


def _job(texts: Sequence[str | None]) -> JobInfo:
    number, name, instance, errors, exit_statuses, cpu_time, status = texts
    return JobInfo(
        int(number or 0),
        name or "",
        int(instance or 0),
        status or "",
        tuple(_TEXT.findall(errors)) if errors else (),
        tuple(map(int, _TEXT.findall(exit_statuses))) if exit_statuses else (),
        float(cpu_time) if cpu_time else None,
    )


_TEXT = re.compile(r">([\w-]+)<", re.ASCII)

#: ``<job>`` of query_batch2.
STATUS_FORM = _form(
    r"<job_name>([^<>&\r]{0,255})</job_name>\s*<status>([A-Z_]{1,255})</status>\s*",
    JobStatus._make,
)
#: ``<job>`` of query_batch, with or without details.
JOB_FORM = _form(
    r"<id>(\d{1,18})</id>\s*<name>([^<>&\r]{0,255})</name>\s*"
    r"<canonical_instance_id>(\d{1,18})</canonical_instance_id>\s*"
    r"((?:<error>[a-z_]{1,255}</error>\s*)*)((?:<exit_status>-?\d{1,18}</exit_status>\s*)*)"
    r"(?:<cpu_time>(\d{1,12}(?:\.\d{1,18})?)</cpu_time>\s*)?"
    r"(?:<status>([a-z_]{1,255})</status>\s*)?",
    _job,
)
