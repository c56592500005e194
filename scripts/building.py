"""How setuptools builds the package; named in setup.cfg."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from typing import TYPE_CHECKING

from setuptools.command.build import build
from setuptools.command.egg_info import egg_info

if TYPE_CHECKING:
    from setuptools import Distribution

#: Snakemake finds its plugins by the names of packages. ``package_dir`` in setup.cfg says where
#: this one is; ``packages = find:`` there cannot name a package beside those that are found.
PLUGIN = "snakemake_executor_plugin_boinc"


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


class EggInfo(egg_info):
    """Lists the package for Snakemake with the others; this may run before the build begins."""

    def initialize_options(self) -> None:
        """Add the package."""
        super().initialize_options()
        _add_plugin(self.distribution)


def _add_plugin(distribution: Distribution) -> None:
    if PLUGIN not in distribution.packages:
        distribution.packages.append(PLUGIN)
