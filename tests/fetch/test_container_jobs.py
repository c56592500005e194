"""Outputs of container jobs from a local project, whose hosts run the jobs' own script.

There is no container: the script runs in the slot, which it takes for ``/app``.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from boinc_gahp.containers.image import read_image
from boinc_gahp.containers.script import Program
from boinc_gahp.errors import OutputError
from boinc_gahp.fetch.container_directory import ProgramNotRun, fetch_container
from boinc_gahp.fetch.types import ContainerFiles, ContainerRequest
from boinc_gahp.localproject.php import STOCK
from boinc_gahp.localproject.project import LocalProject
from boinc_gahp.localproject.supplied import input_template, output_template
from boinc_gahp.submit.container_jobs import ContainerJob, make_container_jobs
from boinc_gahp.submit.engine import submit
from boinc_gahp.submit.made_files import MadeFiles
from boinc_gahp.submit.types import LocalFile, SubmitRequest
from tests.faultproxy import FaultProxy
from tests.fetch.farm import Farm
from tests.fetch.test_fetch_ad import found
from tests.helpers import wait_for
from tests.inside import unfinished_jobs

pytestmark = [pytest.mark.long, pytest.mark.processes]

_HOST = """
import os, pathlib, subprocess, sys
here = os.getcwd()
script = pathlib.Path("run.sh").read_text().replace("/app", here)
os.environ["ARGS"] = " ".join(sys.argv[1:])
sys.exit(subprocess.call(["sh", "-c", script]))
"""

#: What each job runs, and the outputs that it names.
JOBS = {
    "plain": ("echo said; echo complained >&2; echo '{}' >result.json", ("result.json",)),
    "tree": (
        "mkdir -p out/plots/deep out/plots/empty && cd out/plots && echo a >'a b' && ln 'a b' hard"
        "&& ln -s 'a b' soft && echo b >deep/.b && chmod +x deep/.b && cd ../.. && echo r >r",
        ("out/plots", "r"),
    ),
    "dangling": ("mkdir d && ln -s nowhere d/x && echo y >d/y", ("d",)),
    "new": (
        "echo 1 >one; echo 2 >'two words'; mkdir d; echo 3 >d/three; echo 4 >.four; ln one five",
        None,
    ),
    "odd": ("echo 1 >\"it's\"; mkdir 'd d'; echo 2 >'d d/$(x)'", ("it's", "d d")),
    "failed": ("echo half >result.json; echo sorry >&2; exit 3", ("result.json", "plots")),
    "killed": ("kill -9 $$", ("result.json",)),
    "missing": ("echo done", ("result.json", "plots")),
    "large": (
        "mkdir d; head -c 3000000 /dev/zero >d/zeros; head -c 300000 /dev/zero >f",
        ("d", "f"),
    ),
}


def made(room):
    image = read_image("docker://busybox")
    for name, (script, outputs) in JOBS.items():
        program = room / name
        program.write_text(f"#!/bin/sh\n{script}\n")
        files = (("prog", LocalFile(str(program))),)
        yield (
            f"c#{name}",
            ContainerJob(image, "./prog", is_input=True, files=files, outputs=outputs),
        )
    absent = Program(("x",))
    yield "c#absent", ContainerJob(image, "no-such-program", program=absent, outputs=("r",))


class Containers(Farm):
    """A project on which the jobs have run."""

    templates: dict[str, str]

    def request(self, name, home, remaps=()):
        outputs = JOBS[name][1] if name in JOBS else ("r",)
        files = ContainerFiles(
            outputs, tuple(remaps), "job.out", "job.err", None, self.templates[f"c#{name}"]
        )
        return ContainerRequest(f"c#{name}", str(home), files)


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    room = tmp_path_factory.mktemp("inputs")
    with (
        LocalProject(tmp_path_factory.mktemp("project"), hosts=2, php=STOCK) as local,
        FaultProxy(local.url) as proxy,
    ):
        local.add_app(
            "docker",
            command=["{python}", "-I", "-S", "-c", _HOST],
            input_template=input_template("in"),
            output_template=output_template("out"),
        )
        for template in (local.directory / "templates").glob("docker_*"):
            template.unlink()  # each job brings its own
        ran = Containers(local, proxy)
        jobs = make_container_jobs(
            list(made(room)),
            MadeFiles.of(tmp_path_factory.mktemp("state")),
            lambda path: hashlib.md5(Path(path).read_bytes()).hexdigest(),
        )
        ran.templates = {name: job.output_template or "" for name, job in jobs}
        with ran.context() as context:
            submit(context, SubmitRequest("c", "docker", jobs))
            wait_for(lambda: unfinished_jobs(local) == 0, "the jobs' end", timeout=120)
        yield ran


@pytest.fixture
def healthy(ran):
    ran.proxy.heal()
    yield ran
    ran.proxy.heal()


SAID = {"job.out": b"said\n", "job.err": b"complained\n"}
SILENT = {"job.out": b"", "job.err": b""}
PLOTS = {
    "plots": None,
    "plots/a b": b"a\n",
    "plots/hard": b"a\n",
    "plots/soft": b"a\n",
    "plots/deep": None,
    "plots/deep/.b": b"b\n",
    "plots/empty": None,
}


@pytest.mark.parametrize(
    ("name", "status", "expected"),
    [
        pytest.param("plain", 0, {**SAID, "result.json": b"{}\n"}, id="a file"),
        pytest.param("tree", 0, {**SILENT, **PLOTS, "r": b"r\n"}, id="a directory"),
        pytest.param("dangling", 0, {**SILENT, "d": None, "d/y": b"y\n"}, id="a dangling link"),
        pytest.param(
            "new", 0, {**SILENT, "one": b"1\n", "two words": b"2\n", "five": b"1\n"}, id="new files"
        ),
        pytest.param(
            "odd", 0, {**SILENT, "it's": b"1\n", "d d": None, "d d/$(x)": b"2\n"}, id="odd names"
        ),
        pytest.param(
            "failed",
            3,
            {"job.out": b"", "job.err": b"sorry\n", "result.json": b"half\n"},
            id="another status",
        ),
        pytest.param("killed", -9, SILENT, id="a signal"),
    ],
)
def test_what_the_script_sends_is_what_arrives(name, status, expected, healthy, home):
    with healthy.context() as context:
        for _ in range(2):
            result = fetch_container(context, healthy.request(name, home))
            assert found(home) == expected
    assert result.exit_status == status
    assert result.elapsed_time > 0
    if name == "tree":
        assert os.access(home / "plots/deep/.b", os.X_OK)


def test_a_missing_output_is_named(healthy, home):
    with (
        healthy.context() as context,
        pytest.raises(OutputError, match=r"status 0, but did not make 'result.json', 'plots'"),
    ):
        fetch_container(context, healthy.request("missing", home))
    assert found(home) == {"job.out": b"done\n", "job.err": b""}


def test_a_program_that_is_not_there_is_named(healthy, home):
    with (
        healthy.context() as context,
        pytest.raises(ProgramNotRun, match="the image has no program 'no-such-program'"),
    ):
        fetch_container(context, healthy.request("absent", home))
    assert found(home).keys() == {"job.out", "job.err"}
