"""What the exit statuses of a failed job's instances say of its program.

BOINC's client reports one number for each instance that came to nothing. It is the program's own
exit status; or, where the program crashed or could not even run, a number of the client's or of
Windows (``lib/error_numbers.h``; ``client/app_control.cpp``, handle_exited_app). A program that the
host's system ends by a signal which BOINC's library does not catch is reported with the number of
the signal, 128 more if it left a core file: nothing tells that from an exit status.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from boinc_gahp.bridge import Failure

#: What statuses mean that are not the program's own.
MEANINGS = {
    -131: "an output file is larger than the app's output template allows (max_nbytes)",
    -161: "an output file was missing",
    -185: "the program could not be started",
    -186: "an input file could not be downloaded",
    -187: "an output file could not be uploaded",
    193: "a signal ended the program: it crashed",
    194: "the BOINC client aborted it",
    195: "the program that the app ran has failed",
    196: "it used more disk than allowed: ask for more with BoincRscDiskBound",
    197: "it ran for longer than allowed: ask for more with BoincRscFpopsBound",
    198: "it used more memory than allowed: ask for more with BoincRscMemoryBound",
    200: "it had not begun when its deadline came",
    202: "the project aborted it",
    203: "the volunteer aborted it",
    205: "it ran out of memory",
    -1073741819: "the program crashed on Windows: access violation",
    -1073741515: "the program lacks a DLL on Windows",
    -1073740940: "the program crashed on Windows: heap corruption",
    -1073741571: "the program crashed on Windows: stack overflow",
}

#: The client's; negative ones are as well, or those of a crash on Windows.
_OF_CLIENT = range(193, 206)
#: Of the client's, the one that an app which runs another program gives when that has failed.
_CHILD_FAILED = 195

#: The program was not run, or somebody stopped it: that says nothing of the program. The negative
#: ones from -195 on are those of clients before version 7.
_NOT_RUN = frozenset({-185, -186, 194, 199, 200, 201, 202, 203, -195, -197, -221, -232, -233, -234})

#: How the states of instances begin whose programs ended well, so that the validator had them
#: (``html/inc/result.inc``, state_string), and of those whose programs did not.
_WELL = ("Completed", "Validate error")
_ILL = ("Error while computing", "Error while uploading", "Upload failed")
#: The project's words for a job whose instances ended well and did not agree.
_DISAGREED = frozenset({"too_many_success_results", "no_canonical_result"})


def exit_code(failure: Failure) -> int | None:
    """Return the exit status with which a failed job's program ended; None: it did not fail by one.

    Of several instances the last one that ran its program counts.
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
    return status == _CHILD_FAILED or (status > 0 and status not in _OF_CLIENT)


def _ended_well(failure: Failure) -> bool:
    """Tell whether the last instance that ran its program ended well, and was found wrong then."""
    for state in reversed(failure.states):
        if state.startswith(_WELL):
            return True
        if state.startswith(_ILL):
            return False
    return not _DISAGREED.isdisjoint(failure.words)
