"""A project whose volunteers run containers, and settings for it, for the tests of examples."""

import pytest

from tests.cli.conftest import write_settings
from tests.localproject.in_containers import APP

#: The marks of tests that use these fixtures.
CONTAINERS = [pytest.mark.long, pytest.mark.containers, pytest.mark.timeout(600)]


@pytest.fixture
def settings(container_project, tmp_path):
    """Settings of a user of their own."""
    return write_settings(
        tmp_path / "boinc_gahp.toml",
        container_project.url,
        container_project.add_user(tmp_path.name[:40].replace("_", "").lower()),
        f'container_app = "{APP}"\n'
        f'[state]\ndir = "{tmp_path / "state"}"\ncache_dir = "{tmp_path / "cache"}"\n',
    )
