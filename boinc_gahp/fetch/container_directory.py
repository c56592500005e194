"""The outputs of HTCondor's container jobs, and where each goes.

The job's own files tell how its program ended, and hold what it wrote to its standard streams
(:mod:`boinc_gahp.containers.job_files`): for the project, each such job has ended well. A directory
comes in a tar archive, under its name. A named output may be a file or a directory; which one is
known when the archive has been read.
"""

from __future__ import annotations

import logging
import os.path
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from boinc_gahp.containers.ending import LARGEST, Ending, read_ending
from boinc_gahp.containers.job_files import ENDING, PACKED, STDERR, STDOUT, WORK
from boinc_gahp.errors import OutputError
from boinc_gahp.fetch import locate
from boinc_gahp.fetch.destinations import NEVER_CANCELLED, CancelScope
from boinc_gahp.fetch.engine import fetch
from boinc_gahp.fetch.placements import (
    DEV_NULL,
    JobPlace,
    Placement,
    Placements,
    below,
    is_hidden,
    new_file,
    remapped,
)
from boinc_gahp.fetch.types import FetchResult
from boinc_gahp.submit.checks import base_name

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence, Set

    from boinc_gahp.fetch.context import FetchContext
    from boinc_gahp.fetch.placements import Read
    from boinc_gahp.fetch.types import AdRequest

log = logging.getLogger("boinc_gahp.fetch")


class ProgramNotRun(OutputError):
    """A container job's program could not be run, or its outputs could not be packed."""

    code = "BG-PROGRAM-NOT-RUN"


class ContainerDirectory(JobPlace):
    """The directory of a container job of HTCondor.

    Args:
        request: what is wanted.

    Attributes:
        ending: how the program ended; known when the outputs are selected.
    """

    makes_directories = True

    def __init__(self, request: AdRequest) -> None:
        super().__init__(request.job_name, Path(os.path.normpath(request.directory)))
        self.ending = Ending()
        self._request = request
        self._stderr = self._stream("stderr", request.stderr)
        self._stdout = self._stream("stdout", request.stdout)
        both = (self._stdout, self._stderr)
        #: Where both go, the same place once.
        self._streams = {item.destination: item for item in both if item is not None}
        #: The named outputs by their paths without dots and slashes at the end.
        self._named = {below(name) or "": name for name in request.outputs or ()}
        #: The most parts that one of these has.
        self._deepest = max((path.count("/") + 1 for path in self._named), default=1)
        #: What is wanted beside the archive's files.
        self._selected: tuple[Placement, ...] = ()
        #: Where there are files already when the archive is read.
        self._there: Set[Path] = frozenset()
        #: Named outputs that are in the archive.
        self._unpacked: set[str] = set()
        #: Files of the archive that are left out because of their names.
        self._hidden: list[str] = []

    def outputs(self, outputs: Mapping[str, str], read: Read) -> Placements:
        """Return what is wanted beside the archive's files; the streams, if it was not run."""
        self.ending = read_ending(read(ENDING, LARGEST))
        # Directories are made for the streams, so these come first; and a file for both is stdout.
        streams = {}
        for name, stream in ((STDERR, self._stderr), (STDOUT, self._stdout)):
            if stream is not None and name in outputs:
                streams[stream.destination] = Placement(name, stream.destination)
        wanted = list(streams.values())
        has_run = self.ending.problem is None
        if has_run:
            there = {
                below(name.removeprefix(WORK)): name for name in outputs if name.startswith(WORK)
            }
            for path, name in self._named.items():
                if path in there:
                    wanted += [Placement(there[path], place) for place in self._places(name)]
        self._selected = self.distinct(wanted)
        archive = PACKED if has_run else None
        return Placements(self._selected, tuple(self._streams.values()), archive=archive)

    def lacks(self, places: Collection[Path]) -> bool:
        """Return whether a named output is not in place, or none is named."""
        self._there = frozenset(places)
        return self._request.outputs is None or bool(self._missing())

    def members(self, what: str, files: Sequence[str], directories: Sequence[str]) -> Placements:
        """Return what is wanted of the archive; see :meth:`JobPlace.members`."""
        self._hidden.clear()
        if self._request.outputs is None:
            wanted = list(self._new_files(files, what))
            made: dict[Path, Path | None] = {}
        else:
            wanted, made = self._of_named(files, directories, what)
        if self._hidden:
            log.warning(
                "%s: %r and %d more are left out, because their names begin with a dot: name them "
                "in transfer_output_files",
                what,
                self._hidden[0],
                len(self._hidden) - 1,
            )
        taken = [item for item in self._selected if item.destination in self._there]
        return Placements(
            self.distinct((*taken, *wanted))[len(taken) :],
            tuple(self._streams.values()),
            directories=tuple(made.items()),
        )

    def complain(self, places: Collection[Path]) -> None:
        """Raise an error if the program was not run, or did not do what was asked.

        Args:
            places: the files that are in place.

        Raises:
            ProgramNotRun: it was not run, or its outputs could not be packed.
            OutputError: it ended with status 0, but did not make each of the named outputs.
        """
        if self.ending.problem is not None:
            raise ProgramNotRun(self.ending.problem)
        self._there = frozenset(places)
        why = "" if self.ending.exit_status else self.ending.failure_without(self._missing())
        if why:
            raise OutputError(why)

    def _missing(self) -> list[str]:
        """Return the named outputs that are neither in place nor in the archive."""
        found = []
        for path, name in self._named.items():
            places = self._places(name)
            if places and path not in self._unpacked and self._there.isdisjoint(places):
                found.append(name)
        return found

    def _of_named(
        self, members: Sequence[str], directories: Sequence[str], what: str
    ) -> tuple[list[Placement], dict[Path, Path | None]]:
        files: list[Placement] = []
        made: dict[Path, Path | None] = {}
        # Outputs that are in place by themselves need nothing of the archive.
        lacking = {
            path: places
            for path, name in self._named.items()
            if self._there.isdisjoint(places := self._places(name))
        }
        roots: dict[str, list[Path]] = {}

        both = [*((member, True) for member in members), *((name, False) for name in directories)]
        for member, is_file in both:
            whole = self._above(member)
            if is_file and not whole:
                raise OutputError(
                    f"{what} is not unpacked: its member {member!r} is not in an output of the job"
                )
            for path in whole:
                self._unpacked.add(path)
                if is_file and path == member:
                    files += [Placement(member, place) for place in lacking.get(path, ())]
                    continue
                if path not in roots:
                    roots[path] = self._directories(self._named[path]) if path in lacking else []
                for place in roots[path]:
                    made[place] = None
                    rest = self._inside(place, member[len(path) + 1 :], what)
                    if rest and is_file:
                        files.append(Placement(member, place / rest, place))
                    elif rest:
                        made.setdefault(place / rest, place)
        return files, made

    def _new_files(self, members: Sequence[str], what: str) -> Iterator[Placement]:
        renamed = {name for name, _ in self._request.remaps}
        for member in members:
            if "/" in member:
                raise OutputError(
                    f"{what} is not unpacked: its member {member!r} is in a directory, and the job "
                    "names no outputs"
                )
            if member in renamed:
                yield from (Placement(member, place) for place in self._places(member))
            elif is_hidden(member):
                self._hidden.append(member)
            else:
                name = new_file(member, what)
                yield Placement(member, self.directory / name, self.directory)

    def _inside(self, place: Path, name: str, what: str) -> str | None:
        """Return the name of a file in a directory that is an output; None if it is left out."""
        if place == self.directory:
            if is_hidden(name):
                self._hidden.append(name)
                return None
            if (name, DEV_NULL) in self._request.remaps:
                return None
        return new_file(name, what, hidden=True) if name else None

    def _above(self, member: str) -> list[str]:
        """Return the named outputs that a member is, or is in."""
        # A stranger's name may have very many parts.
        parts = member.split("/", self._deepest)[: self._deepest]
        paths = ("/".join(parts[:number]) for number in range(1, len(parts) + 1))
        return [path for path in paths if path in self._named]

    def _places(self, name: str) -> list[Path]:
        """Return where an output goes that is a file.

        The list may name the standard streams: a file does not take their places.
        """
        asked = self._asked(name)
        own = base_name(name.rstrip("/"))
        if asked is None:
            places = [self.directory / own]
        else:
            places = [at / own if is_in or at.is_dir() else at for at, is_in in asked]
        return [place for place in places if place not in self._streams]

    def _directories(self, name: str) -> list[Path]:
        """Return where an output goes that is a directory.

        What a volunteer has sent never goes into a directory that was there before, but for the
        job's own: there it may replace what an earlier run of the job has left.

        Raises:
            OutputError: there is something else already.
        """
        asked = self._asked(name)
        own = base_name(name.rstrip("/"))
        if asked is None:
            return [self.directory if name.endswith("/") else self.directory / own]
        places = []
        for at, is_in in asked:
            place = at / own if is_in or (at.is_dir() and not self.is_own(at)) else at
            if os.path.lexists(place) and not self.is_own(place):
                raise OutputError(
                    f"{str(place)!r} is there already, and {self.describe(name)} is not unpacked "
                    "into it: move it away, or name another place in transfer_output_remaps"
                )
            places.append(place)
        return places

    def _asked(self, name: str) -> list[tuple[Path, bool]] | None:
        """Return where remaps want an output, and whether they name a directory for it.

        None: there is no remap.
        """
        paths = remapped(self._request.remaps, name)
        if not paths:
            return None
        return [(self.absolute(to), to.endswith("/")) for to in paths if to != DEV_NULL]

    def _stream(self, name: str, path: str | None) -> Placement | None:
        return None if path in (None, DEV_NULL) else Placement(name, self.absolute(path or ""))


def fetch_container(
    context: FetchContext, request: AdRequest, scope: CancelScope = NEVER_CANCELLED
) -> FetchResult:
    """Put a container job's outputs in place; return how its program ended, and its times.

    The guarantees are those of :func:`~boinc_gahp.fetch.job_directory.fetch_output`. A file in the
    archive that its owner may execute can be executed here, too; files keep no other permissions.

    Args:
        context: the project.
        request: the request.
        scope: is entered for each change in the job's directory, and checked before each request
            to the project. When it is closed, temporary files are removed at once.

    Raises:
        ProgramNotRun: the program was not run, or its outputs could not be packed. What is known of
            its standard streams is in place.
        JobFailed: the job has no canonical instance.
        NotFound: the project does not know the job.
        OutputError: the program ended with status 0, but did not make an output that was named; an
            output is damaged, is too large, or cannot be written.
        RpcError: the project could not be reached.
        TemplateError: the job's output template cannot be read.
        Exception: what the scope raises when it is closed.
    """
    scope.check()
    located, completed = locate.find(context, request.job_name, request.batch_id)
    completed = locate.completed_job(context, request.job_name, located, completed, scope)
    place = ContainerDirectory(request)
    fetched = fetch(
        context, located, place, scope, completed=completed, own_template=request.output_template
    )
    place.complain(fetched.files)
    told = FetchResult.of(completed, fetched.nbytes)
    return replace(told, exit_status=place.ending.exit_status)
