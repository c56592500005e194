"""README.rst tells what the program does; these tests tell when it does not."""

from __future__ import annotations

import re
from pathlib import Path

from boinc_gahp.blah.codes import HoldCode
from boinc_gahp.blah.wishes import NAMES
from boinc_gahp.gahp.commands import COMMANDS

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.rst").read_text("utf-8")


def command_list() -> str:
    """Return the list of commands as the README has it, made from the command table."""
    lines: list[str] = []
    for name in sorted(COMMANDS):
        command = COMMANDS[name]
        answer = f"S {command.returns}" if command.synchronous else f"id {command.returns}"
        lines.append(f"``{command.syntax}``")
        summary = command.summary[0].upper() + command.summary[1:]
        lines.append(f"    {summary}. Answer: ``{answer.strip()}``")
    return "\n".join(lines)


def test_the_readme_lists_every_command_with_the_syntax_of_the_command_table() -> None:
    found = re.search(r"\.\. commands begin\n\n(.*?)\n\n\.\. commands end", README, re.DOTALL)
    assert found is not None
    assert found[1] == command_list(), f"put this between the two marks:\n\n{command_list()}\n"


def test_every_file_that_the_readme_names_is_there() -> None:
    for name in re.findall(r"(?:conf|scripts)/[\w.-]*\w", README):
        assert (ROOT / name).exists(), name


def test_the_readme_explains_every_hold_code_and_no_other() -> None:
    found = re.findall(r"^(23\d\d)  ", README, re.MULTILINE)
    assert [int(code) for code in found] == list(HoldCode)


def test_the_readme_explains_every_attribute_of_a_job() -> None:
    found = re.findall(r"^``Boinc(\w+)``  ", README, re.MULTILINE)
    assert sorted(found) == sorted(NAMES)
