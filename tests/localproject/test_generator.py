"""Work generators, on the database alone; the example with its app and volunteers."""

import logging
import shutil
from pathlib import Path
from textwrap import dedent

import pytest

from boinc_gahp.localproject import directory as layout, new_app
from boinc_gahp.localproject.backend.generator import generate_pass
from boinc_gahp.localproject.backend.transitioner import transition_pass
from boinc_gahp.localproject.core import Core
from boinc_gahp.localproject.php import Php
from boinc_gahp.localproject.project import LocalProject
from boinc_gahp.localproject.supplied import input_template, output_template
from tests.helpers import wait_for
from tests.inside import workunit_names

EXAMPLES = Path(__file__).parent.parent.parent / "scripts" / "examples"
NOW = 4_000_000_000.0


@pytest.fixture
def make(tmp_path):
    """Makes a project with an app ``made``, whose generator is ``generate`` in a source text."""
    cores = []

    def make(source):
        directory = tmp_path / "p"
        layout.make(directory)
        (directory / "modules" / "ours.py").write_text(dedent(source))
        core = Core(directory, Php())
        cores.append(core)
        new_app.insert(
            directory,
            core.db,
            "made",
            command=["true"],
            input_template=input_template("in"),
            output_template=output_template("out"),
            work_generator="ours:generate",
            work_low=4,
        )
        return core

    yield make
    for core in cores:
        core.db.close()


def names(core):
    rows = core.db.connection().execute("SELECT name FROM workunit ORDER BY id")
    return [row["name"] for row in rows]


def error_of(core):
    row = core.db.connection().execute("SELECT error FROM program WHERE name = 'work_generator'")
    return str(row.fetchone()[0])


ENDLESS = """
    from itertools import count
    from boinc_gahp.localproject.backend.create_work import NewJob
    from boinc_gahp.localproject.php import Php

    def generate(request):
        for n in count():
            if not request.exists(f"job{n}"):
                staged = request.stage(b"the same for all", "shared.txt")
                yield NewJob(name=f"job{n}", files=(staged,))
"""


def test_as_many_jobs_are_made_as_are_wanting_and_no_more(make):
    core = make(ENDLESS)
    assert generate_pass(core, NOW) == 4
    assert generate_pass(core, NOW) == 0
    transition_pass(core, NOW)
    assert generate_pass(core, NOW) == 0
    with core.db.write() as connection:
        connection.execute("UPDATE result SET server_state = 4 WHERE id <= 3")
    assert generate_pass(core, NOW) == 3
    assert names(core) == [f"job{n}" for n in range(7)]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("def generate(request):\n    raise KeyError('oops')", "KeyError: 'oops'"),
        (
            "def generate(request):\n    yield 'job'",
            "TypeError: the work generator yielded 'job'",
        ),
        ("def generate(request):\n    return 3", "TypeError: 'int' object is not iterable"),
        ("def generate(request):\n    return None", "TypeError: 'NoneType' object is not iterable"),
        ("def other(request):\n    return []", "has no 'generate'"),
        ("import nosuchmodule", "No module named 'nosuchmodule'"),
        (
            "from boinc_gahp.localproject.backend.create_work import NewJob\n"
            "def generate(request):\n"
            "    return [NewJob(name='good', files=(request.stage(b'x', 'x'),)),"
            " NewJob(files=('absent',))]",
            "job 2 of 2: the input file 'absent' is not staged",
        ),
        (
            "def generate(request):\n    request.stage(b'x', '../../x')",
            "a file cannot be staged as '../../x'",
        ),
    ],
    ids=["raises", "no-job", "number", "none", "no-function", "import", "refused", "bad-name"],
)
def test_a_generator_that_fails_makes_nothing_is_told_and_asked_again_later(
    make, caplog, source, words
):
    core = make(source)
    with caplog.at_level(logging.ERROR, "boinc_gahp.localproject"):
        assert generate_pass(core, NOW) == 0
    assert names(core) == []
    assert words in error_of(core)
    assert "(app made, tried again after 10 s)" in error_of(core)
    assert error_of(core) in caplog.text
    (core.directory / "modules" / "ours.py").write_text(dedent(ENDLESS))
    assert generate_pass(core, NOW + 9) == 0
    assert generate_pass(core, NOW + 10) == 4


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
        connection = project.core.db.connection()

        def finished():
            project.check()
            (done,) = connection.execute(
                "SELECT count(*) FROM workunit WHERE canonical_resultid > 0 "
                "AND assimilate_state = 2"
            ).fetchone()
            return bool(done == 6)

        wait_for(finished, "all six jobs are done", timeout=60)
        assert sorted(workunit_names(project)) == [f"logistic_{n}" for n in range(2500, 2800, 50)]
        assert generate_pass(project.core, NOW) == 0
        (orbit,) = project.core.upload.root.glob("*/logistic_2500_0_*")
        assert orbit.read_text() == "0.600000\n" * 8
