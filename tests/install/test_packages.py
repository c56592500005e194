from __future__ import annotations

import shutil
import tarfile
import zipfile
from typing import TYPE_CHECKING

import boinc_gahp
from tests.install.conftest import BIN, run, tracked_files

if TYPE_CHECKING:
    from pathlib import Path

#: The package that Snakemake looks for.
PLUGIN = "snakemake_executor_plugin_boinc"


def packed(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def installed(name: Path) -> str:
    """Return where a file of the source is installed: Snakemake's package is at the top."""
    return str(name.relative_to("boinc_gahp/workflows") if PLUGIN in name.parts else name)


def test_the_wheel_has_every_module_and_data_file(wheel: Path) -> None:
    wanted = {installed(name) for name in tracked_files() if name.parts[0] == "boinc_gahp"}
    assert any(name.endswith(".sql") for name in wanted)
    assert "boinc_gahp/py.typed" in wanted
    assert wanted - set(packed(wheel)) == set()


def test_the_wheel_has_nothing_else(wheel: Path) -> None:
    info = f"boinc_gahp-{boinc_gahp.__version__}.dist-info"
    assert {name.partition("/")[0] for name in packed(wheel)} == {
        "boinc_gahp",
        PLUGIN,
        info,
    }
    assert not [name for name in packed(wheel) if "__pycache__" in name or name.endswith(".pyc")]


def test_the_wheel_has_the_command_the_licence_and_the_extras(wheel: Path) -> None:
    files = {name.partition("/")[2]: data for name, data in packed(wheel).items()}
    assert b"boinc_gahp = boinc_gahp.cli.main:main" in files["entry_points.txt"]
    metadata = files["METADATA"].decode()
    assert f"Version: {boinc_gahp.__version__}\n" in metadata
    for extra in ("docs", "functions", "local-project", "snakemake", "test"):
        assert f"Provides-Extra: {extra}\n" in metadata
    [licence] = [data for name, data in files.items() if name.endswith("LICENSE")]
    assert b"Apache License" in licence


def test_the_sdist_has_all_of_the_source(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    rooms = {"boinc_gahp", "conf", "docs", "scripts", "tests"}
    wanted = {
        str(name) for name in tracked_files() if name.parts[0] in rooms or "/" not in str(name)
    }
    assert wanted - names - {".gitignore"} == set()
    assert not [name for name in names if "__pycache__" in name]


def test_the_wheel_of_the_sdist_is_the_wheel_of_the_tree(
    wheel: Path, source: Path, tmp_path: Path
) -> None:
    run(BIN / "python", "-m", "build", "--wheel", "--outdir", tmp_path, source)
    [other] = tmp_path.glob("*.whl")
    assert packed(other) == packed(wheel)


def test_what_an_earlier_build_left_does_not_get_into_the_wheel(
    wheel: Path, source: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "boinc_gahp"
    shutil.copytree(source, copy)
    for left in ("build/lib/boinc_gahp/gone.py", "build/lib/gone/__init__.py"):
        (copy / left).parent.mkdir(parents=True, exist_ok=True)
        (copy / left).write_text("raise SystemExit\n")
    before = {path.relative_to(copy) for path in copy.rglob("build/**/*")}
    run(BIN / "python", "-m", "pip", "wheel", "--no-deps", "--wheel-dir", tmp_path, copy)
    [other] = tmp_path.glob("*.whl")
    assert packed(other) == packed(wheel)
    assert {path.relative_to(copy) for path in copy.rglob("build/**/*")} == before


def test_the_packages_are_described_as_pypi_wants_it(wheel: Path) -> None:
    [metadata] = [data for name, data in packed(wheel).items() if name.endswith("/METADATA")]
    head, _, text = metadata.decode().partition("\n\n")
    assert "Description-Content-Type: text/x-rst" in head
    assert "License-Expression: Apache-2.0" in head or "License: Apache-2.0" in head
    # PyPI's renderer takes no directives of Sphinx.
    assert ".. literalinclude::" not in text
    assert ":ref:" not in text
