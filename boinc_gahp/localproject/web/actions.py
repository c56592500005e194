"""Actions on batches and jobs: aborting and retiring them, as the RPCs do it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flask import abort, flash, redirect, url_for

from boinc_gahp.localproject import accounts
from boinc_gahp.localproject.backend import batches
from boinc_gahp.localproject.states import BatchState
from boinc_gahp.localproject.web import access, words
from boinc_gahp.localproject.web.posted import posted
from boinc_gahp.text import count

if TYPE_CHECKING:
    import sqlite3

    from werkzeug.wrappers import Response as AnyResponse

    from boinc_gahp.localproject.core import Core


def owned_batch(core: Core, connection: sqlite3.Connection, batch_id: int) -> sqlite3.Row:
    """Return a batch that the visitor may act on; refuse any other."""
    user = access.need_visitor(core)
    batch = batches.by_id(connection, batch_id)
    if batch is None:
        abort(404)
    check_manage(connection, user, batch["app_id"], batch["user_id"])
    return batch


def owned_job(core: Core, connection: sqlite3.Connection, job_id: int) -> sqlite3.Row:
    """Return a job (``w.*``) that the visitor may act on; refuse any other."""
    user = access.need_visitor(core)
    job: sqlite3.Row | None = connection.execute(
        "SELECT w.*, coalesce(b.user_id, 0) AS user_id FROM workunit w "
        "LEFT JOIN batch b ON b.id = w.batch WHERE w.id = ?",
        (job_id,),
    ).fetchone()
    if job is None:
        abort(404)
    check_manage(connection, user, job["appid"], job["user_id"])
    return job


def check_manage(
    connection: sqlite3.Connection, user: accounts.User, app_id: int, owner_id: int
) -> None:
    """Refuse other users' batches, unless the user manages the app."""
    if not accounts.may_manage(connection, user, accounts.AppRow(app_id, ""), owner_id):
        raise access.Refused(
            "This is not yours",
            f"You are signed in as {user.name}, but this belongs to another user. Sign in as its "
            "owner, or ask the project's admin for the right to manage it.",
        )


def abort_batch(core: Core, batch_id: int) -> AnyResponse:
    """Abort a batch's jobs that are neither done nor failed."""
    access.need_visitor(core)
    with posted(core), core.db.write() as connection:
        batch = owned_batch(core, connection, batch_id)
        done = batch["state"] not in (BatchState.ABORTED, BatchState.RETIRED)
        if done:
            batches.abort(connection, batch_id)
    said = "was aborted. Jobs that had ended stay as they are." if done else "had already ended."
    return _over(
        core, f"Batch {batch['name']} {said}", done, url_for("page.batch", batch_id=batch_id)
    )


def retire_batch(core: Core, batch_id: int) -> AnyResponse:
    """Abort the rest of a batch and retire it."""
    access.need_visitor(core)
    with posted(core), core.db.write() as connection:
        batch = owned_batch(core, connection, batch_id)
        done = batch["state"] != BatchState.RETIRED
        if done:
            batches.retire(connection, batch)
    said = "was retired. Its outputs will be deleted later." if done else "was already retired."
    return _over(
        core, f"Batch {batch['name']} {said}", done, url_for("page.batch", batch_id=batch_id)
    )


def abort_job(core: Core, job_id: int) -> AnyResponse:
    """Abort one job."""
    access.need_visitor(core)
    with posted(core), core.db.write() as connection:
        job = owned_job(core, connection, job_id)
        done = _open(job)
        if done:
            batches.cancel_jobs(connection, "id = ?", (job_id,))
    said = "was aborted." if done else "had already ended: nothing was done."
    return _over(core, f"Job {job['name']} {said}", done, url_for("page.job", job_id=job_id))


def abort_jobs(core: Core, batch_id: int) -> AnyResponse:
    """Abort the jobs that are ticked in a batch's list (fields ``job_<id>``)."""
    access.need_visitor(core)
    with posted(core) as sent, core.db.write() as connection:
        ids = [
            int(n)
            for name in sent.texts()
            if (n := name.removeprefix("job_")).isdecimal() and len(n) < 18
        ]
        jobs = [owned_job(core, connection, job_id) for job_id in ids]
        aborted = [job for job in jobs if _open(job)]
        for job in aborted:
            batches.cancel_jobs(connection, "id = ?", (job["id"],))
    over = len(jobs) - len(aborted)
    said = f"{count(len(aborted), 'job')} aborted"
    if not jobs:
        said = "No job was ticked: nothing was done"
    elif over:
        said += f"; {words.thousands(over)} had already ended"
    return _over(core, f"{said}.", bool(aborted), url_for("page.batch", batch_id=batch_id))


def _over(core: Core, said: str, done: bool, address: str) -> AnyResponse:
    """Wake the back end, and redirect to the batch or the job, which shows what was done."""
    if done:
        core.wake.ring()
    flash(said, "good" if done else "bad")
    return redirect(address, 303)


def _open(job: sqlite3.Row) -> bool:
    return not job["canonical_resultid"] and not job["error_mask"]
