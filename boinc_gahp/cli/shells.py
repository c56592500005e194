"""The command line as completion sees it; ``shells_bash`` and its like make scripts of it.

A script knows every command and option by itself; it asks ``boinc_gahp completion`` only for names
of projects and batches. Why it is written here rather than by shtab: shtab's bash takes neither
``--config=FILE`` nor file names with spaces, and offers no batch names that need quotes.
"""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from boinc_gahp.cli.parsing import Group, arguments_of, kind_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from boinc_gahp.cli.parsing import Parser

_HELP_WIDTH = 60


@dataclass(frozen=True, slots=True)
class Value:
    """What a word may be: ``file``, ``directory``, ``project``, ``batch``, ``words`` or ``any``."""

    kind: str
    metavar: str
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Option:
    """An option: how it is written, how many values it takes (0: none), ``many``: or more."""

    strings: tuple[str, ...]
    help: str
    values: int
    value: Value
    many: bool
    optional: bool
    repeats: bool


@dataclass(frozen=True, slots=True)
class Place:
    """An argument that is no option; ``many``: all that follow, too."""

    value: Value
    many: bool


@dataclass(frozen=True, slots=True)
class ShellCommand:
    """One command or action; ``children`` are the actions with their texts."""

    path: tuple[str, ...]
    options: tuple[Option, ...]
    places: tuple[Place, ...]
    children: Mapping[str, str]

    @property
    def words(self) -> str:
        """The words that lead to it."""
        return " ".join(self.path)

    @property
    def function(self) -> str:
        """A shell function's name for it."""
        return "_".join(("_boinc_gahp", *self.path)).replace("-", "_")


def commands_of(parsers: Mapping[tuple[str, ...], Parser]) -> list[ShellCommand]:
    """Return what parsers say, in their order."""
    return [_command(path, parser) for path, parser in parsers.items()]


def _command(path: tuple[str, ...], parser: Parser) -> ShellCommand:
    options, places = [], []
    for each in arguments_of(parser):
        if each.option_strings:
            options.append(_option(parser, each))
        else:
            many = each.nargs in {"*", "+", argparse.REMAINDER}
            places.append(Place(_value(each), many))
    children = parser.actions if isinstance(parser, Group) else {}
    return ShellCommand(path, tuple(options), tuple(places), children)


def _option(parser: Parser, each: argparse.Action) -> Option:
    number = each.nargs if isinstance(each.nargs, int) else 1
    formatter = parser._get_formatter()  # noqa: SLF001
    text = formatter._expand_help(each) if each.help else ""  # noqa: SLF001
    return Option(
        tuple(each.option_strings),
        _short(text),
        number,
        _value(each),
        many=each.nargs in {"*", "+"},
        optional=each.nargs == "?",
        repeats=isinstance(each, (argparse._AppendAction, argparse._CountAction)),  # noqa: SLF001
    )


def _value(each: argparse.Action) -> Value:
    metavar = each.metavar if isinstance(each.metavar, str) else each.dest.upper()
    if each.choices is not None:
        return Value("words", metavar, tuple(map(str, each.choices)))
    return Value(kind_of(each) or "any", metavar)


def _short(text: str) -> str:
    """Return the first thing that a help text says."""
    first = re.split(r"[;:.]\s|\s\(", " ".join(text.split()), maxsplit=1)[0]
    return first if len(first) <= _HELP_WIDTH else first[: _HELP_WIDTH - 1].rstrip() + "…"
