"""How setuptools builds the package; named in setup.cfg."""

from __future__ import annotations

import atexit
import shutil
import tempfile

from setuptools.command.build import build


class Build(build):
    """Builds in a directory of its own.

    Setuptools' usual one, ``build/`` beside the source, is kept from one time to the next: modules
    of an earlier version, which are no more, would get into the wheel.
    """

    def initialize_options(self) -> None:
        """Choose where: a temporary directory, which goes with this process."""
        super().initialize_options()
        self.build_base = tempfile.mkdtemp(prefix="boinc_gahp-build-")
        atexit.register(shutil.rmtree, self.build_base, ignore_errors=True)
