"""Where the files of one job go: what the fetch engine asks of a place for them.

There is one for HTCondor, :class:`~boinc_gahp.bridge.fetching.job_directory.JobDirectory`, and one
for people, :class:`~boinc_gahp.remote.folders.Folder`, of which an archive is made, too
(:mod:`boinc_gahp.remote.zips`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from boinc_gahp.errors import OutputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from boinc_gahp.bridge.gate import Gate


@dataclass(frozen=True, slots=True)
class Delivery:
    """One output, or stderr or stdout, and a place where it goes.

    Attributes:
        output: its logical name.
        destination: absolute.
        inside: the directory below which the destination is made of a name from the network; None
            where all of it was asked for.
    """

    output: str
    destination: Path
    inside: Path | None = field(default=None, compare=False)

    def is_at(self, other: Delivery | None) -> bool:
        """Return whether another one goes to the same place."""
        return other is not None and self.destination == other.destination


class Sink(ABC):
    """A place for the files of one job.

    Outputs are given to it as a mapping of their logical names to their plain file names
    (:func:`~boinc_gahp.bridge.fetching.names.plain_names`).

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
        """Return where stdout goes: an empty file if no output goes there. None: nowhere."""
        return None

    def has(self, item: Delivery) -> bool:  # noqa: ARG002
        """Return whether a file is known to be in place."""
        return False

    def prepare(self) -> None:  # noqa: B027
        """Refuse what files cannot be put into; raises OutputError."""

    def make_parent(self, item: Delivery, gate: Gate) -> None:  # noqa: B027
        """Make the directory for stderr or stdout, if that is done here; raises OutputError."""

    def whose(self, output: str) -> str:
        """Return what a name is the name of, for errors."""
        return f"output {output!r} of job {self.job_name!r}"

    def distinct(
        self, wanted: Iterable[Delivery], stderr: Delivery | None = None
    ) -> tuple[Delivery, ...]:
        """Return deliveries, each once.

        Raises:
            OutputError: two files would get one name, or one that of ``stderr``.
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
