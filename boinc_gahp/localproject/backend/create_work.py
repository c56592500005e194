"""``create_work``: makes jobs on the server, like BOINC's program and function of that name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from boinc_gahp.localproject import accounts
from boinc_gahp.localproject.backend import batches, work
from boinc_gahp.localproject.backend.new_job import NewJob, RemoteInput, WorkError
from boinc_gahp.localproject.server.replies import PhpFatal, RpcFailed
from boinc_gahp.localproject.settings import SUBMITTER
from boinc_gahp.localproject.states import BatchState

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable

    from boinc_gahp.localproject.core import Core

__all__ = ["NewJob", "RemoteInput", "WorkError", "create_work", "submit"]

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
        used = ({batch_id} | {row.batch_id for row in rows}) - {0}
        for each in used:
            _check_batch(connection, app, each)
        ids = work.insert(connection, rows)
        for each in used:
            work.begin_batch(connection, each)
    core.wake.ring()
    return ids


def submit(
    core: Core, user: accounts.User, app: accounts.AppRow, batch_name: str, jobs: Iterable[NewJob]
) -> int:
    """Make a batch with jobs in one transaction, and return its id.

    Raises:
        WorkError: as :func:`create_work`; or the user may not submit to the app or has as many
            unfinished jobs as allowed, or the batch's name is taken or too long.
    """
    jobs = list(jobs)
    if not jobs:
        raise WorkError("a batch without jobs would never end: expected at least one job")
    # Before the transaction: it takes long, and meanwhile nobody else could write.
    rows = _rows(core, app, jobs, 0)
    with core.db.write() as connection:
        if not accounts.may_submit(connection, user, app):
            raise WorkError(
                f"{user.name} may not submit jobs to {app.name}: the project's admin can allow it",
                "no submit access",
            )
        try:
            accounts.check_job_limit(connection, user, len(rows))
            batch_id = batches.insert(connection, user, app, name=batch_name)
        except RpcFailed as error:
            raise WorkError(error.message, error.message) from error
        except PhpFatal as error:
            raise WorkError("the batch's name is too long: expected at most 255 characters") from (
                error
            )
        work.insert(connection, rows, batch_id)
        work.begin_batch(connection, batch_id)
    core.wake.ring()
    return batch_id


def submit_as_submitter(core: Core, app_name: str, batch_name: str, jobs: Iterable[NewJob]) -> int:
    """Make a batch of the submitter's, like :func:`submit`, for the command line."""
    connection = core.db.connection()
    user = accounts.find_user(connection, SUBMITTER)
    if user is None:
        raise WorkError(f"there is no user {SUBMITTER!r}, who would own the batch")
    return submit(core, user, _app(connection, app_name), batch_name, jobs)


def _rows(
    core: Core, app: accounts.AppRow, jobs: Iterable[NewJob], batch_id: int
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
                f"job {number} of {len(jobs)}: {error.advice}; no job was made",
                error.message,
            ) from error
    return rows


def _check_name(name: str) -> None:
    if name and not _NAME.fullmatch(name):
        raise WorkError(
            f"a job cannot be named {name!r}: expected at most 180 characters, without white "
            "space, quotes and any of / & < > \\"
        )


def _app(connection: sqlite3.Connection, name: str) -> accounts.AppRow:
    try:
        return accounts.find_app(connection, name)
    except RpcFailed as error:
        rows = connection.execute("SELECT name FROM app WHERE deprecated = 0 ORDER BY id")
        names = ", ".join(row["name"] for row in rows)
        raise WorkError(f"there is no app {name!r}; the apps are {names}", error.message) from error


def _check_batch(connection: sqlite3.Connection, app: accounts.AppRow, batch_id: int) -> None:
    batch = batches.by_id(connection, batch_id)
    if batch is None:
        raise WorkError(f"there is no batch {batch_id}")
    if batch["state"] in (BatchState.ABORTED, BatchState.RETIRED):
        state = BatchState(batch["state"]).name.lower()
        raise WorkError(f"batch {batch_id} ({batch['name']!r}) is {state}: use another one")
    if batch["app_id"] != app.id:
        raise WorkError(
            f"batch {batch_id} ({batch['name']!r}) is not for app {app.name!r}: all jobs of a "
            "batch use the same app"
        )
