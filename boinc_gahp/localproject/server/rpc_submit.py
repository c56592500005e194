"""submit_batch and estimate_batch (``web-rpcs.rst``, "submit_batch")."""

from __future__ import annotations

import hashlib
import os.path
import re
import shlex
from contextlib import suppress
from typing import TYPE_CHECKING

from boinc_gahp.localproject.accounts import AppRow, User, authenticate, check_job_limit, find_app
from boinc_gahp.localproject.backend import batches, work
from boinc_gahp.localproject.backend.new_job import (
    keep_template,
    read_job_line,
    refused_by_create_work,
    template_name,
)
from boinc_gahp.localproject.backend.work import COLUMNS
from boinc_gahp.localproject.errors import RpcFailed, no_space
from boinc_gahp.localproject.hosts.hosts import mean_speed
from boinc_gahp.localproject.hosts.transfers import fetch
from boinc_gahp.localproject.new_app import renew_versions
from boinc_gahp.localproject.server.messages import as_integer, php_float, php_number
from boinc_gahp.localproject.states import BatchState
from boinc_gahp.localproject.store import directory_of, md5_file
from boinc_gahp.templates.reading import read_input_template, read_output_template
from boinc_gahp.templates.types import InputTemplate, TemplateError

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from boinc_gahp.localproject.backend.new_job import NewJob
    from boinc_gahp.localproject.backend.work import NewWorkunit
    from boinc_gahp.localproject.core import Core
    from boinc_gahp.localproject.server.messages import (
        InputFileRequest,
        JobRequest,
        RpcReply,
        RpcRequest,
    )


#: The real server inserts about a megabyte of SQL at a time, each in its own transaction.
_PIECE_BYTES = 1_000_000


def estimate_batch(core: Core, request: RpcRequest, reply: RpcReply) -> None:
    """Estimate how long a batch would run, in seconds."""
    with core.db.read() as connection:
        app = find_app(connection, request.batch.get("app_name", ""))
        authenticate(connection, request.text("authenticator"), app)
        speed = mean_speed(connection)
    template = _input_template(core, app, reply)
    usual = template.rsc_fpops_est if template is not None else None
    total = 0.0
    for job in request.jobs:
        # job_params and jobs' own templates are ignored (``batch_flop_count()``).
        each = job.rsc_fpops_est or usual
        if not each:
            raise RpcFailed("no rsc_fpops_est given for job")
        total += each
    # The real server divides by the app's mean speed.
    reply.add(f"<seconds>{php_number(total / speed)}</seconds>\n")


def submit_batch(core: Core, request: RpcRequest, reply: RpcReply) -> None:
    """Create a batch's jobs."""
    connection = core.db.connection()
    app = find_app(connection, request.batch.get("app_name", ""))
    user = authenticate(connection, request.text("authenticator"), app)
    renew_versions(core.db)
    check_job_limit(connection, user, len(request.jobs))
    template = _input_template(core, app, reply)
    if template is not None:
        _check_counts(request.jobs, template)
    batch_id = as_integer(php_float(request.batch.get("batch_id", "")))
    if batch_id:
        _check_batch(connection, batch_id, user)
    stage = _Stager(core, reply, user)
    lines = [_job_line(job, stage) for job in request.jobs]
    _check_allocation(core, request, app, user)
    maker = _maker(core, request, app)
    # A name too long for a file system would be an error in pathlib's method.
    needed = not all(job.output_template for job in request.jobs)
    missing = needed and not os.path.isfile(core.directory / maker.output_template)  # noqa: PTH113
    if missing or stage.unwritten:
        # create_work makes no job without the output template's file, and ends with 0.
        lines = []
    with core.db.write() as connection:
        if not batch_id:
            name = request.batch.get("batch_name", "")
            batch_id = batches.insert(connection, user, app, name=name)
        connection.execute("UPDATE batch SET njobs = ? WHERE id = ?", (len(request.jobs), batch_id))
    _create(core, maker, batch_id, (job for line in lines for job in read_job_line(line)))
    with core.db.write() as connection:
        # Whatever has become of the batch since it was checked.
        connection.execute(
            "UPDATE batch SET state = ? WHERE id = ?", (BatchState.IN_PROGRESS, batch_id)
        )
    core.wake.ring()
    reply.add(f"<batch_id>{batch_id}</batch_id>\n")


def _maker(core: Core, request: RpcRequest, app: AppRow) -> work.WorkMaker:
    name = request.batch.get("input_template_filename")
    return work.WorkMaker(
        core,
        app,
        input_template=f"{core.templates.name}/{name}" if name else "",
        output_template=_output_template(core, request, app),
        params=request.job_params,
        priority=as_integer(php_float(request.batch.get("priority", ""))),
        app_version_num=as_integer(php_float(request.batch.get("app_version_num", ""))),
    )


def _create(core: Core, maker: work.WorkMaker, batch_id: int, jobs: Iterator[NewJob]) -> None:
    """Make a batch's jobs, piece by piece, each in a transaction."""
    for piece in _pieces(maker, batch_id, jobs):
        try:
            rows = [maker.row(job, batch_id) for job in piece]
            with core.db.write() as connection:
                work.insert(connection, rows)
        except RpcFailed as error:
            query = (maker.row(job, batch_id, as_sql=True) for job in piece)
            raise with_query(error, query) from error


def _pieces(maker: work.WorkMaker, batch_id: int, jobs: Iterator[NewJob]) -> Iterator[list[NewJob]]:
    piece: list[NewJob] = []
    size = 0
    for job in jobs:
        piece.append(job)
        size += len(row_text(maker.row(job, batch_id, as_sql=True)))
        if size > _PIECE_BYTES:
            yield piece
            piece, size = [], 0
    if piece:
        yield piece


def _check_batch(connection: sqlite3.Connection, batch_id: int, user: User) -> None:
    batch = batches.by_id(connection, batch_id)
    if batch is None:
        raise RpcFailed(f"no batch {batch_id}")
    if batch["user_id"] != user.id:
        raise RpcFailed("not owner of batch")
    if batch["state"] != BatchState.INIT:
        raise RpcFailed("batch not in init state")


def _check_counts(jobs: list[JobRequest], template: InputTemplate) -> None:
    """Compare with the app's template, even for jobs that have their own."""
    need = len(template.per_job_files)
    for place, job in enumerate(jobs):
        if len(job.files) != need:
            raise RpcFailed(
                f"wrong # of input files for job {place}: need {need}, got {len(job.files)}"
            )


def _check_allocation(core: Core, request: RpcRequest, app: AppRow, user: User) -> None:
    """Calculate the operations of all jobs, for which the real server asks another program.

    That program does not know the app's template, and cannot handle 0.
    """
    if request.batch.get("allocation_priority"):
        flops = 0.0
        for job in request.jobs:
            each = _operations(job, request.job_params)
            if each is None:
                raise RpcFailed("no rsc_fpops_est given")
            flops += each
        if not flops:
            raise RpcFailed(
                f"cd {core.directory}/bin; ./adjust_user_priority --user {user.id} --flops 0 "
                f"--app {app.name} returned "
            )


def _operations(job: JobRequest, params: dict[str, float]) -> float | None:
    if job.rsc_fpops_est:
        return job.rsc_fpops_est
    with suppress(TemplateError):
        own = read_input_template(job.input_template).rsc_fpops_est if job.input_template else None
        if own is not None:
            return own
    return params.get("rsc_fpops_est")


def _input_template(core: Core, app: AppRow, reply: RpcReply) -> InputTemplate | None:
    """Return the app's input template, whatever jobs or the batch name.

    None: there is none, or only PHP can read it.

    Raises:
        RpcFailed: PHP cannot read it either.
    """
    path = core.templates / f"{app.name}_in"
    try:
        return core.input_template(path)
    except FileNotFoundError:
        return None
    except (OSError, TemplateError) as error:
        if isinstance(error, TemplateError) and refused_by_create_work(error):
            return None
        reply.warn(
            "simplexml_load_file(): I/O warning : failed to load external entity "
            f"&quot;{path}&quot;",
            "user/submit_rpc_handler.php",
            103,
        )
        raise RpcFailed(f"couldn't parse input template file {path}") from error


def _output_template(core: Core, request: RpcRequest, app: AppRow) -> str:
    name = request.batch.get("output_template_filename") or f"{app.name}_out"
    if "/" in name or name.startswith("."):
        raise RpcFailed(f"create_work failed: bad template name {name}\n")
    return f"{core.templates.name}/{name}"


def _job_line(job: JobRequest, stage: _Stager) -> str:
    parts = []
    if job.name:
        parts.append(f"--wu_name {job.name}")
    # PHP takes the string "0" for false, so such a command line is dropped.
    if job.command_line not in ("", "0"):
        parts.append(f'--command_line "{job.command_line}"')
    parts += [f"--{name} {shlex.quote(value)}" for name, value in job.targets]
    if job.priority:
        parts.append(f"--priority {as_integer(php_float(job.priority))}")
    parts += [stage(file) for file in job.files]
    if job.input_template:
        parts.append(f"--wu_template {stage.template(job.input_template)}")
    if job.output_template:
        try:
            read_output_template(job.output_template)
        except TemplateError as error:
            raise RpcFailed(f"create_work failed: {error}\n") from error
        parts.append(f"--result_template {stage.template(job.output_template)}")
    return " " + " ".join(parts)


class _Stager:
    """Stages a job's input files by their modes; returns their part of the job's line.

    Attributes:
        unwritten: a job's own template could not be written.
    """

    def __init__(self, core: Core, reply: RpcReply, user: User) -> None:
        self._core = core
        self._reply = reply
        self._user = user
        self._done: dict[tuple[str, str], str] = {}
        self.unwritten = False

    def template(self, xml: str) -> str:
        """Keep a job's own template; return its part of the job's line.

        If it cannot be written, PHP only warns (``containers.rst``, "On the server").
        """
        try:
            return keep_template(self._core, xml)
        except OSError as error:
            if no_space(error):
                raise
            self.unwritten = True
            path = f"templates/tmp/{template_name(xml)}"
            said = f"file_put_contents(../../{path}): Failed to open stream: {error.strerror}"
            self._reply.warn(said, "user/submit_rpc_handler.php", 364)
            return path

    def __call__(self, file: InputFileRequest) -> str:
        if file.mode == "local_staged":
            return file.source
        if file.mode == "remote":
            return f"--remote_file {file.url} {file.nbytes!r} {file.md5}"
        key = (file.mode, file.source)
        name = self._done.get(key)
        if name is None:
            name = self._done[key] = self._stage(file)
        return name

    def _stage(self, file: InputFileRequest) -> str:
        if file.mode == "inline":
            return self._inline(file.source)
        if file.mode == "local":
            return self._local(file.source)
        if file.mode == "semilocal":
            return self._semilocal(file.source)
        if file.mode == "sandbox":
            self._say_no_sandbox(file.source)
            raise RpcFailed(f"sandbox link file {file.source} not found")
        raise RpcFailed(f"unsupported file mode: {file.mode}")

    def _say_no_sandbox(self, source: str) -> None:
        path, place = f"../../sandbox/{self._user.id}/{source}", "inc/submit_util.inc"
        missing = f"md5_file({path}): Failed to open stream: No such file or directory"
        self._reply.warn(missing, place, 510)
        self._reply.warn(f"stat(): stat failed for {path}", place, 511)
        self._reply.warn("Trying to access array offset on value of type bool", place, 512)

    def _inline(self, contents: str) -> str:
        data = contents.encode("utf-8")
        name = f"jf_{hashlib.md5(data, usedforsecurity=False).hexdigest()}"
        new = self._core.download.add_bytes(name, data)
        if new and not contents:
            path = self._core.download.root / directory_of(name) / name
            raise RpcFailed(f"can't write to file {path}")
        return name

    def _local(self, source: str) -> str:
        path = self._allowed(source)
        try:
            if path is None:
                raise FileNotFoundError(source)
            md5, _ = md5_file(path)
            with path.open("rb") as file:
                self._core.download.add_from(f"jf_{md5}", file)
        except OSError as error:
            self._reply.warn(
                f"md5_file({source}): Failed to open stream: No such file or directory",
                "user/submit_rpc_handler.php",
                172,
            )
            raise RpcFailed(f"Can't get MD5 of file {source}") from error
        return f"jf_{md5}"

    def _allowed(self, source: str) -> Path | None:
        """Return the file's path, if it is in the only directory that may be read."""
        directory = self._core.local_files.resolve()
        path = (directory / source).resolve()
        return path if path.is_relative_to(directory) else None

    def _semilocal(self, url: str) -> str:
        incoming = self._core.download.incoming()
        try:
            fetch(url, incoming.write)
            name = f"jf_{incoming.finish()}"
            self._core.download.add(name, incoming)
        except (ValueError, ConnectionError) as error:
            raise RpcFailed(f"couldn't get {url}: {error}") from error
        finally:
            incoming.discard()
        return name


#: The columns of a workunit in the order of the real server's table, with the values it writes.
_FIELDS = (
    "{create_time}, {appid}, '{name}', '{xml_doc}', {batch}, {rsc_fpops_est:f}, "
    "{rsc_fpops_bound:f}, {rsc_memory_bound:f}, {rsc_disk_bound:f}, 0, 0, 0.000000, "
    "{transition_time:.0f}, {delay_bound:.0f}, 0, 0, 0, 0, 0.000000, {min_quorum}, "
    "{target_nresults}, {max_error_results}, {max_total_results}, {max_success_results}, "
    "'{result_template_file}', {priority}, NOW(), {rsc_bandwidth_bound:f}, 0, 0, 0, {size_class}, "
    "'', {app_version_num} "
)


_REFUSED = re.compile(
    r"create_work failed: Database error: (.*)\nwu\.insert_batch\(\) failed: 1\n", re.DOTALL
)
_NEAR = re.compile(r"near '(.*)' at line 1", re.DOTALL)
_QUOTED = 80


def row_text(row: NewWorkunit) -> str:
    """Return a row as it appears in the query; its texts are not escaped."""
    return f"(0, {_FIELDS.format_map(dict(zip(COLUMNS, row.values, strict=True)))})"


def with_query(error: RpcFailed, rows: Iterable[NewWorkunit]) -> RpcFailed:
    """Return create_work's error for a query that the database has refused, with the query."""
    found = _REFUSED.fullmatch(error.message)
    if found is None:
        return error
    texts = ",".join(map(row_text, rows))
    words = _NEAR.sub(lambda near: f"near '{_following(texts, near[1])}' at line 1", found[1])
    return RpcFailed(
        f"create_work failed: Database error: {words}\n"  # noqa: S608
        f"query=insert into workunit values {texts}\n"
        f"wu.insert_batch() failed: 1\nMySQL error: {words}\n"
    )


def _following(texts: str, near: str) -> str:
    """Return the part of a query that the database quotes, from where it could not go on."""
    place = texts.find(f"'{near}") + 1
    return f"{texts[place : place + _QUOTED]}..."
