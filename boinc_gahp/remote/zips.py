"""All outputs of a batch in one zip archive.

The project makes one, too (``batch_files``), and it is not used: its members have the project's own
names, with random numbers in them, in one heap; it has no stderr, is built anew and sent from its
first byte after each break, and is no archive at all where there is no output (``web-rpcs.rst``,
"get_output").
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

from boinc_gahp.bridge.destinations import explain
from boinc_gahp.bridge.temporary import registry
from boinc_gahp.errors import OutputError
from boinc_gahp.remote.fetching_batch import BatchFetch, Finished, jobs_of
from boinc_gahp.remote.folders import Folder, folder_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from boinc_gahp.errors import GahpError
    from boinc_gahp.remote.batch import Batch
    from boinc_gahp.remote.types import OnProgress

__all__ = ["FetchedZip", "fetch_zip"]

#: Of compression: the quickest, for one thread does it while several fetch.
_LEVEL = 1


@dataclass(frozen=True, slots=True)
class FetchedZip:
    """What a fetch into an archive came to; numbers are of jobs where nothing else is said.

    Attributes:
        path: the archive.
        fetched: whose outputs are in it.
        files: how many files it has.
        nbytes: their size in bytes, before they were packed.
        failed: have come to nothing.
        unfinished: are not done yet.
        errors: of jobs that are done and are not in it, by their names.
    """

    path: Path
    fetched: int = 0
    files: int = 0
    nbytes: int = 0
    failed: int = 0
    unfinished: int = 0
    errors: dict[str, GahpError] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        """Whether every job is done and in it."""
        return not (self.failed or self.unfinished or self.errors)


def fetch_zip(
    batch: Batch,
    path: str | os.PathLike[str],
    *,
    jobs: Iterable[int | str] | None = None,
    threads: int = 4,
    progress: OnProgress | None = None,
    stderr: bool = True,
) -> FetchedZip:
    """Fetch the outputs of those of a batch's jobs that are done into one zip archive.

    Its members are called ``JOB/NAME`` as the files of :func:`~boinc_gahp.remote.fetching.fetch`
    are, in the order in which they came. It is made beside ``path``, where only the jobs that are
    just being fetched need room beside it, and appears whole or not at all; an earlier file of
    that name is replaced. It is not resumed: where a batch is large or the network bad, fetch into
    a directory. With no output at all it is an empty archive.

    Arguments and errors are those of :meth:`Batch.fetch_zip`; ``jobs`` are names or ids.
    """
    target = Path(os.path.abspath(path))  # noqa: PTH100  (a link's target is not looked for)
    known = jobs_of(batch, jobs)
    under_way = BatchFetch(batch, known.finished, progress=progress)
    # So that what a killed fetch has left is taken over, and removed, by the next one.
    with registry.file(target, under_way.gate) as whole, registry.directory(target) as room:
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
                archive.close()
        except OSError as error:
            raise explain(error, target) from error
        except OutputError as error:
            # Jobs' files are only on their way into the archive.
            if isinstance(error.__cause__, OSError):
                raise explain(error.__cause__, target) from error
            raise
        whole.commit()
    return FetchedZip(
        target,
        fetched=packer.jobs,
        files=packer.files,
        nbytes=packer.nbytes,
        failed=known.failed,
        unfinished=known.unfinished,
        errors=under_way.errors,
    )


class _Packer:
    """Puts one job after the other into an archive; thread-safe."""

    def __init__(
        self, archive: zipfile.ZipFile, under_way: BatchFetch, room: Path, *, stderr: bool
    ) -> None:
        self.jobs = self.files = self.nbytes = 0
        self._archive = archive
        self._under_way = under_way
        self._room = room
        self._stderr = stderr
        self._lock = threading.Lock()

    def work(self, job: Finished) -> None:
        """Fetch a job's files and put them into the archive."""
        folder = Folder(self._room / str(job.id), job, stderr=self._stderr, again=True)
        try:
            folder.make(self._under_way.gate)
            brought = self._under_way.bring(folder)
            with self._lock:
                for path in sorted(filter(None, (*brought.outputs, brought.stderr))):
                    name = path.relative_to(folder.directory)
                    self._add(path, f"{folder_name(job.name)}/{name}")
                self.jobs += 1
        finally:
            shutil.rmtree(folder.directory, ignore_errors=True)

    def _add(self, path: Path, name: str) -> None:
        self._archive.write(
            path, name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        )
        self.files += 1
        self.nbytes += path.stat().st_size
