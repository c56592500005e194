"""Records what was submitted from this machine, so that a name is not reused for other jobs.

A project does not tell a job's arguments and files. So they are recorded before the jobs are sent,
in a file for each batch, in the directory ``submitted`` of the state directory. If that is not
possible, only the comparison is lost.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import logging
import os
import re
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from boinc_gahp.config import state_dir, url_identity
from boinc_gahp.errors import ConfigError
from boinc_gahp.files import make_private_directory, open_private_file, whole_file
from boinc_gahp.submit import InlineFile, LocalFile, Parameters, RemoteFile
from boinc_gahp.text import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from boinc_gahp.api.session import Session
    from boinc_gahp.submit import Input, Job, SubmitRequest

log = logging.getLogger("boinc_gahp.api")

#: Seconds after its last use when a record is removed: by then its batch is over.
_KEEP = 365 * 86400.0
_MD5 = re.compile(r"[0-9a-f]{32}")
#: Placeholder for the MD5 of a remote file that was not measured.
_UNKNOWN = "0" * 32
#: Properties of the whole batch; the lease does not affect what is computed.
_COMMON = (
    "app_name",
    *Parameters().by_element,
    "app_version_num",
    "priority",
    "input_template_filename",
    "output_template_filename",
)


@dataclass(frozen=True)
class Record:
    """What was sent for a batch.

    Attributes:
        batch_id: the batch's id on the project.
        at: when it was sent, in seconds since the epoch.
        refused: whether the project answered with an error.
        common: what applies to all jobs.
        jobs: each job as a line of JSON, by name.
    """

    batch_id: int
    at: float
    refused: bool
    common: Mapping[str, Any]
    jobs: Mapping[str, str]


def describe(request: SubmitRequest, md5s: Mapping[str, str]) -> Record:
    """Return the record of a request that was not sent yet.

    Args:
        request: what is to be sent.
        md5s: MD5s of local files, in hex, by path; a file without one matches any content.
    """
    inputs = {id(job.inputs): job for _, job in request.jobs}
    contents = {
        key: {name: _content(item, md5s) for name, item in job.files.items()}
        for key, job in inputs.items()
    }
    requested = request.parameters.by_element
    common = {n: requested[n] if n in requested else getattr(request, n) for n in _COMMON}
    return Record(
        0,
        time.time(),
        refused=False,
        common={name: value for name, value in common.items() if value is not None},
        jobs={name: _line(job, contents[id(job.inputs)]) for name, job in request.jobs},
    )


def _line(job: Job, inputs: Mapping[str, str | None]) -> str:
    content = {
        "args": job.args,
        "inputs": inputs,
        "priority": job.priority,
        "rsc_fpops_est": job.fpops,
        "input_template": _digest(job.input_template),
        "output_template": _digest(job.output_template),
    }
    return json.dumps({key: value for key, value in content.items() if value is not None})


def _content(item: Input, md5s: Mapping[str, str]) -> str | None:
    """Return what identifies a file's content, however it is sent; None: that is unknown."""
    if isinstance(item, LocalFile):
        return md5s.get(item.path)
    if isinstance(item, RemoteFile):
        return None if item.md5 in (None, _UNKNOWN) else item.md5.lower()
    if isinstance(item, InlineFile):
        return _digest(item.text)
    found = _MD5.match(item.physical_name)
    return found[0] if found else item.physical_name


def _digest(text: str | None) -> str | None:
    if text is None:
        return None
    return hashlib.md5(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()


def difference(old: Record, new: Record) -> str:
    """Return how a request differs from what was sent; empty: not at all, as far as is known."""
    for name in _COMMON:
        before, now = old.common.get(name), new.common.get(name)
        if before != now:
            return f"{name} was {_shown(before)}, now it is {_shown(now)}"
    texts = (
        _job_difference(name, old.jobs.get(name), line)
        for name, line in new.jobs.items()
        if old.jobs.get(name) != line
    )
    differing = [text for text in texts if text]
    missing = [name for name in old.jobs if name not in new.jobs]
    if missing:
        differing.append(f"job {quoted(missing[0])} is missing now")
    if not differing:
        return ""
    count = len(differing) + max(0, len(missing) - 1)
    more = f" (and {count - 1} more jobs differ)" if count > 2 else ""
    return differing[0] + (" (and 1 more job differs)" if count == 2 else more)


def _job_difference(name: str, before: str | None, now: str) -> str:
    if before is None:
        return f"job {quoted(name)} is new"
    return next(_differences(f"job {quoted(name)}", json.loads(before), json.loads(now)), "")


def _differences(where: str, old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    if old["args"] != new["args"]:
        was, is_ = (quoted(" ".join(each["args"])) for each in (old, new))
        yield f"the arguments of {where} were {was}, now they are {is_}"
    if old["inputs"].keys() != new["inputs"].keys():
        was, is_ = (quoted(" ".join(sorted(each["inputs"]))) for each in (old, new))
        yield f"the inputs of {where} were {was}, now they are {is_}"
    for logical, content in new["inputs"].items():
        before = old["inputs"].get(logical)
        if None not in (content, before) and content != before:
            yield f"the input {quoted(logical)} of {where} has other contents than it had"
    for key in ("priority", "rsc_fpops_est"):
        if old.get(key) != new.get(key):
            yield f"{key} of {where} was {_shown(old.get(key))}, now it is {_shown(new.get(key))}"
    for key in ("input_template", "output_template"):
        if old.get(key) != new.get(key):
            yield f"the {key} of {where} has changed"


def _shown(value: object) -> str:
    return "not given" if value is None else str(value)


class Records:
    """The records of one project and one account; raises nothing but OSError.

    Args:
        session: the project, the account, and the settings, which name the directory.
    """

    def __init__(self, session: Session) -> None:
        self._place = f"{url_identity(session.rpc.url)} {session.rpc.account}"
        self._directory: Path | None = None
        with suppress(ConfigError):
            self._directory = state_dir(session.settings) / "submitted"

    def find(self, batch_name: str) -> Record | None:
        """Return what was sent under this name; None: this machine does not know."""
        path = self._path(batch_name)
        if path is None:
            return None
        try:
            with (
                os.fdopen(open_private_file(path, os.O_RDONLY), "rb") as file,
                gzip.open(file, "rt", encoding="utf-8") as lines,
            ):
                return _read(lines)
        except FileNotFoundError:
            return None
        except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
            log.warning("The record of what was submitted cannot be read: %s: %s", path, error)
            return None

    def common(self, batch_name: str, batch_id: int) -> Mapping[str, Any]:
        """Return what applies to all jobs of a batch; empty if this machine does not know."""
        record = self.find(batch_name)
        return {} if record is None or record.batch_id != batch_id else record.common

    def write(self, batch_name: str, record: Record, *, new: bool) -> bool:
        """Write a record before sending; return False if ``new`` is set and there is one already.

        The file gets its name only when it is complete.

        Raises:
            OSError: it cannot be written.
        """
        path = self._path(batch_name)
        if path is None:
            raise FileNotFoundError("there is no state directory")
        self._make(path.parent)
        try:
            with (
                whole_file(path, 0o600, replace=not new, durable=True) as file,
                gzip.open(file, "wt", 6, encoding="utf-8") as lines,
            ):
                lines.writelines(_lines(record))
        except FileExistsError:
            return False
        return True

    def forget(self, batch_name: str, batch_id: int) -> None:
        """Remove the record of a retired batch, if the record is of that batch."""
        path = self._path(batch_name)
        record = self.find(batch_name)
        if path is not None and record is not None and record.batch_id == batch_id:
            with suppress(OSError):
                path.unlink()

    def _path(self, batch_name: str) -> Path | None:
        if self._directory is None:
            return None
        text = f"{self._place} {batch_name}".encode("utf-8", "surrogatepass")
        return self._directory / f"{hashlib.sha256(text).hexdigest()[:40]}.json.gz"

    def _make(self, directory: Path) -> None:
        make_private_directory(directory)
        limit = time.time() - _KEEP
        for path in directory.iterdir():
            with suppress(OSError):
                if path.lstat().st_mtime < limit:
                    path.unlink()


def _lines(record: Record) -> Iterable[str]:
    head = {
        "batch_id": record.batch_id,
        "at": record.at,
        "refused": record.refused,
        "common": record.common,
    }
    yield json.dumps(head) + "\n"
    for name, line in record.jobs.items():
        yield f"{json.dumps(name)}\t{line}\n"


def _read(lines: Iterable[str]) -> Record:
    coming = iter(lines)
    head = json.loads(next(coming, ""))
    jobs = {}
    for text in coming:
        name, _, line = text.rstrip("\n").partition("\t")
        jobs[json.loads(name)] = line
    return Record(
        int(head["batch_id"]),
        float(head["at"]),
        refused=bool(head["refused"]),
        common=dict(head["common"]),
        jobs=jobs,
    )


def readable_md5s(session: Session, paths: Iterable[str], **how: Any) -> dict[str, str]:
    """Return the MD5s, in hex, of the local files that can be read.

    Raises:
        StagingError: a file changed while it was read.
        Exception: whatever ``progress`` raises.
    """
    from boinc_gahp.errors import StagingError  # noqa: PLC0415
    from boinc_gahp.submit import stat_input  # noqa: PLC0415  (not for lists of batches)

    there = []
    for path in dict.fromkeys(paths):
        with suppress(StagingError):
            stat_input(path)
            there.append(path)
    names = session.bridge.physical_names(there, **how)
    return {path: name[:32] for path, name in names.items()}
