"""The recipe for a submit node, line by line as the documentation shows it, in another prefix."""

import os
import pwd
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from boinc_gahp.localproject.project import LocalProject
from tests.daemon.gridmanager import BatchGridmanager
from tests.daemon.home import Node
from tests.daemon.process import Daemon
from tests.helpers import wait_for
from tests.inside import workunit_names
from tests.install.conftest import ROOT, run, tracked_files

HERE = Path(__file__).parent
#: The version that the recipe installs first.
OLDER = "0.1.9"
#: The recipe's directories, each of which is one below the test's own directory.
PLACES = ("/opt", "/usr/local", "/etc")
#: The Python that this is tested with.
BASE = Path(sys.base_prefix, "bin", f"python{sys.version_info[0]}.{sys.version_info[1]}")


def in_prefix(text, prefix):
    prefix = prefix or ""
    for place in PLACES:
        text = text.replace(f" {place}/", f" {prefix}{place}/")
    lines = text.splitlines()
    text = "\n".join(f"{prefix}{line}" if line.startswith("/opt/") else line for line in lines)
    text = text.replace("/usr/bin/python3", str(BASE))
    return f"set -eu\nPATH={prefix}/usr/local/bin:$PATH\n{text}\n"


def install(open_directory, source, lines, prefix=None):
    """Do a part of the recipe as an admin; the node, below ``prefix``, has no network."""
    admin = {"HOME": str(open_directory / "admin"), "PIP_NO_CACHE_DIR": "1", "PYTHON": str(BASE)}
    alone = ["unshare", "--net"] if prefix and os.getuid() == 0 else []
    # Whoever keeps their own files to themselves does not keep these.
    run(*alone, "bash", "-c", f"umask 077\n{in_prefix(lines, prefix)}", cwd=source, env=admin)


def files(directory):
    return {str(path.relative_to(directory)) for path in directory.rglob("*")}


@pytest.fixture(scope="module")
def before(open_directory):
    """A system before the recipe: the directory below which all is, and what there is."""
    prefix = open_directory / "node"
    for name in ("opt", "usr/local/bin", "etc/condor/config.d"):
        (prefix / name).mkdir(parents=True)
    for path in (prefix, *prefix.rglob("*")):
        path.chmod(0o755)
    return prefix, files(prefix)


@pytest.fixture(scope="module")
def prefix(before, source, open_directory):
    """The system after the recipe, in the source of an older version."""
    prefix, _ = before
    older = open_directory / "admin" / "older"
    shutil.copytree(source, older)
    version = older / "boinc_gahp/_version.py"
    version.write_text(re.sub('(__version__ = ").*"', rf'\g<1>{OLDER}"', version.read_text()))
    (older / "boinc_gahp/gone.py").touch()
    wheels, program, rest = (HERE / "recipe.sh").read_text().split("\n\n", 2)
    install(open_directory, older, wheels)
    install(open_directory, older, f"{program}\n{rest}", prefix)
    return prefix


@pytest.fixture
def as_user(open_directory):
    """What begins a command line of another user, if this one can be another; and their HOME."""
    home = open_directory / "nobody"
    home.mkdir()
    words = []
    if os.getuid() == 0:
        nobody = pwd.getpwnam("nobody")
        os.chown(home, nobody.pw_uid, nobody.pw_gid)
        ids = (f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}")
        words = ["setpriv", *ids, "--clear-groups"]
    yield words, {"HOME": str(home)}
    shutil.rmtree(home)


def test_the_documentation_shows_the_recipe_and_the_removal():
    shown = {line.strip() for line in (ROOT / "docs/htcondor-admins.rst").read_text().splitlines()}
    for name in ("recipe.sh", "removal.sh"):
        lines = [line.strip() for line in (HERE / name).read_text().splitlines()]
        assert [line for line in lines if line[:1] not in ("", "#") and line not in shown] == []


def test_the_readme_shows_lines_of_the_recipe():
    text = (ROOT / "README.rst").read_text()
    [block] = re.findall(r"test_recipe.py\n\n.. code-block:: sh\n\n((?:   .+\n)+)", text)
    lines = [line.strip() for line in block.splitlines()]
    assert lines[-1] == "condor_reconfig"
    recipe = {line.strip() for line in (HERE / "recipe.sh").read_text().splitlines()}
    assert set(lines[:-1]) <= recipe


def test_another_user_runs_it(prefix, as_user):
    words, home = as_user
    command = prefix / "usr/local/bin/boinc_gahp"
    version = run(*words, command, "--version", cwd=Path("/"), env=home)
    assert version.stdout == f"boinc_gahp {OLDER}\n"
    spoken = run(*words, command, stdin="COMMANDS\nQUIT\n", cwd=Path("/"), env=home)
    assert "BOINC_SUBMIT" in spoken.stdout
    log = Path(home["HOME"]) / ".local/state/boinc_gahp/boinc_gahp.log"
    with subprocess.Popen(
        [*words, command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/", env=home
    ) as daemon:
        # Begun after the banner; a daemon that is ended before that has none.
        wait_for(log.exists, "the log")
        daemon.communicate(b"QUIT\n", timeout=60)


def test_everybody_can_read_all_of_it_and_nothing_leads_to_the_admins_home(prefix, open_directory):
    admin = str(open_directory / "admin").encode()
    places = (prefix, Path(sys.base_prefix).resolve())
    for path in prefix.rglob("*"):
        status = path.lstat()
        if path.is_symlink():
            assert any(path.resolve().is_relative_to(place) for place in places), path
            continue
        wanted = 0o005 if path.is_dir() or status.st_mode & 0o100 else 0o004
        assert status.st_mode & (wanted | 0o022) == wanted, path
        if path.is_file():
            # A hard link, like a file that was moved, keeps the label of where it was.
            assert status.st_nlink == 1, path
            assert admin not in path.read_bytes(), path


def test_the_command_is_where_htcondors_settings_look_for_it(prefix):
    settings = prefix / "etc/condor/config.d"
    assert (settings / "zz-boinc_gahp.router.conf").is_file()
    text = (settings / "20-boinc_gahp.condor.conf").read_text()
    assert "\nBOINC_GAHP = /opt/boinc_gahp/bin/boinc_gahp\n" in text
    assert (prefix / "opt/boinc_gahp/bin/boinc_gahp").is_file()


def test_completion_and_manual_pages_are_where_they_are_looked_for(prefix):
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


def test_the_same_lines_again_are_an_upgrade_with_jobs_in_flight(
    prefix, source, tmp_path, open_directory
):
    # As after a pull into the same directory, in which the old version was built with setuptools.
    new = tmp_path / "source"
    shutil.copytree(source, new)
    (new / "build/lib/boinc_gahp").mkdir(parents=True)
    (new / "build/lib/boinc_gahp/gone.py").touch()
    edited = [prefix / "etc/boinc_gahp/boinc_gahp.toml", *prefix.glob("etc/condor/config.d/*")]
    assert len(edited) == 3
    for path in edited:
        path.write_text("# mine\n")
    command = prefix / "usr/local/bin/boinc_gahp"
    wheels, program, rest = (HERE / "recipe.sh").read_text().split("\n\n", 2)
    with LocalProject(tmp_path / "project", hosts=2) as project:
        project.pause_volunteers()
        (tmp_path / "home").mkdir()
        node = Node(tmp_path / "home", project)
        with Daemon([str(command)], environ=node.environ, cwd=Path("/")) as old:
            jobs = BatchGridmanager(old).submit_all(node.ad(f"1.{number}") for number in range(4))
            wait_for(lambda: len(workunit_names(project)) == 4, "all jobs on the project")
            install(open_directory, new, wheels)
            install(open_directory, new, f"{program}\n{rest}", prefix)
            wait_for(lambda: old.process.poll() is not None, "the old program's end")
        project.resume_volunteers()
        with Daemon([str(command)], environ=node.environ, cwd=Path("/")) as daemon:
            gridmanager = BatchGridmanager(daemon)
            jobs += gridmanager.submit_all([node.ad("2.0")])
            assert {status.word for status in gridmanager.follow(jobs).values()} == {4}
            assert len(workunit_names(project)) == 5
    told = run(command, "--version").stdout.split()[1]
    assert f"\\ {told} $" in gridmanager.banner
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev0\+[0-9a-f]{12})?", told)
    packages = next((prefix / "opt/boinc_gahp/lib").glob("python*/site-packages"))
    assert [path.name for path in packages.glob("boinc_gahp-*")] == [f"boinc_gahp-{told}.dist-info"]
    assert differences(source, packages) == []
    assert [path.read_text() for path in edited] == ["# mine\n"] * 3
    # Once more, with the same version.
    (packages / "boinc_gahp/py.typed").write_text("another")
    (packages / "boinc_gahp/cli/main.py").unlink()
    install(open_directory, new, program, prefix)
    assert differences(source, packages) == []


def differences(source, packages):
    """Return the files of the package that are not installed as they are, and others there."""
    inside = Path("boinc_gahp")
    plugin = inside / "workflows/snakemake/snakemake_executor_plugin_boinc"
    tracked = {name for name in tracked_files() if inside in name.parents}
    different = {
        name
        for name in tracked - {inside / "_version.py"}
        if plugin not in name.parents
        if not (packages / name).is_file()
        or (packages / name).read_bytes() != (source / name).read_bytes()
    }
    there = {path.relative_to(packages) for path in (packages / inside).rglob("*.*")}
    others = {name for name in there - tracked if "__pycache__" not in name.parts}
    return sorted(different | others)


def test_removal_leaves_nothing_but_settings(before, prefix):
    _, there = before
    removal = in_prefix((HERE / "removal.sh").read_text(), prefix)
    assert run("bash", "-c", removal).stderr == ""
    left = {name for name in files(prefix) - there if not (prefix / name).is_dir()}
    assert left == {"etc/boinc_gahp/boinc_gahp.toml"}
    # Where parts were never installed, or are gone, it says nothing either.
    again = run("bash", "-c", removal)
    assert (again.stdout, again.stderr) == ("", "")
