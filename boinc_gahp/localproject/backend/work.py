"""Creating work: the rows of ``workunit`` that create_work makes for jobs.

The input template's values override those that create_work gets from options or from
``job_params``: those count only if the template lacks the element (``web-rpcs.rst``, "The template
wins"; BOINC's ``process_workunit()``).
"""

from __future__ import annotations

import math
import os
import sqlite3
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from boinc_gahp.localproject.backend.new_job import XML_PARSE, refused_by_create_work, through_sql
from boinc_gahp.localproject.core import MAX_NAME, name_key
from boinc_gahp.localproject.errors import WorkError
from boinc_gahp.localproject.states import BatchState
from boinc_gahp.localproject.store import directory_of
from boinc_gahp.templates.filling import JobFile, fill_input, fill_output
from boinc_gahp.templates.types import DEFAULTS, InputTemplate, TemplateError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from boinc_gahp.localproject.backend.new_job import NewJob, RemoteInput
    from boinc_gahp.localproject.core import Core
    from boinc_gahp.templates.types import InputFileInfo

T = TypeVar("T")

#: BOINC's column delay_bound is a whole number of 32 bits: 68 years.
_MOST_SECONDS = 2**31 - 1
#: Those that may be 0; the others must be more.
_MAY_BE_ZERO = {"rsc_memory_bound", "rsc_bandwidth_bound"}
_PARAMS = (
    "rsc_fpops_est",
    "rsc_fpops_bound",
    "rsc_memory_bound",
    "rsc_disk_bound",
    "rsc_bandwidth_bound",
    "delay_bound",
)
_LIMITS = ("max_error_results", "max_total_results", "max_success_results")
#: The names of a result and its files are at most this suffix longer than the workunit's.
_RESULT_NUMBER = "_99"
_SUFFIX = f"r{2**31}"

#: ``assignment.target_type`` for the fields of a job.
_TARGETS = {"target_host": (1, "host"), "target_user": (2, "user")}


@dataclass(frozen=True, slots=True)
class NewWorkunit:
    """A workunit to be inserted: its columns, and its only targets."""

    columns: dict[str, Any]
    targets: tuple[tuple[int, int], ...] = ()
    """Pairs of target_type and id."""


@dataclass(slots=True)
class WorkMaker:
    """Makes rows for jobs of one batch; values that all jobs share are calculated once.

    Attributes:
        input_template: the template of jobs without their own, its path below the project's
            directory; empty: the app's.
        output_template: likewise.
        params: ``job_params`` of the request, for values that a template lacks; 0 means not given.
    """

    core: Core
    app: sqlite3.Row
    input_template: str = ""
    output_template: str = ""
    params: dict[str, float] = field(default_factory=dict)
    priority: int = 0
    app_version_num: int = 0
    now: float = field(default_factory=time.time)
    _templates: dict[str, InputTemplate] = field(default_factory=dict)
    _files: dict[tuple[str, bool], JobFile] = field(default_factory=dict)
    _longest: dict[str, int] = field(default_factory=dict)
    _made: int = 0

    def row(self, job: NewJob, batch_id: int, *, as_sql: bool = False) -> NewWorkunit:
        """Return the workunit's row; ``as_sql``: as it appears in the real server's query.

        ``batch_id`` is for templates without a ``<batch>``.

        Raises:
            WorkError: create_work would refuse the job.
        """
        template = self._template(job)
        name = job.name or f"{self.app['name']}_{os.getpid()}_{self.now:.6f}_{self._made}"
        if not as_sql:
            name = through_sql(name)
        if len(name) > MAX_NAME and not as_sql:
            raise WorkError(
                f"the job's name has {len(name)} characters: expected at most {MAX_NAME}",
                "create_work failed: Database error: Data too long for column 'name' at row 1\n"
                "wu.insert_batch() failed: 1\n",
            )
        counts = _counts(template, job)
        self._made += not as_sql
        try:
            document = self._document(template, job, job.command_line)
            if not as_sql:
                document = through_sql(document)
            output_template = self._checked_output_template(job, name)
        except TemplateError as error:
            raise WorkError(f"{_label(job)}: {error}", f"create_work failed: {error}\n") from error
        columns = {
            "create_time": int(self.now),
            "appid": self.app["id"],
            "name": name,
            "name_key": name_key(name),
            "xml_doc": document,
            "batch": _first(template.batch, batch_id),
            **{each: self._param(template, job, each) for each in _PARAMS},
            "transition_time": self.now,
            **counts,
            "result_template_file": output_template,
            "priority": _first(job.priority, self.priority or template.priority),
            "size_class": _first(template.size_class, job.size_class, default=-1),
            "app_version_num": _first(job.app_version_num, self.app_version_num),
        }
        targets = tuple(
            (kind, target)
            for field_name, (kind, _) in _TARGETS.items()
            if (target := getattr(job, field_name)) is not None
        )
        return NewWorkunit(columns, targets)

    def _template(self, job: NewJob) -> InputTemplate:
        app_default = self.input_template or f"{self.core.templates.name}/{self.app['name']}_in"
        name = job.input_template or app_default
        if name not in self._templates:
            self._templates[name] = self._read(
                name, self.core.input_template, f"Can't read WU template {name}\n"
            )
        return self._templates[name]

    def _read(self, name: str, read: Callable[[Path], T], unread: str = "") -> T:
        """Read a template; it must be one of the project's.

        ``unread``: create_work's message if it cannot read the template.
        """
        path = self.core.directory / name
        said = f"create_work failed: {unread}" if unread else None
        try:
            if not path.resolve().is_relative_to(self.core.templates.resolve()):
                raise WorkError(f"template {name!r} is not below {self.core.templates}", said)
            return read(path)
        except TemplateError as error:
            problem = refused_by_create_work(error)
            raise WorkError(
                f"template {path}: {error}",
                f"create_work failed: {problem}\n{XML_PARSE}" if problem else None,
            ) from error
        except OSError as error:
            raise WorkError(f"template {path} cannot be read: {error.strerror}", said) from error

    def _checked_output_template(self, job: NewJob, name: str) -> str:
        """Return the output template's path, if the names of results would fit the database."""
        app_default = self.output_template or f"{self.core.templates.name}/{self.app['name']}_out"
        path = job.output_template or app_default
        size = len(name.encode("utf-8", "surrogateescape"))
        if size > self._longest.get(path, -1):
            template = self._read(path, self.core.output_template)
            fill_output(template, name + _RESULT_NUMBER, self.core.upload_url, _SUFFIX)
            self._longest[path] = size
        return path

    def _param(self, template: InputTemplate, job: NewJob, name: str) -> float:
        value: float | None = getattr(template, name)
        if value is None:
            value = getattr(job, name)
        if value is None:
            value = self.params.get(name) or DEFAULTS[name]
        most = _MOST_SECONDS if name == "delay_bound" else math.inf
        if most < value < math.inf:
            raise WorkError(
                f"{_label(job)}: {name} {value!r} was given: expected at most {most:.0f}"
            )
        if not (0 < value < math.inf or (value == 0 and name in _MAY_BE_ZERO)):
            least = "0 or more" if name in _MAY_BE_ZERO else "more than 0"
            raise WorkError(f"{_label(job)}: {name} {value!r} was given: expected {least}")
        return value

    def _document(self, template: InputTemplate, job: NewJob, command_line: str | None) -> str:
        infos = template.per_job_files
        if len(job.files) < len(infos):
            names = ", ".join(info.open_name for info in infos)
            raise WorkError(
                f"{_label(job)} has {len(job.files)} input files: {len(infos)} are expected, "
                f"for {names}",
                f"create_work failed: Too few var input files given; need at least {len(infos)}\n"
                f"{XML_PARSE}",
            )
        if len(job.files) > len(infos):
            infos = tuple(
                f for f in template.files if f.physical_name is None and not f.generate_locally
            )
        # Files without a place in the template are not looked for.
        files = [self._file(file, info) for file, info in zip(job.files, infos, strict=False)]
        if len(job.files) > len(infos):
            raise WorkError(
                f"{_label(job)} has {len(job.files)} input files: {len(infos)} are expected",
                f"create_work failed: process_input_template: {len(job.files)} input files given, "
                f"but template has {len(infos)}\n{XML_PARSE}",
            )
        if command_line and template.command_line is not None:
            raise WorkError(
                f"{_label(job)} has a command line, and so has its input template "
                f"({template.command_line}): leave out one of them",
                f"create_work failed: Can't specify command line {template.command_line}; "
                f"already specified as {command_line}\n{XML_PARSE}",
            )
        return fill_input(
            template,
            files,
            command_line=command_line or None,
            staged=lambda name: self._file(name, None),
        )

    def _file(self, file: str | RemoteInput, info: InputFileInfo | None) -> JobFile:
        if not isinstance(file, str):
            return JobFile(f"js_{file.md5}", int(file.nbytes), file.md5, (file.url,))
        if info is not None and info.remote:
            return JobFile(file, info.nbytes or 0, info.md5_cksum or "", ())
        key = (file, info is not None and info.gzip)
        known = self._files.get(key)
        if known is None:
            known = self._files[key] = self._staged(*key)
        return known

    def _staged(self, name: str, gzip: bool) -> JobFile:
        stored = self.core.download.find(name)
        place = f"{directory_of(name)}/{name}"
        download = self.core.download.root
        if stored is None:
            raise WorkError(
                f"the input file {name!r} is not staged: expected {download}/{place}; stage it "
                "first (boinc_gahp local-project stage-file)",
                f"create_work failed: md5_file: can't open {download}/{place}\n"
                "md5_file: No such file or directory\n"
                "process_input_template: md5_file fopen() failed\n"
                "process_input_template(): fopen() failed\n"
                "create_work() failed: -108\n"
                f"copy {download}/{name} to {download}/{place}\n",
            )
        gzipped = self.core.download.find(f"{name}.gz") if gzip else None
        if gzip and gzipped is None:
            raise WorkError(
                f"the template lists {name!r} with <gzip/>, but {name}.gz is not staged: stage "
                "the file again with --gzip"
            )
        url = f"{self.core.url}download/{place}"
        return JobFile(name, stored.nbytes, stored.md5, (url,), gzipped.nbytes if gzipped else None)


def _label(job: NewJob) -> str:
    return f"job {job.name!r}" if job.name else "the job"


def _first(*values: int | None, default: int = 0) -> int:
    return next((value for value in values if value is not None), default)


def _counts(template: InputTemplate, job: NewJob) -> dict[str, int]:
    """Return the columns about numbers of results.

    Those that neither template nor job has are 1 (``back-end.rst``, "Transitioner"; create_work's
    ``process_workunit`` and ``create_work2``).
    """
    quorum = _first(template.min_quorum, job.min_quorum, default=1)
    if quorum < 1:
        raise WorkError(f"{_label(job)}: min_quorum {quorum} was given: expected 1 or more")
    target = _first(template.target_nresults, job.target_nresults, default=quorum)
    if template.target_nresults is not None:
        target = max(target, quorum)
    elif target < quorum:
        raise WorkError(
            f"{_label(job)}: target_nresults {target} is less than min_quorum {quorum}: "
            "expected at least as many"
        )
    errors, total, success = (
        _first(getattr(template, name), getattr(job, name), default=int(DEFAULTS[name]))
        for name in _LIMITS
    )
    if errors < 1:
        raise WorkError(
            f"{_label(job)}: max_error_results {errors} is too small: expected 1 or more",
            "create_work failed: no max_error_results given; can't create job\n"
            "create_work() failed: -191\n",
        )
    # Where these two allow fewer results than are made at first, create_work raises them.
    total, success = max(total, target), max(success, target)
    limits = {"max_success_results": success, "max_error_results": errors}
    for name, value in limits.items():
        if value > total:
            raise WorkError(
                f"{_label(job)}: {name} {value} is more than max_total_results {total} (without a "
                "value it is 1): expected at most as many",
                f"create_work failed: {name} > max_total_results; can't create job\n"
                "create_work() failed: -178\n",
            )
    return {"min_quorum": quorum, "target_nresults": target, "max_total_results": total, **limits}


def insert(connection: sqlite3.Connection, rows: Sequence[NewWorkunit]) -> list[int]:
    """Insert workunits and their targets; return their ids.

    Raises:
        WorkError: a name already exists, anywhere in the project, or twice among the rows; or there
            is no such host or user.
    """
    (last,) = connection.execute("SELECT coalesce(max(id), 0) FROM workunit").fetchone()
    connection.execute("SAVEPOINT jobs")
    try:
        if rows:
            names = rows[0].columns
            connection.executemany(
                f"INSERT INTO workunit ({', '.join(names)}, mod_time) "  # noqa: S608
                f"VALUES ({', '.join(map(':{}'.format, names))}, clock())",
                [row.columns for row in rows],
            )
        ids = [
            int(row[0])
            for row in connection.execute(
                "SELECT id FROM workunit WHERE id > ? ORDER BY id", (last,)
            )
        ]
        for workunit_id, row in zip(ids, rows, strict=True):
            for target in row.targets:
                _assign(connection, workunit_id, *target)
    except sqlite3.IntegrityError as error:
        connection.execute("ROLLBACK TO jobs")
        name = _duplicate(connection, rows)
        raise WorkError(
            f"there is a job {name!r} already: names are unique in the whole project, and case, "
            "accents and spaces at the end do not count",
            f"create_work failed: Database error: Duplicate entry '{name}' for key 'name'\n"
            "wu.insert_batch() failed: 1\n",
        ) from error
    except WorkError:
        connection.execute("ROLLBACK TO jobs")
        raise
    finally:
        # On a full disk SQLite may already have ended the transaction.
        if connection.in_transaction:
            connection.execute("RELEASE jobs")
    return ids


def begin_batch(connection: sqlite3.Connection, batch_id: int) -> None:
    """Set a batch's state IN_PROGRESS, and count its jobs."""
    connection.execute(
        "UPDATE batch SET state = ?, "
        "njobs = (SELECT count(*) FROM workunit WHERE batch = ?) WHERE id = ?",
        (BatchState.IN_PROGRESS, batch_id, batch_id),
    )


def _assign(connection: sqlite3.Connection, workunit_id: int, kind: int, target: int) -> None:
    table = next(table for number, table in _TARGETS.values() if number == kind)
    found = connection.execute(f"SELECT 1 FROM {table} WHERE id = ?", (target,))  # noqa: S608
    if found.fetchone() is None:
        raise WorkError(f"target_{table} {target} was given: there is no {table} with that id")
    connection.execute(
        "INSERT INTO assignment (create_time, target_type, target_id, workunitid) "
        "VALUES (?, ?, ?, ?)",
        (int(time.time()), kind, target, workunit_id),
    )


def job_exists(connection: sqlite3.Connection, name: str) -> bool:
    """Whether the project has, or had, a workunit with a name."""
    return _is_taken(connection, name_key(name))


def _is_taken(connection: sqlite3.Connection, key: object) -> bool:
    found = connection.execute("SELECT 1 FROM workunit WHERE name_key = ?", (key,))
    return found.fetchone() is not None


def _duplicate(connection: sqlite3.Connection, rows: Sequence[NewWorkunit]) -> str:
    seen = set()
    for row in rows:
        key = row.columns["name_key"]
        if key in seen or _is_taken(connection, key):
            return str(row.columns["name"])
        seen.add(key)
    return "?"
