"""Handing out files: a job's inputs and outputs, one by one or packed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flask import Response, abort, send_file

from boinc_gahp.localproject.backend import views
from boinc_gahp.localproject.backend.outputs import OutputFailed, SentFile, batch_zip, job_zip
from boinc_gahp.localproject.web import access
from boinc_gahp.localproject.web.actions import owned_batch, owned_job
from boinc_gahp.templates import TemplateError, read_workunit

if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO

    from boinc_gahp.localproject.core import Core


def output(core: Core, result_id: int, number: int) -> Response:
    """Hand out the ``number``-th output file of an instance."""
    access.need_visitor(core)
    with core.db.read() as connection:
        result = connection.execute("SELECT * FROM result WHERE id = ?", (result_id,)).fetchone()
        if result is None:
            abort(404)
        owned_job(core, connection, result["workunitid"])
        files = views.instance(core, result).files
    if number >= len(files):
        abort(404)
    file = files[number]
    return _send(file.path, f"{result['name']}_{file.open_name}")


def input_file(core: Core, job_id: int, number: int) -> Response:
    """Hand out an input file of a job."""
    access.need_visitor(core)
    with core.db.read() as connection:
        job = owned_job(core, connection, job_id)
    try:
        file = read_workunit(job["xml_doc"]).files[number]
        path = core.download.path(file.name)
    except (TemplateError, IndexError, ValueError):
        abort(404)
    return _send(path, file.name)


def job(core: Core, job_id: int) -> Response:
    """Hand out the outputs of a job's canonical instance, packed."""
    access.need_visitor(core)
    with core.db.read() as connection:
        row = owned_job(core, connection, job_id)
        try:
            packed = job_zip(core, connection, row)
        except OutputFailed:
            abort(404)
    return _send_packed(packed, f"{row['name']}.zip")


def batch(core: Core, batch_id: int) -> Response:
    """Hand out the outputs of a batch's canonical instances, packed."""
    access.need_visitor(core)
    with core.db.read() as connection:
        row = owned_batch(core, connection, batch_id)
        packed = batch_zip(core, connection, batch_id)
    return _send_packed(packed, f"{row['name']}.zip")


def _send(path: Path, name: str) -> Response:
    try:
        file = path.open("rb")
    except OSError:
        abort(404)
    return _attachment(file, path.stat().st_size, name)


def _send_packed(packed: SentFile, name: str) -> Response:
    """Hand out a file that is removed once it is sent; without outputs it is empty."""
    if packed.path is None:
        abort(404)
    file = packed.path.open("rb")
    packed.path.unlink()
    if not packed.nbytes:
        file.close()
        abort(404)
    return _attachment(file, packed.nbytes, name)


def _attachment(file: BinaryIO, nbytes: int, name: str) -> Response:
    """Return a file as one to save, never to show: it may contain anything."""
    name = "".join(char if char.isprintable() and char not in "/\\" else "_" for char in name)
    response = send_file(
        file, mimetype="application/octet-stream", as_attachment=True, download_name=name
    )
    response.content_length = nbytes
    response.headers["Cache-Control"] = "no-store"
    return response
