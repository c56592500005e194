"""What the exit statuses of a failed job's instances say about its program.

If a signal that BOINC's library does not catch ends a program, the signal's number is reported, 128
more if there is a core file. This cannot be told from an exit status.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from boinc_gahp import client_exits

if TYPE_CHECKING:
    from boinc_gahp.fetch.types import Failure

#: The job attribute that asks for more of a resource that was not enough.
_MORE = {
    client_exits.EXIT_DISK_LIMIT_EXCEEDED: "BoincRscDiskBound",
    client_exits.EXIT_TIME_LIMIT_EXCEEDED: "BoincRscFpopsBound",
    client_exits.EXIT_MEM_LIMIT_EXCEEDED: "BoincRscMemoryBound",
}
#: Meanings of the statuses that are not the program's own, and what to do.
MEANINGS = {
    status: meaning + (f": ask for more with {_MORE[status]}" if status in _MORE else "")
    for status, meaning in client_exits.MEANINGS.items()
}

#: The client's own statuses; negative ones are the client's, too, or of a crash on Windows.
_OF_CLIENT = range(client_exits.EXIT_SIGNAL, client_exits.EXIT_OUT_OF_MEMORY + 1)

#: The program was not run, or somebody stopped it: this says nothing about the program.
_NOT_RUN = {
    client_exits.ERR_RESULT_START,
    client_exits.ERR_RESULT_DOWNLOAD,
    client_exits.EXIT_ABORTED_BY_CLIENT,
    client_exits.EXIT_CLIENT_EXITING,
    client_exits.EXIT_UNSTARTED_LATE,
    client_exits.EXIT_MISSING_COPROC,
    client_exits.EXIT_ABORTED_BY_PROJECT,
    client_exits.EXIT_ABORTED_VIA_GUI,
    # Of clients before version 7.
    *(-195, -197, -221, -232, -233, -234),
}

#: How the states of instances begin if the program ended well, so that the validator got them
#: (``html/inc/result.inc``, state_string), and if it did not.
_WELL = ("Completed", "Validate error")
_ILL = ("Error while computing", "Error while uploading", "Upload failed")
#: The project's words for a job whose instances ended well but did not agree.
_DISAGREED = frozenset({"too_many_success_results", "no_canonical_result"})


def exit_code(failure: Failure) -> int | None:
    """Return the exit status of a failed job's program; None if the program is not to blame.

    If there are several instances, the last one that ran its program counts.
    """
    ran = [status for status in statuses(failure) if status and status not in _NOT_RUN]
    if not ran or not _is_of_program(ran[-1]) or _ended_well(failure):
        return None
    return ran[-1]


def statuses(failure: Failure) -> tuple[int, ...]:
    """Return the exit statuses of the instances that failed, in their order, as far as known."""
    if failure.exit_statuses or failure.result is None:
        return failure.exit_statuses
    return (failure.result.exit_status,)


def last_status(failure: Failure) -> int:
    """Return the last exit status that is not 0; 0 if there is none."""
    return next((status for status in reversed(statuses(failure)) if status), 0)


def _is_of_program(status: int) -> bool:
    # An app that runs another program reports this if that program has failed.
    is_child = status == client_exits.EXIT_CHILD_FAILED
    return is_child or (status > 0 and status not in _OF_CLIENT)


def _ended_well(failure: Failure) -> bool:
    """Tell whether the last instance that ran its program ended well, but was found wrong."""
    for state in reversed(failure.states):
        if state.startswith(_WELL):
            return True
        if state.startswith(_ILL):
            return False
    return not _DISAGREED.isdisjoint(failure.words)
