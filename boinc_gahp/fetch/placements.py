"""Placements: which files of one job are wanted, and where each goes.

There is a place for HTCondor's jobs, :class:`~boinc_gahp.fetch.job_directory.JobDirectory`, one for
container jobs, :class:`~boinc_gahp.fetch.container_directory.ContainerDirectory`, and one for
people, :class:`~boinc_gahp.api.outputs.folders.Folder`, of which archives are made, too.
"""

from __future__ import annotations

import os.path
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from boinc_gahp.containers.job_files import WORK
from boinc_gahp.errors import OutputError
from boinc_gahp.submit.checks import base_name

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    #: Returns the content of an output that is not put in place itself, by its name, and the most
    #: bytes that it may have; nothing if there is no such output.
    Read = Callable[[str, int], bytes]


@dataclass(frozen=True, slots=True)
class Placement:
    """One output, or stderr or stdout, and where it goes.

    Attributes:
        output: its logical name.
        destination: its absolute path.
        inside: the directory below which the destination is a name from the network; None if the
            request gave the whole path.
    """

    output: str
    destination: Path
    inside: Path | None = field(default=None, compare=False)

    def is_at(self, other: Placement | None) -> bool:
        """Return whether another one goes to the same place."""
        return other is not None and self.destination == other.destination


class Placements(NamedTuple):
    """What is wanted of a job, or of an archive, and where each goes.

    Attributes:
        files: outputs, or the archive's files.
        streams: where there is an empty file if none of these goes there.
        stderr: where goes what the client sent as stderr; None: nowhere.
        archive: an output whose members are wanted if a file is lacking without them; a zip archive
            if it is called so, else a tar archive.
        directories: those to be made for an archive, each with the directory below which it is a
            name from the network. None: the request gave the whole path, and the directory above it
            exists.
    """

    files: tuple[Placement, ...] = ()
    streams: tuple[Placement, ...] = ()
    stderr: Placement | None = None
    archive: str | None = None
    directories: tuple[tuple[Path, Path | None], ...] = ()


def remapped(remaps: Iterable[tuple[str, str]], name: str) -> list[str]:
    """Return the paths to which remaps send an output, by its name or its base name."""
    names = (name.rstrip("/"), base_name(name))
    return [path for of, path in remaps if of.rstrip("/") in names]


class JobPlace(ABC):
    """A place for the files of one job.

    Args:
        job_name: the job.
        directory: the absolute path of the directory for its files.

    Attributes:
        makes_directories: whether those of stderr and stdout are made if they are missing.
        is_own: tells whether a directory was made by an earlier fetch of the job.
    """

    makes_directories = False

    def __init__(self, job_name: str, directory: Path) -> None:
        self.job_name = job_name
        self.directory = directory
        self.is_own: Callable[[Path], bool] = lambda _: False

    @abstractmethod
    def outputs(self, outputs: Mapping[str, str], read: Read) -> Placements:
        """Return which outputs are wanted, and where each goes.

        Args:
            outputs: their logical names, with their plain file names
                (:func:`~boinc_gahp.fetch.names.plain_names`).
            read: reads one that tells about the others.

        Raises:
            OutputError: a wanted file is not an output, or two files would get the same name.
        """

    def lacks(self, places: Collection[Path]) -> bool:  # noqa: ARG002
        """Return whether the archive is needed, when there are files in these places."""
        return True

    def members(self, what: str, files: Sequence[str], directories: Sequence[str]) -> Placements:  # noqa: ARG002
        """Return what is wanted of the archive; members keep their directories from it.

        Args:
            what: the archive, for errors.
            files: the names of its files.
            directories: the names of the directories that it lists.

        Raises:
            OutputError: as above; or a member's name is not valid here.
        """
        return Placements()

    def describe(self, output: str) -> str:
        """Return a description of an output, for errors about its name."""
        return f"output {output.removeprefix(WORK)!r} of job {self.job_name!r}"

    def absolute(self, path: str) -> Path:
        """Return a path that a request gave, absolute or relative to the directory."""
        return Path(os.path.normpath(os.path.join(self.directory, path)))  # noqa: PTH118

    def distinct(
        self, wanted: Iterable[Placement], stderr: Placement | None = None
    ) -> tuple[Placement, ...]:
        """Return the placements without duplicates.

        Raises:
            OutputError: two files would get the same name, or one that of ``stderr``.
        """
        placements = tuple(dict.fromkeys(wanted))
        taken = {} if stderr is None else {stderr.destination: stderr.output}
        for item in placements:
            other = taken.setdefault(item.destination, item.output)
            if other != item.output:
                raise OutputError(
                    f"{other} and {item.output} of job {self.job_name!r} would both be written "
                    f"to {str(item.destination)!r}: give them different names"
                )
        return placements
