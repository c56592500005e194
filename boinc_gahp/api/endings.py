"""Jobs that are done for the project, and have failed for people: their programs ended badly.

The notes in the folders of the last fetch tell this (:mod:`boinc_gahp.api._program_folders`).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from boinc_gahp.states import JobState

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from boinc_gahp.api.folders import Note
    from boinc_gahp.api.known_batch import KnownBatch
    from boinc_gahp.rpc.types import JobInfo

__all__ = ["ended_badly", "may_have_ended_badly", "program_note", "ran_programs", "stream"]

#: Bytes of a stream that are read for its last line.
_TAIL = 1 << 16


def ran_programs(batch: KnownBatch) -> bool:
    """Tell whether a batch's jobs run programs in containers, as far as this is known here."""
    manifest = batch.manifest
    if manifest is not None:
        line = next(iter(manifest.jobs.values()), None)
        return line is not None and "command" in json.loads(line)
    return batch.app_name == batch.session.project_settings.container_app


def program_note(batch: KnownBatch, job: JobInfo, root: Path | None) -> Note | None:
    """Return what the folder of a job that is done tells of its program; None: it was not fetched.

    Args:
        batch: the batch.
        job: the job.
        root: where the batch was fetched; None: nowhere.
    """
    from boinc_gahp.api.folders import folder_name, note_of  # noqa: PLC0415  (not for lists of batches)

    if root is None or job.state is not JobState.DONE:
        return None
    note = note_of(root / folder_name(job.name), batch.session.url, job.id)
    return None if note is None or note.exit_status is None else note


def may_have_ended_badly(batch: KnownBatch) -> bool:
    """Tell whether there may be jobs for :func:`ended_badly`; reads no job's folder."""
    return batch.directory is not None and ran_programs(batch)


def ended_badly(batch: KnownBatch, jobs: Iterable[JobInfo]) -> dict[str, Note]:
    """Return the notes of the jobs whose programs ended badly, by the jobs' names.

    Without a fetch on this machine it is empty.
    """
    if not may_have_ended_badly(batch):
        return {}
    root = batch.directory
    notes = ((job.name, program_note(batch, job, root)) for job in jobs)
    return {name: note for name, note in notes if note is not None and note.failure}


def stream(folder: Path, name: str | None, *, tail: bool = False) -> str:
    """Return what a program wrote to a stream; empty: nothing, or the file is not there.

    Args:
        folder: the job's folder.
        name: the stream's file; None: there is none.
        tail: whether its end is enough.
    """
    if name is None:
        return ""
    try:
        with (folder / name).open("rb") as file:
            if tail:
                file.seek(max(0, file.seek(0, 2) - _TAIL))
            return file.read().decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""
