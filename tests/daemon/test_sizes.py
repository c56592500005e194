"""The numbers of BOINC_SUBMIT are what the project keeps of its jobs; and the daemon's memory."""

import os
import subprocess
import sys

import pytest

from boinc_gahp.localproject.php import STOCK
from boinc_gahp.localproject.project import LocalProject
from tests.daemon.gridmanager import submission
from tests.daemon.home import Home
from tests.inside import workunit_names

pytestmark = pytest.mark.processes

#: In the order of the request; the sixth is the app's version.
ASKED = ["2e12", "3e15", "4e8", "5e9", "4242.5", "NULL"]


@pytest.fixture
def project(tmp_path):
    with LocalProject(tmp_path / "project", hosts=0, php=STOCK) as project:
        yield project


def kept(project):
    rows = project.core.db.connection().execute(
        "SELECT DISTINCT rsc_fpops_est, rsc_fpops_bound, rsc_memory_bound, rsc_disk_bound, "
        "delay_bound FROM workunit"
    )
    return [tuple(row) for row in rows]


def test_the_numbers_arrive_or_the_batch_is_refused_with_its_size(tmp_path, project):
    home = Home(tmp_path)
    home.set_up(project, "max_post_bytes = 10_000\n")
    path = home.write("in", "text")

    def request(batch, count):
        jobs = {f"{batch}#{n}": ([], [path, "in"]) for n in range(count)}
        return [*submission(batch, "uppercase", jobs)[:-6], *ASKED]

    with home.gridmanager() as gridmanager:
        assert gridmanager.do("BOINC_SUBMIT", *request("fits", 5)) == ["NULL"]
        [error] = gridmanager.do("BOINC_SUBMIT", *request("large", 30))
        for words in (
            "its 30 jobs make a request of",
            "more than max_post_bytes allows (10000)",
            "of these bytes are input templates, sent with each job whose "
            "rsc_fpops_est or rsc_fpops_bound or rsc_memory_bound or rsc_disk_bound or delay_bound "
            "differs from that of app",
            "split it",
            "use the app's values, or have the project's admin change them",
        ):
            assert words in error
    assert kept(project) == [(2e12, 3e15, 4e8, 5e9, 4243)]
    assert workunit_names(project, "large") == []


def test_the_parsers_of_past_replies_do_not_pile_up():
    program = """
import gc
from boinc_gahp.daemon.main import prepare_process
from boinc_gahp.rpc import _replies
prepare_process()
for _ in range(5000):
    _replies.read([b"<ping><success>1</success></ping>"], "ping")
print(sum(type(each).__name__ == "XMLPullParser" for each in gc.get_objects()))
"""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("COV")}
    told = subprocess.check_output([sys.executable, "-c", program], text=True, env=environment)
    assert int(told) < 1000
