"""What importing and using the Python API imports."""

import subprocess
import sys

import pytest

LISTER = """
import sys
from boinc_gahp import Project
with Project(sys.argv[1], sys.argv[2]) as project:
    print(len(project.batches()))
print(*(name for name in sys.modules if name.startswith("boinc_gahp.")))
"""


@pytest.mark.processes
def test_listing_batches_imports_nothing_that_submits_or_fetches(site):
    site.batch(1)
    done = subprocess.run(
        [sys.executable, "-I", "-c", LISTER, site.proxy.url, site.authenticator],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    count, imported = done.stdout.splitlines()
    assert count == "1"
    modules = {name.removeprefix("boinc_gahp.") for name in imported.split()}
    assert modules >= {"api.project", "rpc.client"}
    assert not modules & {"fetch.context", "submit.engine", "fetch.engine", "ledger", "templates"}
