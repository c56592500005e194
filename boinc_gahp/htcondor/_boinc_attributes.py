"""A job's settings for BOINC: ``Boinc…`` attributes, or options in ``BatchExtraSubmitArgs``.

``+remote_BoincDelayBound = 86400`` in a submit file arrives as the attribute ``BoincDelayBound``
(``gridmanager-batch.rst``, "The submit ad"); ``batch_extra_submit_args = --delay-bound 86400``
means the same. The attribute wins.
"""

from __future__ import annotations

import math
import re
import shlex
from typing import TYPE_CHECKING

from boinc_gahp.containers.rules import OPTIONS
from boinc_gahp.htcondor.attributes import AdRefused, as_text, as_word, show
from boinc_gahp.quantities import SIZES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boinc_gahp.htcondor.attributes import Attributes

#: The attributes' names after ``Boinc``.
NAMES = (
    "Project",
    "App",
    "RemoteFiles",
    *(size.element.title().replace("_", "") for size in SIZES),
    "Priority",
    "AppVersionNum",
    "InputTemplate",
    "OutputTemplate",
    "FailedJobs",
    "Image",
    *(each.attribute for each in OPTIONS.values() if each.attribute),
    "AllowEnvironment",
    "Ignore",
)

#: The columns are signed 32-bit numbers.
_MAX_INT = 2**31 - 1

EXTRA = "BatchExtraSubmitArgs"


def option(name: str) -> str:
    """Return the option for ``Boinc<name>``: ``--delay-bound`` for ``DelayBound``."""
    return "--" + re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower()


_OPTIONS = {option(name): name for name in NAMES}


class BoincAttributes:
    """What a job wants from BOINC; raises AdRefused for an unknown option."""

    def __init__(self, attributes: Attributes) -> None:
        self._attributes = attributes
        self._options = _read_options(attributes.text(EXTRA) or "")

    def get(self, name: str) -> tuple[str, object] | None:
        """Return the name under which the job gives the value of ``Boinc<name>``, and the value.

        None if the job does not give it, or gives an empty text.
        """
        attribute = f"Boinc{name}"
        value = self._attributes.get(attribute)
        if value is None or (isinstance(value, str) and not value.strip()):
            if name not in self._options:
                return None
            return f"{option(name)} in {EXTRA}", self._options[name]
        return attribute, value

    def word(self, name: str) -> str | None:
        """Return a text; raises AdRefused if the value is not a text."""
        given = self.get(name)
        return None if given is None else as_word(*given)

    def one_of(self, name: str, choices: Sequence[str]) -> str | None:
        """Return one of some words, in any case; raises AdRefused for anything else."""
        given = self.get(name)
        if given is None:
            return None
        word = as_word(*given).lower()
        if word not in choices:
            raise AdRefused(
                f"{given[0]} is {show(given[1])}; one of {', '.join(choices)} is expected"
            )
        return word

    def words(self, name: str, choices: Sequence[str]) -> set[str]:
        """Return words from ``choices``, which commas or spaces separate; raises AdRefused."""
        given = self.get(name)
        words = set() if given is None else set(as_text(*given).replace(",", " ").lower().split())
        if given is not None and not words.issubset(choices):
            raise AdRefused(
                f"{given[0]} is {show(given[1])}; words among {', '.join(choices)} are expected"
            )
        return words

    def flag(self, name: str) -> bool:
        """Return a truth value, which may be written as a text; False if there is none."""
        given = self.get(name)
        if given is None:
            return False
        word = str(given[1]).strip().lower()
        if word not in {"true", "false"}:
            raise AdRefused(f"{given[0]} is {show(given[1])}; true or false is expected")
        return word == "true"

    def asked(self, what: str) -> int:
        """Return what the job says about one of OPTIONS; raises AdRefused for a wrong value."""
        wanted = OPTIONS[what]
        name = wanted.attribute or ""
        if wanted.is_flag:
            return self.flag(name)
        number = self.whole(name, wanted.least, wanted.most)
        return wanted.default if number is None else number

    def amount(self, name: str) -> float | None:
        """Return a number greater than 0; raises AdRefused for anything else."""
        given = self.get(name)
        return None if given is None else positive(*given)

    def whole(self, name: str, least: int, most: int = _MAX_INT) -> int | None:
        """Return a whole number from ``least`` to ``most``; raises AdRefused for anything else."""
        given = self.get(name)
        if given is None:
            return None
        shown, value = given
        number = _number(value)
        if number is None or not number.is_integer() or not least <= number <= most:
            raise AdRefused(
                f"{shown} is {show(value)}; a whole number from {least} to {most} is expected"
            )
        return int(number)


def positive(shown: str, value: object) -> float:
    """Return ``value`` as a number greater than 0; raises AdRefused with ``shown`` otherwise."""
    number = _number(value)
    if number is None or number <= 0:
        raise AdRefused(f"{shown} is {show(value)}; a number greater than 0 is expected")
    return number


def _number(value: object) -> float | None:
    """Return a finite number, which may be written as a text; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    if isinstance(value, str) and "_" in value:  # only Python allows it
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _read_options(text: str) -> dict[str, str]:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise AdRefused(f"{EXTRA} is {show(text)}, which cannot be read: {error}") from None
    options: dict[str, str] = {}
    while words:
        word, equals, value = words.pop(0).partition("=")
        if word not in _OPTIONS:
            raise AdRefused(
                f"{EXTRA} has {show(word)}, which is not an option; the options are "
                f"{', '.join(_OPTIONS)}"
            )
        if not equals:
            if not words:
                raise AdRefused(f"{EXTRA} ends with {word}, which needs a value")
            value = words.pop(0)
        options[_OPTIONS[word]] = value
    return options
