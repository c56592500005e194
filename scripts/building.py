"""How setuptools builds the package; named in setup.cfg."""

from __future__ import annotations

import atexit
import shutil
import tempfile

from setuptools.command.build import build

#: Snakemake finds its plugins by the names of packages. ``package_dir`` in setup.cfg says where
#: this one is; ``packages = find:`` there cannot name a package beside those that are found.
PLUGIN = "snakemake_executor_plugin_boinc"


class Build(build):
    """Builds in a temporary directory, and adds the package for Snakemake.

    Setuptools' default, ``build/`` beside the source, is kept between builds, so modules that an
    earlier version had would get into the wheel.
    """

    def initialize_options(self) -> None:
        """Make the temporary directory, which is removed when this process ends."""
        super().initialize_options()
        if PLUGIN not in self.distribution.packages:
            self.distribution.packages.append(PLUGIN)
        self.build_base = tempfile.mkdtemp(prefix="boinc_gahp-build-")
        atexit.register(shutil.rmtree, self.build_base, ignore_errors=True)
