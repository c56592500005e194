"""How a program in a container ended, as the script wrote it."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING

from boinc_gahp.text import listed

if TYPE_CHECKING:
    from collections.abc import Iterable

#: What a script writes instead of an exit status if the program could not be run, or its outputs
#: not be packed; and what is told about it. ``{}`` is the word after it, if there is one.
PROBLEMS = {
    "no-program": "the image has no program {}, and the job does not bring one of that name",
    "not-executable": "{} cannot be executed",
    "no-interpreter": "the image has no {}, which the first line of the program names",
    "wrong-system": (
        "the image cannot run {}: it is built for another kind of processor, or for libraries that "
        "the image lacks"
    ),
    "no-tar": (
        "the image has no tar, which is needed for directories, and for outputs that the job does "
        "not name: use an image with tar, or transfer single files only, and name the outputs"
    ),
    "no-unpacking": "tar in the image cannot unpack {}",
    "no-packing": "tar in the image cannot pack the outputs",
    "no-directory": "the directory for the job's files cannot be made in the container",
    "no-job": "the script has no job number {}",
}

#: The problem if an ``_exit`` is not as the script writes it.
UNTOLD = "a volunteer's computer did not tell how the program ended"

_TEXT = re.compile(r"\s*(?:([0-9]{1,3})|([a-z-]{1,40})(?: ([^\n]{1,4096}))?)\s*")
#: The most bytes that an ``_exit`` of ours has.
LARGEST = 1 << 16
#: The line between the status and the names of outputs.
OUTPUTS = "outputs:"

#: How many missing outputs are named.
_NAMED = 10

#: A status above this may mean that a signal ended the program (POSIX, "Exit Status for Commands").
_SIGNALS = 128
_LAST_SIGNAL = 64


@dataclass(frozen=True, slots=True)
class Ending:
    """How a program ended.

    Attributes:
        exit_status: its exit status; 0 if it was not run. If a signal ended it, the negative number
            of the signal, as far as a shell can tell: a program that ends with the status 137 by
            itself looks as if SIGKILL had ended it.
        problem: why it could not be run, or its outputs not be packed, for people; None: it ran.
        outputs: the names of the outputs that are files of the result by themselves, in their
            order; None: the script does not tell them.
    """

    exit_status: int = 0
    problem: str | None = None
    outputs: tuple[str, ...] | None = None

    @property
    def failure(self) -> str:
        """Why the job counts as failed for a person, on one line; empty: it does not."""
        if self.problem is not None:
            return self.problem
        if self.exit_status < 0:
            number = -self.exit_status
            try:
                return f"signal {number} ({signal.Signals(number).name})"
            except ValueError:
                return f"signal {number}"
        return f"exit status {self.exit_status}" if self.exit_status else ""

    def failure_without(self, missing: Iterable[str]) -> str:
        """Return why the job counts as failed if its program did not make these outputs."""
        names = [] if self.failure else [repr(name) for name in missing]
        if not names:
            return self.failure
        return f"the program ended with status 0, but did not make {listed(names, _NAMED)}"


def read_ending(content: bytes) -> Ending:
    """Return how a program ended.

    Args:
        content: of the output ``_exit``. It comes from a volunteer's computer: it may be anything.
    """
    text = content[:LARGEST].decode("utf-8", "replace")
    told, line, names = text.partition(f"\n{OUTPUTS}\n")
    outputs = tuple(names.splitlines()) if line else None
    found = _TEXT.fullmatch(told)
    if found is None or (found[2] is not None and found[2] not in PROBLEMS):
        return Ending(problem=UNTOLD)
    if found[2] is not None:
        return Ending(problem=PROBLEMS[found[2]].format(repr(found[3] or "")))
    status = int(found[1])
    if _SIGNALS < status <= _SIGNALS + _LAST_SIGNAL:
        status = _SIGNALS - status
    return Ending(status, outputs=outputs)
