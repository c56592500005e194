"""Where the files of one job go: what the fetch engine asks of a place for them.

A :class:`JobDirectory` is for HTCondor, and a :class:`~boinc_gahp.remote.folders.Folder` for a
person; an archive is made of such folders (:mod:`boinc_gahp.remote.zips`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING

from boinc_gahp.bridge.destinations import explain
from boinc_gahp.bridge.directories import make_directories
from boinc_gahp.bridge.fetching.job_directory import (
    Delivery,
    job_directory,
    select,
    stderr_path,
    stdout_path,
)
from boinc_gahp.errors import OutputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from boinc_gahp.bridge.gate import Gate
    from boinc_gahp.bridge.types import FetchRequest


class Sink(ABC):
    """A place for the files of one job.

    Outputs are given to it as a mapping of their logical names to their plain file names
    (:func:`~boinc_gahp.bridge.fetching.job_directory.plain_names`).

    Args:
        job_name: the job.
        directory: where its files go; absolute.

    Attributes:
        again: whether to fetch also what was delivered before.
        unpacks: whether an app's one output is unpacked if it is a zip archive.
        takes_all: whether all outputs are wanted, and not only those that somebody named.
    """

    again = False
    unpacks = False
    takes_all = True

    def __init__(self, job_name: str, directory: Path) -> None:
        self.job_name = job_name
        self.directory = directory

    @abstractmethod
    def select(self, outputs: Mapping[str, str]) -> tuple[Delivery, ...]:
        """Return which outputs are wanted, and where each goes.

        Raises:
            OutputError: something is wanted that is no output, or two files would get one name.
        """

    @abstractmethod
    def stderr(self, outputs: Mapping[str, str]) -> Delivery | None:
        """Return where stderr goes; None: nowhere."""

    def stdout(self, outputs: Mapping[str, str]) -> Delivery | None:  # noqa: ARG002
        """Return where stdout goes, of which an empty file is made if no output goes there."""
        return None

    def has(self, item: Delivery) -> bool:  # noqa: ARG002
        """Return whether a file is known to be in place."""
        return False

    def prepare(self) -> None:  # noqa: B027
        """Get ready for files.

        Raises:
            OutputError: none can be put here.
        """

    def make_parent(self, item: Delivery, gate: Gate) -> None:  # noqa: B027
        """Make the directory that stderr or stdout goes into, if that is done here.

        Raises:
            OutputError: it cannot be made.
        """


class JobDirectory(Sink):
    """A job's directory, as HTCondor asks for files in it.

    Args:
        request: a BOINC_FETCH_OUTPUT, or what a job ad asks for.
    """

    unpacks = True

    def __init__(self, request: FetchRequest) -> None:
        super().__init__(request.job_name, job_directory(request))
        self.takes_all = request.mode == "ALL"
        self._request = request

    def select(self, outputs: Mapping[str, str]) -> tuple[Delivery, ...]:
        """See :func:`boinc_gahp.bridge.fetching.job_directory.select`."""
        return select(self._request, outputs)

    def stderr(self, outputs: Mapping[str, str]) -> Delivery | None:  # noqa: ARG002
        """Return where the request wants it."""
        path = stderr_path(self._request)
        return None if path is None else Delivery("stderr", path)

    def stdout(self, outputs: Mapping[str, str]) -> Delivery | None:
        """Return where a job ad wants it, or a line that no output is for."""
        path = stdout_path(self._request, outputs)
        return None if path is None else Delivery("stdout", path)

    def prepare(self) -> None:
        """Refuse a job ad's directory that is not there, before one is made for stdout.

        Where its file system is not mounted, all would go to what is beneath.
        """
        if self._request.ad is None:
            return
        path = Path(self._request.directory)
        try:
            if path.is_dir():
                return
            path.stat()
        except OSError as error:
            raise OutputError(
                f"the job's directory {str(path)!r} cannot be used: {error.strerror}"
            ) from error
        raise OutputError(f"the job's directory {str(path)!r} is no directory")

    def make_parent(self, item: Delivery, gate: Gate) -> None:
        """Make the directory, and those above it, for a job ad."""
        if self._request.ad is None:
            return
        try:
            make_directories(item.destination.parent, gate)
        except OSError as error:
            raise explain(error, item.destination) from error
