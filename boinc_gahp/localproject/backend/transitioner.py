"""The transitioner: decides what happens to each workunit (``back-end.rst``, "Transitioner").

Its pass only uses the database, one transaction per workunit: a crash between any two leaves a
state from which the next pass continues. Comments give the numbers of the rules there.
"""

from __future__ import annotations

import math
import secrets
import sqlite3
from typing import TYPE_CHECKING

from boinc_gahp.localproject.backend.cleaning import outputs_arrived
from boinc_gahp.localproject.backend.programs import PASS, TRANSITIONER, handle_each, put_off
from boinc_gahp.localproject.core import MAX_NAME
from boinc_gahp.localproject.states import (
    NEVER,
    AssimilateState,
    ErrorMask,
    FileDeleteState,
    Outcome,
    ServerState,
    ValidateState,
)
from boinc_gahp.templates.filling import fill_output
from boinc_gahp.templates.types import TemplateError

if TYPE_CHECKING:
    from boinc_gahp.localproject.core import Core

#: After this many seconds a workunit is handled again in any case.
_SAFETY_NET = 3600.0


def transition_pass(core: Core, now: float) -> int:
    """Handle the workunits whose transition_time has come; return their number."""
    connection = core.db.connection()
    due = connection.execute(
        "SELECT id, name FROM workunit WHERE transition_time <= ? ORDER BY transition_time LIMIT ?",
        (now, PASS),
    ).fetchall()

    def handle(row: sqlite3.Row) -> None:
        with core.db.write() as connection:
            workunit = connection.execute(
                "SELECT * FROM workunit WHERE id = ? AND transition_time <= ?", (row["id"], now)
            ).fetchone()
            if workunit is not None:
                _Transition(core, connection, workunit, now).run()

    return handle_each(core, TRANSITIONER, due, handle, now)


class _ResultRow:
    """The fields of a result that can change."""

    def __init__(self, row: sqlite3.Row) -> None:
        self.id: int = row["id"]
        self.name: str = row["name"]
        self.report_deadline: float = row["report_deadline"]
        self.server_state = ServerState(row["server_state"])
        self.outcome = Outcome(row["outcome"])
        self.validate_state = ValidateState(row["validate_state"])
        self.file_delete_state = FileDeleteState(row["file_delete_state"])
        self._before = self._state()

    def _state(self) -> tuple[int, ...]:
        return self.server_state, self.outcome, self.validate_state, self.file_delete_state

    def save(self, connection: sqlite3.Connection) -> None:
        if self._state() != self._before:
            connection.execute(
                "UPDATE result SET server_state = ?, outcome = ?, validate_state = ?, "
                "file_delete_state = ? WHERE id = ?",
                (*self._state(), self.id),
            )

    def is_over(self, *outcomes: Outcome) -> bool:
        return self.server_state is ServerState.OVER and self.outcome in outcomes

    @property
    def unsent(self) -> bool:
        return self.server_state is ServerState.UNSENT

    @property
    def unchecked(self) -> bool:
        """A success that the validator has not decided on."""
        return self.is_over(Outcome.SUCCESS) and self.validate_state in (
            ValidateState.INIT,
            ValidateState.INCONCLUSIVE,
        )


class _Transition:
    """One workunit's pass; the methods are the numbered rules of ``back-end.rst``, in order."""

    def __init__(
        self, core: Core, connection: sqlite3.Connection, workunit: sqlite3.Row, now: float
    ) -> None:
        self.core = core
        self.connection = connection
        self.row = workunit
        self.now = now
        self.new = dict(workunit)
        self.results = [
            _ResultRow(row)
            for row in connection.execute(
                "SELECT id, name, report_deadline, server_state, outcome, "
                "validate_state, file_delete_state FROM result WHERE workunitid = ? ORDER BY id",
                (workunit["id"],),
            )
        ]
        self.canonical = next(
            (r for r in self.results if r.id == workunit["canonical_resultid"]), None
        )

    def run(self) -> None:
        """Run the pass."""
        self._time_out()
        self._call_validator()
        needed = self._note_errors()
        problem = None
        if self.new["error_mask"]:
            self._clean_up()
        elif self.canonical is None:
            problem = self._make_results(needed)
        self._call_assimilator()
        self._release_files()
        self.new["transition_time"] = self._next_time()
        for result in self.results:
            result.save(self.connection)
        self._save()
        if problem is not None:
            put_off(self.connection, TRANSITIONER, self.row, problem, self.now)

    def _save(self) -> None:
        changed = {column: value for column, value in self.new.items() if value != self.row[column]}
        if changed:
            assignments = ", ".join(f"{column} = ?" for column in changed)
            self.connection.execute(
                f"UPDATE workunit SET {assignments}, mod_time = clock() WHERE id = ?",  # noqa: S608
                (*changed.values(), self.row["id"]),
            )

    def _time_out(self) -> None:
        # Rule 1.
        for result in self.results:
            late = result.report_deadline < self.now
            if result.server_state is ServerState.IN_PROGRESS and late:
                result.server_state, result.outcome = ServerState.OVER, Outcome.NO_REPLY

    def _successes(self) -> int:
        return sum(
            result.is_over(Outcome.SUCCESS) and result.validate_state is not ValidateState.INVALID
            for result in self.results
        )

    def _call_validator(self) -> None:
        # Rule 3. Once there is a canonical result, each success can be compared with it, whatever
        # an app's own validator decided about the others.
        enough = self.canonical is not None or self._successes() >= self.row["min_quorum"]
        gone = (
            self.canonical is not None and self.canonical.file_delete_state is FileDeleteState.DONE
        )
        for result in self.results:
            if result.is_over(Outcome.SUCCESS) and result.validate_state is ValidateState.INIT:
                outputs_arrived(self.connection, self.row["batch"], self.now)
                if gone:
                    result.validate_state = ValidateState.TOO_LATE
                elif enough:
                    self.new["need_validate"] = 1

    def _note_errors(self) -> int:
        """Set error bits and return how many more results are needed (rule 4)."""
        row, results = self.row, self.results
        errors = sum(r.is_over(Outcome.CLIENT_ERROR, Outcome.VALIDATE_ERROR) for r in results)
        if any(r.is_over(Outcome.COULDNT_SEND) for r in results):
            self.new["error_mask"] |= ErrorMask.COULDNT_SEND_RESULT
        if errors > row["max_error_results"]:
            self.new["error_mask"] |= ErrorMask.TOO_MANY_ERROR_RESULTS
        active = sum(r.unsent or r.server_state is ServerState.IN_PROGRESS for r in results)
        needed: int = max(0, row["target_nresults"] - active - self._successes())
        allowed: int = row["max_total_results"] - len(results)
        if allowed < 0 or (allowed == 0 and needed > 0):
            self.new["error_mask"] |= ErrorMask.TOO_MANY_TOTAL_RESULTS
        return min(needed, max(0, allowed))

    def _clean_up(self) -> None:
        # Rule 5, with an error.
        for result in self.results:
            if result.unsent:
                result.server_state, result.outcome = ServerState.OVER, Outcome.DIDNT_NEED
            elif result.unchecked:
                result.validate_state = ValidateState.NO_CHECK
        if self.new["assimilate_state"] == AssimilateState.INIT:
            self.new["assimilate_state"] = AssimilateState.READY

    def _make_results(self, needed: int) -> Exception | None:
        """Make new results (rule 5, without error); return an error if the template is wrong."""
        row = self.row
        numbers = [int(result.name.rpartition("_")[2]) for result in self.results]
        first = max(numbers, default=-1) + 1
        path = self.core.directory / row["result_template_file"]
        for number in range(first, first + needed):
            name = f"{row['name']}_{number}"
            random = secrets.randbelow(2**31)
            if len(name) > MAX_NAME:
                # The real one quits, and each time it is started again, it quits at the same
                # workunit (wire/FACT_long_job_names_kill_transitioner.json).
                raise sqlite3.OperationalError(
                    f"Data too long for column 'name' of result {name}; quitting"
                )
            try:
                template = self.core.output_template(path)
                document = fill_output(template, name, self.core.upload_url, f"r{random}")
                if not self.core.is_deliverable(path):
                    document = document.replace("<result>\n", "<result>", 1)
            except (OSError, TemplateError) as error:
                return error
            self.connection.execute(
                "INSERT INTO result (create_time, workunitid, server_state, name, xml_doc_in, "
                "batch, random, app_version_num, appid, priority) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    int(self.now),
                    row["id"],
                    ServerState.UNSENT,
                    name,
                    document,
                    row["batch"],
                    random,
                    row["app_version_num"],
                    row["appid"],
                    row["priority"],
                ),
            )
        return None

    def _call_assimilator(self) -> None:
        # Rule 6.
        over = all(result.server_state is ServerState.OVER for result in self.results)
        waiting = any(
            result.is_over(Outcome.SUCCESS) and result.validate_state is ValidateState.INIT
            for result in self.results
        )
        new = self.new["assimilate_state"] == AssimilateState.INIT
        if new and self.canonical is not None and over and not waiting:
            self.new["assimilate_state"] = AssimilateState.READY

    def _release_files(self) -> None:
        # Rule 7.
        if self.new["assimilate_state"] != AssimilateState.DONE:
            return
        validated = not any(result.unchecked for result in self.results)
        over = all(result.server_state is ServerState.OVER for result in self.results)
        if over and validated and self.new["file_delete_state"] == FileDeleteState.INIT:
            self.new["file_delete_state"] = FileDeleteState.READY
        for result in self.results:
            if result.file_delete_state is not FileDeleteState.INIT:
                continue
            if result is self.canonical:
                # Today's BOINC also waits for results that are still out, while 004 does not: they
                # would come back with nothing left to compare them with.
                ready = over and validated
            elif result.is_over(Outcome.SUCCESS):
                ready = not result.unchecked
            else:
                ready = result.is_over(Outcome.CLIENT_ERROR, Outcome.VALIDATE_ERROR)
            if ready:
                result.file_delete_state = FileDeleteState.READY

    def _next_time(self) -> float:
        # Rule 8.
        finished = self.canonical is not None or self.new["error_mask"]
        deadlines = [
            result.report_deadline
            for result in self.results
            if result.server_state is ServerState.IN_PROGRESS
        ]
        times = list(deadlines)
        if not finished:
            times.append(self.now + _SAFETY_NET)
        # A deadline of this very moment has not passed yet: do not run again at once.
        return max(min(times, default=float(NEVER)), math.nextafter(self.now, math.inf))
