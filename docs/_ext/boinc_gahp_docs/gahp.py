"""The GAHP commands and the hold codes, from the tables that the program itself uses."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any

from boinc_gahp.gahp.commands import COMMANDS
from boinc_gahp.gahp.grammar import Counted, Optional, Several
from boinc_gahp.htcondor.status_ad import HoldCode
from boinc_gahp_docs import rst

if TYPE_CHECKING:
    from boinc_gahp.gahp.command import Command
    from boinc_gahp.gahp.grammar import Piece

#: Which threads work on it, by the pool.
_POOLS = {
    "work": "``[limits] workers``",
    "control": "``[limits] control_workers``",
    "accept": "threads of their own, which only wait for the disk",
    "cancel": "threads of their own, which only wait for the disk",
    "status": "threads of their own, which wait for nothing",
}


def commands(dialect: str) -> list[Command]:
    """Return the commands of a dialect in alphabetical order.

    Args:
        dialect: ``BOINC``, ``BLAH``, or ``common`` for the rest.
    """
    prefixes = {"BOINC": "BOINC_", "BLAH": "BLAH_"}
    if dialect in prefixes:
        return [each for name, each in COMMANDS.items() if name.startswith(prefixes[dialect])]
    if dialect != "common":
        raise ValueError(f"{dialect!r} is no dialect; there are common, BOINC, BLAH")
    others = tuple(prefixes.values())
    return [each for name, each in COMMANDS.items() if not name.startswith(others)]


def render_commands(dialect: str, level: int) -> str:
    """Return a heading for each command, with syntax, arguments, explanation and answer."""
    return "\n".join(_render(command, level) for command in commands(dialect))


def _render(command: Command, level: int) -> str:
    label = "gahp-" + command.name.lower().replace("_", "-")
    text, example = _help(command)
    parts = [f".. _{label}:\n", rst.heading(command.name, level)]
    parts.append(f"{rst.prose(rst.sentence(command.summary))}\n")
    parts.append(rst.block(_wrapped(command.syntax)))
    parts += [f"{rst.prose(paragraph)}\n" for paragraph in text]
    if command.arguments:
        parts.append("".join(f"{line}\n" for piece in command.arguments for line in _piece(piece)))
    if command.pool is None:
        answer = rst.literal(f"S {command.returns}".strip())
        parts.append(f"Synchronous: the Return Line {answer} is all of the answer.\n")
    else:
        error = command.form.error("id", "message").decode()
        parts.append(
            f"Asynchronous: ``S``, then the result {rst.literal(f'id {command.returns}')}, or "
            f"{rst.literal(error)} if it failed. Worked on by {_POOLS[command.pool]}.\n"
        )
    if example:
        parts += ["Example:\n", rst.block(example)]
    return "\n".join(parts)


def _help(command: Command) -> tuple[list[str], str]:
    """Return the paragraphs of a command's help, and its example."""
    text, _, example = command.help.partition("\nExample")
    # "Example, two jobs ...:" has an explanation; it goes on with the text.
    remark, _, lines = example.partition(":")
    remark = remark.removeprefix(",").strip()
    paragraphs = [" ".join(text.split())]
    if remark and lines:
        paragraphs.append(f"The example below: {remark}.")
    return paragraphs, lines.strip()


def _wrapped(syntax: str) -> list[str]:
    """Return a syntax line broken where it is too long, at spaces outside of groups if possible."""
    lines = [""]
    for word in re.findall(r"\S+", syntax):
        if lines[-1] and len(lines[-1]) + len(word) > 76:
            lines.append("   ")
        lines[-1] += word if not lines[-1].strip() else f" {word}"
    return lines


def _piece(piece: Piece, indent: str = "") -> list[str]:
    """Return bullets that explain an argument."""
    if isinstance(piece, Counted):
        inner: list[Any] = list(piece.fields)
        lines = [f"{indent}* {rst.literal(piece.count)}: number of {piece.help}; for each:", ""]
        return [*lines, *(line for each in inner for line in _piece(each, indent + "  ")), ""]
    if isinstance(piece, Several):
        return [f"{indent}* {rst.literal(piece.field.name)}: {piece.field.help}; one or more"]
    if isinstance(piece, Optional):
        lines = [f"{indent}* may be left out ({rst.prose(piece.help)}):", ""]
        return [
            *lines,
            *(line for each in piece.fields for line in _piece(each, indent + "  ")),
            "",
        ]
    return [f"{indent}* {rst.literal(piece.syntax)}: {rst.prose(piece.help)}"]


def hold_codes() -> list[tuple[int, str, str, str]]:
    """Return code, name, meaning and subcode of each hold, from the comments of the class."""
    found = []
    comment: list[str] = []
    for line in inspect.getsource(HoldCode).splitlines():
        text = line.strip()
        if text.startswith("#:"):
            comment.append(text.removeprefix("#:").strip())
        elif comment and (name := text.partition(" = ")[0]) in HoldCode.__members__:
            meaning, _, subcode = " ".join(comment).rstrip(".").partition("; ")
            found.append((int(HoldCode[name]), name, meaning, subcode))
            comment = []
    if len(found) != len(HoldCode):
        raise LookupError("a hold code has no comment (#:)")
    return found


def render_hold_codes() -> str:
    """Return the table of hold codes."""
    rows = "".join(
        f"   ``{code}`` | {rst.prose(rst.sentence(meaning))} | {rst.prose(rst.sentence(subcode))}\n"
        for code, _, meaning, subcode in hold_codes()
    )
    return (
        ".. csv-table::\n   :header: HoldReasonCode | What happened | HoldReasonSubCode\n"
        f"   :delim: |\n   :class: stacked\n   :widths: 15 50 35\n\n{rows}"
    )
