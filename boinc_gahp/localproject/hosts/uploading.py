"""Sends a job's output files to the server: checked and compressed."""

from __future__ import annotations

import hashlib
import os
import stat
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from boinc_gahp.client_exits import ERR_FILE_TOO_BIG, ERR_FOPEN, ERR_NOT_FOUND, ERR_RESULT_UPLOAD
from boinc_gahp.localproject.hosts.client_errors import JobFailed, UploadHangs, no_space

if TYPE_CHECKING:
    from collections.abc import Container, Sequence
    from pathlib import Path

    from boinc_gahp.localproject.core import Core
    from boinc_gahp.localproject.hosts.slot import Slot
    from boinc_gahp.templates.types import OutputFileInfo


def upload(
    core: Core,
    slot: Slot,
    files: Sequence[OutputFileInfo],
    result_name: str,
    wrong: Container[str] = (),
) -> str:
    """Send a job's outputs; return ``xml_doc_out``, which describes them.

    Nothing is sent unless all required files are there and none is too large. Whatever URL the
    template names, they go to the project: its hosts are on its own machine. ``wrong`` are the
    kinds of ``behaviour.KINDS`` that were set for the host.

    Raises:
        JobFailed: a file is missing, is too large, or cannot be read or sent.
        UploadHangs: instead of a file there is a directory or a pipe (``containers.rst``, "What the
            client does with outputs").
        OSError: there is no space to store it.
    """
    found = [(file, path) for file in files if (path := _find(slot, file)) is not None]
    for file, path in found:
        _check_size(file, path)
    for file, path in found:
        if not path.is_file():
            slot.put_aside(path, file.name)
            raise UploadHangs(f"{file.open_name} is a directory or a pipe, and can never be sent")
    if "differ" in wrong:
        for file, path in found:
            _change(path, result_name, file.max_nbytes)
    largest = max(found, key=lambda pair: pair[1].stat().st_size, default=None)
    return "".join(
        _send(core, file, path, cut="truncate" in wrong and (file, path) == largest)
        for file, path in found
    )


def upload_first(core: Core, slot: Slot, files: Sequence[OutputFileInfo], result_name: str) -> str:
    """Send what is sent of a job whose program has failed; return ``xml_doc_out``.

    A client sends files until it reports the failure (``client/cs_apps.cpp``, app_finished), so not
    all come (``containers.rst``, "What the wrapper does"): only the first file that is there does,
    if it can be sent.
    """
    for file in files:
        try:
            if _find(slot, file) is not None:
                return upload(core, slot, [file], result_name)
        except (JobFailed, UploadHangs):
            continue
    return ""


def _find(slot: Slot, file: OutputFileInfo) -> Path | None:
    try:
        path = slot.output(file.open_name)
    except ValueError as error:
        raise JobFailed(ERR_NOT_FOUND, str(error)) from error
    if path is None and not file.optional:
        raise JobFailed(ERR_NOT_FOUND, f"upload failure: {file.open_name}: output file is missing")
    if path is not None:
        mode = path.stat().st_mode
        if stat.S_ISSOCK(mode) or (stat.S_ISREG(mode) and not mode & stat.S_IRUSR):
            # Whoever this project runs as: a client is not root.
            raise JobFailed(ERR_FOPEN, f"upload failure: {file.open_name}: cannot be read")
    return path


def _check_size(file: OutputFileInfo, path: Path) -> None:
    size = path.stat().st_size
    if file.max_nbytes is not None and size > file.max_nbytes:
        raise JobFailed(
            ERR_FILE_TOO_BIG,
            f"upload failure: {file.open_name}: file size too big: {size} > "
            f"{file.max_nbytes:.0f} bytes",
        )


def _change(path: Path, result_name: str, max_nbytes: float | None) -> None:
    """Make a file differ from any other instance's, but not too large."""
    digest = hashlib.md5(result_name.encode(), usedforsecurity=False).hexdigest()
    text = f"changed by the host: {digest}\n".encode()
    path.chmod(0o600)
    size = path.stat().st_size
    room = len(text) if max_nbytes is None else int(max_nbytes) - size
    with path.open("r+b") as file:
        file.seek(0 if room < len(text) else size)
        file.write(text if room >= len(text) else text[-min(len(text), size) :])


def _send(core: Core, file: OutputFileInfo, path: Path, *, cut: bool) -> str:
    try:
        nbytes, md5 = _store(core, file, path, cut=cut)
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and no_space(error):
            raise
        raise JobFailed(ERR_RESULT_UPLOAD, f"upload failure: {file.open_name}: {error}") from error
    return (
        f"<file_info>\n    <name>{escape(file.name)}</name>\n"
        f"    <nbytes>{nbytes}</nbytes>\n    <md5_cksum>{md5}</md5_cksum>\n"
        "    <status>1</status>\n</file_info>\n"
    )


def _store(core: Core, file: OutputFileInfo, path: Path, *, cut: bool) -> tuple[int, str]:
    incoming = core.upload.incoming()
    try:
        with path.open("rb") as source:
            incoming.copy(source, packed=file.gzip_when_done)
        md5 = incoming.finish()
        if cut:
            os.truncate(incoming.path, incoming.nbytes // 2)
        # A job that runs again after a restart may have sent this file before.
        core.upload.remove(file.name)
        core.upload.add(file.name, incoming)
    finally:
        incoming.discard()
    return incoming.nbytes, md5
