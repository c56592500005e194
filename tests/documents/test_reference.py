"""The reference has all that there is, as it is."""

from __future__ import annotations

import inspect
import re
from importlib import import_module

import pytest

from boinc_gahp.gahp.commands import COMMANDS
from boinc_gahp.htcondor.status_ad import HoldCode
from boinc_gahp.terminal.parsing import STATUSES
from boinc_gahp_docs import api, commands, environment, gahp, settings
from tests.documents.conftest import flat, sections, shown

pytestmark = pytest.mark.timeout(600)


def words(tag):
    return flat(tag.get_text())


def section(page, label):
    """Return the section that has a label."""
    found = page.find(id=label)
    assert found is not None, label
    return found if found.name == "section" else found.find_parent("section") or found


# -- commands


def of_commands(built, border):
    """Return the text about each command; that of "boinc_gahp" is the whole page."""
    if border == "manual page":
        text = shown(built.manual("boinc_gahp.1"), 300)
        parts = sections(text)
    else:
        page = built.page("reference/commands")
        text = page.get_text()
        parts = {
            parser.prog: section(page, commands.label(parser)).get_text()
            for parser in commands.parsers()
            if parser.command
        }
    return {prog: flat(part) for prog, part in parts.items()} | {"boinc_gahp": flat(text)}


@pytest.mark.parametrize("border", ["page", "manual page"])
def test_every_command_is_there_with_its_options_examples_and_statuses(built, border):
    texts = of_commands(built, border)
    for parser in commands.parsers():
        own = [f"{n} {text}" for n, text in parser.statuses.items() if STATUSES.get(n) != text]
        more = [*map(flat, parser.examples), *own] if parser.command else ["-h", "--help"]
        wanted = [*commands.option_strings(parser), *more]
        assert [each for each in wanted if each not in texts[parser.prog]] == [], parser.prog


def test_every_option_can_be_referred_to(built):
    page = built.page("reference/commands")
    for parser in commands.parsers():
        for option in commands.option_strings(parser):
            if parser.command and option.startswith("--"):
                anchor = f"cmdoption-{parser.prog.replace(' ', '-')}{option[1:]}"
                assert page.find(id=anchor) is not None, anchor


def test_the_exit_statuses_of_every_command_are_reported(built):
    text = words(built.page("reference/exit-statuses"))
    for status, meaning in STATUSES.items():
        assert f"{status} {meaning}" in text
    for parser in commands.parsers():
        for status, meaning in parser.statuses.items():
            if STATUSES.get(status) != meaning:
                assert f"{status} {meaning}" in text.partition(parser.prog)[2], parser.prog


# -- settings


def test_every_setting_is_there_with_type_unit_default_and_meaning(built):
    page = built.page("reference/settings")
    for members in settings.sections().values():
        for setting in members:
            anchors = [
                tag
                for tag in page.find_all("dt")
                if words(tag).startswith(f"[{setting.section}] {setting.key}¶")
            ]
            assert len(anchors) == 1, setting
            body = anchors[0].find_next_sibling("dd")
            assert body is not None
            text = words(body)
            assert f"Type: {setting.type}" in text, setting
            if setting.default is not None:
                assert f"Default: {setting.default}" in text, setting
            assert text.rstrip().endswith(".")


# -- environment


@pytest.mark.parametrize("border", ["page", "manual page"])
def test_every_variable_that_the_source_asks_for_is_there(built, border):
    found = environment.variables()
    assert {"BOINC_GAHP_CONFIG", "NO_COLOR"} <= set(found)
    text = built.page("reference/environment").get_text()
    if border == "manual page":
        text = shown(built.manual("boinc_gahp.1"), 300).partition("ENVIRONMENT")[2]
    assert [name for name in found if not re.search(rf"\b{name}\b", text)] == []


# -- the Python API


@pytest.mark.parametrize("module", api.MODULES)
def test_every_public_name_and_method_is_there(built, module):
    page = built.page("reference/python")
    text = words(page)
    for name in api.names(module):
        if page.find(id=f"{module}.{name}") is None:
            # It is another room's.
            assert re.search(rf"\b{name} is boinc_gahp\.\w+\.{name}\.", text), name
            continue
        value = getattr(import_module(module), name)
        for member, found in vars(value).items() if inspect.isclass(value) else ():
            is_public = not member.startswith("_") and (
                inspect.isfunction(found) or isinstance(found, property | classmethod)
            )
            if is_public and ":meta private:" not in (found.__doc__ or ""):
                assert page.find(id=f"{module}.{name}.{member}") is not None, (name, member)


# -- the GAHP dialects


def test_every_gahp_command_is_there_with_its_syntax_and_its_answer(built):
    page = built.page("reference/gahp")
    for command in COMMANDS.values():
        part = words(section(page, f"gahp-{command.name.lower().replace('_', '-')}"))
        assert command.syntax in part
        answer = f"S {command.returns}" if command.pool is None else f"id {command.returns}"
        assert answer.strip() in part, command.name
        assert ("Synchronous" if command.pool is None else "Asynchronous") in part


def test_every_hold_code_is_there_with_its_subcode(built):
    text = words(section(built.page("reference/gahp"), "hold-codes"))
    assert re.findall(r"\b23\d\d\b", text) == [str(int(code)) for code in HoldCode]
    assert all(subcode for _, _, _, subcode in gahp.hold_codes())
