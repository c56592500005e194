"""Placements: which files of one job are wanted, where each goes, and under which name.

There are two places for HTCondor's jobs,
:class:`~boinc_gahp.fetch.job_directory.JobDirectory` and, for container jobs,
:class:`~boinc_gahp.fetch.container_directory.ContainerDirectory`; and two for people, of which
archives are made, too: :class:`~boinc_gahp.api.outputs.folders.Folder`, and for container jobs
:class:`~boinc_gahp.api.outputs.folders.ProgramFolder`. All names from the network, of a job's
outputs or of an archive's members, are checked here before a file gets such a name.
"""

from __future__ import annotations

import os.path
from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from boinc_gahp.containers.job_files import WORK
from boinc_gahp.errors import OutputError
from boinc_gahp.fetch.types import OWN
from boinc_gahp.submit.checks import base_name

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    #: Returns the content of an output that is not put in place itself, by its name, and the most
    #: bytes that it may have; nothing if there is no such output.
    Read = Callable[[str, int], bytes]

#: As the path for an output: it is not kept.
DEV_NULL = "/dev/null"

#: Bytes that one part of a path may have on common file systems, and parts that a path may have.
_LONGEST, _DEEPEST = 255, 100


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
                (:func:`plain_names`).
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


def below(name: str) -> str | None:
    """Return a name as a path below a directory, without empty parts and dots; None if it is not.

    The empty path is the directory itself.
    """
    # Archives from Windows may have backslashes; as separators they could hide a "..".
    parts = name.replace("\\", "/").split("/")
    if not parts[0] or ".." in parts or "\0" in name:
        return None
    path = "/".join(part for part in name.split("/") if part not in ("", "."))
    return None if path.startswith("\\") else path


def new_file(name: str, whose: str, *, hidden: bool = False) -> str:
    """Return a name for a new file, as a path below the job's directory.

    Args:
        name: the name from the network.
        whose: what has this name, for an error.
        hidden: whether parts of it may begin with a dot.

    Raises:
        OutputError: a file may only have this name if the job asks for it.
    """
    path = below(name)
    parts = (path or "").split("/")
    if not path:
        why = "it leads out of the directory, or names no file"
    elif any(part.startswith(OWN) for part in parts):
        why = f"names that begin with {OWN} are reserved for boinc_gahp's own files"
    elif not hidden and is_hidden(path):
        why = "a part of it begins with a dot, as in names of configuration files"
    elif len(parts) > _DEEPEST or any(_size(part) > _LONGEST for part in parts):
        why = "it is too long"
    else:
        return path
    raise OutputError(
        f"{whose} has no valid name for a file in the job's directory ({why}): name it in "
        "transfer_output_files, or give it another name with transfer_output_remaps (in a "
        "BOINC_FETCH_OUTPUT with SOME, or with a pair of names)"
    )


def is_hidden(path: str) -> bool:
    """Return whether a part of a path begins with a dot."""
    return any(part.startswith(".") for part in path.split("/"))


def shown(name: str) -> str:
    """Return a name with ``%2E`` for the leading dots of its parts."""
    return "/".join(f"%2E{part[1:]}" if part.startswith(".") else part for part in name.split("/"))


def plain_names(outputs: Sequence[str]) -> dict[str, str]:
    """Return the default file names of outputs: their base names.

    Two outputs that share a base name keep the path that the app's template gives them.
    """
    bases = Counter(map(base_name, outputs))
    return {name: base_name(name) if bases[base_name(name)] == 1 else name for name in outputs}


def _size(part: str) -> int:
    try:
        return len(os.fsencode(part))
    except UnicodeEncodeError:
        return _LONGEST + 1
