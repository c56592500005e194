"""The RPCs of job_file.php: which files are staged, and staging (``web-rpcs.rst``, "Files")."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boinc_gahp.localproject.accounts import authenticate
from boinc_gahp.localproject.names import valid_physical_name
from boinc_gahp.localproject.server import job_files
from boinc_gahp.localproject.server.replies import PhpFatal, RpcFailed
from boinc_gahp.localproject.store import ImmutabilityViolation

if TYPE_CHECKING:
    from boinc_gahp.localproject.core import Core
    from boinc_gahp.localproject.server.forms import FormFile
    from boinc_gahp.localproject.server.replies import RpcReply
    from boinc_gahp.localproject.server.request import RpcRequest
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
                postponed = job_files.note_use(connection, name, batch_id, delete_time)
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
                job_files.note_use(connection, name, batch_id, delete_time, uploaded=True)
            except ImmutabilityViolation:
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
