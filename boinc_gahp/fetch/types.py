"""What is asked of a fetch, and its answers: plain values without protocol or network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from boinc_gahp.rpc.types import CompletedJob
    from boinc_gahp.templates.types import OutputTemplate

#: Prefix of the names of boinc_gahp's own files beside outputs.
OWN = ".boinc_gahp"


@dataclass(frozen=True, slots=True)
class FetchRequest:
    """A BOINC_FETCH_OUTPUT, or what a job ad asks for.

    For a job ad, missing directories of stdout and stderr are made, and ALL ignores specs that do
    not name an output: remaps may name more files than there are. A Request Line has nothing that
    comes after ``is_ad``.

    Attributes:
        directory: the job's directory; absolute.
        stderr: where stderr goes, absolute or relative to ``directory``; None to drop it.
        specs: (source, destination) pairs as the Request Line has them.
        is_ad: whether it is for a job ad.
        stdout: where stdout goes, likewise. It is the output of the same base name; else one called
            ``stdout`` or ``stdout.txt``, also if it goes elsewhere, too; else an empty file.
        batch_id: the project's id of the job's batch, if it is known.
        output_template: the job's own; None: the app's.
    """

    job_name: str
    directory: str
    stderr: str | None
    mode: Literal["ALL", "SOME"]
    specs: tuple[tuple[str, str], ...] = ()
    is_ad: bool = False
    stdout: str | None = None
    batch_id: int | None = None
    output_template: OutputTemplate | None = None


@dataclass(frozen=True, slots=True)
class AdRequest:
    """Which outputs of a job a job ad wants, and where each goes.

    Paths are absolute, or relative to ``directory``. The directories of stdout and
    stderr are made if they are missing. A volunteer's computer has sent all that is in the files.

    Attributes:
        directory: where the files go; absolute.
        outputs: the outputs that are wanted; None: all of them. Each goes under its base name into
            ``directory``. Those of a container job are files and directories, by their names
            relative to the job's own directory in the container, and all are the new or changed
            files at its top; of a directory whose name ends in a slash, what is in it goes there.
        remaps: (name, path) pairs: where an output goes instead, by its name as in ``outputs`` or
            its base name. If the path ends in a slash, or if it is a directory and the output is a
            file, the output keeps its base name there.
        stdout: where stdout goes; None to drop it. An empty file, if the program wrote nothing.
        stderr: where stderr goes, likewise. If it is the same path, both are in that one file.
        batch_id: the project's id of the job's batch, if it is known.
        output_template: the job's own; None: the app's.
    """

    job_name: str
    directory: str
    outputs: tuple[str, ...] | None
    remaps: tuple[tuple[str, str], ...]
    stdout: str | None
    stderr: str | None
    batch_id: int | None
    output_template: OutputTemplate | None


@dataclass(frozen=True, slots=True)
class FetchResult:
    """How the program of a fetched job ended; times in seconds.

    The exit status of a container job is negative if a signal ended its program: minus the signal's
    number.

    Attributes:
        nbytes: of the outputs and streams that are in place; None: not known.
    """

    exit_status: int
    elapsed_time: float
    cpu_time: float
    nbytes: int | None = None

    @classmethod
    def of(cls, completed: CompletedJob, nbytes: int | None = None) -> FetchResult:
        """Return what query_completed_job tells."""
        return cls(completed.exit_status, completed.elapsed_time, completed.cpu_time, nbytes)
