"""get_output.php: outputs of results, workunits and batches (``web-rpcs.rst``, "get_output")."""

from __future__ import annotations

import hashlib
import secrets
import zipfile
from typing import TYPE_CHECKING

from flask import Response, abort, redirect, request
from werkzeug.wsgi import wrap_file

from boinc_gahp.localproject.backend.outputs import uploaded_files
from boinc_gahp.localproject.server.replies import htmlspecialchars, php_message
from boinc_gahp.localproject.server.request import as_integer
from boinc_gahp.localproject.server.rpc_jobs import find_job
from boinc_gahp.localproject.server.site_pages import error_page
from boinc_gahp.localproject.states import Outcome

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable
    from pathlib import Path

    from boinc_gahp.localproject.backend.outputs import UploadedFile
    from boinc_gahp.localproject.core import Core


_HTML = "text/html; charset=UTF-8"
_BINARY = "application/octet-stream"


class _Refused(Exception):
    """It answers with a text."""


def output_page(core: Core) -> Response:
    """Hand out the output that the request asks for, or answer as the real server does."""
    check_project(core)
    command = text_argument("cmd")
    auth_str = text_argument("auth_str")
    answer = {
        "result_file": _result_file,
        "workunit_file": _workunit_file,
        "workunit_files": _workunit_files,
        "batch_files": _batch_files,
    }.get(command)
    if answer is None:
        return Response("bad command\n", content_type=_HTML)
    try:
        with core.db.read() as connection:
            return answer(core, connection, auth_str)
    except _Refused as refused:
        # The words repeat the request, which may be a script. The server's own text contains a ">",
        # which it does not escape.
        text = htmlspecialchars(str(refused)).replace("&gt;", ">")
        return Response(text, content_type=_HTML)


def check_project(core: Core) -> None:
    """End the request if the project is down."""
    if core.web_stopped:
        abort(error_page("Project down for maintenance"))
    if core.database_down:
        abort(error_page("Unable to handle request"))


def text_argument(name: str) -> str:
    """Return an argument; without it the request ends."""
    value = request.values.get(name)
    if not value:
        abort(error_page("Unable to handle request"))
    return value


def number_argument(name: str) -> int:
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
        raise _Refused(f"ERROR: no batch {batch_id}")
    return str(row["authenticator"])


def _check(given: str, expected: str, words: str = "bad authenticator") -> None:
    if not secrets.compare_digest(given.encode(), expected.encode()):
        raise _Refused(f"ERROR: {words}")


def _md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def _result_file(core: Core, connection: sqlite3.Connection, auth_str: str) -> Response:
    name = text_argument("result_name")
    number = number_argument("file_num")
    result = connection.execute("SELECT * FROM result WHERE name = ?", (name,)).fetchone()
    if result is None:
        raise _Refused(f"ERROR: no job instance {name}")
    _check(auth_str, _md5(_owner_authenticator(connection, result["batch"]) + name))
    files = uploaded_files(result)
    if not 0 <= number < len(files):
        raise _Refused(f"ERROR: bad file num: {number} > {len(files)}")
    file = files[number]
    if not core.upload.exists(file.name):
        raise _Refused(f"ERROR: no such file {core.upload.path(file.name)}")
    return _stored(core, file)


def _workunit_file(core: Core, connection: sqlite3.Connection, auth_str: str) -> Response:
    name = text_argument("wu_name")
    number = number_argument("file_num")
    job = find_job(connection, name)
    if job is None:
        raise _Refused(f"ERROR: no workunit {name}")
    _check(auth_str, _owner_authenticator(connection, job["batch"]))
    result = _canonical(connection, job)
    files = uploaded_files(result)
    if not 0 <= number < len(files):
        # The connection ends before the promised length, as it does on the real server.
        body = _no_such_number(number).encode() if core.php.display_errors else b""
        return Response([body], headers=_headers("d9", 4096), content_type=_BINARY)
    file = files[number]
    if not core.upload.exists(file.name):
        raise _Refused(f"ERROR: no such file: {core.upload.path(file.name)}")
    return _stored(core, file)


def _canonical(connection: sqlite3.Connection, job: sqlite3.Row) -> sqlite3.Row:
    result: sqlite3.Row | None = connection.execute(
        "SELECT * FROM result WHERE id = ?", (job["canonical_resultid"],)
    ).fetchone()
    if result is None:
        raise _Refused(f"ERROR: no canonical result for wu {job['name']}")
    return result


def _stored(core: Core, file: UploadedFile) -> Response:
    return sent_file(core.upload.path(file.name), file.name)


def sent_file(path: Path, filename: str, *, temporary: bool = False) -> Response:
    """Send a file; one that is ``temporary`` is removed."""
    headers = _headers(filename, path.stat().st_size)
    file = path.open("rb")
    if temporary:
        path.unlink()
    return Response(
        wrap_file(request.environ, file),
        headers=headers,
        content_type=_BINARY,
        direct_passthrough=True,
    )


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
    number = number_argument("wu_id")
    job = connection.execute("SELECT * FROM workunit WHERE id = ?", (number,)).fetchone()
    if job is None:
        raise _Refused(f"ERROR: no workunit {number}")
    _check(auth_str, _md5(_owner_authenticator(connection, job["batch"]) + str(number)))
    result = _canonical(connection, job)
    # With a dot, zip takes the temporary name for an archive's, and writes to a file that nobody
    # sends.
    return _zip(core, f"boinc_wu_{job['name']}_", [] if "." in job["name"] else [result])


def _batch_files(core: Core, connection: sqlite3.Connection, auth_str: str) -> Response:
    number = number_argument("batch_id")
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
    return sent_file(incoming.path, f"{prefix}{secrets.token_hex(3)}.zip", temporary=True)
