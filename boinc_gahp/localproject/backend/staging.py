"""Staging input files: BOINC's ``stage_file``, on this machine."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from boinc_gahp.localproject.backend.new_job import WorkError
from boinc_gahp.localproject.names import valid_physical_name
from boinc_gahp.localproject.store import ImmutabilityViolation

if TYPE_CHECKING:
    from boinc_gahp.localproject.core import Core


def stage_file(
    core: Core, source: Path | bytes, name: str | None = None, *, gzip: bool = False
) -> str:
    """Copy a file into ``download/`` and return its physical name.

    Args:
        core: the project.
        source: the file, or its contents.
        name: the physical name; None: the file's own.
        gzip: whether to stage ``<name>.gz`` beside it, for templates with ``<gzip/>``.

    Raises:
        WorkError: the name cannot be used, or already has another content.
        OSError: the file cannot be read or copied.
    """
    if name is None:
        name = source.name if isinstance(source, Path) else ""
    if not valid_physical_name(name) or " " in name:
        raise WorkError(
            f"a file cannot be staged as {name!r}: expected letters, digits, '_', '-' and '.', at "
            "most 255 of them (create_work would split the name at a space)"
        )
    if isinstance(source, Path) and source.exists() and not source.is_file():
        raise WorkError(f"{source} cannot be staged: expected a file, not a directory or device")
    try:
        with BytesIO(source) if isinstance(source, bytes) else source.open("rb") as file:
            core.download.add_from(name, file)
            if gzip:
                file.seek(0)
                core.download.add_from(f"{name}.gz", file, packed=True)
    except ImmutabilityViolation as error:
        raise WorkError(
            f"'{error}' is staged already, with other contents: a staged file never changes, so "
            "give the new contents another name",
            f"file immutability violation for {error}",
        ) from error
    return name
