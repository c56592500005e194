"""Fast reading of the records that a project repeats a hundred thousand times in the same form.

For a list of 100,000 jobs an XML parser and its objects take seconds, nearly all of it for the same
few tags around a name and a word. Records of exactly that form need no repair and no parser: they
are read here, with the same result. Everything else is left to those.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from boinc_gahp.rpc.types import JobInfo, JobStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@dataclass(frozen=True, slots=True)
class RegularForm:
    """A form of records.

    Attributes:
        begin: the tag that a record begins with.
        pattern: matches one record and the white space after it, up to the next tag: a text there
            may be a message of PHP.
        make: makes the record's value from the texts of the pattern's groups.
    """

    begin: str
    pattern: re.Pattern[str]
    make: Callable[[Sequence[Any]], Any]


def _form(record: str, make: Callable[[Sequence[Any]], Any]) -> RegularForm:
    return RegularForm("<job>", re.compile(rf"<job>\s*{record}</job>\s*(?=<)", re.ASCII), make)


def _job(texts: Sequence[str]) -> JobInfo:
    number, name, instance = texts
    return JobInfo(int(number), name, int(instance))


def _detailed_job(texts: Sequence[str | None]) -> JobInfo:
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
STATUS = _form(
    r"<job_name>([^<>&\r]{0,255})</job_name>\s*<status>([A-Z_]{1,255})</status>\s*",
    JobStatus._make,
)
#: ``<job>`` of query_batch without details.
JOB = _form(
    r"<id>(\d{1,18})</id>\s*<name>([^<>&\r]{0,255})</name>\s*"
    r"<canonical_instance_id>(\d{1,18})</canonical_instance_id>\s*",
    _job,
)
#: ``<job>`` of query_batch with details.
DETAILED_JOB = _form(
    r"<id>(\d{1,18})</id>\s*<name>([^<>&\r]{0,255})</name>\s*"
    r"<canonical_instance_id>(\d{1,18})</canonical_instance_id>\s*"
    r"((?:<error>[a-z_]{1,255}</error>\s*)*)((?:<exit_status>-?\d{1,18}</exit_status>\s*)*)"
    r"(?:<cpu_time>(\d{1,12}(?:\.\d{1,18})?)</cpu_time>\s*)?"
    r"<status>([a-z_]{1,255})</status>\s*",
    _detailed_job,
)
