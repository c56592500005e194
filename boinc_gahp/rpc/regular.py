"""Records of the one form that a project writes a hundred thousand times, read at a glance.

A list of 100,000 jobs takes an XML parser and its objects seconds, and nearly all of it is the same
few tags around a name and a word. What has exactly that form is taken out here, with the same
outcome; all else is left to the parser.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from boinc_gahp.rpc.types import BatchJob, JobStatus

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Regular:
    """A form of records: well-formed XML, as it leaves the repair.

    Attributes:
        pattern: matches one record, and the white space after it.
        make: makes its value of the match.
    """

    pattern: re.Pattern[bytes]
    make: Callable[[re.Match[bytes]], Any]


def _status(match: re.Match[bytes]) -> JobStatus:
    name, status = match.groups()
    return JobStatus(name.decode(), status.decode())


def _job(match: re.Match[bytes]) -> BatchJob:
    number, name, instance = match.groups()
    return BatchJob(int(number), name.decode(), int(instance))


#: ``<job>`` of query_batch2.
STATUS = Regular(
    re.compile(
        rb"<job>\s*<job_name>([^<>&\r]*)</job_name>\s*<status>([A-Z_]+)</status>\s*</job>\s*"
    ),
    _status,
)
#: ``<job>`` of query_batch without details.
JOB = Regular(
    re.compile(
        rb"<job>\s*<id>(\d{1,18})</id>\s*<name>([^<>&\r]*)</name>\s*"
        rb"<canonical_instance_id>(\d{1,18})</canonical_instance_id>\s*</job>\s*"
    ),
    _job,
)
