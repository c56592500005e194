"""The assimilator: hands finished workunits to the app's handler (``back-end.rst``, "Assimilator").

An app's handler (``app.assimilator``, see :mod:`.plugins`) is a function
``handler(job, canonical, instances)``: a :class:`~.views.Workunit`; the canonical
:class:`~.views.Result`, or None if the job failed (``job.error_mask`` tells why); and all
instances, oldest first. Its return value is ignored.

It is called once for each finished workunit, but must be idempotent. It is called again after a
crash in the middle of it, or between its end and the commit; if it raises (:mod:`.programs`); and
if a job that was aborted gets a canonical result after all. It runs outside any transaction. Apps
without a handler leave their outputs in place, for submitters to fetch.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from boinc_gahp.localproject.backend import plugins, views
from boinc_gahp.localproject.backend.programs import ASSIMILATOR, PASS, handle_each
from boinc_gahp.localproject.errors import LocalProjectTrouble
from boinc_gahp.localproject.states import AssimilateState

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable

    from boinc_gahp.localproject.core import Core

    Handler = Callable[[views.Workunit, views.Result | None, tuple[views.Result, ...]], object]

#: What tells a handler's answer that has yet to be run.
_NOT_RUN = (inspect.isawaitable, inspect.isgenerator, inspect.isasyncgen)


def assimilate_pass(core: Core, now: float) -> int:
    """Handle the workunits that are READY; return their number."""
    connection = core.db.connection()
    due = connection.execute(
        "SELECT w.id, w.name, a.name AS app, coalesce(a.assimilator, '') AS spec "  # noqa: S608
        "FROM workunit w LEFT JOIN app a ON a.id = w.appid "
        f"WHERE w.assimilate_state = {AssimilateState.READY:d} "
        "AND (w.retry_time <= ? OR coalesce(a.assimilator, '') = '') ORDER BY w.id LIMIT ?",
        (now, PASS),
    ).fetchall()
    handlers: dict[str, Handler] = {}

    def handle(row: sqlite3.Row) -> None:
        spec = row["spec"]
        if not spec:
            with core.db.write() as connection:
                _done(connection, row["id"], now)
            return
        if spec not in handlers:
            handlers[spec] = plugins.load(core, spec, plugins.ASSIMILATORS)
        _assimilate(core, row, handlers[spec], now)

    return handle_each(core, ASSIMILATOR, due, handle, now)


def _assimilate(core: Core, due: sqlite3.Row, handler: Handler, now: float) -> None:
    with core.db.read() as connection:
        workunit = connection.execute(
            "SELECT * FROM workunit WHERE id = ? AND assimilate_state = ?",
            (due["id"], AssimilateState.READY),
        ).fetchone()
        results = connection.execute(
            "SELECT * FROM result WHERE workunitid = ? ORDER BY id", (due["id"],)
        ).fetchall()
    if workunit is None:
        return
    instances = tuple(views.instance(core, row) for row in results)
    canonical = next((i for i in instances if i.id == workunit["canonical_resultid"]), None)
    what = f"the assimilator {due['spec']!r}"
    answer = plugins.call(what, handler, views.job(workunit, due["app"]), canonical, instances)
    if any(is_it(answer) for is_it in _NOT_RUN):
        if inspect.iscoroutine(answer):
            answer.close()
        raise LocalProjectTrouble(
            f"{what} has not run: expected a plain function, without async and without yield"
        )
    with core.db.write() as connection:
        current = connection.execute(
            "SELECT canonical_resultid FROM workunit WHERE id = ?", (due["id"],)
        ).fetchone()
        # A canonical result that has arrived meanwhile is handed over in the next pass.
        if current["canonical_resultid"] == workunit["canonical_resultid"]:
            _done(connection, due["id"], now)


def _done(connection: sqlite3.Connection, workunit_id: int, now: float) -> None:
    connection.execute(
        "UPDATE workunit SET assimilate_state = ?, transition_time = ?, mod_time = clock(), "
        "retry_time = 0 WHERE id = ? AND assimilate_state = ?",
        (AssimilateState.DONE, now, workunit_id, AssimilateState.READY),
    )
