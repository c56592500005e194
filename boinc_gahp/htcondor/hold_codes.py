"""The HoldReasonCode of a job that this program puts on hold.

HTCondor's own codes end far below these, so that a submit file's ``periodic_release`` can tell
them apart. A job that is refused at its submit has no code of ours: HTCondor then sets 0
(``gridmanager-batch.rst``, "Life of a job").
"""

from __future__ import annotations

from enum import IntEnum

from boinc_gahp.ledger.rows import Hold


class HoldCode(IntEnum):
    """Why a job that was accepted is on hold; HoldReasonSubCode is given with each."""

    #: An input file cannot be read, or changed since the submit; an errno, or 0 if it changed.
    INPUT = 2301
    #: The project refuses the job, or would by what is known about it; 0.
    REFUSED = 2302
    #: The account cannot do this on the project, there is no authenticator for it, or the settings
    #: or the state directory keep this program from accepting jobs; 0.
    ACCOUNT = 2303
    #: The job ran and failed on volunteers' computers, for good; its last exit status that was not
    #: 0, or 0 if there is none.
    FAILED = 2304
    #: Outputs of a job that succeeded cannot be put in place; an errno, or 0.
    OUTPUT = 2305
    #: The project does not have the job any more; 0.
    LOST = 2306
    #: Somebody aborted the job on the project; 0.
    ABORTED = 2307


def held_until_mended(words: str) -> Hold:
    """Return the hold for jobs that an account or settings keep from being done."""
    return Hold(f"{words}. Release the job when this is fixed", HoldCode.ACCOUNT, 0)
