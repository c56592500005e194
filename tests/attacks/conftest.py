"""What is attacked."""

import pytest

from boinc_gahp.localproject.core import STOCK
from boinc_gahp.localproject.project import LocalProject


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A local project without volunteers."""
    with LocalProject(tmp_path_factory.mktemp("project"), hosts=0, php=STOCK) as project:
        yield project
