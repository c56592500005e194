"""What tests of packages share: a copy of the source, and what is built of it, once."""

import functools
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

from tests.helpers import ran

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent


def run(*words, cwd=None, env=None, stdin="", status=0):
    """Run a command; ``status`` is what it has to end with, None: anything."""
    # The directories that all tests have for their settings and state are not for these.
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("XDG_")}
    env = {**inherited, **(env or {})}
    done = ran(*words, cwd=cwd, env=env, input=stdin, timeout=600)
    if status is not None:
        assert done.returncode == status, f"{words}:\n{done.stdout}\n{done.stderr}"
    return done


@functools.cache
def tracked_files():
    """Return the files of the source, relative to it."""
    listed = run("git", "-c", f"safe.directory={ROOT}", "-C", ROOT, "ls-files", "-z").stdout
    return [Path(name) for name in listed.split("\0") if name and (ROOT / name).is_file()]


@pytest.fixture(scope="session")
def open_directory():
    """A directory that other users can enter, which those of pytest are not."""
    directory = Path(tempfile.mkdtemp(prefix="boinc_gahp-install-"))
    directory.chmod(0o755)
    yield directory
    shutil.rmtree(directory)


@pytest.fixture(scope="session")
def source(open_directory):
    """A copy of the source, in an admin's home, with manual pages, as an sdist has them."""
    copy = open_directory / "admin" / "boinc_gahp"
    for name in tracked_files():
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, copy / name)
    run(ROOT / "scripts/docs", "man")
    shutil.copytree(ROOT / "build/man", copy / "man")
    return copy


@pytest.fixture(scope="session")
def dist(source, tmp_path_factory):
    """A directory with the sdist, and the wheel that was built from the sdist."""
    directory = tmp_path_factory.mktemp("dist")
    run(BIN / "python", "-m", "build", "--outdir", directory, source)
    return directory


@pytest.fixture(scope="session")
def wheel(dist):
    [path] = dist.glob("*.whl")
    return path


@pytest.fixture(scope="session")
def sdist(dist):
    [path] = dist.glob("*.tar.gz")
    return path
