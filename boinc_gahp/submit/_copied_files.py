"""Files and counts of jobs in containers, as their own templates have them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boinc_gahp.containers.rules import MAX_ERRORS
from boinc_gahp.templates.types import InputFileInfo, OutputFileInfo

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Results beside those that have to agree, in case some differ.
_MORE_RESULTS = 5


def counts(quorum: int = 1, max_errors: int = MAX_ERRORS) -> dict[str, int]:
    """Return how many results a job may have; without these, create_work makes one.

    Args:
        quorum: results that have to agree.
        max_errors: how many errors are followed by another attempt; 0: there is one attempt.
    """
    more = _MORE_RESULTS if max_errors else 0
    return {
        # create_work refuses 0 (``containers.rst``, "On the server").
        "max_error_results": max(max_errors, 1),
        "max_success_results": quorum + more,
        "max_total_results": quorum + more + (max_errors + 1 if max_errors else 0),
    }


def copied_inputs(open_names: Iterable[str]) -> tuple[InputFileInfo, ...]:
    """Return inputs that the container sees, and that nobody deletes."""
    return tuple(InputFileInfo(name, copy_file=True, no_delete=True) for name in open_names)


def copied_outputs(
    files: Iterable[tuple[str, bool]], max_nbytes: float
) -> tuple[OutputFileInfo, ...]:
    """Return outputs without what only clients before 8.2 read.

    They run no containers (``client/client_types.cpp``, ``FILE_INFO::parse``).

    Args:
        files: open names, and whether each is optional.
        max_nbytes: the largest size of each, in bytes.
    """
    return tuple(
        OutputFileInfo(
            open_name,
            f"<OUTFILE_{number}/>",
            generated_locally=False,
            upload_when_present=False,
            max_nbytes=max_nbytes,
            copy_file=True,
            optional=optional,
            no_delete=True,
        )
        for number, (open_name, optional) in enumerate(files)
    )
