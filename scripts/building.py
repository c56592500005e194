"""How setuptools builds the package; named in setup.cfg."""

from __future__ import annotations

import atexit
import shutil
import tempfile

from setuptools.command.build import build


class Build(build):
    """Builds in a temporary directory.

    Setuptools' default, ``build/`` beside the source, is kept between builds, so modules that an
    earlier version had would get into the wheel.
    """

    def initialize_options(self) -> None:
        """Make the temporary directory, which is removed when this process ends."""
        super().initialize_options()
        self.build_base = tempfile.mkdtemp(prefix="boinc_gahp-build-")
        atexit.register(shutil.rmtree, self.build_base, ignore_errors=True)
