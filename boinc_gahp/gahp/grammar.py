"""The forms of arguments: the pieces that make up the table of commands.

Each piece reads its value from the words of a line. Its errors say which argument was wrong, what
it was, and what it may be. Only what a gridmanager cannot send is an error here: an ``E`` makes it
abort (``gahp.rst``, "Aborts", 1). So words that come from a user's submit file (paths, arguments,
the six estimates) are taken as they are, and checked later, where an error becomes a Result Line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from boinc_gahp.errors import BadRequest
from boinc_gahp.gahp.lines import NULL
from boinc_gahp.text import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

#: The most digits of a whole number; more than any count or id has, and quick to convert.
MAX_DIGITS = 18

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")


def is_number(word: str) -> bool:
    """Whether ``word`` is a number as C's ``strtod`` reads it: ``86400``, ``86400.0``, ``1e12``."""
    return len(word) <= 400 and _NUMBER.fullmatch(word) is not None


def is_whole(word: str) -> bool:
    """Whether ``word`` is a whole number, without a sign."""
    return len(word) <= MAX_DIGITS and word.isascii() and word.isdigit()


def wrong(name: str, position: int, word: str, allowed: str) -> BadRequest:
    """Return the error for the argument ``name``, the ``position``-th word of the line."""
    return BadRequest(f"{name} (argument {position}) is {quoted(word)}; it must be {allowed}")


#: A value, and the position of the word after it.
Read = tuple[Any, int]


def _is_text(_word: str) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Text:
    """One argument.

    Attributes:
        name: its name.
        help: its meaning, for people.
        allowed: what is allowed, in words that end "it must be ...".
        fits: tells whether a word is allowed.
        make: returns the value of a word.
    """

    name: str
    help: str
    allowed: str = "some text"
    fits: Callable[[str], bool] = _is_text
    make: Callable[[str], Any] = str

    @property
    def syntax(self) -> str:
        """Return how the argument is written in a syntax line."""
        return self.name

    def check(self, word: str, position: int) -> Any:
        """Return the value of ``word``; raises BadRequest."""
        if not self.fits(word):
            raise wrong(self.name, position, word, self.allowed)
        return self.make(word)

    def read(self, words: list[str], at: int) -> Read:
        """Read the value at ``words[at]``; raises BadRequest."""
        if at >= len(words):
            raise BadRequest(f"{self.name} (argument {at}) is missing; it must be {self.allowed}")
        return self.check(words[at], at), at + 1

    def reader(self) -> Callable[[list[str], int], Read]:
        """Return a function that reads one value after the other, as :meth:`read` does."""
        return self.read


Name = partial(Text, allowed="a name, not empty", fits=bool)
#: Kept as it was written.
Number = partial(Text, allowed="a number", fits=is_number)


@dataclass(frozen=True)
class Counted:
    """A count, then as many groups of arguments; the value is a tuple.

    Its items are the results of ``make`` for each group's values; if a group has a single field,
    that field's values.
    """

    count: str
    fields: tuple[Text | Counted, ...]
    help: str
    minimum: int = 0
    make: Callable[[Iterable[Any]], Any] = tuple

    @property
    def syntax(self) -> str:
        """Return the count and a group in braces, or a single field with dots."""
        group = " ".join(field.syntax for field in self.fields)
        return (
            f"{self.count} {group}..." if len(self.fields) == 1 else f"{self.count} {{{group}}}..."
        )

    @cached_property
    def _plain(self) -> bool:
        return all(isinstance(each, Text) and each.fits is _is_text for each in self.fields)

    def read(self, words: list[str], at: int) -> Read:
        """Read the count at ``words[at]`` and its groups; raises BadRequest."""
        count = self._read_count(words, at)
        if self._plain:
            return self._slice(words, at + 1, count)
        single = len(self.fields) == 1
        at += 1
        groups = []
        readers = [field.reader() for field in self.fields]
        for _ in range(count):
            group = []
            for read in readers:
                value, at = read(words, at)
                group.append(value)
            groups.append(group[0] if single else self.make(group))
        return tuple(groups), at

    def reader(self) -> Callable[[list[str], int], Read]:
        """Return a function that reads one value after the other, as :meth:`read` does.

        Equal groups of texts, of which a line has many, become the same value.
        """
        if not self._plain:
            return self.read
        size = len(self.fields)
        counts: dict[str, int] = {}
        values: dict[tuple[str, ...], Any] = {}

        def read(words: list[str], at: int) -> Read:
            count = counts.get(words[at]) if at < len(words) else None
            end = at + 1 + size * (count or 0)
            if count is None or end > len(words):
                count = self._read_count(words, at)
                counts[words[at]] = count
                end = at + 1 + size * count
            group = tuple(words[at + 1 : end])
            value = values.get(group)
            if value is None:
                value = values[group] = self._slice(words, at + 1, count)[0]
            return value, end

        return read

    def _read_count(self, words: list[str], at: int) -> int:
        if at >= len(words):
            raise BadRequest(f"{self.count} (argument {at}) is missing; it must be a whole number")
        word = words[at]
        count = int(word) if is_whole(word) else -1
        if count < self.minimum:
            raise wrong(self.count, at, word, f"a whole number, {self.minimum} or more")
        # Other groups are read one by one, up to what is missing.
        left = len(words) - at - 1
        if self._plain and count * len(self.fields) > left:
            raise wrong(self.count, at, word, f"smaller, as only {left} arguments follow it")
        return count

    def _slice(self, words: list[str], at: int, count: int) -> Read:
        size = len(self.fields)
        end = at + count * size
        if size == 1:
            return tuple(words[at:end]), end
        return tuple(map(self.make, zip(*[iter(words[at:end])] * size, strict=True))), end


class Rest(Text):
    """The rest of the line, as one text.

    Unescaped spaces count as spaces: a person at a keyboard need not escape them.
    """

    def read(self, words: list[str], at: int) -> Read:
        """Read the rest; raises BadRequest if it is empty."""
        super().read(words, at)
        return " ".join(words[at:]), len(words)


@dataclass(frozen=True, slots=True)
class Several:
    """One or more arguments of one kind, up to the end of the line; the value is a tuple."""

    field: Text
    help: str

    @property
    def syntax(self) -> str:
        """Return the field with dots."""
        return f"{self.field.syntax}..."

    def read(self, words: list[str], at: int) -> Read:
        """Read the rest; raises BadRequest."""
        values = [self.field.read(words, at)[0]]
        values += [self.field.check(words[i], i) for i in range(at + 1, len(words))]
        return tuple(values), len(words)


@dataclass(frozen=True, slots=True)
class Optional:
    """Arguments that may be left out from the right, each a text or None.

    NULL and an empty word are None: a user's empty attribute arrives as an empty word. The value is
    a dictionary of all of them by their names; if there is a single one, that.
    """

    fields: tuple[Text, ...]
    help: str

    @property
    def syntax(self) -> str:
        """Return the fields in brackets."""
        return f"[{' '.join(field.syntax for field in self.fields)}]"

    def read(self, words: list[str], at: int) -> Read:
        """Read the words that are there; never raises."""
        given = words[at : at + len(self.fields)]
        values = dict.fromkeys(field.name for field in self.fields)
        values |= {
            field.name: None if word in ("", NULL) else word
            for field, word in zip(self.fields, given, strict=False)
        }
        single = self.fields[0].name if len(self.fields) == 1 else None
        return values if single is None else values[single], at + len(given)


#: Any of the pieces.
Piece = Text | Counted | Several | Optional
