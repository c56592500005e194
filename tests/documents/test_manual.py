import itertools
import re
import subprocess
import unicodedata

import pytest

from boinc_gahp_docs import settings
from tests.documents.conftest import flat, sections, shown
from tests.helpers import ran

pytestmark = pytest.mark.timeout(600)

PAGES = ("boinc_gahp.1", "boinc_gahp.toml.5")


@pytest.mark.parametrize("name", PAGES)
def test_groff_has_nothing_to_warn_of(built, name):
    words = ("groff", "-k", "-ww", "-man", "-Tutf8")
    run = ran(*words, built.manual(name), stdout=subprocess.DEVNULL)
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.parametrize("name", PAGES)
def test_man_shows_it_on_80_columns(built, name):
    lines = shown(built.manual(name), 80).splitlines()
    assert len(lines) > 100
    # Examples are as they are typed.
    too_wide = [
        line
        for before, line in itertools.pairwise(lines)
        if len(line) > 80 and not line.strip().startswith("$ ") and not before.endswith("\\")
    ]
    assert too_wide == []
    assert [line for line in lines if any(unicodedata.category(c) == "Cc" for c in line)] == []


def test_boinc_gahp_1_has_the_headings_that_manual_pages_have(built):
    text = shown(built.manual("boinc_gahp.1"), 80)
    assert ", ".join(re.findall(r"^[A-Z][A-Z ]+$", text, re.MULTILINE)) == (
        "NAME, SYNOPSIS, DESCRIPTION, OPTIONS, COMMANDS, EXIT STATUS, ENVIRONMENT, FILES, "
        "EXAMPLES, SEE ALSO"
    )


# tests/documents/test_reference.py has what stands there of each command.


def test_boinc_gahp_toml_5_has_every_setting_with_type_and_default(built):
    found = sections(shown(built.manual("boinc_gahp.toml.5"), 300))
    for name, members in settings.sections().items():
        text = flat(found[settings.title(name)])
        for setting in members:
            default = f"; default {setting.default}" if setting.default is not None else ""
            assert f"{setting.key} {setting.type}{default} " in f"{text} ", setting
