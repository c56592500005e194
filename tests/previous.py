"""The code of the version before this, for processes of it that run beside this one's."""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
#: The last commit whose ledger is of version 4.
COMMIT = "96b3b15"


@pytest.fixture(scope="session")
def previous_version(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the package ``boinc_gahp`` as it was."""
    archive = subprocess.run(
        ["git", "archive", COMMIT, "boinc_gahp"], cwd=ROOT, capture_output=True, check=False
    )
    if archive.returncode:
        pytest.skip(f"this clone does not have the commit {COMMIT}")
    directory = tmp_path_factory.mktemp("previous")
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
        tar.extractall(directory)
    return directory
