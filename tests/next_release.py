"""The code of a next release, for processes beside this one's: its ledger has a migration more."""

import shutil
from pathlib import Path

import pytest

from boinc_gahp.ledger import _migrations

PACKAGE = Path(__file__).parent.parent / "boinc_gahp"
VERSION = _migrations.VERSION + 1


@pytest.fixture(scope="session")
def next_release(tmp_path_factory):
    """A directory with the package ``boinc_gahp`` as it may become."""
    directory = tmp_path_factory.mktemp("next")
    shutil.copytree(PACKAGE, directory / "boinc_gahp", ignore=shutil.ignore_patterns("__pycache__"))
    with (directory / "boinc_gahp/ledger/_migrations.py").open("a") as module:
        module.write(
            'MIGRATIONS = (*MIGRATIONS, ("CREATE TABLE of_next_release (number INTEGER)",))\n'
            f"VERSION = {VERSION:d}\n"
        )
    return directory
