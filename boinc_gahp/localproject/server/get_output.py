"""get_output.php: outputs of results, workunits and batches (``web-rpcs.rst``, "get_output").

And get_output3.php: an output that was moved (``containers.rst``, "Outputs that were moved"). Only
``get_file`` with ``download`` set: no archive of a batch, and no file shown in a page.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from flask import Response, abort, redirect, request

from boinc_gahp.localproject.backend.plugins import collected_path
from boinc_gahp.localproject.backend.views import uploaded_files
from boinc_gahp.localproject.server.messages import as_integer, htmlspecialchars, php_message
from boinc_gahp.localproject.server.rpc_batches import find_job
from boinc_gahp.localproject.server.site_pages import (
    BINARY,
    check_project,
    error_page,
    file_response,
    logged_in,
)
from boinc_gahp.localproject.states import Outcome
from boinc_gahp.localproject.store import valid_physical_name
from boinc_gahp.templates.documents import read_result

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable

    from boinc_gahp.localproject.backend.views import UploadedFile
    from boinc_gahp.localproject.core import Core


_HTML = "text/html; charset=UTF-8"


def output_page(core: Core) -> Response:
    """Hand out the output that the request asks for, or answer as the real server does."""
    check_project(core)
    command = _text_argument("cmd")
    auth_str = _text_argument("auth_str")
    answer = {
        "result_file": _result_file,
        "workunit_file": _workunit_file,
        "workunit_files": _workunit_files,
        "batch_files": _batch_files,
    }.get(command)
    if answer is None:
        return Response("bad command\n", content_type=_HTML)
    with core.db.read() as connection:
        return answer(core, connection, auth_str)


def _refuse(words: str) -> NoReturn:
    """End the request with a text."""
    # The words repeat the request, which may be a script. The server's own text contains a ">",
    # which it does not escape.
    abort(Response(htmlspecialchars(words).replace("&gt;", ">"), content_type=_HTML))


def _text_argument(name: str) -> str:
    """Return an argument; without it the request ends."""
    value = request.values.get(name)
    if not value:
        abort(error_page("Unable to handle request"))
    return value


def _number_argument(name: str) -> int:
    """Return an argument that is a number; without it the request ends."""
    try:
        return as_integer(int(request.values.get(name, "")))
    except ValueError:
        # The real server redirects to a page that does not exist.
        abort(redirect(f"/test/missing_arg_{name}.html"))


def _owner_authenticator(connection: sqlite3.Connection, batch_id: int) -> str:
    row = connection.execute(
        "SELECT u.authenticator FROM batch b JOIN user u ON u.id = b.user_id WHERE b.id = ?",
        (batch_id,),
    ).fetchone()
    if row is None:
        # Without an owner there is no secret either.
        _refuse(f"ERROR: no batch {batch_id}")
    return str(row["authenticator"])


def _check(given: str, expected: str, words: str = "bad authenticator") -> None:
    if not secrets.compare_digest(given.encode(), expected.encode()):
        _refuse(f"ERROR: {words}")


def _md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def _result_file(core: Core, connection: sqlite3.Connection, auth_str: str) -> Response:
    name = _text_argument("result_name")
    number = _number_argument("file_num")
    result = connection.execute("SELECT * FROM result WHERE name = ?", (name,)).fetchone()
    if result is None:
        _refuse(f"ERROR: no job instance {name}")
    _check(auth_str, _md5(_owner_authenticator(connection, result["batch"]) + name))
    files = uploaded_files(result)
    if not 0 <= number < len(files):
        _refuse(f"ERROR: bad file num: {number} > {len(files)}")
    return _stored(core, files[number], "no such file")


def _workunit_file(core: Core, connection: sqlite3.Connection, auth_str: str) -> Response:
    name = _text_argument("wu_name")
    number = _number_argument("file_num")
    job = find_job(connection, name)
    if job is None:
        _refuse(f"ERROR: no workunit {name}")
    _check(auth_str, _owner_authenticator(connection, job["batch"]))
    result = _canonical(connection, job)
    files = uploaded_files(result)
    if not 0 <= number < len(files):
        # The connection ends before the promised length, as it does on the real server.
        body = _no_such_number(number).encode() if core.php.display_errors else b""
        return Response([body], headers=_headers("d9", 4096), content_type=BINARY)
    return _stored(core, files[number], "no such file:")


def _canonical(connection: sqlite3.Connection, job: sqlite3.Row) -> sqlite3.Row:
    result: sqlite3.Row | None = connection.execute(
        "SELECT * FROM result WHERE id = ?", (job["canonical_resultid"],)
    ).fetchone()
    if result is None:
        _refuse(f"ERROR: no canonical result for wu {job['name']}")
    return result


def _stored(core: Core, file: UploadedFile, missing: str) -> Response:
    path = core.upload.path(file.name)
    if not path.is_file():
        _refuse(f"ERROR: {missing} {path}")
    return _sent_file(path, file.name)


def _sent_file(path: Path, filename: str, *, temporary: bool = False) -> Response:
    """Send a file; one that is ``temporary`` is removed."""
    answer = file_response(path, _headers(filename, path.stat().st_size))
    if temporary:
        path.unlink()
    return answer


def _headers(filename: str, nbytes: int) -> dict[str, str]:
    return {
        "Content-Description": "File Transfer",
        "Content-Disposition": f"attachment; filename={_header_text(filename)}",
        "Content-Transfer-Encoding": "binary",
        "Expires": "0",
        "Cache-Control": "must-revalidate, post-check=0, pre-check=0",
        "Pragma": "public",
        "Content-Length": str(nbytes),
    }


def _no_such_number(number: int) -> str:
    """PHP's messages on its way from a file number out of range to a directory."""
    null = "md5(): Passing null to parameter #1 ($string) of type string is deprecated"
    read = "readfile(): Read of 8192 bytes failed with errno=21 Is a directory"
    return (
        php_message(f"Undefined array key {number}", "user/get_output.php", 153)
        + php_message(null, "inc/dir_hier.inc", 22, "Deprecated")
        + php_message(read, "inc/util.inc", 1112, "Notice")
    )


def _header_text(name: str) -> str:
    """Return a name for a header: UTF-8 bytes, as PHP sends them, and no control characters."""
    clean = "".join(char if char.isprintable() else "_" for char in name)
    return clean.encode("utf-8", "replace").decode("latin-1")


def _workunit_files(core: Core, connection: sqlite3.Connection, auth_str: str) -> Response:
    number = _number_argument("wu_id")
    job = connection.execute("SELECT * FROM workunit WHERE id = ?", (number,)).fetchone()
    if job is None:
        _refuse(f"ERROR: no workunit {number}")
    _check(auth_str, _md5(_owner_authenticator(connection, job["batch"]) + str(number)))
    result = _canonical(connection, job)
    # With a dot, zip takes the temporary name for an archive's, and writes to a file that nobody
    # sends.
    return _zip(core, f"boinc_wu_{job['name']}_", [] if "." in job["name"] else [result])


def _batch_files(core: Core, connection: sqlite3.Connection, auth_str: str) -> Response:
    number = _number_argument("batch_id")
    expected = _md5(_owner_authenticator(connection, number) + str(number))
    _check(auth_str, expected, "bad auth str")
    results = connection.execute(
        "SELECT r.* FROM workunit w JOIN result r ON r.id = w.canonical_resultid "
        "WHERE w.batch = ? AND r.outcome = ? ORDER BY w.id",
        (number, Outcome.SUCCESS),
    )
    return _zip(core, "boinc_batch_", results)


def _zip(core: Core, prefix: str, results: Iterable[sqlite3.Row]) -> Response:
    """Pack the outputs of results; if there are none, the real server sends a file of 0 bytes."""
    incoming = core.upload.incoming()
    incoming.finish()
    try:
        packed = 0
        with zipfile.ZipFile(incoming.path, "w", zipfile.ZIP_DEFLATED) as archive:
            for result in results:
                for file in uploaded_files(result):
                    if core.upload.exists(file.name):
                        archive.write(core.upload.path(file.name), file.name)
                        packed += 1
        if not packed:
            incoming.path.write_bytes(b"")
    except BaseException:
        incoming.discard()
        raise
    return _sent_file(incoming.path, f"{prefix}{secrets.token_hex(3)}.zip", temporary=True)


def output3_page(core: Core) -> Response:
    """Hand out the output that the request asks for, or answer as the real server does."""
    check_project(core)
    if _text_argument("action") != "get_file":
        return _nothing("")
    result_id, index = _number_argument("result_id"), _number_argument("index")
    with core.db.read() as connection:
        result = connection.execute(
            "SELECT r.xml_doc_in, w.name, w.batch FROM result r JOIN workunit w "
            "ON w.id = r.workunitid WHERE r.id = ?",
            (result_id,),
        ).fetchone()
        if result is None:
            return error_page("no result")
        _check_owner(connection, result["batch"])
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
    return _sent_file(path, path.name) if path.is_file() else _nothing(path.name)


def _nothing(filename: str) -> Response:
    """PHP sends a file that is not there as one without contents."""
    return _sent_file(Path(os.devnull), filename)


def _check_owner(connection: sqlite3.Connection, batch_id: int) -> None:
    """End the request of somebody who may not have the batch's outputs."""
    user = logged_in(connection)
    owned = "SELECT 1 FROM batch WHERE id = ? AND user_id = ?"
    if not (user["manage_all"] or connection.execute(owned, (batch_id, user["id"])).fetchone()):
        abort(error_page("not owner"))
