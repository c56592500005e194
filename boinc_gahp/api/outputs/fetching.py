"""Fetches the outputs of a batch's finished jobs into a directory, with a folder for each job.

A zip archive of such a directory is made here, too. The project's own archive (``batch_files``) is
not used: its members have the project's names, with random numbers in them, without folders and
stderr; and it is not an archive at all if there is no output (``web-rpcs.rst``, "get_output").

A fetch can be interrupted at any moment and started again: complete files are not fetched again. A
file appears under its name complete, or not at all.
"""

from __future__ import annotations

import os
import zipfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from boinc_gahp.api import finding
from boinc_gahp.api.family import parent_of
from boinc_gahp.api.outputs import records
from boinc_gahp.api.outputs.fetching_batch import BatchFetch, finished
from boinc_gahp.api.outputs.folders import NOTE, folder_name, read_note
from boinc_gahp.api.outputs.logs import ends_of
from boinc_gahp.api.outputs.records import RowMaker
from boinc_gahp.errors import OutputError
from boinc_gahp.fetch.destinations import Directories, explain
from boinc_gahp.fetch.temporary import registry
from boinc_gahp.states import JobState

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from boinc_gahp.api.family import RetryChain
    from boinc_gahp.api.known_batch import KnownBatch
    from boinc_gahp.api.outputs.folders import FetchRecord, FinishedJob, Folder
    from boinc_gahp.errors import GahpError
    from boinc_gahp.rpc.types import JobInfo
    from boinc_gahp.submit.types import OnProgress


@dataclass(frozen=True, slots=True)
class Fetched:
    """The outcome of a fetch; all numbers except ``nbytes`` count jobs.

    Attributes:
        directory: where the jobs' folders are, or the archive is.
        fetched: jobs with at least one newly fetched file.
        here: jobs that were already complete.
        failed: jobs that failed and have no outputs.
        unfinished: jobs that are not done yet; fetch again later.
        nbytes: bytes fetched now.
        errors: by job name: errors of jobs that are done but could not be fetched.
        stopped: whether ``stop`` was set before the fetch was finished.
        table: the file with a row for each job, ``jobs.csv``; None: two files of the user's own
            have its names.
        retried: of the jobs that are fetched or here, or could not be fetched, how many failed and
            are done in a retry (:meth:`Batch.retry`).
        failed_programs: by job name: why the programs of jobs that are fetched or here count as
            failed, such as ``exit status 3``; for the project these jobs are done.
        archive: the zip archive that has the folders and the table; None: it was not wanted.
        files: how many files the archive has besides the table.
    """

    directory: Path
    fetched: int = 0
    here: int = 0
    failed: int = 0
    unfinished: int = 0
    nbytes: int = 0
    errors: dict[str, GahpError] = field(default_factory=dict)
    stopped: bool = False
    table: Path | None = None
    retried: int = 0
    failed_programs: dict[str, str] = field(default_factory=dict)
    archive: Path | None = None
    files: int = 0

    @property
    def is_complete(self) -> bool:
        """Whether every job is done, its program ended well, and all of its outputs are here."""
        failed = self.failed or self.failed_programs
        return not (failed or self.unfinished or self.errors or self.stopped)


def fetch(
    batch: KnownBatch,
    directory: str | os.PathLike[str],
    listed: Sequence[JobInfo],
    family: RetryChain,
    *,
    threads: int = 4,
    progress: OnProgress | None = None,
    stop: threading.Event | None = None,
    again: bool = False,
    stderr: bool = True,
    brought: Callable[[FinishedJob, Folder], object] | None = None,
    noted: bool = True,
) -> Fetched:
    """Fetch the outputs of those of a batch's jobs that are done.

    The outputs are put into ``directory/JOB/``, where JOB is the job's name (see
    :func:`folder_name`), under their open names, and stderr into ``stderr.txt``
    (``stderr.boinc.txt`` if an output has that name). Of an open name with directories only the
    last part is used, unless two outputs would then have the same name. A dot at the beginning of a
    part becomes ``%2E``, so no output is hidden. A job submitted with its own output template may
    have more outputs than the app's template lists; they are called ``output_N``, because the
    project does not tell their names. Optional outputs that a volunteer did not send are left out.

    The outputs of a job that failed and is done in a retry (:meth:`Batch.retry`) are put into the
    folder of the job that failed; a job whose retry is not over counts as unfinished.

    Called again, it fetches what is missing: outputs of jobs that have become done, and files that
    were deleted or have another size. A hidden file in each folder lists what was fetched, so this
    works for a copy of the directory, too. A file with the name of an output is replaced; other
    files are left alone. Several fetches into the same directory do no harm.

    At the end ``directory/jobs.csv`` is written, with a row for each job
    with the columns of :meth:`Batch.to_records`.

    Arguments and errors are those of :meth:`Batch.fetch`. ``listed`` are the jobs, and ``family``
    the retries, as :func:`~boinc_gahp.api.family.with_retries` returns them. ``brought`` is called
    with each job, in the thread that has fetched it, when its folder is complete. ``noted``
    remembers the directory as that of the batch.
    """
    root = Path(os.path.abspath(directory))  # noqa: PTH100  (a link's target is not looked for)
    done = [finished(job, family) for job in listed if job.state is JobState.DONE]
    failed = sum(job.state is JobState.FAILED for job in listed)
    directories = _make(root)
    under_way = BatchFetch(batch, done, progress=progress, stop=stop)
    sizes: list[int] = []
    notes: dict[int, FetchRecord] = {}
    bad: dict[str, str] = {}
    parent = root.stat()
    if noted:
        batch.session.manifests.note_fetch(batch.id, root)

    def work(job: FinishedJob) -> None:
        path = root / folder_name(job.called)
        folder = under_way.folder(path, job, stderr=stderr, again=again)
        sizes.append(folder.fill(batch.session.rpc.url, under_way.bring, under_way.scope, parent))
        note = folder.note
        assert note is not None  # noqa: S101  (fill has made it)
        notes[job.id] = note
        if note.failure:
            bad[job.called] = note.failure
        if brought is not None:
            brought(job, folder)

    with directories:
        under_way.each(work, threads)
        table = _table(batch, root, listed, family, notes=notes, errors=under_way.errors)
    batch.session.context.tidy()
    here = sizes.count(-1)
    return Fetched(
        root,
        fetched=len(sizes) - here,
        here=here,
        failed=failed,
        unfinished=len(listed) - len(done) - failed,
        nbytes=sum(size for size in sizes if size > 0),
        errors=under_way.errors,
        stopped=under_way.stopped,
        table=table,
        retried=sum(bool(job.repeats) for job in done),
        failed_programs=dict(sorted(bad.items())),
    )


def fetch_zip(
    batch: KnownBatch,
    path: str | os.PathLike[str],
    listed: Sequence[JobInfo],
    family: RetryChain,
    *,
    threads: int = 4,
    progress: OnProgress | None = None,
    stderr: bool = True,
) -> Fetched:
    """Fetch the outputs of a batch's finished jobs into one zip archive.

    Its members are those of the directory that :func:`fetch` makes. They are fetched into a
    directory beside ``path``, which takes as much room again. The archive appears complete or not
    at all; an existing file of that name is replaced. It cannot be resumed: for a large batch or a
    bad network, fetch into a directory.

    Arguments and errors are those of :meth:`Batch.fetch_zip`; for the jobs see :func:`fetch`.
    """
    target = Path(os.path.abspath(path))  # noqa: PTH100  (a link's target is not looked for)
    # The next fetch removes what a killed one has left.
    with registry.file(target) as whole:
        with whole.room() as room:
            fetched = fetch(
                batch,
                room,
                listed,
                family,
                threads=threads,
                progress=progress,
                stderr=stderr,
                noted=False,
            )
            try:
                with (
                    whole.contents() as contents,
                    zipfile.ZipFile(
                        contents, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False
                    ) as archive,
                ):
                    for each in _complete(room):
                        name = str(each.relative_to(room)).encode("utf-8", "surrogateescape")
                        archive.write(each, name.decode("utf-8", "replace"))
                    files = len(archive.namelist()) - 1
            except OSError as error:
                raise explain(error, target) from error
            ids = _ids_in(batch, room)
        whole.commit()
        batch.session.manifests.note_fetch(batch.id, zipped=ids)
    return replace(fetched, directory=target.parent, table=None, archive=target, files=files)


def unfetched(batch: KnownBatch) -> list[str]:
    """Return the names of the jobs that are done and were never fetched on this machine.

    Outputs of a retry are looked for with those of its parent, too.

    Raises:
        RpcError: the project could not be asked.
    """
    session = batch.session
    manifests = session.manifests
    here: set[int] = set()
    for batch_id in filter(None, (batch.id, parent_of(batch))):
        here |= manifests.zipped(batch_id)
        root = manifests.fetched_into(batch_id)
        if root is not None and root.is_dir():
            here |= _ids_in(batch, root)
    return [
        job.name
        for job in finding.find_jobs(batch, None)
        if job.state is JobState.DONE and job.id not in here
    ]


def lacks_arguments(batch: KnownBatch, fetched: Fetched) -> bool:
    """Return whether the table of a fetch does not tell what was submitted."""
    if batch.manifest is not None:
        return False
    # It keeps what an earlier fetch knew.
    return fetched.table is None or not records.tells_arguments(fetched.table)


def _ids_in(batch: KnownBatch, root: Path) -> set[int]:
    """Return the ids of the project's jobs whose outputs are in a directory's folders."""
    notes = (read_note(each) for each in root.iterdir())
    return {
        number
        for note in notes
        if note is not None and note.project == batch.session.rpc.url
        for number in (note.job_id, *note.attempts)
    }


def _complete(root: Path) -> Iterator[Path]:
    """Yield the files of complete folders, in order, and the table; notes and locks are hidden."""
    for path in sorted(root.rglob("[!.]*")):
        folder = path.relative_to(root).parts[0]
        if path.is_file() and (path.parent == root or (root / folder / NOTE).exists()):
            yield path


def _table(
    batch: KnownBatch,
    root: Path,
    listed: Sequence[JobInfo],
    family: RetryChain,
    *,
    notes: Mapping[int, FetchRecord],
    errors: Mapping[str, GahpError],
) -> Path | None:
    """Write the file with a row for each job; return its path."""
    texts, attempts = {name: str(error) for name, error in errors.items()}, family.counts
    maker = RowMaker(batch.manifest, ends_of(batch, listed))

    def row(job: JobInfo) -> records.Row:
        folder, note = folder_name(job.name), notes.get(job.id)
        is_there = job.state.is_over and (note is not None or (root / folder).is_dir())
        trouble, sent = texts.get(job.name, ""), attempts.get(job.name, 1)
        return maker.row(job, note, folder if is_there else None, trouble=trouble, attempts=sent)

    return records.write_table(
        root,
        maker.keys,
        {job.name for job in listed},
        map(row, listed),
        known=batch.manifest is not None,
        order=() if batch.manifest is None else batch.manifest.jobs,
    )


def _make(root: Path) -> Directories:
    """Create the directory; refuse one that cannot be written before anything is fetched.

    New names in it are on the disk when the returned value is closed.
    """
    directories = Directories()
    try:
        directory = directories.open(root / NOTE, make=True)
        directories.has_new(directory, root)
        directory.close()
    except NotADirectoryError as error:
        raise OutputError(
            f"{str(root)!r} is not a directory: name another one to fetch into"
        ) from error
    except OSError as error:
        raise explain(error, root) from error
    if not os.access(root, os.W_OK | os.X_OK):
        directories.close()
        raise OutputError(
            f"the directory {str(root)!r} cannot be written to: make it writable, or fetch into "
            "another one"
        )
    return directories
