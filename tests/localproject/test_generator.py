"""Work generators, on the database alone; the example with its app and volunteers."""

import shutil
from pathlib import Path
from textwrap import dedent

import pytest

from boinc_gahp.localproject.backend.generator import generate_pass
from boinc_gahp.localproject.project import LocalProject
from boinc_gahp.localproject.states import ServerState
from tests.helpers import wait_for
from tests.inside import workunit_names
from tests.localproject.bench import NOW
from tests.localproject.client import Client

EXAMPLES = Path(__file__).parent.parent.parent / "scripts" / "examples"


def use(bench, source):
    """Give the app a generator: ``generate`` in a source text."""
    bench.module("ours", dedent(source))
    bench.set("app", "id = 1", work_generator="ours:generate", work_low=4)


ENDLESS = """
    from itertools import count
    from boinc_gahp.localproject.backend.create_work import NewJob

    def generate(request):
        for n in count():
            if not request.exists(f"job{n}"):
                staged = request.stage(b"the same for all", "shared.txt")
                yield NewJob(name=f"job{n}", files=(staged,))
"""


def test_as_many_jobs_are_made_as_are_wanting_and_no_more(bench):
    use(bench, ENDLESS)
    assert generate_pass(bench.core, NOW) == 4
    assert generate_pass(bench.core, NOW) == 0
    bench.transition()
    assert generate_pass(bench.core, NOW) == 0
    bench.set("result", "id <= 3", server_state=ServerState.IN_PROGRESS)
    assert generate_pass(bench.core, NOW) == 3
    assert bench.column("workunit", "name") == [f"job{n}" for n in range(7)]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("def generate(request):\n    raise KeyError('oops')", "KeyError: 'oops'"),
        (
            "def generate(request):\n    yield 'job'",
            "TypeError: the work generator yielded 'job'",
        ),
        (
            "from boinc_gahp.localproject.backend.create_work import NewJob\n"
            "def generate(request):\n"
            "    return [NewJob(name='good', files=(request.stage(b'x', 'x'),)),"
            " NewJob(files=('absent',))]",
            "job 2 of 2: the input file 'absent' is not staged",
        ),
    ],
    ids=["raises", "no-job", "refused"],
)
def test_a_generator_that_fails_makes_nothing_is_told_and_asked_again_later(
    bench, caplog, source, words
):
    use(bench, source)
    assert generate_pass(bench.core, NOW) == 0
    assert bench.column("workunit", "name") == []
    told = bench.trouble("work_generator")
    assert words in told
    assert "(app uppercase, tried again after 10 s)" in told
    assert told in caplog.text
    use(bench, ENDLESS)
    assert generate_pass(bench.core, NOW + 9) == 0
    assert generate_pass(bench.core, NOW + 10) == 4


def test_the_example_sweeps_its_parameters_and_ends(tmp_path):
    with LocalProject(tmp_path / "p", hosts=2) as project:
        modules = project.directory / "modules"
        for name in ("sweep.py", "logistic.py"):
            shutil.copy(EXAMPLES / name, modules)
        # A short sweep: what takes time is starting Python.
        text = (modules / "sweep.py").read_text().replace("4000, 50)", "2800, 50)")
        (modules / "sweep.py").write_text(text)
        project.add_app(
            "logistic",
            "{python} -I {project}/modules/logistic.py",
            outputs="orbit.txt",
            work_generator="sweep:sweep",
            work_low=4,
        )
        done = "SELECT count(*) FROM workunit WHERE canonical_resultid > 0 AND assimilate_state = 2"
        with Client(project) as client:
            wait_for(lambda: client.rows(done)[0][0] == 6, "all six jobs are done")
        assert sorted(workunit_names(project)) == [f"logistic_{n}" for n in range(2500, 2800, 50)]
        assert generate_pass(project.core, NOW) == 0
        (orbit,) = project.core.upload.root.glob("*/logistic_2500_0_*")
        assert orbit.read_text() == "0.600000\n" * 8
