"""All outputs of a batch in one zip archive.

The project's own archive (``batch_files``) is not used. Its members have the project's names, with
random numbers in them, without folders; it has no stderr; after each interruption it is built and
sent again from the first byte; and it is not an archive at all if there is no output
(``web-rpcs.rst``, "get_output").
"""

from __future__ import annotations

import os
import shutil
import threading
import zipfile
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from boinc_gahp.api import jobs_csv
from boinc_gahp.api.fetching_batch import BatchFetch, FinishedJob, Jobs, jobs_of
from boinc_gahp.api.folders import Note, folder_name, result_of
from boinc_gahp.api.records import Ended, RowMaker
from boinc_gahp.errors import OutputError
from boinc_gahp.fetch import Directories, explain, registry

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from boinc_gahp.api.batch import Batch
    from boinc_gahp.api.records import Row
    from boinc_gahp.api.types import OnProgress
    from boinc_gahp.errors import GahpError
    from boinc_gahp.rpc import JobInfo

__all__ = ["FetchedZip", "fetch_zip"]

#: The quickest compression, because one thread compresses what several fetch.
_LEVEL = 1


@dataclass(frozen=True, slots=True)
class FetchedZip:
    """The outcome of a fetch into an archive; the numbers count jobs unless it says otherwise.

    Attributes:
        path: the archive.
        fetched: jobs with outputs in the archive.
        files: how many files it has besides ``jobs.csv``.
        nbytes: the files' size in bytes before compression.
        failed: jobs that failed.
        unfinished: jobs that are not done yet.
        errors: by job name: errors of jobs that are done but are not in the archive.
        retried: of the jobs that are done, how many failed and are done in a retry.
        ended_badly: see :class:`~boinc_gahp.api.fetching.Fetched`.
    """

    path: Path
    fetched: int = 0
    files: int = 0
    nbytes: int = 0
    failed: int = 0
    unfinished: int = 0
    errors: dict[str, GahpError] = field(default_factory=dict)
    retried: int = 0
    ended_badly: dict[str, str] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        """Whether every job is done, its program ended well, and it is in the archive."""
        return not (self.failed or self.ended_badly or self.unfinished or self.errors)


def fetch_zip(
    batch: Batch,
    path: str | os.PathLike[str],
    *,
    jobs: Iterable[int | str] | None = None,
    threads: int = 4,
    progress: OnProgress | None = None,
    stderr: bool = True,
) -> FetchedZip:
    """Fetch the outputs of a batch's finished jobs into one zip archive.

    Its members are called ``JOB/NAME``, like the files of
    :func:`~boinc_gahp.api.fetching.fetch`, in the order in which they arrive. It is written
    beside ``path``, where only the jobs being fetched take extra room, and appears complete or not
    at all; an existing file of that name is replaced. It cannot be resumed: for a large batch or a
    bad network, fetch into a directory. ``jobs.csv`` has a row for each job.

    Arguments and errors are those of :meth:`Batch.fetch_zip`; ``jobs`` are names or ids.
    """
    target = Path(os.path.abspath(path))  # noqa: PTH100  (a link's target is not looked for)
    selected = jobs_of(batch, jobs)
    under_way = BatchFetch(batch, selected.finished, progress=progress)
    # The next fetch takes over, and removes, what a killed one has left.
    with registry.file(target, under_way.scope) as whole, registry.directory(target) as room:
        try:
            with whole.contents() as contents:
                archive = zipfile.ZipFile(
                    contents,
                    "w",
                    zipfile.ZIP_DEFLATED,
                    compresslevel=_LEVEL,
                    strict_timestamps=False,
                )
                packer = _Packer(archive, under_way, room.path, stderr=stderr)
                try:
                    under_way.each(packer.work, threads)
                except BaseException:
                    with suppress(OSError, ValueError):  # a thread may still be writing to it
                        archive.close()
                    raise
                archive.writestr(*_table(batch, selected, packer.ended, under_way.errors))
                archive.close()
        except OSError as error:
            raise explain(error, target) from error
        except OutputError as error:
            # Jobs' files are only stored here until they are in the archive.
            if isinstance(error.__cause__, OSError):
                raise explain(error.__cause__, target) from error
            raise
        whole.commit()
    return FetchedZip(
        target,
        fetched=packer.jobs,
        files=packer.files,
        nbytes=packer.nbytes,
        failed=selected.failed,
        unfinished=selected.unfinished,
        errors=under_way.errors,
        retried=selected.retried,
        ended_badly={name: packer.bad[name] for name in sorted(packer.bad)},
    )


def _table(
    batch: Batch,
    selected: Jobs,
    ended: Mapping[int, Ended],
    errors: Mapping[str, GahpError],
) -> tuple[str, bytes]:
    """Return the name and the contents of the file with a row for each job."""
    maker = RowMaker(batch.manifest, lease_is_over=batch.lease_is_over)
    texts = {name: str(error) for name, error in errors.items()}
    listed, attempts = selected.listed, selected.attempts

    def row(job: JobInfo) -> Row:
        how = ended.get(job.id, Ended())
        folder = folder_name(job.name) if job.id in ended else None
        how = how._replace(folder=folder, trouble=texts.get(job.name, ""))
        return maker.row(job, how, attempts.get(job.name, 1))

    name = jobs_csv.name_for({job.name for job in listed})
    return name, jobs_csv.contents(maker.keys, map(row, listed))


class _Packer:
    """Adds one job after the other to an archive; thread-safe.

    Attributes:
        ended: how the jobs ended that are in it, by their ids.
        bad: why programs count as failed, by the names of their jobs.
    """

    def __init__(
        self, archive: zipfile.ZipFile, under_way: BatchFetch, room: Path, *, stderr: bool
    ) -> None:
        self.jobs = self.files = self.nbytes = 0
        self.ended: dict[int, Ended] = {}
        self.bad: dict[str, str] = {}
        self._archive = archive
        self._under_way = under_way
        self._room = room
        self._stderr = stderr
        self._lock = threading.Lock()

    def work(self, job: FinishedJob) -> None:
        """Fetch a job's files and add them to the archive."""
        path = self._room / str(job.id)
        folder = self._under_way.folder(path, job, stderr=self._stderr, again=True)
        try:
            with Directories(self._under_way.scope) as directories:
                folder.make(directories)
                brought = self._under_way.bring(folder, directories)
            with self._lock:
                for path in sorted(filter(None, (*brought.outputs, brought.stderr))):
                    name = path.relative_to(folder.directory)
                    self._add(path, f"{folder_name(job.called)}/{name}")
                self.jobs += 1
                note = folder.told(Note("", job.id, 0, {}, None, result=result_of(brought)))
                failure = note.failure
                self.ended[job.id] = Ended(note.result, None, "", failure, note.exit_status)
                if failure:
                    self.bad[job.called] = failure
        finally:
            shutil.rmtree(folder.directory, ignore_errors=True)

    def _add(self, path: Path, name: str) -> None:
        self._archive.write(
            path, name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        )
        self.files += 1
        self.nbytes += path.stat().st_size
