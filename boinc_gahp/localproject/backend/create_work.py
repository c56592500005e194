"""Makes jobs on the server: stage_file and create_work."""

from __future__ import annotations

import re
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from boinc_gahp.localproject import accounts
from boinc_gahp.localproject.backend import batches, work
from boinc_gahp.localproject.backend.new_job import NewJob, RemoteInput
from boinc_gahp.localproject.errors import RpcFailed, WorkError
from boinc_gahp.localproject.states import BatchState
from boinc_gahp.localproject.store import valid_physical_name

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable

    from boinc_gahp.localproject.core import Core


__all__ = ["NewJob", "RemoteInput", "WorkError", "create_work"]

#: A name that a real server keeps unchanged, and can make results of (``web-rpcs.rst``, "Job
#: names": 190 characters kill the transitioner).
_NAME = re.compile(r"[^\s/&<>\"'\\\x00-\x1f\x7f]{1,180}")


def create_work(
    core: Core, app_name: str, jobs: Iterable[NewJob], *, batch_id: int = 0
) -> list[int]:
    """Make jobs of an app, all or none of them; return their workunits' ids, in order.

    ``batch_id`` is the batch of jobs whose template names none; 0: no batch. A complete batch is
    continued.

    Raises:
        WorkError: there is no such app or batch, a name is taken, a file is not staged, a template
            is wrong or too large when filled in, a parameter is out of range.
    """
    app = _app(core.db.connection(), app_name)
    rows = _rows(core, app, jobs, batch_id)
    with core.db.write() as connection:
        # Even without jobs the batch must exist.
        used = ({batch_id} | {row.columns["batch"] for row in rows}) - {0}
        for each in used:
            _check_batch(connection, app, each)
        ids = work.insert(connection, rows)
        for each in used:
            work.begin_batch(connection, each)
    core.wake.ring()
    return ids


def _rows(
    core: Core, app: sqlite3.Row, jobs: Iterable[NewJob], batch_id: int
) -> list[work.NewWorkunit]:
    maker = work.WorkMaker(core, app)
    jobs = list(jobs)
    rows: list[work.NewWorkunit] = []
    for number, job in enumerate(jobs, 1):
        try:
            _check_name(job.name)
            rows.append(maker.row(job, batch_id))
        except WorkError as error:
            if len(jobs) == 1:
                raise
            raise WorkError(
                f"job {number} of {len(jobs)}: {error.advice}; no job was made", error.message
            ) from error
    return rows


def _check_name(name: str) -> None:
    if name and not _NAME.fullmatch(name):
        raise WorkError(
            f"a job cannot be named {name!r}: expected at most 180 characters, without white "
            "space, quotes and any of / & < > \\"
        )


def _app(connection: sqlite3.Connection, name: str) -> sqlite3.Row:
    try:
        return accounts.find_app(connection, name)
    except RpcFailed as error:
        rows = connection.execute("SELECT name FROM app WHERE deprecated = 0 ORDER BY id")
        names = ", ".join(row["name"] for row in rows)
        raise WorkError(f"there is no app {name!r}; the apps are {names}", error.message) from error


def _check_batch(connection: sqlite3.Connection, app: sqlite3.Row, batch_id: int) -> None:
    batch = batches.by_id(connection, batch_id)
    if batch is None:
        raise WorkError(f"there is no batch {batch_id}")
    if batch["state"] in (BatchState.ABORTED, BatchState.RETIRED):
        state = BatchState(batch["state"]).name.lower()
        raise WorkError(f"batch {batch_id} ({batch['name']!r}) is {state}: use another one")
    if batch["app_id"] != app["id"]:
        raise WorkError(
            f"batch {batch_id} ({batch['name']!r}) is not for app {app['name']!r}: all jobs of a "
            "batch use the same app"
        )


def stage_file(
    core: Core, source: Path | bytes, name: str | None = None, *, gzip: bool = False
) -> str:
    """Copy a file into ``download/`` and return its physical name.

    Args:
        core: the project.
        source: the file, or its contents.
        name: the physical name; None: the file's own.
        gzip: whether to stage ``<name>.gz`` beside it, for templates with ``<gzip/>``.

    Raises:
        WorkError: the name cannot be used, or already has another content.
        OSError: the file cannot be read or copied.
    """
    if name is None:
        name = source.name if isinstance(source, Path) else ""
    if not valid_physical_name(name) or " " in name:
        raise WorkError(
            f"a file cannot be staged as {name!r}: expected letters, digits, '_', '-' and '.', at "
            "most 255 of them (create_work would split the name at a space)"
        )
    if isinstance(source, Path) and source.exists() and not source.is_file():
        raise WorkError(f"{source} cannot be staged: expected a file, not a directory or device")
    try:
        with BytesIO(source) if isinstance(source, bytes) else source.open("rb") as file:
            core.download.add_from(name, file)
            if gzip:
                file.seek(0)
                core.download.add_from(f"{name}.gz", file, packed=True)
    except FileExistsError as error:
        raise WorkError(
            f"'{error}' is staged already, with other contents: a staged file never changes, so "
            "give the new contents another name",
            f"file immutability violation for {error}",
        ) from error
    return name
