"""The command line: every parser as reStructuredText."""

from __future__ import annotations

import argparse
import os
import re
import textwrap
from contextlib import contextmanager
from typing import TYPE_CHECKING

from boinc_gahp.terminal.parsing import STATUSES, arguments_of
from boinc_gahp_docs import rst

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from boinc_gahp.terminal.parsing import Parser

#: Of what is laid out: it stands indented on manual pages of 80 columns.
_WIDTH = 70


def parsers() -> list[Parser]:
    """Return all parsers, a command before its actions."""
    from boinc_gahp.cli import all_parsers  # noqa: PLC0415  (imports all of the program)

    return list(all_parsers().values())


def label(parser: Parser) -> str:
    """Return the label of a command's heading."""
    return "command-" + (parser.command.replace(" ", "-") or "boinc-gahp")


def render(all_parsers: Iterable[Parser], level: int, *, targets: bool) -> str:
    """Return a heading for each command with its usage, options, examples and statuses.

    Args:
        all_parsers: what is rendered.
        level: of the headings of commands; those of actions are one below.
        targets: whether there are labels, and options that other pages can refer to.
    """
    return "\n".join(
        _render(parser, level + (" " in parser.command), targets=targets) for parser in all_parsers
    )


def _render(parser: Parser, level: int, *, targets: bool) -> str:
    parts = [f".. _{label(parser)}:\n"] if targets else []
    parts.append(rst.heading(parser.prog, level))
    parts.append(rst.block(usage(parser)))
    parts += description(parser)
    actions = getattr(parser, "actions", None)
    if actions:
        parts.append(_actions(parser, actions, targets=targets))
    if targets:
        parts.append(f".. program:: {parser.prog}\n")
    parts += [_argument(each, parser, targets=targets) for each in _arguments(parser)]
    if targets:
        parts.append(".. program:: None\n")
    own = {key: text for key, text in parser.statuses.items() if STATUSES.get(key) != text}
    if own:
        parts += [_lead("Exit status"), statuses(own)]
    if parser.examples:
        parts += [_lead("Examples"), examples(parser)]
    return "\n".join(parts)


def _lead(text: str) -> str:
    return f"**{text}:**\n"


def _actions(parser: Parser, actions: Mapping[str, str], *, targets: bool) -> str:
    if targets:
        lines = [
            f"* :ref:`{name} <{label(parser)}-{name}>`: {rst.prose(text)}"
            for name, text in actions.items()
        ]
    else:
        lines = [f"{rst.literal(name)}\n   {rst.prose(text)}" for name, text in actions.items()]
    return "\n".join([*lines, ""])


def usage(parser: Parser) -> str:
    """Return a command's usage as its help has it, without the word ``usage``."""
    with _columns(_WIDTH):
        text = parser.format_usage()
    first, *others = text.removeprefix("usage: ").rstrip().splitlines()
    lines = [first, *textwrap.indent(textwrap.dedent("\n".join(others)), "    ").splitlines()]
    return _narrowed(lines, lambda _: 4)


def _narrowed(lines: Iterable[str], indent: Callable[[str], int]) -> str:
    """Return lines that are laid out, those broken that are too wide for a manual page."""
    return "\n".join(
        textwrap.fill(
            line,
            _WIDTH,
            subsequent_indent=" " * indent(line),
            break_long_words=False,
            break_on_hyphens=False,
        )
        for line in lines
    )


def _second_column(line: str) -> int:
    """Return where the text begins that stands beside a word, or else the line's own text."""
    found = re.match(r" *(?:\S+ {2,})?", line)
    return found.end() if found else 0


def description(parser: Parser) -> list[str]:
    """Return the paragraphs of a description; what is laid out stays as it is."""
    parts = []
    for part in re.split(r"\n{2,}", (parser.description or "").strip("\n")):
        if re.match(r"(actions|commands):\n", part):
            break
        if re.search(r"^ ", part, re.MULTILINE):
            head, _, rest = part.partition("\n")
            if head and not head.startswith(" ") and rest.startswith(" "):
                parts.append(f"{rst.prose(head)}\n")
                part = rest  # noqa: PLW2901
            laid_out = textwrap.dedent(part).splitlines()
            parts.append(rst.block(_narrowed(laid_out, _second_column)))
        else:
            parts.append(f"{rst.prose(part)}\n")
    return parts


def examples(parser: Parser) -> str:
    """Return a command's examples as they are typed."""
    lines = [f"$ {line}".replace("\n", "\n    ") for line in parser.examples]
    return rst.block(lines)


def statuses(all_statuses: dict[int, str]) -> str:
    """Return a list of exit statuses."""
    return "".join(
        f"``{status}``\n   {rst.prose(text)}\n\n" for status, text in sorted(all_statuses.items())
    )


def own_statuses(all_parsers: Iterable[Parser]) -> str:
    """Return a list of the commands whose exit statuses are not, or not only, what all have."""
    parts = []
    for parser in all_parsers:
        own = {key: text for key, text in parser.statuses.items() if STATUSES.get(key) != text}
        if own:
            parts.append(f":ref:`{parser.prog} <{label(parser)}>`\n{rst.indented(statuses(own))}")
    return "\n".join(parts)


def option_strings(parser: Parser) -> list[str]:
    """Return all words that a command's help shows: options, and the names of arguments."""
    return [word for action in _arguments(parser) for word in _words(action, parser)]


def _arguments(parser: Parser) -> Iterator[argparse.Action]:
    """Yield the arguments that have to be explained; what every command has is explained once."""
    for each in arguments_of(parser):
        if not isinstance(each, argparse._HelpAction):  # noqa: SLF001
            yield each


def _words(action: argparse.Action, parser: Parser) -> list[str]:
    return list(action.option_strings) or [_value(action, parser)]


def _value(action: argparse.Action, parser: Parser) -> str:
    """Return an argument's value as the usage shows it."""
    with _columns(_WIDTH):
        formatter = parser._get_formatter()  # noqa: SLF001
    default = (action.dest if not action.option_strings else action.dest.upper()) or ""
    if action.option_strings:
        return formatter._format_args(action, default)  # noqa: SLF001
    return formatter._metavar_formatter(action, default)(1)[0]  # noqa: SLF001


def _argument(action: argparse.Action, parser: Parser, *, targets: bool) -> str:
    heads = _words(action, parser)
    if action.option_strings and action.nargs != 0:
        heads = [f"{word} {_value(action, parser)}" for word in heads]
    text = rst.prose(_help(action, parser))
    if targets:
        return f".. option:: {', '.join(heads)}\n\n{rst.indented(text)}\n"
    shown = ", ".join(rst.literal(head) for head in heads)
    return f"{shown}\n{rst.indented(text)}\n"


def _help(action: argparse.Action, parser: Parser) -> str:
    with _columns(_WIDTH):
        text = " ".join(parser._get_formatter()._expand_help(action).split())  # noqa: SLF001
    if not text:
        raise LookupError(f"{parser.prog}: {action.dest} has no help")
    named = [str(choice) for choice in action.choices or ()]
    if named and action.metavar is not None and not all(choice in text for choice in named):
        text = f"{text}; one of {', '.join(named)}"
    return text


@contextmanager
def _columns(width: int) -> Iterator[None]:
    """Let argparse format for a terminal of this width."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = str(width)
    try:
        yield
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before
