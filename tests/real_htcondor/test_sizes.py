"""What submit files ask for is what the project keeps, whatever the app's template says."""

from hashlib import md5

import pytest

from tests.inside import rows
from tests.real_htcondor.submit import FILES, grid, vanilla

pytestmark = pytest.mark.timeout(300)

COLUMNS = (
    "rsc_fpops_est",
    "rsc_fpops_bound",
    "rsc_memory_bound",
    "rsc_disk_bound",
    "delay_bound",
)
#: What uppercase's template says.
SAID = (1e9, 1e15, 5e7, 1e8, 86400)
#: An app's template as its admin could have it, for a job that brings its own.
OWN = """<input_template>
<file_info><no_delete/></file_info>
<workunit>
<file_ref><open_name>in</open_name><copy_file/></file_ref>
<rsc_fpops_est>1e9</rsc_fpops_est><rsc_memory_bound>6e7</rsc_memory_bound><delay_bound>777</delay_bound>
</workunit>
</input_template>
"""

#: Submit file, and what is kept of its job.
CASES = {
    "plain": (grid("uppercase", *FILES), SAID),
    "all": (
        grid(
            "uppercase",
            *FILES,
            "+remote_BoincRscFpopsEst = 2e12",
            "+remote_BoincRscFpopsBound = 3e15",
            "+remote_BoincRscMemoryBound = 400000000",
            '+remote_BoincRscDiskBound = "5e9"',
            "+remote_BoincDelayBound=4242",
        ),
        (2e12, 3e15, 4e8, 5e9, 4242),
    ),
    "memory": (
        grid("uppercase", *FILES, "request_memory = 300"),
        (*SAID[:2], 300 * 2**20, *SAID[3:]),
    ),
    "routed memory": (
        vanilla("uppercase", *FILES, "request_memory = 200"),
        (*SAID[:2], 200 * 2**20, *SAID[3:]),
    ),
    "own template": (
        grid(
            "uppercase",
            *FILES,
            '+remote_BoincInputTemplate = "own_in"',
            "+remote_BoincDelayBound = 999",
        ),
        (1e9, 86400e9, 6e7, 1e9, 999),
    ),
}


def contents(name):
    """Return the text of a case's input file, which no other test's job has."""
    return f"the size of {name}\n"


@pytest.fixture(scope="module")
def sent(node):
    """The jobs of CASES, by bob."""
    clusters = {}
    for name, (text, _) in CASES.items():
        files = {"in": contents(name), "own_in": OWN}
        clusters[name] = node.pool.room("bob", f"sizes-{name.replace(' ', '-')}", files).submit(
            text
        )
    return clusters


def test_what_a_submit_file_asks_for_is_what_the_project_keeps(sent, node):
    found = {}
    for name, cluster in sent.items():
        [job] = cluster.wait()
        assert job["ExitCode"] == 0, name
        assert cluster.room.read("out") == contents(name).upper()
        # A routed job is another one's copy: whose output it was tells the workunit.
        found[name] = _kept(node, contents(name).encode())
    assert found == {name: kept for name, (_, kept) in CASES.items()}


def _kept(node, text):
    """Return what is kept of the job over a file."""
    name = md5(text, usedforsecurity=False).hexdigest()
    query = f"SELECT {', '.join(COLUMNS)} FROM workunit WHERE xml_doc LIKE ?"
    [row] = rows(node.project, query, f"%{name}%")
    return tuple(row)
