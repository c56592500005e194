"""Archives from the network, read defensively: what holds for all kinds of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from boinc_gahp.errors import OutputError
from boinc_gahp.fetch.names import below

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from typing_extensions import Self

#: What a kind of archive knows about a file in it.
Info = TypeVar("Info")


class Archive(ABC, Generic[Info]):
    """The files in an archive, by their checked names; a context manager.

    A name is a path below a directory (:func:`~boinc_gahp.fetch.names.below`); no name
    is there twice, or is the directory of another; every member is a file or a directory.

    Args:
        what: its description, for error messages.
        max_files: the most members that it may have, with their directories.
        max_bytes: the most bytes that may be extracted in all, whatever sizes it declares.
    """

    #: What is raised when a member is damaged.
    trouble: ClassVar[tuple[type[Exception], ...]]

    def __init__(self, what: str, *, max_files: int, max_bytes: int) -> None:
        self._what = what
        self._max_files = max_files
        self._left = max_bytes
        self._max_bytes = max_bytes
        self._files: dict[str, Info] = {}
        self._directories: dict[str, None] = {}

    @property
    def files(self) -> tuple[str, ...]:
        """Names of the files, in the archive's order."""
        return tuple(self._files)

    @property
    def directories(self) -> tuple[str, ...]:
        """Names of the directories that the archive lists."""
        return tuple(self._directories)

    def has(self, name: str) -> bool:
        """Return whether there is a file of this name."""
        return name in self._files

    def is_executable(self, name: str) -> bool:  # noqa: ARG002
        """Return whether the archive says that a file may be executed by its owner."""
        return False

    def check(self, names: Iterable[str]) -> None:
        """Read files to know about damage before they are extracted; errors are the same."""
        for name in names:
            self.extract(name, lambda _: None)
        self._left = self._max_bytes

    def extract(self, name: str, write: Callable[[bytes], object]) -> None:
        """Pass a file's contents to ``write``, in pieces; its checksum is checked if it has one.

        Raises:
            OutputError: it is damaged, or more was extracted in all than is allowed.
        """
        try:
            for data in self._contents(self._files[name]):
                self._left -= len(data)
                if self._left < 0:
                    raise self._too_large()
                write(data)
        except self.trouble as error:
            raise OutputError(f"{self._what}: member {name!r} is damaged: {error}") from error

    def close(self) -> None:
        """Release what it holds; the file itself is the caller's."""

    @abstractmethod
    def _contents(self, info: Info) -> Iterator[bytes]:
        """Yield a file's contents in pieces."""

    def _take(self, members: Iterable[tuple[str, bool, Info]]) -> None:
        """Check members: the name of each, whether it is a directory, and what is known about it.

        Raises:
            OutputError: something is refused.
        """
        for number, (told, is_directory, info) in enumerate(members):
            # One may be the archive's own top directory. All count, also those that come again.
            if number > self._max_files:
                raise self._too_many()
            name = below(told)
            if name is None:
                raise self._refused(f"its member {told!r} is not a path below a directory")
            if not name:
                continue  # the archive's own top directory
            if name in self._files or (name in self._directories and not is_directory):
                raise self._refused(f"it has two members called {name!r}")
            if is_directory:
                self._directories[name] = None
            else:
                self._files[name] = info
        # The members of a directory come right after it.
        ordered = sorted(
            (*self._files, *self._directories), key=lambda name: name.replace("/", "\0")
        )
        for one, other in pairwise(ordered):
            if other.startswith(f"{one}/") and one in self._files:
                raise self._refused(f"its member {one!r} is both a file and a directory")
        if _count(ordered, self._max_files) > self._max_files:
            raise self._too_many()

    def _too_large(self) -> OutputError:
        return self._refused(
            f"its contents are larger than {self._max_bytes} bytes "
            "(unzip_max_bytes in the section [jobs])"
        )

    def _too_many(self) -> OutputError:
        return self._refused(f"it has more than {self._max_files} members")

    def _refused(self, why: str) -> OutputError:
        return OutputError(f"{self._what} is not unpacked: {why}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _count(ordered: list[str], enough: int) -> int:
    """Return how many files and directories sorted paths make, with those in between.

    Counting stops soon after ``enough``.
    """
    count, before = 0, [""]
    for name in ordered:
        if count > enough:
            break
        parts = name.split("/")
        same = 0
        for part, other in zip(parts, before, strict=False):
            if part != other:
                break
            same += 1
        count += len(parts) - same
        before = parts
    return count
