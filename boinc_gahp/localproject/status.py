"""The contents and the activity of a project, as plain data: for ``local-project status``."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from boinc_gahp.localproject import accounts
from boinc_gahp.localproject.directory import is_running
from boinc_gahp.localproject.hosts.engine import engine_notice
from boinc_gahp.localproject.web import queries

if TYPE_CHECKING:
    import sqlite3

    from boinc_gahp.localproject.core import Core

_ALL = "all apps"


def status(core: Core) -> dict[str, Any]:
    """Return the page's data and the users, from one snapshot; no authenticators.

    ``batches`` are the newest that are not retired. Times are seconds since the epoch; other units
    are those of :class:`.hosts.Capacity`.
    """
    running = is_running(core.directory)
    with core.db.read() as connection:
        overview = queries.overview(connection, 1, retired=False)
        return {
            "directory": str(core.directory),
            "running": running,
            "url": core.url,
            "notice": engine_notice(connection, running=running),
            "jobs": _counts(overview.totals),
            "batches": [
                {
                    **asdict(batch),
                    "state": batch.state and batch.state.name.lower(),
                    "jobs": _counts(batch.jobs),
                }
                for batch in overview.batches
            ],
            "jobs_without_batch": _counts(overview.without_batch),
            "number_of_batches": overview.number,
            "number_of_retired_batches": overview.retired,
            "hosts": [
                {
                    **asdict(host),
                    "running": [result.name for result in host.running],
                    "behaviours": [str(behaviour) for behaviour in host.behaviours],
                }
                for host in queries.hosts(connection)
            ],
            "programs": [asdict(program) for program in queries.programs(connection)],
            "apps": _apps(connection),
            "users": [_user(connection, user) for user in accounts.users(connection)],
        }


def _counts(jobs: queries.StateCounts) -> dict[str, int]:
    # Here aborted jobs have a number of their own.
    return {"total": jobs.total, **asdict(jobs), "failed": jobs.failed - jobs.aborted}


def _apps(connection: sqlite3.Connection) -> list[dict[str, Any]]:
    errors = {
        row["id"]: row["work_error"] for row in connection.execute("SELECT id, work_error FROM app")
    }
    return [
        {**asdict(app), "versions": dict(app.versions), "work_error": errors[app.id]}
        for app in queries.apps(connection)
    ]


def _user(connection: sqlite3.Connection, user: accounts.User) -> dict[str, Any]:
    (credit,) = connection.execute(
        "SELECT total_credit FROM user WHERE id = ?", (user.id,)
    ).fetchone()
    rights = connection.execute(
        "SELECT a.name, s.manage FROM user_submit_app s JOIN app a ON a.id = s.app_id "
        "WHERE s.user_id = ? ORDER BY a.name",
        (user.id,),
    ).fetchall()
    return {
        "id": user.id,
        "name": user.name,
        "submits_to": [_ALL] if user.submit_all else [right["name"] for right in rights],
        "manages": [_ALL]
        if user.manage_all
        else [right["name"] for right in rights if right["manage"]],
        "max_jobs_in_progress": user.max_jobs_in_progress,
        "credit": credit,
    }
