"""Sizes, time spans and numbers of operations, with or without a unit: ``2GB``, ``30min``, ``2T``.

Numbers without a unit are bytes, seconds and operations. Where such a number is far too small to be
meant, it is refused: somebody who writes ``--memory 2`` means 2 GB.
"""

from __future__ import annotations

import math
import re
from numbers import Integral, Real
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from boinc_gahp.errors import BadRequest
from boinc_gahp.text import shorten

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

T = TypeVar("T")

#: A time span of the Python API: seconds, or a text such as ``"2h"``.
Duration = float | str

#: Seconds of the longest time span, a hundred years: sums with longer ones are not valid times.
LONGEST = 36525 * 86400.0

_AMOUNT = re.compile(r"([0-9]*\.?[0-9]+(?:e[+-]?[0-9]+)?)\s*([a-z]*)", re.IGNORECASE)

#: By the unit in lower case: 2GB is 2e9 bytes, 2GiB 2 * 2**30.
_POWERS = "kmgtp"
_BYTES = {
    "": 1,
    "b": 1,
    **{f"{unit}{b}": 1000**n for n, unit in enumerate(_POWERS, 1) for b in ("", "b")},
    **{f"{unit}i{b}": 1024**n for n, unit in enumerate(_POWERS, 1) for b in ("", "b")},
}
_OPERATIONS = {
    f"{unit}{word}": 1000**n
    for n, unit in enumerate(["", *_POWERS])
    for word in ("", "flop", "flops", "fpops")
}
_SECONDS = {
    unit: seconds
    for units, seconds in (
        (("", "s", "sec", "second", "seconds"), 1),
        (("m", "min", "minute", "minutes"), 60),
        (("h", "hour", "hours"), 3600),
        (("d", "day", "days"), 86400),
        (("w", "week", "weeks"), 7 * 86400),
    )
    for unit in units
}


class Quantity(NamedTuple):
    """A kind of quantity: its units, and which numbers without a unit are surely a slip.

    Attributes:
        noun: what it is, as in "is not a time span".
        word: the word that stands for it in help.
        form: how it is written.
        units: what each unit counts, by its lower-case name; "" is for numbers without one.
        most: larger amounts are refused.
        too_long: what is said of these.
        may_be_zero: whether 0 is one.
        least: smaller numbers without a unit are refused.
        counted: what such a number would mean, with ``{}`` for it.
        unit: the unit that states this explicitly.
        meant: the units that were probably meant.
    """

    noun: str
    word: str
    form: str
    units: Mapping[str, int]
    most: float = math.inf
    too_long: str = ""
    may_be_zero: bool = False
    least: float = 0
    counted: str = ""
    unit: str = ""
    meant: tuple[str, ...] = ()

    def read(self, given: object) -> float:
        """Return an amount in bytes, seconds or operations; whole numbers stay ``int``.

        Args:
            given: a text, with a unit or without; or a number, which has none.

        Raises:
            BadRequest: it is not such a quantity, is not positive, or is surely a slip.
        """
        if not isinstance(given, bool) and isinstance(given, Real):
            number = int(given) if isinstance(given, Integral) else float(given)
            unit = ""
        else:
            found = _AMOUNT.fullmatch(given.strip()) if isinstance(given, str) else None
            if found is None or found[2].casefold() not in self.units:
                raise self._wrong(given)
            number, unit = _number(found[1]), found[2].casefold()
        amount = number * self.units[unit]
        if not 0 < amount < math.inf and not (amount == 0 and self.may_be_zero):
            raise self._wrong(given)
        if amount > self.most:
            raise BadRequest(f"{_shown(given)} is {self.too_long}")
        if not unit and amount < self.least:
            shown = f"{number:.15g}"
            meant = " or ".join(f"{shown}{unit}" for unit in self.meant)
            raise BadRequest(
                f"{self.counted.format(shown)}: did you mean {meant}? "
                f"({shown}{self.unit} is taken as it is)"
            )
        return amount

    def _wrong(self, given: object) -> BadRequest:
        return BadRequest(f"{_shown(given)} is not a {self.noun}: {self.form}")


def _number(digits: str) -> float:
    return int(digits) if digits.isdigit() and len(digits) < 19 else float(digits)


def _shown(given: object) -> str:
    return shorten(repr(given), 60)


_SIZE = Quantity(
    "size",
    "SIZE",
    "a number of bytes, or one with kB, MB, GB, GiB, as in 2GB",
    _BYTES,
    least=1_000_000,
    unit="B",
    meant=("MB", "GB"),
)
#: Bytes of a job's memory.
MEMORY = _SIZE._replace(counted="{} bytes of memory")
#: Bytes of a job's disk space.
DISK = _SIZE._replace(counted="{} bytes of disk space")
#: Floating-point operations of a job.
OPERATIONS = Quantity(
    "number of floating-point operations",
    "X",
    "a number, or one with M, G, T or P, as in 2e12 or 2T",
    _OPERATIONS,
    least=1_000_000,
    counted="{} floating-point operations",
    unit="flop",
    meant=("G", "T"),
)
#: Seconds.
SPAN = Quantity(
    "time span",
    "SPAN",
    "a number with s, min, h, d or w, as in 12h or 7d",
    _SECONDS,
    most=LONGEST,
    too_long="longer than a hundred years",
    may_be_zero=True,
)


def seconds_of(span: Duration | None) -> float | None:
    """Return a time span in seconds; None, which is for no limit, stays None."""
    return None if span is None else SPAN.read(span)


#: Seconds that a volunteer has for a job.
DELAY = SPAN._replace(
    may_be_zero=False,
    least=60,
    counted="{} s for a volunteer to finish a job",
    unit="s",
    meant=("h", "d"),
)
#: Seconds that a project keeps a batch without a renewal.
LEASE = DELAY._replace(counted="a lease of {} s")


class Size(NamedTuple):
    """A size that a batch can ask for, for all of its jobs.

    Attributes:
        parameter: its name in the Python API, for a batch.
        element: BOINC's name, in ``job_params`` and in templates.
        job: its name for a single job; "": only a batch can ask for it.
        quantity: its kind.
        help: what it is, on the command line.
    """

    parameter: str
    element: str
    job: str
    quantity: Quantity
    help: str

    @property
    def option(self) -> str:
        """Its name on the command line."""
        name = self.parameter.replace("_", "-") if self.quantity is OPERATIONS else self.job
        return f"--{name}"


#: In the order of BOINC's own clients (``web-rpcs.rst``, "submit_batch").
SIZES = (
    Size(
        *("disk_bound", "rsc_disk_bound", "disk", DISK),
        help="disk space that a job may use",
    ),
    Size(
        *("fpops_est", "rsc_fpops_est", "fpops", OPERATIONS),
        help="estimated floating-point operations of a job: 2e12 or 2T",
    ),
    Size(
        *("fpops_bound", "rsc_fpops_bound", "", OPERATIONS),
        help="floating-point operations after which a job is aborted",
    ),
    Size(
        *("memory_bound", "rsc_memory_bound", "memory", MEMORY),
        help="memory that a job may use: 500MB, 2GB, 1.5GiB",
    ),
    Size(
        *("delay_bound", "delay_bound", "delay", DELAY),
        help="time that a volunteer has for a job: 12h, 7d, 2w",
    ),
)
#: Those that a single job can ask for, by their names there.
JOB_SIZES = {size.job: size for size in SIZES if size.job}


def in_parts(
    items: Iterable[T], size_of: Callable[[T], float], most: float, count: float = math.inf
) -> Iterator[list[T]]:
    """Yield items in parts, in their order, each of at most ``count`` items.

    The sizes of a part are ``most`` together, at most; a larger item is a part by itself.
    """
    part: list[T] = []
    total = 0.0
    for item in items:
        size = size_of(item)
        if part and (len(part) >= count or total + size > most):
            yield part
            part, total = [], 0.0
        part.append(item)
        total += size
    if part:
        yield part
