"""get_output3.php: an output that was moved (``containers.rst``, "Outputs that were moved").

Only ``get_file`` with ``download`` set: no archive of a batch, and no file shown in a page.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from flask import Response, abort, redirect, request

from boinc_gahp.localproject.backend.batch_collect import collected_path
from boinc_gahp.localproject.names import valid_physical_name
from boinc_gahp.localproject.server.get_output import (
    check_project,
    number_argument,
    sent_file,
    text_argument,
)
from boinc_gahp.localproject.server.site_pages import error_page
from boinc_gahp.templates.documents import read_result

if TYPE_CHECKING:
    import sqlite3

    from boinc_gahp.localproject.core import Core


def output3_page(core: Core) -> Response:
    """Hand out the output that the request asks for, or answer as the real server does."""
    check_project(core)
    if text_argument("action") != "get_file":
        return _nothing("")
    result_id, index = number_argument("result_id"), number_argument("index")
    with core.db.read() as connection:
        result = connection.execute(
            "SELECT r.xml_doc_in, w.name, w.batch FROM result r JOIN workunit w "
            "ON w.id = r.workunitid WHERE r.id = ?",
            (result_id,),
        ).fetchone()
        if result is None:
            return error_page("no result")
        _check(connection, unquote(request.cookies.get("auth", "")), result["batch"])
    # Unlike in get_output.php, it is the place in the template.
    files = read_result(result["xml_doc_in"])
    if index >= len(files):
        return error_page("bad index")
    if index < 0 or not valid_physical_name(files[index].open_name):
        return error_page("bad logical name")
    path = collected_path(core, result["batch"], result["name"], files[index].open_name)
    if files[index].gzip_when_done:
        # The assimilator moves it without this.
        path = path.with_name(f"{path.name}.gz")
    return sent_file(path, path.name) if path.is_file() else _nothing(path.name)


def _nothing(filename: str) -> Response:
    """PHP sends a file that is not there as one without contents."""
    return sent_file(Path(os.devnull), filename)


def _check(connection: sqlite3.Connection, authenticator: str, batch_id: int) -> None:
    """End the request of somebody who may not have the batch's outputs."""
    user = connection.execute(
        "SELECT u.id, s.manage_all FROM user u LEFT JOIN user_submit s ON s.user_id = u.id "
        "WHERE u.authenticator = ?",
        (authenticator,),
    ).fetchone()
    if user is None:
        wanted = quote(request.full_path.rpartition("/")[2], safe="")
        abort(redirect(f"/test/login_form.php?next_url={wanted}"))
    owned = "SELECT 1 FROM batch WHERE id = ? AND user_id = ?"
    if not (user["manage_all"] or connection.execute(owned, (batch_id, user["id"])).fetchone()):
        abort(error_page("not owner"))
