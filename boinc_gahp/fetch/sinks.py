"""Sinks: where the files of one job go, as the fetch engine sees it.

There is one for HTCondor, :class:`~boinc_gahp.fetch.job_directory.JobDirectory`, one for container
jobs, :class:`~boinc_gahp.fetch.container_directory.ContainerDirectory`, and one for people,
:class:`~boinc_gahp.api.folders.Folder`, of which archives are made, too.
"""

from __future__ import annotations

import os.path
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from boinc_gahp.errors import OutputError
from boinc_gahp.fetch.names import new_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Placement:
    """One output, or stderr or stdout, and a place where it goes.

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


class Members(NamedTuple):
    """What is wanted of an archive.

    Attributes:
        files: its files, and where each goes.
        directories: those to be made, each with the directory below which it is a name from the
            network. None: the request gave the whole path, and the directory above it exists.
    """

    files: tuple[Placement, ...]
    directories: tuple[tuple[Path, Path | None], ...]


class Sink(ABC):
    """A place for the files of one job.

    It gets the outputs as a mapping of their logical names to their plain file names
    (:func:`~boinc_gahp.fetch.names.plain_names`).

    Args:
        job_name: the job.
        directory: the absolute path of the directory for its files.

    Attributes:
        again: whether to fetch files again that were delivered before.
        unpacks: whether an app's only output is unpacked if it is a zip archive.
        takes_all: whether all outputs are wanted, not only those that the request names.
        makes_directories: whether those of stderr and stdout are made if they are missing.
        first: an output that is read before the others are selected, and is not delivered itself,
            and the most bytes that it may have; None if there is none.
        packed: an output that is a tar archive, whose members are delivered if something is lacking
            without them; None if there is none.
        stderr_is_output: whether stderr is one of the outputs, not what the client sent as stderr.
        is_own: tells whether a directory was made by an earlier fetch of the job.
    """

    again = False
    unpacks = False
    takes_all = True
    makes_directories = False
    first: tuple[str, int] | None = None
    packed: str | None = None
    stderr_is_output = False

    def __init__(self, job_name: str, directory: Path) -> None:
        self.job_name = job_name
        self.directory = directory
        self.is_own: Callable[[Path], bool] = lambda _: False

    @abstractmethod
    def select(self, outputs: Mapping[str, str]) -> tuple[Placement, ...]:
        """Return which outputs are wanted, and where each goes.

        Raises:
            OutputError: a wanted file is not an output, or two files would get the same name.
        """

    @abstractmethod
    def stderr(self, outputs: Mapping[str, str]) -> Placement | None:
        """Return where stderr goes; None: nowhere."""

    def stdout(self, outputs: Mapping[str, str]) -> Placement | None:  # noqa: ARG002
        """Return where stdout goes: an empty file if no output goes there. None: nowhere."""
        return None

    def streams(self, outputs: Mapping[str, str]) -> tuple[Placement, ...]:
        """Return where there is an empty file if no output goes there."""
        stdout = self.stdout(outputs)
        return () if stdout is None or stdout.is_at(self.stderr(outputs)) else (stdout,)

    def read(self, content: bytes) -> None:  # noqa: B027
        """Note the content of the output that is read before the others."""

    def lacks(self, places: Sequence[Path]) -> bool:  # noqa: ARG002
        """Return whether something is wanted that is not among the files in place."""
        return False

    def members(
        self, archive: str, members: Mapping[str, str], directories: Sequence[str]
    ) -> Members:
        """Return what is wanted of an archive; members keep their directories from it.

        Args:
            archive: the output that is the archive.
            members: its files, in the form of outputs.
            directories: the names of the directories that it lists.

        Raises:
            OutputError: see :meth:`select`; or a member's name is not valid here.
        """
        home = self.directory
        files = tuple(
            replace(item, inside=home) if item.destination == home / item.output else item
            for item in self.select(members)
        )
        what = self.describe(archive)
        made = [(home / new_file(name, what), home) for name in directories if self.takes_all]
        return Members(files, tuple(made))

    def has(self, item: Placement) -> bool:  # noqa: ARG002
        """Return whether a file is known to be in place."""
        return False

    def prepare(self) -> None:  # noqa: B027
        """Raise OutputError if files cannot be put here."""

    def describe(self, output: str) -> str:
        """Return a description of an output, for errors about its name."""
        return f"output {output!r} of job {self.job_name!r}"

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
