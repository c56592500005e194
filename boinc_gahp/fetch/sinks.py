"""Sinks: where the files of one job go, as the fetch engine sees it.

There is one for HTCondor, :class:`~boinc_gahp.fetch.job_directory.JobDirectory`, and one
for people, :class:`~boinc_gahp.api.folders.Folder`, which is also used to make archives
(:mod:`boinc_gahp.api.zips`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from boinc_gahp.errors import OutputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Delivery:
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

    def is_at(self, other: Delivery | None) -> bool:
        """Return whether another delivery goes to the same place."""
        return other is not None and self.destination == other.destination


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
    """

    again = False
    unpacks = False
    takes_all = True
    makes_directories = False

    def __init__(self, job_name: str, directory: Path) -> None:
        self.job_name = job_name
        self.directory = directory

    @abstractmethod
    def select(self, outputs: Mapping[str, str]) -> tuple[Delivery, ...]:
        """Return which outputs are wanted, and where each goes.

        Raises:
            OutputError: a wanted file is not an output, or two files would get the same name.
        """

    @abstractmethod
    def stderr(self, outputs: Mapping[str, str]) -> Delivery | None:
        """Return where stderr goes; None: nowhere."""

    def stdout(self, outputs: Mapping[str, str]) -> Delivery | None:  # noqa: ARG002
        """Return where stdout goes: an empty file if no output goes there. None: nowhere."""
        return None

    def has(self, item: Delivery) -> bool:  # noqa: ARG002
        """Return whether a file is known to be in place."""
        return False

    def prepare(self) -> None:  # noqa: B027
        """Raise OutputError if files cannot be put here."""

    def describe(self, output: str) -> str:
        """Return a description of an output, for errors about its name."""
        return f"output {output!r} of job {self.job_name!r}"

    def distinct(
        self, wanted: Iterable[Delivery], stderr: Delivery | None = None
    ) -> tuple[Delivery, ...]:
        """Return the deliveries without duplicates.

        Raises:
            OutputError: two files would get the same name, or one that of ``stderr``.
        """
        deliveries = tuple(dict.fromkeys(wanted))
        taken = {} if stderr is None else {stderr.destination: stderr.output}
        for delivery in deliveries:
            other = taken.setdefault(delivery.destination, delivery.output)
            if other != delivery.output:
                raise OutputError(
                    f"{other} and {delivery.output} of job {self.job_name!r} would both be written "
                    f"to {str(delivery.destination)!r}: give them different names"
                )
        return deliveries
