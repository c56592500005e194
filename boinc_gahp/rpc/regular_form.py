"""Fast reading of the records that a project repeats a hundred thousand times in the same form.

For a list of 100,000 jobs an XML parser and its objects take seconds, nearly all of it for the same
few tags around a name and a word. Records of exactly that form are read here, with the same result;
everything else is left to the parser.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from boinc_gahp.rpc.types import JobInfo, JobStatus

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class RegularForm:
    """A form of records, as well-formed XML from the repair.

    Attributes:
        pattern: matches one record and the white space after it.
        make: makes the record's value from the match.
    """

    pattern: re.Pattern[bytes]
    make: Callable[[re.Match[bytes]], Any]


def _status(match: re.Match[bytes]) -> JobStatus:
    name, status = match.groups()
    return JobStatus(name.decode(), status.decode())


def _job(match: re.Match[bytes]) -> JobInfo:
    number, name, instance = match.groups()
    return JobInfo(int(number), name.decode(), int(instance))


def _detailed_job(match: re.Match[bytes]) -> JobInfo:
    number, name, instance, errors, exit_statuses, cpu_time, status = match.groups()
    return JobInfo(
        int(number),
        name.decode(),
        int(instance),
        status.decode(),
        tuple(_TEXT.findall(errors.decode())) if errors else (),
        tuple(map(int, _TEXT.findall(exit_statuses.decode()))) if exit_statuses else (),
        float(cpu_time) if cpu_time else None,
    )


_TEXT = re.compile(r">([\w-]+)<")

#: ``<job>`` of query_batch2.
STATUS = RegularForm(
    re.compile(
        rb"<job>\s*<job_name>([^<>&\r]{0,255})</job_name>\s*<status>([A-Z_]{1,255})</status>\s*</job>\s*"
    ),
    _status,
)
#: ``<job>`` of query_batch without details.
JOB = RegularForm(
    re.compile(
        rb"<job>\s*<id>(\d{1,18})</id>\s*<name>([^<>&\r]{0,255})</name>\s*"
        rb"<canonical_instance_id>(\d{1,18})</canonical_instance_id>\s*</job>\s*"
    ),
    _job,
)
#: ``<job>`` of query_batch with details.
DETAILED_JOB = RegularForm(
    re.compile(
        rb"<job>\s*<id>(\d{1,18})</id>\s*<name>([^<>&\r]{0,255})</name>\s*"
        rb"<canonical_instance_id>(\d{1,18})</canonical_instance_id>\s*"
        rb"((?:<error>[a-z_]{1,255}</error>\s*)*)((?:<exit_status>-?\d{1,18}</exit_status>\s*)*)"
        rb"(?:<cpu_time>(\d{1,12}(?:\.\d{1,18})?)</cpu_time>\s*)?"
        rb"<status>([a-z_]{1,255})</status>\s*</job>\s*"
    ),
    _detailed_job,
)
