"""Where plug-ins come from, and what is said when they cannot be had."""

import shutil

import pytest

from boinc_gahp.localproject.backend.plugins import (
    ASSIMILATORS,
    VALIDATORS,
    WORK_GENERATORS,
    load,
)
from boinc_gahp.localproject.errors import LocalProjectTrouble
from tests.localproject.bench import Bench


def test_a_function_is_found_where_python_looks(bench):
    assert load(bench.core, "os.path:basename", WORK_GENERATORS)("a/b") == "b"


def test_projects_in_one_process_do_not_share_modules(bench, empty_project, tmp_path):
    other = Bench(shutil.copytree(empty_project, tmp_path / "other"))
    try:
        for project, word in ((bench, "one"), (other, "two")):
            project.module("mine", f"def f():\n    return {word!r}\n")
        first = load(bench.core, "mine:f", ASSIMILATORS)
        assert first() == "one"
        assert load(other.core, "mine:f", ASSIMILATORS)() == "two"
        # It is loaded again only when it has changed.
        assert load(bench.core, "mine:f", ASSIMILATORS) is first
        bench.module("mine", "def f():\n    return 'newer'\n")
        assert load(bench.core, "mine:f", ASSIMILATORS)() == "newer"
    finally:
        other.close()


@pytest.mark.parametrize(
    ("spec", "group", "words"),
    [
        pytest.param(
            "no-such", VALIDATORS, "'no-such': expected 'trivial', 'bitwise' or module:function",
            id="no name",
        ),
        pytest.param("../../evil:f", ASSIMILATORS, "expected module:function", id="path"),
        pytest.param(
            "nowhere_at_all:f", WORK_GENERATORS, "the work generator 'nowhere_at_all:f': there is "
            "no module 'nowhere_at_all', neither in {modules} nor where Python looks: put it there "
            "as nowhere_at_all.py, or install it", id="no module",
        ),
        pytest.param("mine:g", VALIDATORS, "mine.py has no 'g': define it", id="no function"),
        pytest.param("mine:WORD", VALIDATORS, "is of type str: expected a function", id="no call"),
        pytest.param("wrong:f", VALIDATORS, "cannot be imported: SyntaxError", id="syntax"),
        pytest.param("needy:f", VALIDATORS, "No module named 'nowhere_at_all'", id="its import"),
        pytest.param("leaves:f", VALIDATORS, "imported: SystemExit: 3", id="exits"),
    ],
)  # fmt: skip
def test_what_cannot_be_loaded_is_named_with_what_to_do(bench, spec, group, words):
    bench.module("mine", "WORD = 'x'\n")
    bench.module("wrong", "def f(:\n")
    bench.module("needy", "import nowhere_at_all\n")
    bench.module("leaves", "raise SystemExit(3)\n")
    with pytest.raises(LocalProjectTrouble) as caught:
        load(bench.core, spec, group)
    assert words.format(modules=bench.directory / "modules") in str(caught.value)
    assert repr(spec) in str(caught.value)
