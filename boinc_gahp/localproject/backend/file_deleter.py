"""The file deleter: removes inputs and outputs that are READY (``back-end.rst``, "File deleter").

Like the real one, it only looks at the template's ``no_delete``: another workunit that uses the
same input loses it, fetched or not. All templates that this project writes have ``no_delete``.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from boinc_gahp.localproject.states import FileDeleteState
from boinc_gahp.templates.documents import read_result, read_workunit
from boinc_gahp.templates.types import TemplateError

if TYPE_CHECKING:
    from boinc_gahp.localproject.core import Core

log = logging.getLogger("boinc_gahp.localproject")

_PASS = 1000


def delete_pass(core: Core) -> int:
    """Handle the workunits and results that are READY; return their number."""
    connection = core.db.connection()
    count = 0
    for table, column in (("workunit", "xml_doc"), ("result", "xml_doc_in")):
        rows = connection.execute(
            f"SELECT id, {column} AS document FROM {table} "  # noqa: S608
            f"WHERE file_delete_state = {FileDeleteState.READY:d} ORDER BY id LIMIT ?",
            (_PASS,),
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


def _delete_files(core: Core, table: str, document: str) -> FileDeleteState:
    try:
        if table == "workunit":
            for input_file in read_workunit(document).files:
                if not input_file.no_delete:
                    core.download.remove(input_file.name)
                    if input_file.gzipped_urls:
                        core.download.remove(f"{input_file.name}.gz")
        else:
            for output_file in read_result(document):
                if not output_file.no_delete:
                    core.upload.remove(output_file.name)
    except (OSError, ValueError, TemplateError) as error:
        log.error("files cannot be deleted: %s", error)
        return FileDeleteState.ERROR
    return FileDeleteState.DONE
