import os
import re
import shutil
import tarfile
import zipfile

import pytest

from tests.install.conftest import BIN, run, tracked_files

#: The package that Snakemake looks for.
PLUGIN = "snakemake_executor_plugin_boinc"
MANUAL = ("boinc_gahp.1", "boinc_gahp.toml.5")


def packed(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def version_of(package):
    return package.name.removesuffix(".tar.gz").split("-")[1]


def installed(name):
    """Return where a file of the source is installed: Snakemake's package is at the top."""
    return str(name.relative_to("boinc_gahp/workflows/snakemake") if PLUGIN in name.parts else name)


def test_the_wheel_has_every_module_and_data_file_and_nothing_else(wheel):
    wanted = {installed(name) for name in tracked_files() if name.parts[0] == "boinc_gahp"}
    name = f"boinc_gahp-{version_of(wheel)}"
    man = {f"{name}.data/data/share/man/man{page[-1]}/{page}" for page in MANUAL}
    found = {each for each in packed(wheel) if not each.startswith(f"{name}.dist-info/")}
    assert found == wanted | man


def test_the_wheel_has_the_licence_and_the_extras_and_is_described_as_pypi_wants_it(wheel):
    files = {name.partition("/")[2]: data for name, data in packed(wheel).items()}
    metadata = files["METADATA"].decode()
    head, _, text = metadata.partition("\n\n")
    assert "Description-Content-Type: text/x-rst" in head
    assert "License-Expression: Apache-2.0" in head or "License: Apache-2.0" in head
    # PyPI's renderer takes no directives of Sphinx.
    assert ".. literalinclude::" not in text
    assert ":ref:" not in text
    assert f"Version: {version_of(wheel)}\n" in metadata
    for extra in ("docs", "functions", "local-project", "snakemake", "test"):
        assert f"Provides-Extra: {extra}\n" in metadata
    [licence] = [data for name, data in files.items() if name.endswith("LICENSE")]
    assert b"Apache License" in licence


def test_the_sdist_has_all_of_the_source(sdist):
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    rooms = {"boinc_gahp", "conf", "docs", "scripts", "tests"}
    wanted = {
        str(name) for name in tracked_files() if name.parts[0] in rooms or "/" not in str(name)
    }
    wanted |= {f"man/{page}" for page in MANUAL}
    assert wanted - names - {".gitignore"} == set()
    assert not [name for name in names if "__pycache__" in name]


def test_a_tree_gives_the_same_bytes_at_any_time(source, tmp_path):
    dates = {"SOURCE_DATE_EPOCH": "1764288000"}
    for name, later in (("one", 0), ("two", 99)):
        copy = tmp_path / name / "boinc_gahp"
        shutil.copytree(source, copy)
        for path in copy.rglob("*"):
            os.utime(path, (later, later))
        run(BIN / "python", "-m", "build", "--outdir", tmp_path / name, copy, env=dates)
    one, two = (
        {path.name: path.read_bytes() for path in (tmp_path / name).glob("*.*")}
        for name in ("one", "two")
    )
    assert len(one) == 2
    assert one == two


def test_the_wheel_of_the_sdist_is_the_wheel_of_the_tree(wheel, source, tmp_path):
    run(BIN / "python", "-m", "build", "--wheel", "--outdir", tmp_path, source)
    [other] = tmp_path.glob("*.whl")
    assert packed(other) == packed(wheel)


def test_what_an_earlier_build_left_does_not_get_into_the_wheel(wheel, source, tmp_path):
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


@pytest.fixture
def checkout(source, tmp_path):
    """A git checkout with one commit."""
    copy = tmp_path / "checkout"
    shutil.copytree(source, copy)
    # Between releases.
    version = copy / "boinc_gahp/_version.py"
    version.write_text(re.sub('(__version__ = ").*"', r'\g<1>9.1.0.dev0"', version.read_text()))
    commit(copy, "init", "add ./", "commit --message first")
    return copy


def commit(checkout, *commands):
    environment = {"GIT_COMMITTER_DATE": "2026-11-21T12:34:56+0100"}
    for role in ("AUTHOR", "COMMITTER"):
        environment |= {f"GIT_{role}_NAME": "me", f"GIT_{role}_EMAIL": "me"}
    for command in commands:
        run("git", "-C", checkout, *command.split(), env=environment)


def version_built(directory, **environment):
    program = "from scripts.building import version; print(version())"
    done = run(BIN / "python", "-c", program, cwd=directory, env=environment)
    assert done.stderr == ""
    return done.stdout.strip()


def test_between_releases_each_tree_has_a_version_of_its_own(checkout, tmp_path):
    first = version_built(checkout)
    assert re.fullmatch(r"9\.1\.0\.dev202611211134\+g[0-9a-f]{8,}", first)
    # What does not get into a wheel makes no difference.
    (checkout / "notes").touch()
    assert version_built(checkout) == first
    (checkout / "boinc_gahp/more.py").touch()
    edited = version_built(checkout)
    (checkout / "boinc_gahp/more.py").write_text("MORE = True\n")
    edited_again = version_built(checkout)
    assert re.fullmatch(re.escape(first) + r"\.[0-9a-f]{12}", edited_again)
    commit(checkout, "add ./", "commit --message second")
    second = version_built(checkout)
    assert "." not in second.partition("+")[2]
    shallow = tmp_path / "shallow"
    run("git", "clone", "--depth=1", f"file://{checkout}", shallow)
    assert version_built(shallow) == second
    without = version_built(checkout, PATH="/nowhere")
    assert re.fullmatch(r"9\.1\.0\.dev0\+[0-9a-f]{12}", without)
    # A directory in somebody's repository is no checkout of this one.
    inside = shallow / "inside"
    shutil.copytree(checkout, inside, ignore=shutil.ignore_patterns(".git"))
    assert version_built(inside) == without
    (inside / "boinc_gahp/more.py").write_text("MORE = False\n")
    seen = [first, edited, edited_again, second, without, version_built(inside)]
    assert len(set(seen)) == len(seen)


def test_the_source_itself_tells_the_commit_that_is_checked_out(checkout):
    def told():
        program = "import boinc_gahp; print(boinc_gahp.__version__)"
        return run(BIN / "python", "-c", program, cwd=checkout).stdout.strip()

    first = told()
    assert first == "9.1.0.dev0+g" + version_built(checkout).partition("+g")[2][:8]
    commit(checkout, "commit --allow-empty --message second")
    assert told() != first
    (checkout / ".git").rename(checkout / "elsewhere")
    assert told() == "9.1.0.dev0"


def test_an_sdist_has_the_version_of_the_tree_and_so_has_its_wheel(checkout, tmp_path):
    version = version_built(checkout)
    run(BIN / "python", "-m", "build", "--outdir", tmp_path, checkout)
    packages = [*tmp_path.glob("*.whl"), *tmp_path.glob("*.tar.gz")]
    assert [version_of(path) for path in packages] == [version] * 2
    assert f'"{version}"' in packed(packages[0])["boinc_gahp/_version.py"].decode()
    # The sdist's files are hard links to those of the source.
    assert version_built(checkout) == version


def test_a_release_has_the_version_that_is_written_in_it(checkout):
    path = checkout / "boinc_gahp/_version.py"
    path.write_text(path.read_text().replace('.dev0"', '"', 1))
    assert version_built(checkout) == "9.1.0"
