"""The fetch engine: how the outputs of one job get to their destinations.

The steps are the same for all callers:

1. The caller knows where the job is, or it is looked for (:mod:`.locate`).
2. Its output template tells which outputs there are (:mod:`._uploaded`).
3. The job's place says which of them are wanted, and where each goes (:mod:`.placements`); it
   may read an output that tells about the others.
4. stderr is written, without the client's wrapper (:mod:`.job_end`).
5. Outputs that were put in place before, and are still there, are skipped (:mod:`._placed`).
6. Each other output is found among the files that the instance uploaded (:mod:`._uploaded`), and
   is downloaded into a temporary file beside its destination (:mod:`._download`). Of an archive,
   each member is written into such a file (:mod:`._archive`).
7. A complete file gets its name, is synced to the disk (:mod:`boinc_gahp.fetch.temporary`), and
   is remembered.
"""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from boinc_gahp.errors import OutputError
from boinc_gahp.fetch._download import download
from boinc_gahp.fetch._placed import PlacedFiles
from boinc_gahp.fetch._uploaded import outputs_of, uploaded_by
from boinc_gahp.fetch.destinations import CancelScope, Directories, check_directory, explain
from boinc_gahp.fetch.job_end import unwrap
from boinc_gahp.fetch.placements import Placement, plain_names
from boinc_gahp.fetch.temporary import registry
from boinc_gahp.fetch.types import OWN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from boinc_gahp.fetch._archive import Archive
    from boinc_gahp.fetch._download import Writable
    from boinc_gahp.fetch._uploaded import Output, Uploaded
    from boinc_gahp.fetch.context import FetchContext
    from boinc_gahp.fetch.locate import Located
    from boinc_gahp.fetch.placements import JobPlace, Placements
    from boinc_gahp.fetch.temporary import TemporaryFile
    from boinc_gahp.rpc.types import CompletedJob, ResultInfo
    from boinc_gahp.templates.types import OutputTemplate

_CHUNK = 1 << 20
#: A new output is noted together with others, unless it has more bytes, or they are this many: if
#: the process is killed, what is not noted is fetched again.
_LARGE, _MANY = 1_000_000, 100
_NONE: Mapping[Path, int] = {}


@dataclass(frozen=True, slots=True)
class FetchedFiles:
    """The files that are in place.

    Attributes:
        files: the size of each in bytes, stderr and stdout, too.
        completed: the answer of query_completed_job; None if it was not needed.
    """

    files: Mapping[Path, int]
    completed: CompletedJob | None = None

    @property
    def nbytes(self) -> int:
        """The bytes of all of them."""
        return sum(self.files.values())


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """What there is of a job whose program failed.

    Attributes:
        instance: one that uploaded files all the same; None: no outputs are fetched.
        stderr: the text to write where stderr is wanted.
    """

    instance: ResultInfo | None
    stderr: str


def fetch(
    context: FetchContext,
    located: Located | None,
    place: JobPlace,
    scope: CancelScope,
    *,
    completed: CompletedJob | None = None,
    attempt: FailedAttempt | None = None,
    own_template: OutputTemplate | None = None,
    directories: Directories | None = None,
    again: bool = False,
    have: Mapping[Path, int] = _NONE,
    count: Callable[[int], object] = lambda _: None,
) -> FetchedFiles:
    """Fetch the files that are wanted from a job's canonical instance, or from a failed attempt.

    Each file appears under its name complete, or not at all, and is on the disk then. For an absent
    optional output there is no file; all outputs of a failed attempt are optional. Outputs that the
    job has beyond its output template are called ``output_N``.

    Args:
        context: the project.
        located: where the job is; None: in no batch that the project lists.
        place: the job whose files they are, and where they go.
        scope: is entered for each change in the job's directory, and checked before each request
            to the project.
        completed: the answer of query_completed_job, if it was asked.
        attempt: None: the job has a canonical instance.
        own_template: the job's own output template; None: the app's.
        directories: the job's, if the caller uses them, too; their names are on the disk when the
            caller has closed them.
        again: whether to fetch files again that were put in place before.
        have: the sizes of files that are known to be in place.
        count: called now and then with the number of bytes that have arrived; bytes that are
            repeated after a failure are counted again.

    Raises:
        OutputError: something is wanted that is not an output; or an output is missing,
            deleted, damaged, or cannot be written. Those that were complete by then stay.
        RpcError: the project could not be reached, or refused.
        TemplateError: the output template cannot be read.
        Exception: what the scope raises when it is closed.
    """
    scope.check()
    outputs: list[Output] = []
    if attempt is None:
        instance = None if located is None else context.cache.instance(located.job)
    else:
        instance = attempt.instance
    if attempt is None or instance is not None:
        outputs = outputs_of(context, place.job_name, located, instance, own_template)
    if attempt is not None:
        outputs = [replace(output, optional=True) for output in outputs]
    with Directories(scope) if directories is None else nullcontext(directories) as opened:
        job = _Fetch(
            context,
            place,
            opened,
            {output.name: output for output in outputs},
            uploaded_by(context, place.job_name, instance),
            place.job_name if instance is None else instance.name,
            PlacedFiles(None) if again else context.placed,
            count,
            dict(have),
        )
        place.is_own = job.is_own
        # A wrong name in the line is reported before anything is written.
        wanted = place.outputs(plain_names([output.name for output in outputs]), job.content)
        if place.makes_directories:
            check_directory(str(place.directory))
        if wanted.stderr is not None and wanted.stderr.destination not in have:
            if attempt is not None:
                text = attempt.stderr
            else:
                if completed is None:
                    scope.check()
                    completed = context.project.query_completed_job(place.job_name)
                text = unwrap(completed.stderr_out)
            job.write(wanted.stderr, text)
        try:
            job.bring(wanted, have)
        finally:
            job.remember()
    return FetchedFiles(job.places, completed)


@dataclass(slots=True)
class _Fetch:
    """Brings the outputs of one job; used once, by one thread.

    Attributes:
        instance: the name of the instance that has uploaded them, or the job's.
        placed: what earlier fetches have put in place.
        places: the sizes of files that are known to be in place, by their paths.
        streams: where there is an empty file at the end, if nothing else is there.
        new: what is in place, but not noted yet: to note it takes as long as to write a small file.
    """

    context: FetchContext
    place: JobPlace
    directories: Directories
    outputs: dict[str, Output]
    uploaded: Uploaded
    instance: str
    placed: PlacedFiles
    count: Callable[[int], object]
    places: dict[Path, int]
    streams: Sequence[Placement] = ()
    new: list[tuple[Sequence[str], os.stat_result, str]] = field(default_factory=list)

    def bring(self, wanted: Placements, have: Mapping[Path, int]) -> None:
        """Fetch outputs, and if need be the members of an archive."""
        self.streams = wanted.streams
        absent: dict[str, list[Placement]] = {}
        for item in self._absent(item for item in wanted.files if item.destination not in have):
            with self._unless_absent(self.outputs[item.output]):
                self._check(item)
                absent.setdefault(item.output, []).append(item)
        for name, items in absent.items():
            # Another fetch may just have made a directory of this name from the archive.
            with self._unless_absent(self.outputs[name]):
                self._file(self.outputs[name], items)
        if wanted.archive in self.outputs and self.place.lacks(self.places):
            self._archive(self.outputs[wanted.archive])
        for stream in self.streams:
            if stream.destination not in self.places:
                self.write(stream, "")

    def remember(self) -> None:
        """Note the outputs that were put in place."""
        self.placed.remember(self.new)
        self.new.clear()

    def content(self, name: str, most: int) -> bytes:
        """Return the content of an output that is not put in place; nothing if there is none.

        Raises:
            OutputError: it has more than ``most`` bytes, or is missing.
        """
        if name not in self.outputs:
            return b""
        content = _Content()
        self._download(replace(self.outputs[name], max_bytes=most), [content])
        return bytes(content)

    def write(self, stream: Placement, text: str) -> None:
        """Write a standard stream, from scratch: a repeated fetch must not double it."""
        make = self.place.makes_directories
        self.directories.check(stream.destination, stream.inside, make=make)
        with self._temporary(stream) as file:
            file.write(text.encode("utf-8", "surrogateescape"))
            self.places[stream.destination] = file.commit().st_size

    def _temporary(self, item: Placement) -> TemporaryFile:
        return registry.file(item.destination, self.directories, item.inside)

    def _check(self, item: Placement) -> None:
        make = self.place.makes_directories and any(map(item.is_at, self.streams))
        self.directories.check(item.destination, item.inside, make=make)

    def _file(self, output: Output, items: Sequence[Placement]) -> None:
        with ExitStack() as stack:
            files = [stack.enter_context(self._temporary(item)) for item in items]
            if self._download(output, files):
                for item, file in zip(items, files, strict=True):
                    status = file.commit()
                    self.places[item.destination] = status.st_size
                    self.new.append((self._key(item), status, file.md5.hexdigest()))
                    if status.st_size > _LARGE or len(self.new) >= _MANY:
                        self.remember()

    @contextmanager
    def _unless_absent(self, output: Output) -> Iterator[None]:
        """Ignore that an output cannot be put in place if there is none."""
        try:
            yield
        except OutputError:
            self.directories.scope.check()
            if not output.optional:
                raise
            stream = self.uploaded.open(output)
            if stream is not None:
                stream.close()
                raise

    def _download(self, output: Output, files: Sequence[Writable]) -> bool:
        """Fetch an output; return False if it is absent and optional."""
        self.directories.scope.check()
        if download(self.context, self.uploaded, output, files, self.count):
            return True
        if output.optional:
            return False
        raise OutputError(
            f"output {output.name!r} (number {output.number}) of job {self.place.job_name!r} "
            f"is missing on {self.context.project.host}: the volunteer did not upload it, and "
            "the app's output template does not say that it is optional"
        )

    def _archive(self, output: Output) -> None:
        """Fetch the files in an archive."""
        is_zip = output.name.lower().endswith(".zip")
        what = f"the archive of the outputs of job {self.place.job_name!r}"
        if is_zip:
            what = self.place.describe(output.name)
        # The archive is never put in place.
        with self._temporary(Placement("", self.place.directory / f"{OWN}-archive")) as packed:
            if not self._download(output, [packed]):
                return
            # Few jobs have an archive.
            from boinc_gahp.fetch._archive import ZipArchive  # noqa: PLC0415
            from boinc_gahp.fetch._tar_archive import TarArchive  # noqa: PLC0415

            kind = ZipArchive if is_zip else TarArchive
            jobs = self.context.settings.jobs
            limits = {"max_files": jobs.unzip_max_files, "max_bytes": jobs.unzip_max_bytes}
            with packed.contents() as contents, kind(contents, what, **limits) as archive:
                members = self.place.members(what, archive.files, archive.directories)
                self._unpack(members, archive, packed)

    def _make(self, members: Placements) -> None:
        """Make directories for an archive's members."""
        self.streams = members.streams
        for path, inside in members.directories:
            is_new = inside is None and not os.path.lexists(path)
            if inside is None:
                try:
                    self.directories.open(path).close()  # the one above it has to exist
                except OSError as error:
                    raise explain(error, path) from error
            self.directories.check(path / OWN, inside, make=inside is None)
            if is_new:
                self.context.placed.made(self._directory_key(path), path.stat())

    def is_own(self, path: Path) -> bool:
        """Return whether a directory was made by an earlier fetch of the job."""
        try:
            status = path.stat(follow_symlinks=False)
        except OSError:
            return False
        return self.context.placed.is_made(self._directory_key(path), status)

    def _directory_key(self, path: Path) -> tuple[str, ...]:
        return (*self.context.owner, self.place.job_name, "", "directory", str(path))

    def _unpack(self, members: Placements, archive: Archive[Any], packed: TemporaryFile) -> None:
        """Put an archive's members in place; a damaged archive leaves nothing behind."""
        try:
            archive.check(item.output for item in members.files if archive.has(item.output))
            self._make(members)
            for item in members.files:
                self._check(item)
            for item in members.files:
                with self._temporary(item) as file:
                    if archive.has(item.output):
                        archive.extract(item.output, file.write)
                    else:
                        with packed.contents() as whole:
                            while data := whole.read(_CHUNK):
                                file.write(data)
                    status = file.commit(executable=archive.is_executable(item.output))
                    self.places[item.destination] = status.st_size
        except OSError as error:
            raise explain(error, packed.destination) from error

    def _key(self, item: Placement) -> tuple[str, ...]:
        return (*self.context.owner, self.instance, item.output, str(item.destination))

    def _absent(self, items: Iterable[Placement]) -> list[Placement]:
        """Return those that are to be fetched: not those that an earlier fetch left there."""
        wanted = list(items)
        there = self.placed.still_there({item.destination: self._key(item) for item in wanted})
        self.places |= there
        return [item for item in wanted if item.destination not in there]


class _Content(bytearray):
    """The content of a small output, in memory."""

    write = bytearray.extend
    empty = bytearray.clear
