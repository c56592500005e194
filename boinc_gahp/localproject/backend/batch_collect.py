"""BOINC's batch_collect_assimilator: moves outputs to ``results/``, away from get_output.php.

See ``containers.rst``, "Outputs that were moved".
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from boinc_gahp.localproject.backend.views import Result, Workunit
    from boinc_gahp.localproject.core import Core

NAME = "batch_collect_assimilator"


def collect(core: Core, job: Workunit, canonical: Result | None, _all: object) -> None:
    """Move the canonical result's outputs, or write down the error, as an assimilator's handler."""
    directory = directory_of_batch(core, job.batch)
    directory.mkdir(parents=True, exist_ok=True)
    if canonical is None:
        with (directory / f"{job.name}_error").open("a") as file:
            file.write(f"0x{job.error_mask:x}\n")
        return
    moved = False
    for output in canonical.files:
        # An open name with directories leads nowhere: such an output stays where it is.
        with suppress(OSError):
            output.path.rename(collected_path(core, job.batch, job.name, output.open_name))
            moved = True
    if not moved:
        (directory / f"{job.name}_no_output_files").touch()


def directory_of_batch(core: Core, batch_id: int) -> Path:
    """Return the directory of a batch's moved outputs; 0: of jobs without a batch."""
    return core.directory / "results" / str(batch_id)


def collected_path(core: Core, batch_id: int, job_name: str, open_name: str) -> Path:
    """Return where an output of a job is after it was moved."""
    return directory_of_batch(core, batch_id) / f"{job_name}__file_{open_name}"


def retire(core: Core, batch_id: int) -> None:
    """Remove a batch's moved outputs, as retire_batch does."""
    shutil.rmtree(directory_of_batch(core, batch_id), ignore_errors=True)
