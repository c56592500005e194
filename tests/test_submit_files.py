"""The submit files in the documents and ``conf/`` have what condor_submit and boinc_gahp need."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FILES = [
    ROOT / "README.rst",
    *(ROOT / "docs").rglob("*.rst"),
    *(ROOT / "conf/submit").glob("*.sub"),
]
#: A grid job, from its grid_resource to its queue, as (type, lines).
GRID = re.compile(r"^ *grid_resource *= *(batch )?boinc\b(.*?)^ *queue\b", re.DOTALL | re.MULTILINE)


def grid_jobs():
    for path in FILES:
        for batch, lines in GRID.findall(path.read_text("utf-8")):
            yield path, batch, lines


@pytest.mark.parametrize("batch", [True, False], ids=["batch boinc", "boinc"])
def test_a_grid_job_says_what_its_grid_type_needs(batch):
    found = [(path, lines) for path, is_batch, lines in grid_jobs() if bool(is_batch) == batch]
    assert found
    for path, lines in found:
        if batch:
            assert re.search(
                r"\+(remote_)?Boinc(App|Image)\b|container_image|docker_image", lines
            ), path
        else:
            # HTCondor 9 reads no further word of grid_resource (SubmitHash::SetGridParams).
            assert re.match(r" \S+\n", lines), path
            assert re.search(r"^ *boinc_authenticator_file *= *\S+$", lines, re.MULTILINE), path
