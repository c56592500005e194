"""get_output3.php: an output that was moved (``containers.rst``, "Outputs that were moved").

Only ``get_file`` with ``download`` set: no archive of a batch, and no file shown in a page.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from boinc_gahp.localproject.backend.batch_collect import collected_path
from boinc_gahp.localproject.backend.outputs import NotHandled, SentFile, number_in, text_in
from boinc_gahp.localproject.names import valid_physical_name
from boinc_gahp.templates.documents import read_result

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping

    from boinc_gahp.localproject.core import Core


class NotLoggedIn(Exception):
    """The cookie ``auth`` is nobody's authenticator: the real server redirects to its form."""


def get_output3(core: Core, arguments: Mapping[str, str], cookies: Mapping[str, str]) -> SentFile:
    """Find the output that a request's arguments ask for.

    Raises:
        NotLoggedIn, MissingArgument, NotHandled: as the real server answers.
    """
    if text_in(arguments, "action") != "get_file":
        return _nothing("")
    result_id, index = number_in(arguments, "result_id"), number_in(arguments, "index")
    with core.db.read() as connection:
        result = connection.execute(
            "SELECT r.xml_doc_in, w.name, w.batch FROM result r JOIN workunit w "
            "ON w.id = r.workunitid WHERE r.id = ?",
            (result_id,),
        ).fetchone()
        if result is None:
            raise NotHandled("no result")
        _check(connection, unquote(cookies.get("auth", "")), result["batch"])
    # Unlike in get_output.php, it is the place in the template.
    files = read_result(result["xml_doc_in"])
    if index >= len(files):
        raise NotHandled("bad index")
    if index < 0 or not valid_physical_name(files[index].open_name):
        raise NotHandled("bad logical name")
    path = collected_path(core, result["batch"], result["name"], files[index].open_name)
    if files[index].gzip_when_done:
        # The assimilator moves it without this.
        path = path.with_name(f"{path.name}.gz")
    if not path.is_file():
        return _nothing(path.name)
    return SentFile(path, path.name, path.stat().st_size)


def _nothing(filename: str) -> SentFile:
    """PHP sends a file that is not there as one without contents."""
    return SentFile(Path(os.devnull), filename, 0)


def _check(connection: sqlite3.Connection, authenticator: str, batch_id: int) -> None:
    user = connection.execute(
        "SELECT u.id, s.manage_all FROM user u LEFT JOIN user_submit s ON s.user_id = u.id "
        "WHERE u.authenticator = ?",
        (authenticator,),
    ).fetchone()
    if user is None:
        raise NotLoggedIn
    owned = "SELECT 1 FROM batch WHERE id = ? AND user_id = ?"
    if not (user["manage_all"] or connection.execute(owned, (batch_id, user["id"])).fetchone()):
        raise NotHandled("not owner")
