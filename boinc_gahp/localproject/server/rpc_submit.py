"""submit_batch and estimate_batch (``web-rpcs.rst``, "submit_batch")."""

from __future__ import annotations

import hashlib
import os.path
import re
import shlex
from contextlib import suppress
from typing import TYPE_CHECKING

from boinc_gahp.localproject.accounts import authenticate, check_job_limit, find_app
from boinc_gahp.localproject.backend import batches, work
from boinc_gahp.localproject.backend.new_job import (
    keep_template,
    read_job_line,
    refused_by_create_work,
    template_name,
)
from boinc_gahp.localproject.errors import RpcFailed, no_space
from boinc_gahp.localproject.hosts.hosts import mean_speed
from boinc_gahp.localproject.hosts.transfers import fetch
from boinc_gahp.localproject.new_app import renew_versions
from boinc_gahp.localproject.server.messages import php_number
from boinc_gahp.localproject.states import BatchState
from boinc_gahp.localproject.store import directory_of, md5_file
from boinc_gahp.templates.reading import read_input_template, read_output_template
from boinc_gahp.templates.types import InputTemplate, TemplateError

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator

    from boinc_gahp.localproject.backend.new_job import NewJob
    from boinc_gahp.localproject.backend.work import NewWorkunit
    from boinc_gahp.localproject.core import Core
    from boinc_gahp.localproject.server.messages import Element, RpcReply, RpcRequest


#: The real server inserts about a megabyte of SQL at a time, each in its own transaction.
_PIECE_BYTES = 1_000_000


def estimate_batch(core: Core, request: RpcRequest, reply: RpcReply) -> None:
    """Estimate how long a batch would run, in seconds."""
    with core.db.read() as connection:
        app = find_app(connection, request.child("batch").text("app_name"))
        authenticate(connection, request.text("authenticator"), app)
        speed = mean_speed(connection)
    template = _input_template(core, app, reply)
    usual = template.rsc_fpops_est if template is not None else None
    total = 0.0
    for job in request.child("batch").children("job"):
        # job_params and jobs' own templates are ignored (``batch_flop_count()``).
        each = job.real("rsc_fpops_est") or usual
        if not each:
            raise RpcFailed("no rsc_fpops_est given for job")
        total += each
    # The real server divides by the app's mean speed.
    reply.add(f"<seconds>{php_number(total / speed)}</seconds>\n")


def submit_batch(core: Core, request: RpcRequest, reply: RpcReply) -> None:
    """Create a batch's jobs."""
    connection = core.db.connection()
    batch = request.child("batch")
    jobs = batch.children("job")
    app = find_app(connection, batch.text("app_name"))
    user = authenticate(connection, request.text("authenticator"), app)
    renew_versions(core.db)
    check_job_limit(connection, user, len(jobs))
    template = _input_template(core, app, reply)
    if template is not None:
        _check_counts(jobs, template)
    batch_id = batch.integer("batch_id")
    if batch_id:
        _check_batch(connection, batch_id, user)
    stage = _Stager(core, reply, user)
    lines = [_job_line(job, stage) for job in jobs]
    _check_allocation(core, batch, app, user)
    maker = _maker(core, batch, app)
    # A name too long for a file system would be an error in pathlib's method.
    needed = not all(job.texts("output_template") for job in jobs)
    missing = needed and not os.path.isfile(core.directory / maker.output_template)  # noqa: PTH113
    if missing or stage.unwritten:
        # create_work makes no job without the output template's file, and ends with 0.
        lines = []
    with core.db.write() as connection:
        if not batch_id:
            batch_id = batches.insert(connection, user, app, name=batch.text("batch_name"))
        connection.execute("UPDATE batch SET njobs = ? WHERE id = ?", (len(jobs), batch_id))
    _create(core, maker, batch_id, (job for line in lines for job in read_job_line(line)))
    with core.db.write() as connection:
        # Whatever has become of the batch since it was checked.
        connection.execute(
            "UPDATE batch SET state = ? WHERE id = ?", (BatchState.IN_PROGRESS, batch_id)
        )
    core.wake.ring()
    reply.add(f"<batch_id>{batch_id}</batch_id>\n")


def _maker(core: Core, batch: Element, app: sqlite3.Row) -> work.WorkMaker:
    name = batch.text("input_template_filename")
    return work.WorkMaker(
        core,
        app,
        input_template=f"{core.templates.name}/{name}" if name else "",
        output_template=_output_template(core, batch, app),
        params=batch.child("job_params").reals(),
        priority=batch.integer("priority"),
        app_version_num=batch.integer("app_version_num"),
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


def _check_batch(connection: sqlite3.Connection, batch_id: int, user: sqlite3.Row) -> None:
    batch = batches.by_id(connection, batch_id)
    if batch is None:
        raise RpcFailed(f"no batch {batch_id}")
    if batch["user_id"] != user["id"]:
        raise RpcFailed("not owner of batch")
    if batch["state"] != BatchState.INIT:
        raise RpcFailed("batch not in init state")


def _check_counts(jobs: list[Element], template: InputTemplate) -> None:
    """Compare with the app's template, even for jobs that have their own."""
    need = len(template.per_job_files)
    for place, job in enumerate(jobs):
        count = len(job.texts("input_file"))
        if count != need:
            raise RpcFailed(f"wrong # of input files for job {place}: need {need}, got {count}")


def _check_allocation(core: Core, batch: Element, app: sqlite3.Row, user: sqlite3.Row) -> None:
    """Calculate the operations of all jobs, for which the real server asks another program.

    That program does not know the app's template, and cannot handle 0.
    """
    if batch.text("allocation_priority"):
        flops, params = 0.0, batch.child("job_params").reals()
        for job in batch.children("job"):
            each = _operations(job, params)
            if each is None:
                raise RpcFailed("no rsc_fpops_est given")
            flops += each
        if not flops:
            raise RpcFailed(
                f"cd {core.directory}/bin; ./adjust_user_priority --user {user['id']} --flops 0 "
                f"--app {app['name']} returned "
            )


def _operations(job: Element, params: dict[str, float]) -> float | None:
    if job.real("rsc_fpops_est"):
        return job.real("rsc_fpops_est")
    with suppress(TemplateError):
        template = job.xml("input_template")
        own = read_input_template(template).rsc_fpops_est if template else None
        if own is not None:
            return own
    return params.get("rsc_fpops_est")


def _input_template(core: Core, app: sqlite3.Row, reply: RpcReply) -> InputTemplate | None:
    """Return the app's input template, whatever jobs or the batch name.

    None: there is none, or only PHP can read it.

    Raises:
        RpcFailed: PHP cannot read it either.
    """
    path = core.templates / f"{app['name']}_in"
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


def _output_template(core: Core, batch: Element, app: sqlite3.Row) -> str:
    name = batch.text("output_template_filename") or f"{app['name']}_out"
    if "/" in name or name.startswith("."):
        raise RpcFailed(f"create_work failed: bad template name {name}\n")
    return f"{core.templates.name}/{name}"


def _job_line(job: Element, stage: _Stager) -> str:
    parts = []
    if job.text("name"):
        parts.append(f"--wu_name {job.text('name')}")
    # PHP takes the string "0" for false, so such a command line is dropped.
    command_line = job.text("command_line")
    if command_line not in ("", "0"):
        parts.append(f'--command_line "{command_line}"')
    parts += [
        f"--{name} {shlex.quote(job.text(name))}"
        for name in ("target_team", "target_user", "target_host")
        if job.text(name)
    ]
    if job.text("priority"):
        parts.append(f"--priority {job.integer('priority')}")
    parts += [stage(file) for file in job.children("input_file")]
    if template := job.xml("input_template"):
        parts.append(f"--wu_template {stage.template(template)}")
    if template := job.xml("output_template"):
        try:
            read_output_template(template)
        except TemplateError as error:
            raise RpcFailed(f"create_work failed: {error}\n") from error
        parts.append(f"--result_template {stage.template(template)}")
    return " " + " ".join(parts)


class _Stager:
    """Stages a job's input files by their modes; returns their part of the job's line.

    Attributes:
        unwritten: a job's own template could not be written.
    """

    def __init__(self, core: Core, reply: RpcReply, user: sqlite3.Row) -> None:
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

    def __call__(self, file: Element) -> str:
        mode, source = key = file.text("mode"), file.text("source")
        if mode == "local_staged":
            return source
        if mode == "remote":
            return f"--remote_file {file.text('url')} {file.real('nbytes')!r} {file.text('md5')}"
        if key not in self._done:
            self._done[key] = self._stage(mode, source)
        return self._done[key]

    def _stage(self, mode: str, source: str) -> str:
        if mode == "inline":
            return self._inline(source)
        if mode == "local":
            return self._local(source)
        if mode == "semilocal":
            return self._semilocal(source)
        if mode == "sandbox":
            self._say_no_sandbox(source)
            raise RpcFailed(f"sandbox link file {source} not found")
        raise RpcFailed(f"unsupported file mode: {mode}")

    def _say_no_sandbox(self, source: str) -> None:
        path, place = f"../../sandbox/{self._user['id']}/{source}", "inc/submit_util.inc"
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
        # This is the only directory that may be read.
        directory = self._core.local_files.resolve()
        path = (directory / source).resolve()
        try:
            if not path.is_relative_to(directory):
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
    return f"(0, {_FIELDS.format_map(row.columns)})"


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
