"""Creating work: the rows of ``workunit`` that create_work makes for a batch's jobs."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import time
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from ..templates import InputTemplate, JobFile, TemplateError, fill_input
from .job_line import through_sql
from .names import name_key
from .replies import RpcFailed
from .store import directory_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from .core import Core
    from .job_line import JobLine

#: ``workunit.name`` is varchar(191).
_MAX_NAME = 191

#: create_work's defaults for what neither the template nor the request says.
_DEFAULTS = {
    "rsc_fpops_est": 3600e9,
    "rsc_fpops_bound": 86400e9,
    "rsc_memory_bound": 5e8,
    "rsc_disk_bound": 1e9,
    "delay_bound": 7 * 86400.0,
}
#: The defaults of back-end.md, "Transitioner".
_COUNTS = {"max_error_results": 3, "max_total_results": 10, "max_success_results": 6}

_COLUMNS = (
    "create_time",
    "appid",
    "name",
    "name_key",
    "xml_doc",
    "batch",
    "rsc_fpops_est",
    "rsc_fpops_bound",
    "rsc_memory_bound",
    "rsc_disk_bound",
    "rsc_bandwidth_bound",
    "transition_time",
    "delay_bound",
    "min_quorum",
    "target_nresults",
    "max_error_results",
    "max_total_results",
    "max_success_results",
    "result_template_file",
    "priority",
    "size_class",
    "app_version_num",
    "mod_time",
)
_INSERT = (
    f"INSERT INTO workunit ({', '.join(_COLUMNS)}) "  # noqa: S608
    f"VALUES ({', '.join('?' * len(_COLUMNS))})"
)

Row = tuple[object, ...]


@dataclass(slots=True)
class WorkMaker:
    """Makes rows for jobs of one batch; what is the same for all jobs is worked out once.

    Attributes:
        template: the input template of jobs that have none of their own.
        output_template: the output template's path below the project's directory.
        params: ``job_params`` of the request; 0 leaves the template's value.
    """

    core: Core
    app_id: int
    app_name: str
    template: InputTemplate
    output_template: str
    params: dict[str, float] = field(default_factory=dict)
    priority: int = 0
    app_version_num: int = 0
    now: float = field(default_factory=time.time)
    _files: dict[str, JobFile] = field(default_factory=dict)
    _made: int = 0

    def row(self, job: JobLine, batch_id: int) -> Row:
        """Return the workunit's row.

        Raises:
            RpcFailed: create_work would refuse the job.
        """
        template = self._template(job)
        name = job.name or f"{self.app_name}_{os.getpid()}_{self.now:.6f}_{self._made}"
        command_line = job.command_line
        if self.core.quirks.raw_sql:
            name = through_sql(name)
            command_line = through_sql(command_line) if command_line else command_line
        if len(name) > _MAX_NAME:
            raise RpcFailed(
                "create_work failed: Database error: Data too long for column 'name' at row 1\n"
                "wu.insert_batch() failed: 1\n"
            )
        self._made += 1
        document = self._document(template, job, command_line)
        param = self._param
        quorum = template.min_quorum or 1
        counts = [
            default if (value := getattr(template, column)) is None else value
            for column, default in _COUNTS.items()
        ]
        return (
            int(self.now),
            self.app_id,
            name,
            name_key(name),
            document,
            batch_id,
            job.rsc_fpops_est or param(template, "rsc_fpops_est"),
            param(template, "rsc_fpops_bound"),
            param(template, "rsc_memory_bound"),
            param(template, "rsc_disk_bound"),
            template.rsc_bandwidth_bound or 0.0,
            self.now,
            param(template, "delay_bound"),
            quorum,
            max(template.target_nresults or quorum, quorum),
            *counts,
            job.output_template or self.output_template,
            self.priority if job.priority is None else job.priority,
            -1 if template.size_class is None else template.size_class,
            self.app_version_num,
            self.now,
        )

    def _template(self, job: JobLine) -> InputTemplate:
        if not job.input_template:
            return self.template
        path = self.core.directory / job.input_template
        try:
            return self.core.input_template(path)
        except (OSError, TemplateError) as error:
            raise RpcFailed(f"create_work failed: {error}\n") from error

    def _param(self, template: InputTemplate, name: str) -> float:
        value: float = self.params.get(name) or getattr(template, name) or _DEFAULTS[name]
        return value

    def _document(self, template: InputTemplate, job: JobLine, command_line: str | None) -> str:
        need = len(template.per_job_files)
        if len(job.files) < need:
            raise RpcFailed(
                f"create_work failed: Too few var input files given; need at least {need}\n"
                "process_input_template(): unexpected XML tag or syntax\n"
                "create_work() failed: -112\n"
            )
        files = [self._file(file) for file in job.files]
        try:
            return fill_input(template, files, command_line=command_line or None)
        except TemplateError as error:
            raise RpcFailed(f"create_work failed: {error}\n") from error

    def _file(self, file: str | tuple[str, float, str]) -> JobFile:
        if not isinstance(file, str):
            url, nbytes, md5 = file
            return JobFile(f"js_{md5}", int(nbytes), md5, (url,))
        known = self._files.get(file)
        if known is None:
            known = self._files[file] = self._staged(file)
        return known

    def _staged(self, name: str) -> JobFile:
        stored = self.core.download.find(name)
        place = f"{directory_of(name)}/{name}"
        if stored is None:
            download = self.core.download.root
            raise RpcFailed(
                f"create_work failed: md5_file: can't open {download}/{place}\n"
                "md5_file: No such file or directory\n"
                "process_input_template: md5_file fopen() failed\n"
                "process_input_template(): fopen() failed\n"
                "create_work() failed: -108\n"
                f"copy {download}/{name} to {download}/{place}\n"
            )
        return JobFile(name, stored.nbytes, stored.md5, (f"{self.core.url}download/{place}",))


def insert(connection: sqlite3.Connection, rows: Sequence[Row]) -> None:
    """Insert workunits.

    Raises:
        RpcFailed: a name exists already, anywhere in the project, or twice among the rows.
    """
    connection.execute("SAVEPOINT jobs")
    try:
        connection.executemany(_INSERT, rows)
    except sqlite3.IntegrityError as error:
        connection.execute("ROLLBACK TO jobs")
        raise RpcFailed(
            f"create_work failed: Database error: Duplicate entry '{_duplicate(connection, rows)}' "
            "for key 'name'\nwu.insert_batch() failed: 1\n"
        ) from error
    finally:
        connection.execute("RELEASE jobs")


def _duplicate(connection: sqlite3.Connection, rows: Sequence[Row]) -> object:
    seen = set()
    name_at, key_at = _COLUMNS.index("name"), _COLUMNS.index("name_key")
    for row in rows:
        key = row[key_at]
        if (
            key in seen
            or connection.execute("SELECT 1 FROM workunit WHERE name_key = ?", (key,)).fetchone()
        ):
            return row[name_at]
        seen.add(key)
    return "?"


@lru_cache(maxsize=64)
def template_name(xml: str) -> str:
    """Return the file name under which a job's own template is kept."""
    return hashlib.md5(xml.encode(), usedforsecurity=False).hexdigest()


def keep_template(core: Core, xml: str) -> str:
    """Write a job's own template into ``templates/tmp`` and return its path there."""
    path: Path = core.templates / "tmp" / template_name(xml)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_name(f"{path.name}.new")
        new.write_text(xml, "utf-8")
        new.replace(path)
    return str(path.relative_to(core.directory))
