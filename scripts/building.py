"""How setuptools builds the package, and under which version; named in setup.cfg."""

from __future__ import annotations

import atexit
import gzip
import hashlib
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from setuptools.command.build import build
from setuptools.command.build_py import build_py
from setuptools.command.egg_info import egg_info
from setuptools.command.sdist import sdist

if TYPE_CHECKING:
    from collections.abc import Iterable

    from setuptools import Distribution

ROOT = Path(__file__).resolve().parent.parent
#: Where the version is written, below a directory with the package.
PLACE = Path("boinc_gahp/_version.py")
#: What the installed program is made of.
SOURCES = ("boinc_gahp", "setup.cfg")
#: Snakemake finds its plugins by the names of packages. ``package_dir`` in setup.cfg says where
#: this one is; ``packages = find:`` there cannot name a package beside those that are found.
PLUGIN = "snakemake_executor_plugin_boinc"


def version() -> str:
    """Return the version of this tree.

    A release, and an sdist, have it in ``_version.py``. Between releases that file has the next
    one with ``.dev0``. In a git checkout the 0 becomes the time of the commit in UTC, to the minute
    (a shallow checkout has no commits to count), and the commit follows:
    ``1.0.0.dev202611232105+gee6e40f7``. If the sources were edited, or there is no git, a hash of
    them follows.
    """
    written = _written()
    if not written.endswith(".dev0"):
        return written
    commit = _git("log", "-1", "--abbrev=8", "--format=%cd+g%h", "--date=format-local:%Y%m%d%H%M")
    if commit and not _git("status", "--porcelain", "--", *SOURCES):
        return f"{written[:-1]}{commit}"
    digest = _digest()
    return f"{written[:-1]}{commit}.{digest}" if commit else f"{written}+{digest}"


def _written() -> str:
    [found] = re.findall(r'^__version__ = "(.+)"$', (ROOT / PLACE).read_text("utf-8"), re.MULTILINE)
    return str(found)


def _git(*words: str) -> str:
    """Return what git prints; nothing if there is no git, or this is no checkout of its own."""
    if not (ROOT / ".git").exists():
        return ""
    # An admin may build in a checkout that belongs to somebody else.
    command = ["git", "-c", f"safe.directory={ROOT}", "-C", str(ROOT), *words]
    try:
        done = subprocess.run(
            command, env={**os.environ, "TZ": "UTC"}, capture_output=True, text=True, check=False
        )
    except OSError:
        return ""
    return "" if done.returncode else done.stdout.strip()


def _digest() -> str:
    found: Iterable[Path] = (
        path
        for name in SOURCES
        for path in (ROOT / name, *(ROOT / name).rglob("*"))
        if path.is_file() and path.suffix != ".pyc"
    )
    digest = hashlib.sha256()
    for path in sorted(found):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(f"{path.relative_to(ROOT)}\0{content}\n".encode())
    return digest.hexdigest()[:12]


def _write_version(directory: str, version: str) -> None:
    """Write the version into the copy of the package in a directory."""
    path = Path(directory) / PLACE
    text = path.read_text("utf-8").replace(f'"{_written()}"', f'"{version}"')
    # An sdist is made of hard links to the source.
    path.unlink()
    path.write_text(text, "utf-8")


class Build(build):
    """Builds in a temporary directory.

    Setuptools' default, ``build/`` beside the source, is kept between builds, so modules that an
    earlier version had would get into the wheel.
    """

    def initialize_options(self) -> None:
        """Make the temporary directory, which is removed when this process ends."""
        super().initialize_options()
        _add_plugin(self.distribution)
        self.build_base = tempfile.mkdtemp(prefix="boinc_gahp-build-")
        atexit.register(shutil.rmtree, self.build_base, ignore_errors=True)


class BuildPy(build_py):
    """Copies the modules, and writes the version into the copy."""

    def run(self) -> None:
        """Copy them; an editable installation has no copy."""
        super().run()
        if not self.editable_mode:
            _write_version(self.build_lib, self.distribution.get_version())


class Sdist(sdist):
    """Writes the version into the archive, which has no commit, and the same bytes each time."""

    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        """Make the directory that is packed."""
        super().make_release_tree(base_dir, files)
        _write_version(base_dir, self.distribution.get_version())

    def make_archive(self, base_name: str, *_: object, base_dir: str = "", **__: object) -> str:
        """Pack the directory; ``SOURCE_DATE_EPOCH`` is the time of each file, as in wheels."""
        path, now = f"{base_name}.tar.gz", int(os.environ.get("SOURCE_DATE_EPOCH", time.time()))

        def of_nobody(member: tarfile.TarInfo) -> tarfile.TarInfo:
            member.mtime, member.uid, member.gid = now, 0, 0
            member.uname = member.gname = ""
            return member

        with (
            gzip.GzipFile(path, "wb", mtime=now) as packed,
            tarfile.open(fileobj=packed, mode="w") as archive,
        ):
            archive.add(base_dir, filter=of_nobody)
        return path


class EggInfo(egg_info):
    """Lists the package for Snakemake with the others; this may run before the build begins."""

    def initialize_options(self) -> None:
        """Add the package."""
        super().initialize_options()
        _add_plugin(self.distribution)


def _add_plugin(distribution: Distribution) -> None:
    if PLUGIN not in distribution.packages:
        distribution.packages.append(PLUGIN)
