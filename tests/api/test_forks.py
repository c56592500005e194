"""Processes that were forked from one that uses a project, as multiprocessing does on Linux."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.processes

PROGRAM = """\
import multiprocessing, pathlib, sys
from boinc_gahp import InlineFile, Project
from boinc_gahp.config.settings import Settings, State
from boinc_gahp.errors import GatheringEnded

url, key = sys.argv[1:3]
directory = pathlib.Path(sys.argv[3])
state = State(dir=directory, cache_dir=directory)
project = Project(url, key, settings=Settings(state=state))
futures = project.map("uppercase", [{"n": 1}], inputs={"in": InlineFile("x")}, directory=directory)
names = {project.rpc.create_batch(f"fork {n}", "uppercase"): f"fork {n}" for n in range(8)}

def ask(number):
    try:
        futures.results(60)
    except GatheringEnded as error:
        assert "of which this one is a child" in str(error), error
    else:
        raise AssertionError("a child has waited for the parent's thread")
    found = [project.rpc.query_batch(batch_id=number).batch.name for _ in range(40)]
    return set(found) == {names[number]}

with multiprocessing.get_context("fork").Pool(8) as pool:
    print(pool.map(ask, names) == [True] * 8)
project.close()
"""


def test_children_get_their_own_replies_and_do_not_wait_for_the_parents_thread(site):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, site.local.url, site.authenticator, str(site.directory)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr
