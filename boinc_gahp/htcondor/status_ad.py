"""A job's state in the form for HTCondor's ``batch`` type: a status word and an ad.

HTCondor ignores a status without an ad for ever, and takes a missing ExitCode for 0
(``gridmanager-batch.rst``, "Life of a job").

HTCondor's own codes for holds end far below :class:`HoldCode`, so that a submit file's
``periodic_release`` can tell them apart. A job that is refused at its submit has no code of ours:
HTCondor then sets 0 (as above).
"""

from __future__ import annotations

import math
import re
from enum import IntEnum
from typing import TYPE_CHECKING

from boinc_gahp.states import LEDGER_WORDS, HTCondorState
from boinc_gahp.text import printable, shorten

if TYPE_CHECKING:
    from boinc_gahp.ledger.rows import JobRow

#: Characters of a HoldReason or ExitReason, which HTCondor keeps in the job and its history.
_MAX_REASON = 2000

#: HTCondor adds to a RemoteWallClockTime the time since ShadowBday, when it first saw the job
#: running (``basejob.cpp``, ``UpdateRuntimeStats``). It evaluates this just before.
_ADDED = "ifThenElse(isUndefined(ShadowBday), 0, time() - ShadowBday)"

_ODD = re.compile(rb"[^ -~]")


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


#: The reason for jobs that an account or settings keep from being done.
UNTIL_MENDED = "{error}. Release the job when this is fixed"


def status_ad(row: JobRow) -> tuple[int, str]:
    """Return the status word of a job, and its ad: ASCII, on one line.

    HTCondor cancels a job that it has put on hold. If its gridmanager ends before it has noted the
    hold (this happens now and then when held jobs are removed), the next one asks about the job: it
    still has to be held for the same reason.
    """
    is_held = row.state == "cancelled" and row.hold_reason is not None
    word = HTCondorState.HELD if is_held else LEDGER_WORDS[row.state].htcondor
    values: dict[str, str] = {}
    if word == HTCondorState.COMPLETED:
        # If a signal ended an installed app, clients do not report it reliably; the script of a
        # container does.
        if row.signal is None:
            values |= {"ExitCode": str(row.exit_code or 0), "ExitBySignal": "false"}
        else:
            values |= {"ExitSignal": str(row.signal), "ExitBySignal": "true"}
        if row.exit_reason is not None:
            values["ExitReason"] = _reason(row.exit_reason)
        if _is_time(row.cpu_time):
            values["RemoteUserCpu"] = f"{row.cpu_time:.3f}"
        if _is_time(row.elapsed_time):
            values["RemoteWallClockTime"] = f"{row.elapsed_time:.3f} - {_ADDED}"
        counted = {"BytesSent": row.bytes_sent, "BytesRecvd": row.bytes_received}
        values |= {name: f"{nbytes}.0" for name, nbytes in counted.items() if nbytes is not None}
    elif word == HTCondorState.HELD:
        reason = row.hold_reason or "the job failed, and the reason is not known"
        return held_ad(reason, row.hold_code or 0, row.hold_subcode or 0)
    return word, _ad(values)


def _is_time(seconds: float | None) -> bool:
    return seconds is not None and math.isfinite(seconds) and seconds >= 0


def held_ad(reason: str, code: int, subcode: int) -> tuple[int, str]:
    """Return the status word of a job that HTCondor has to hold, and its ad: ASCII, on one line."""
    values = {
        "HoldReason": _reason(reason),
        "HoldReasonCode": str(int(code)),
        "HoldReasonSubCode": str(subcode),
    }
    return HTCondorState.HELD, _ad(values)


def _ad(values: dict[str, str]) -> str:
    inside = "".join(f"{name} = {value}; " for name, value in values.items())
    return f"[ {inside}]"


def suspended(reason: str) -> tuple[int, str]:
    """Return what HTCondor is told about a job that waits for something that people must correct.

    It shows ``SUSPENDED`` as GridJobStatus. ExitReason is the only attribute with words that it
    takes from the ad of a job that is not held (``infnbatchjob.cpp``, ``ProcessRemoteAd``); the Job
    Router copies it to the original job.
    """
    return with_reason((HTCondorState.SUSPENDED, "[ ]"), reason)


def with_reason(answer: tuple[int, str], reason: str | None) -> tuple[int, str]:
    """Return an answer with words for people as ExitReason; None: what was told is taken back."""
    word, ad = answer
    if "ExitReason = " in ad:  # of a failed program
        return answer
    told = "undefined" if reason is None else _reason(reason)
    return word, f"[ ExitReason = {told};{ad.removeprefix('[')}"


def _reason(text: str) -> str:
    return classad_text(shorten(printable(text), _MAX_REASON))


def classad_text(text: str) -> str:
    r"""Return ``text`` as a ClassAd string in ASCII; bytes of other characters as ``\ooo``.

    A NUL, which a ClassAd cannot hold, becomes a space, and what is not UTF-8 is named.
    """
    raw = text.replace("\0", " ").encode("utf-8", "backslashreplace")
    plain = re.sub(rb'["\\]', rb"\\\g<0>", raw)
    escaped = _ODD.sub(lambda odd: b"\\%03o" % ord(odd[0]), plain)
    return f'"{escaped.decode()}"'
