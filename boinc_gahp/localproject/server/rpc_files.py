"""The RPCs of job_file.php: which files are staged, and staging (``web-rpcs.rst``, "Files")."""

from __future__ import annotations

import sqlite3
import time
from typing import TYPE_CHECKING

from boinc_gahp.localproject.accounts import authenticate
from boinc_gahp.localproject.core import MAX_NAME
from boinc_gahp.localproject.errors import PhpFatal, RpcFailed
from boinc_gahp.localproject.store import valid_physical_name

if TYPE_CHECKING:
    from boinc_gahp.localproject.core import Core
    from boinc_gahp.localproject.server.forms import FormFile
    from boinc_gahp.localproject.server.messages import RpcReply, RpcRequest
    from boinc_gahp.localproject.store import IncomingFile


def query_files(core: Core, request: RpcRequest, reply: RpcReply) -> None:
    """List, by place, the files that are not staged; associate the others with a batch."""
    authenticate(core.db.connection(), request.text("authenticator"))
    names = _names(request)
    batch_id, delete_time = request.integer("batch_id"), request.real("delete_time")
    absent = []
    for place, name in enumerate(names):
        if not core.download.exists(name):
            absent.append(place)
        elif batch_id or delete_time:
            with core.db.write() as connection:
                postponed = note_use(connection, name, batch_id, delete_time)
            if postponed:
                raise RpcFailed("job_file->update() failed: ")
    reply.add("<absent_files>\n")
    reply.add("".join(f"<file>{place}</file>\n" for place in absent))
    reply.add("</absent_files>\n")


def upload_files(core: Core, request: RpcRequest, reply: RpcReply) -> None:
    """Stage files. Not atomic: those before a bad one stay, also in the database."""
    authenticate(core.db.connection(), request.text("authenticator"))
    names = _names(request)
    if len(request.files) != len(names):
        raise RpcFailed(
            f"# of uploaded files ({len(request.files)}) doesn't agree with request ({len(names)})"
        )
    by_field = {file.field_name: file for file in request.files}
    files = [by_field.get(f"file_{place}") for place in range(len(names))]
    incoming = [_checked(file, name, reply) for file, name in zip(files, names, strict=True)]
    batch_id, delete_time = request.integer("batch_id"), request.real("delete_time")
    failed: Exception | None = None
    with core.db.write() as connection:
        for file, name in zip(incoming, names, strict=True):
            try:
                core.download.add(name, file)
                note_use(connection, name, batch_id, delete_time, uploaded=True)
            except FileExistsError:
                failed = RpcFailed(f"file immutability violation for {name}")
                break
            except (PhpFatal, OSError) as error:
                failed = error
                break
    if failed is not None:
        raise failed
    reply.add("<success/>\n")


def _checked(file: FormFile | None, name: str, reply: RpcReply) -> IncomingFile:
    if file is None:
        raise RpcFailed(f"{name} upload failed because: No file was uploaded.")
    if file.incoming is None:
        reply.warn("unlink(): No such file or directory", "user/job_file.php", 177)
        raise RpcFailed(f"{file.filename} upload failed because: {file.error}")
    return file.incoming


def _names(request: RpcRequest) -> list[str]:
    names = request.texts("phys_name")
    if not all(map(valid_physical_name, names)):
        raise RpcFailed("bad filename")
    return names


# The table ``job_file``: when a file may be deleted, and which batches use it. A delete_time is in
# seconds since the epoch; a later one replaces an earlier one.


def note_use(
    connection: sqlite3.Connection,
    name: str,
    batch_id: int,
    delete_time: float,
    *,
    uploaded: bool = False,
) -> bool:
    """Record that a batch uses a file, or that it was uploaded, for a batch if there is one.

    Returns:
        Whether its delete_time was put off.

    Raises:
        PhpFatal: its name is too long for the column, or this was recorded before.
    """
    postponed = False
    row = connection.execute("SELECT * FROM job_file WHERE name = ?", (name,)).fetchone()
    if row is None:
        # Also for a file that did not come through upload_files; the real server adopts it too.
        if len(name) > MAX_NAME:
            raise PhpFatal(
                "Uncaught mysqli_sql_exception: Data too long for column 'name' at row 1"
            )
        cursor = connection.execute(
            "INSERT INTO job_file (name, create_time, delete_time) VALUES (?, ?, ?)",
            (name, time.time(), delete_time),
        )
        file_id = int(cursor.lastrowid or 0)
    elif uploaded:
        raise PhpFatal(f"Uncaught mysqli_sql_exception: Duplicate entry '{name}' for key 'jf_name'")
    else:
        file_id = row["id"]
        if row["delete_time"] < delete_time:
            connection.execute(
                "UPDATE job_file SET delete_time = ? WHERE id = ?", (delete_time, file_id)
            )
            postponed = True
    if batch_id:
        try:
            connection.execute(
                "INSERT INTO batch_file_assoc (batch_id, job_file_id) VALUES (?, ?)",
                (batch_id, file_id),
            )
        except sqlite3.IntegrityError as error:
            raise PhpFatal(
                f"Uncaught mysqli_sql_exception: Duplicate entry '{file_id}-{batch_id}' "
                "for key 'job_file_id'"
            ) from error
    return postponed
