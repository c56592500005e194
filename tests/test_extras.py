"""Who uses something without its optional packages is told what to install."""

import importlib
import runpy
import sys
from pathlib import Path

import pytest

from boinc_gahp import extras
from boinc_gahp.extras import MissingExtra

EXAMPLES = Path(__file__).parents[1] / "scripts" / "examples"


@pytest.mark.parametrize(
    ("module", "extra"),
    [
        ("localproject.project", "local-project"),
        ("page.views", "page"),
        ("workflows.snakemake", "snakemake"),
    ],
)
def test_a_module_that_needs_an_extra_names_it_and_the_command(monkeypatch, module, extra):
    monkeypatch.setattr(extras, "find_spec", lambda _name: None)
    monkeypatch.delitem(sys.modules, f"boinc_gahp.{module}", raising=False)
    with pytest.raises(MissingExtra, match=rf"needs .*; .*pip install 'boinc_gahp\[{extra}\]'"):
        importlib.import_module(f"boinc_gahp.{module}")


@pytest.mark.parametrize(
    ("script", "package"),
    [
        ("parameter_sweep", "matplotlib"),
        ("function_grid", "cloudpickle"),
        ("table_to_plot", "pandas"),
    ],
)
def test_an_example_without_its_packages_ends_with_one_line_that_names_them(
    monkeypatch, script, package
):
    for name in ("matplotlib", "matplotlib.pyplot", "cloudpickle", "pandas"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr(sys, "argv", [script])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(EXAMPLES / f"{script}.py"), run_name="__main__")
    assert f"{package}" in str(ended.value)
    assert ": pip install " in str(ended.value)
    assert "\n" not in str(ended.value)
