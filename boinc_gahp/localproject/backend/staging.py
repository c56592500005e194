"""Staging input files: BOINC's ``stage_file``, on this machine."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from boinc_gahp.localproject.backend.new_job import WorkError
from boinc_gahp.localproject.names import valid_physical_name
from boinc_gahp.localproject.store import ImmutabilityViolation, md5_file

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
    if isinstance(source, Path):
        if source.exists() and not source.is_file():
            raise WorkError(
                f"{source} cannot be staged: expected a file, not a directory or device"
            )
        _check_contents(core, name, source)
    _add(core, name, source)
    if gzip:
        _add(core, f"{name}.gz", source, packed=True)
    return name


def _check_contents(core: Core, name: str, source: Path) -> None:
    """Report at once that another file has the name: there is no need to copy it first."""
    present = core.download.find(name)
    if present is not None and present.md5 != md5_file(source)[0]:
        raise _violation(name)


def _violation(name: str) -> WorkError:
    return WorkError(
        f"{name!r} is staged already, with other contents: a staged file never changes, so give "
        "the new contents another name",
        f"file immutability violation for {name}",
    )


def _add(core: Core, name: str, source: Path | bytes, *, packed: bool = False) -> None:
    incoming = core.download.incoming()
    try:
        with BytesIO(source) if isinstance(source, bytes) else source.open("rb") as file:
            incoming.copy(file, packed=packed)
        core.download.add(name, incoming)
    except ImmutabilityViolation as error:
        raise _violation(name) from error
    finally:
        incoming.discard()
