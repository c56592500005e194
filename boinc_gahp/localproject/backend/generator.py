"""Work generators: an app's own function that is asked for jobs when few are left to send.

On a real server a work generator is a daemon of the project's own that checks how many results are
unsent and calls create_work (``back-end.rst``, "Work generator"); here it is a Python callable,
named in the app's settings.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from boinc_gahp.localproject.backend import plugins, programs
from boinc_gahp.localproject.backend.create_work import create_work, stage_file
from boinc_gahp.localproject.backend.new_job import NewJob
from boinc_gahp.localproject.backend.work import job_exists
from boinc_gahp.localproject.states import ServerState

if TYPE_CHECKING:
    from boinc_gahp.localproject.core import Core


@dataclass(frozen=True, slots=True)
class WorkRequest:
    """The argument of a work generator.

    Attributes:
        app: the app's name.
        wanted: how many jobs are wanted; no more are taken, so a generator may be endless.
        stage: ``stage(contents_or_path, name)`` stages an input file and returns its physical name;
            the same contents may be staged again under the same name.
        exists: whether the project has, or had, a job with a name: this tells a generator where to
            continue, also after a restart.
    """

    app: str
    wanted: int
    stage: Callable[[bytes | str | Path, str], str]
    exists: Callable[[str], bool]


Generator = Callable[[WorkRequest], Iterable[NewJob]]


def generate_pass(core: Core, now: float) -> int:
    """Ask the work generators of all apps that are low on work; return the number of jobs made.

    A generator that raises, or returns something that is not a job, costs its app only time. Like
    one that had no jobs, it is asked again after a while.

    Raises:
        sqlite3.OperationalError: the database cannot be read or written.
    """
    connection = core.db.connection()
    rows = connection.execute(
        "SELECT * FROM app WHERE work_generator != '' AND deprecated = 0 AND work_retry_time <= ?",
        (now,),
    ).fetchall()
    return sum(_ask(core, app, now) for app in rows)


def _ask(core: Core, app: sqlite3.Row, now: float) -> int:
    wanted = app["work_low"] - _unsent(core.db.connection(), app["id"])
    if wanted <= 0:
        return 0
    made, error = 0, None
    try:
        made = _generate(core, app, wanted)
    except sqlite3.OperationalError:
        raise
    except Exception as problem:  # noqa: BLE001 - note_error logs it
        # Any exception is the plug-in's own problem; the project goes on.
        error = problem
    if not made:
        with core.db.write() as connection:
            connection.execute(
                "UPDATE app SET work_retry_time = ? WHERE id = ?", (now + programs.RETRY, app["id"])
            )
            if error is not None:
                what = f"app {app['name']}"
                programs.note_error(connection, programs.WORK_GENERATOR, what, error, now)
    return made


def _generate(core: Core, app: sqlite3.Row, wanted: int) -> int:
    exists = partial(job_exists, core.db.connection())

    def stage(source: bytes | str | Path, name: str) -> str:
        return stage_file(core, Path(source) if isinstance(source, str) else source, name)

    generator = plugins.load(core, app["work_generator"], plugins.WORK_GENERATORS)
    jobs = list(islice(generator(WorkRequest(app["name"], wanted, stage, exists)), wanted))
    for job in jobs:
        if not isinstance(job, NewJob):
            raise TypeError(f"the work generator yielded {job!r}: expected a NewJob")
    if jobs:
        create_work(core, app["name"], jobs)
    return len(jobs)


def _unsent(connection: sqlite3.Connection, app_id: int) -> int:
    """Return how many results of an app wait, plus the workunits that have no results yet."""
    count: int
    (count,) = connection.execute(
        "SELECT (SELECT count(*) FROM result WHERE appid = :app AND server_state = :unsent) "
        "+ (SELECT count(*) FROM workunit w WHERE appid = :app AND canonical_resultid = 0 "
        "AND error_mask = 0 AND NOT EXISTS (SELECT 1 FROM result WHERE workunitid = w.id))",
        {"app": app_id, "unsent": ServerState.UNSENT},
    ).fetchone()
    return count
