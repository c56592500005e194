"""Other interpreters: one that is killed, children of one, and what importing the API imports."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.processes


FORKER = """
import multiprocessing
from boinc_gahp.errors import Stopped

futures = project.map("uppercase", [{"n": 1}], inputs={"in": InlineFile("x")}, directory=home)
names = {project.rpc.create_batch(f"fork {n}", "uppercase"): f"fork {n}" for n in range(8)}

def ask(number):
    try:
        futures.results(60)
    except Stopped as error:
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
    with site.program(FORKER) as process:
        assert process.communicate(timeout=120) == ("True\n", None)
    assert process.returncode == 0


LISTER = """
import sys
from boinc_gahp import Project
with Project(sys.argv[1], sys.argv[2]) as project:
    print(project.batches())
print(*(name for name in sys.modules if name.startswith("boinc_gahp.")))
"""


def test_listing_batches_imports_nothing_that_submits_and_prints_nothing_of_phps(site):
    batch = site.batch(1)
    done = subprocess.run(
        [sys.executable, "-I", "-c", LISTER, site.proxy.url, site.authenticator],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    listed, imported = done.stdout.splitlines()
    # What PHP says in a project's replies is not for a notebook.
    assert (listed, done.stderr) == (f"({batch!r},)", "")
    modules = {name.removeprefix("boinc_gahp.") for name in imported.split()}
    assert modules >= {"api.project", "rpc.client"}
    assert not modules & {"fetch.context", "submit.engine", "fetch.engine", "ledger", "templates"}
