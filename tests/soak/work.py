"""What jobs of a soak are: their arguments, and what their volunteers make of them."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass

from boinc_gahp.localproject.backend.new_job import split_command_line
from boinc_gahp.templates.documents import read_workunit

APP = "soak"
HOUR = 3600.0
#: The exit status of a job that is meant to fail.
FAILURE = 3


@dataclass(frozen=True)
class Work:
    """What a job is to do.

    Attributes:
        number: tells it from all others of the soak.
        seconds: what its volunteer pretends to need for it, in simulated seconds.
        fails: it ends with exit status :data:`FAILURE`, wherever it is run.
        cancelled_after: simulated seconds after which its owner does not want it any more; None:
            the owner waits for it.
    """

    number: int
    seconds: float
    fails: bool = False
    cancelled_after: float | None = None

    @property
    def arguments(self):
        """What its command line says."""
        more = ("--fail",) if self.fails else ()
        return ("--job", str(self.number), "--seconds", f"{self.seconds:.0f}", *more)

    @classmethod
    def read(cls, words):
        """Return what a command line asks for."""
        given = dict(itertools.pairwise(words))
        return cls(int(given["--job"]), float(given["--seconds"]), "--fail" in words)

    def output(self, text):
        """Return what it makes of its input."""
        return b"job %d: %s" % (self.number, text.upper())


def work_of(document):
    """Return what a workunit's ``xml_doc`` asks for."""
    return Work.read(split_command_line(read_workunit(document).command_line))


def make(number, seed, left, longest):
    """Return the job of a number: most take minutes, some hours; a few fail, or are not wanted.

    Args:
        number: the job's.
        seed: what all is drawn from.
        left: simulated seconds from its submission to the end of the soak.
        longest: simulated seconds that a job takes at most, if there is so much time left.
    """
    chance = random.Random(f"{seed} job {number}")
    kind = chance.random()
    if kind < 0.01:
        seconds = longest
    elif kind < 0.06:
        seconds = chance.uniform(2 * HOUR, 9 * HOUR)
    else:
        seconds = chance.uniform(60, 1200)
    fails = chance.random() < 0.01
    cancelled = chance.uniform(0, 2 * HOUR) if chance.random() < 0.03 else None
    return Work(number, min(seconds, left), fails, cancelled)


def text_of(number):
    """Return the contents of one of the input files."""
    return b"text %d\n" % number
