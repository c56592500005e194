"""The recipe for a submit node, line by line as the documentation shows it, in another prefix."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import boinc_gahp
from tests.helpers import wait_for
from tests.install.conftest import ROOT, run

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent
#: The recipe's directories, each of which is one below the test's own directory.
PLACES = ("/opt", "/usr/local", "/etc")


def in_prefix(text: str, prefix: Path) -> str:
    for place in PLACES:
        text = text.replace(f" {place}/", f" {prefix}{place}/")
    lines = text.splitlines()
    if lines[0].startswith("#"):
        assert lines[2].startswith("/usr/bin/python3 -m venv ")
    text = "\n".join(f"{prefix}{line}" if line.startswith("/opt/") else line for line in lines)
    # The Python that this is tested with, and manual pages that are there already.
    base = Path(sys.base_prefix, "bin", f"python{sys.version_info[0]}.{sys.version_info[1]}")
    text = text.replace("/usr/bin/python3", str(base)).replace("scripts/docs man\n", "")
    return f"set -eu\nPATH={prefix}/usr/local/bin:$PATH\n{text}\n"


def files(directory: Path) -> set[str]:
    return {str(path.relative_to(directory)) for path in directory.rglob("*")}


@pytest.fixture(scope="module")
def before(open_directory: Path) -> tuple[Path, set[str]]:
    """A system before the recipe: the directory below which all is, and what there is."""
    prefix = open_directory / "node"
    for name in ("opt", "usr/local/bin", "etc/condor/config.d"):
        (prefix / name).mkdir(parents=True)
    for path in (prefix, *prefix.rglob("*")):
        path.chmod(0o755)
    return prefix, files(prefix)


@pytest.fixture(scope="module")
def prefix(before: tuple[Path, set[str]], source: Path, open_directory: Path) -> Path:
    """The system after the recipe."""
    prefix, _ = before
    run(ROOT / "scripts/docs", "man")
    shutil.copytree(ROOT / "build/man", source / "build/man", dirs_exist_ok=True)
    recipe = in_prefix((HERE / "recipe.sh").read_text(), prefix)
    # Whoever keeps their own files to themselves does not keep these.
    admin = {"HOME": str(open_directory / "admin"), "PIP_NO_CACHE_DIR": "1"}
    run("bash", "-c", f"umask 077\n{recipe}", cwd=source, env=admin)
    return prefix


@pytest.fixture
def as_user(open_directory: Path) -> Iterator[tuple[list[str], dict[str, str]]]:
    """What begins a command line of another user, if this one can be another; and their HOME."""
    home = open_directory / "nobody"
    home.mkdir()
    words: list[str] = []
    if os.getuid() == 0:
        nobody = pwd.getpwnam("nobody")
        os.chown(home, nobody.pw_uid, nobody.pw_gid)
        words = [
            "setpriv",
            f"--reuid={nobody.pw_uid}",
            f"--regid={nobody.pw_gid}",
            "--clear-groups",
        ]
    yield words, {"HOME": str(home)}
    shutil.rmtree(home)


def test_the_documentation_shows_the_recipe_and_the_removal() -> None:
    shown = {line.strip() for line in (ROOT / "docs/htcondor-admins.rst").read_text().splitlines()}
    for name in ("recipe.sh", "removal.sh"):
        lines = (HERE / name).read_text().splitlines()
        missing = [
            line for line in lines if line and not line.startswith("#") and line not in shown
        ]
        assert missing == [], name


def test_the_readme_shows_lines_of_the_recipe() -> None:
    text = (ROOT / "README.rst").read_text()
    [block] = re.findall(r"test_recipe.py\n\n.. code-block:: sh\n\n((?:   .+\n)+)", text)
    lines = [line.strip() for line in block.splitlines()]
    assert lines[-1] == "condor_reconfig"
    assert set(lines[:-1]) <= set((HERE / "recipe.sh").read_text().splitlines())


def test_another_user_runs_it(prefix: Path, as_user: tuple[list[str], dict[str, str]]) -> None:
    words, home = as_user
    command = prefix / "usr/local/bin/boinc_gahp"
    version = run(*words, command, "--version", cwd=Path("/"), env=home)
    assert version.stdout == f"boinc_gahp {boinc_gahp.__version__}\n"
    spoken = run(*words, command, stdin="COMMANDS\nQUIT\n", cwd=Path("/"), env=home)
    assert "BOINC_SUBMIT" in spoken.stdout
    log = Path(home["HOME"]) / ".local/state/boinc_gahp/boinc_gahp.log"
    with subprocess.Popen(
        [*words, command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/", env=home
    ) as daemon:
        # Begun after the banner; a daemon that is ended before that has none.
        wait_for(log.exists, "the log")
        daemon.communicate(b"QUIT\n", timeout=60)


def test_everybody_can_read_all_of_it(prefix: Path) -> None:
    for path in prefix.rglob("*"):
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            continue
        wanted = 0o005 if stat.S_ISDIR(mode) or mode & 0o100 else 0o004
        assert mode & wanted == wanted, path
        assert mode & 0o022 == 0, path


def test_nothing_leads_to_the_admins_home(prefix: Path, open_directory: Path) -> None:
    admin = open_directory / "admin"
    for path in prefix.rglob("*"):
        if path.is_symlink():
            assert not path.resolve().is_relative_to(admin), path
        elif path.is_file():
            assert str(admin).encode() not in path.read_bytes(), path


def test_files_are_copies_not_hard_links(prefix: Path) -> None:
    # A hard link, like a file that was moved, keeps the label of where it was.
    linked = [path for path in prefix.rglob("*") if path.is_file() and not path.is_symlink()
              and path.stat().st_nlink > 1]  # fmt: skip
    assert linked == []


def test_links_stay_in_the_prefix_or_lead_to_the_systems_python(prefix: Path) -> None:
    links = {path: path.resolve() for path in prefix.rglob("*") if path.is_symlink()}
    base = Path(sys.base_prefix).resolve()
    outside = [to for to in links.values() if not to.is_relative_to(prefix)]
    assert all(to.is_relative_to(base) for to in outside)
    assert links[prefix / "usr/local/bin/boinc_gahp"] == prefix / "opt/boinc_gahp/bin/boinc_gahp"


def test_the_command_is_where_htcondors_settings_look_for_it(prefix: Path) -> None:
    settings = prefix / "etc/condor/config.d"
    assert (settings / "zz-boinc_gahp.router.conf").is_file()
    text = (settings / "20-boinc_gahp.condor.conf").read_text()
    assert "\nBOINC_GAHP = /opt/boinc_gahp/bin/boinc_gahp\n" in text
    assert (prefix / "opt/boinc_gahp/bin/boinc_gahp").is_file()


def test_completion_and_manual_pages_are_where_they_are_looked_for(prefix: Path) -> None:
    share = prefix / "usr/local/share"
    bash = share / "bash-completion/completions/boinc_gahp"
    assert "-F _python_argcomplete boinc_gahp" in bash.read_text()
    assert (share / "zsh/site-functions/_boinc_gahp").read_text().startswith("#compdef boinc_gahp")
    assert "complete -c" in (prefix / "etc/fish/completions/boinc_gahp.fish").read_text()
    for page in ("boinc_gahp", "boinc_gahp.toml"):
        plain = {"MANPAGER": "cat", "LC_ALL": "C.UTF-8"}
        shown = run("man", "--manpath", share / "man", page, env=plain)
        assert page in shown.stdout
        assert shown.stderr == ""


def test_the_first_lines_again_are_an_upgrade_whatever_lies_about(
    prefix: Path, source: Path, open_directory: Path
) -> None:
    # As after a pull into the same directory, in which the old version was built with setuptools.
    new = open_directory / "admin" / "next"
    shutil.copytree(source, new)
    version = new / "boinc_gahp/_version.py"
    version.write_text(version.read_text().replace(boinc_gahp.__version__, "99.1"))
    for place in (new / "build/lib/boinc_gahp", prefix / "opt/boinc_gahp/wheel"):
        place.mkdir(parents=True, exist_ok=True)
    (new / "build/lib/boinc_gahp/gone.py").touch()
    (prefix / "opt/boinc_gahp/wheel/boinc_gahp-0.0.9-py3-none-any.whl").touch()
    settings = prefix / "etc/boinc_gahp/boinc_gahp.toml"
    settings.write_text("# mine\n")
    first, _, _ = (HERE / "recipe.sh").read_text().partition("\n\n")
    run("bash", "-c", in_prefix(first, prefix), cwd=new, env={"PIP_NO_CACHE_DIR": "1"})
    command = prefix / "usr/local/bin/boinc_gahp"
    assert run(command, "--version").stdout == "boinc_gahp 99.1\n"
    packages = next((prefix / "opt/boinc_gahp/lib").glob("python*/site-packages"))
    assert not (packages / "boinc_gahp/gone.py").exists()
    assert [path.name for path in packages.glob("boinc_gahp-*")] == ["boinc_gahp-99.1.dist-info"]
    assert settings.read_text() == "# mine\n"


def test_removal_leaves_nothing_but_settings(before: tuple[Path, set[str]], prefix: Path) -> None:
    _, there = before
    removal = in_prefix((HERE / "removal.sh").read_text(), prefix)
    assert run("bash", "-c", removal).stderr == ""
    left = {name for name in files(prefix) - there if not (prefix / name).is_dir()}
    assert left == {"etc/boinc_gahp/boinc_gahp.toml"}
    # Where parts were never installed, or are gone, it says nothing either.
    again = run("bash", "-c", removal)
    assert (again.stdout, again.stderr) == ("", "")
