"""What removes what is no longer needed: the file deleter, and what a server leaves to cron.

Like the real file deleter (``back-end.rst``, "File deleter"), ours only looks at the template's
``no_delete``: another workunit that uses the same input loses it, fetched or not. All templates
that this project writes have ``no_delete``.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from boinc_gahp.localproject.backend import batches
from boinc_gahp.localproject.backend.programs import PASS
from boinc_gahp.localproject.states import BatchState, FileDeleteState
from boinc_gahp.templates.documents import read_result, read_workunit
from boinc_gahp.templates.types import TemplateError

if TYPE_CHECKING:
    import sqlite3

    from boinc_gahp.localproject.core import Core


log = logging.getLogger("boinc_gahp.localproject")

#: A younger file is left alone: its batch may be about to be submitted.
_MIN_AGE = 3600.0
#: How long the outputs of a retired batch can still be fetched.
_RETIRED_FOR = 3600.0


def delete_pass(core: Core) -> int:
    """Handle the workunits and results that are READY; return their number."""
    connection = core.db.connection()
    count = 0
    for table, column in (("workunit", "xml_doc"), ("result", "xml_doc_in")):
        rows = connection.execute(
            f"SELECT id, {column} AS document FROM {table} "  # noqa: S608
            f"WHERE file_delete_state = {FileDeleteState.READY:d} ORDER BY id LIMIT ?",
            (PASS,),
        ).fetchall()
        for row in rows:
            state = _delete_files(core, table, row["document"])
            with core.db.write() as writing:
                writing.execute(
                    f"UPDATE {table} SET file_delete_state = ? "  # noqa: S608
                    f"WHERE id = ? AND file_delete_state = {FileDeleteState.READY:d}",
                    (state, row["id"]),
                )
        count += len(rows)
    return count


def _delete_files(core: Core, table: str, document: str, *, kept: bool = False) -> FileDeleteState:
    """Delete the files of a workunit or a result; ``kept``: also those with ``no_delete``."""
    try:
        if table == "workunit":
            for input_file in read_workunit(document).files:
                if not input_file.no_delete:
                    core.download.remove(input_file.name)
                    if input_file.gzipped_urls:
                        core.download.remove(f"{input_file.name}.gz")
        else:
            for output_file in read_result(document):
                if kept or not output_file.no_delete:
                    core.upload.remove(output_file.name)
    except (OSError, ValueError, TemplateError) as error:
        log.error("files cannot be deleted: %s", error)
        return FileDeleteState.ERROR
    return FileDeleteState.DONE


def expire_batches(core: Core, now: float) -> int:
    """Abort and retire the batches past their expire_time; return their number.

    A batch that was aborted before is retired too, or else its outputs would stay.
    """
    with core.db.write() as connection:
        rows = connection.execute(
            "SELECT * FROM batch WHERE expire_time > 0 AND expire_time < ? AND state < ?",
            (now, BatchState.RETIRED),
        ).fetchall()
        for row in rows:
            if row["state"] < BatchState.ABORTED:
                batches.abort(connection, row["id"])
            batches.retire(connection, row)
    return len(rows)


def delete_job_files(core: Core, now: float) -> int:
    """Remove staged files past their delete_time that no active batch uses; return their number.

    A complete batch is no longer active (``web-rpcs.rst``, "Files": "as soon as its batches end");
    as on a real server, it becomes complete when somebody asks for it.
    """
    with core.db.write() as connection:
        rows = connection.execute(
            "SELECT id, name FROM job_file j WHERE delete_time < ? AND create_time < ? "
            "AND NOT EXISTS (SELECT 1 FROM batch_file_assoc a JOIN batch b ON b.id = a.batch_id "
            "WHERE a.job_file_id = j.id AND b.state < ?) LIMIT ?",
            (now, now - _MIN_AGE, BatchState.COMPLETE, PASS),
        ).fetchall()
        for row in rows:
            connection.execute("DELETE FROM batch_file_assoc WHERE job_file_id = ?", (row["id"],))
            connection.execute("DELETE FROM job_file WHERE id = ?", (row["id"],))
            core.download.remove(row["name"])
    return len(rows)


def delete_retired_outputs(core: Core, now: float) -> int:
    """Remove the outputs of batches that were retired a while ago; return the number of batches."""
    connection = core.db.connection()
    rows = connection.execute(
        "SELECT id FROM batch WHERE state = ? AND logical_end_time > 0 AND logical_end_time < ?",
        (BatchState.RETIRED, now - _RETIRED_FOR),
    ).fetchall()
    for row in rows:
        for result in connection.execute(
            "SELECT r.xml_doc_in FROM workunit w JOIN result r ON r.workunitid = w.id "
            "WHERE w.batch = ? AND r.xml_doc_out != ''",
            (row["id"],),
        ):
            _delete_files(core, "result", result["xml_doc_in"], kept=True)
        with core.db.write() as writing:
            # Later results of these workunits have nothing to be compared with.
            writing.execute(
                "UPDATE result SET file_delete_state = ? WHERE xml_doc_out != '' "
                "AND workunitid IN (SELECT id FROM workunit WHERE batch = ?)",
                (FileDeleteState.DONE, row["id"]),
            )
            writing.execute("UPDATE batch SET logical_end_time = 0 WHERE id = ?", (row["id"],))
    return len(rows)


def outputs_arrived(connection: sqlite3.Connection, batch_id: int, now: float) -> None:
    """Have a retired batch cleaned again if it was cleaned: a result came in after that."""
    connection.execute(
        "UPDATE batch SET logical_end_time = ? WHERE id = ? AND state = ? AND logical_end_time = 0",
        (now, batch_id, BatchState.RETIRED),
    )
