"""Snakemake runs workflows on volunteers' computers: the example, and what may happen to others."""

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from boinc_gahp.api.project import Project
from boinc_gahp.states import BatchState
from tests.containers_engine import IMAGE
from tests.documents.volunteers import CONTAINERS
from tests.helpers import wait_for

pytestmark = [
    *CONTAINERS,
    pytest.mark.skipif(sys.version_info < (3, 11), reason="Snakemake 9 needs Python 3.11"),
]
pytest.importorskip("snakemake")

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "scripts" / "examples" / "workflow"
SNAKEMAKE = Path(sys.executable).with_name("snakemake")
HEAD = f'container: "docker://{IMAGE}"\n'


def started(settings, directory, *more):
    """Start Snakemake in a directory. An editable installation does not show it the plugin."""
    command = [str(SNAKEMAKE), "--executor", "boinc", "--jobs", "50", *more]
    return subprocess.Popen(
        [*command, "--seconds-between-status-checks", "1"],
        cwd=directory,
        env={
            **os.environ,
            "BOINC_GAHP_CONFIG": str(settings),
            "PYTHONPATH": str(ROOT / "boinc_gahp" / "workflows" / "snakemake"),
            "XDG_CACHE_HOME": str(settings.parent),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def run(settings, directory, *more):
    """Run Snakemake; return its exit status, and what it printed."""
    process = started(settings, directory, *more)
    try:
        printed, _ = process.communicate(timeout=500)
    finally:
        process.kill()
        process.wait()
    return process.returncode, printed


def made(tmp_path, snakefile):
    """Return a new directory with a workflow."""
    directory = tmp_path / "workflow"
    directory.mkdir()
    (directory / "Snakefile").write_text(HEAD + snakefile, "utf-8")
    return directory


def batches(settings):
    """Return the states and numbers of jobs of the user's batches that are not retired."""
    with Project.from_settings(config=settings) as people:
        found = [people.batch(each.id) for each in people.rpc.query_batches()]
    return {each.name.rpartition("-")[0]: (each.state, each.njobs) for each in found}


def submitted(printed):
    """Return the batches that Snakemake has submitted, and their numbers of jobs, in order."""
    return re.findall(r"^Batch (snakemake-\w+)-\w+ has (\d+) jobs", printed, re.MULTILINE)


def test_the_example_runs_and_its_batches_are_retired(settings, tmp_path):
    directory = tmp_path / "workflow"
    shutil.copytree(EXAMPLE, directory)
    status, printed = run(settings, directory, "--config", f"image={IMAGE}")
    assert status == 0, printed
    assert (directory / "most.txt").read_text().splitlines()[:3] == ["8 the", "4 rain", "3 sea"]
    assert (directory / "logs" / "one.log").read_text() == ""
    assert not list((directory / ".snakemake" / "boinc").iterdir())
    assert submitted(printed) == [("snakemake-count", "3"), ("snakemake-add", "1")]
    assert batches(settings) == {}
    status, printed = run(settings, directory, "--config", f"image={IMAGE}")
    assert status == 0
    assert "Nothing to be done" in printed


def test_directories_groups_and_hard_characters_go_both_ways(settings, tmp_path):
    directory = made(
        tmp_path,
        """
rule all:
    input: "d", "second it's.txt"
rule make:
    input: "in put"
    output: directory("d")
    params: lambda wildcards: "it's $HOME {x} `id`"
    shell: "mkdir -p {output}/sub; cp -r {input:q}/. {output}/sub; echo {params:q} >{output}/params"
rule first:
    output: temp("first.txt")
    group: "pair"
    shell: "echo one >{output}"
rule second:
    input: "first.txt"
    output: "second it's.txt"
    log: "logs/a/b.log"
    group: "pair"
    shell: "cat {input} >{output:q}; echo $OMP_NUM_THREADS >>{output:q}; echo said >{log}"
""",
    )
    (directory / "in put").mkdir()
    (directory / "in put" / "x").write_text("content")
    status, printed = run(settings, directory)
    assert status == 0, printed
    assert (directory / "d" / "sub" / "x").read_text() == "content"
    assert (directory / "d" / "params").read_text() == "it's $HOME {x} `id`\n"
    assert (directory / "second it's.txt").read_text() == "one\n1\n"
    assert (directory / "logs" / "a" / "b.log").read_text() == "said\n"
    assert not (directory / "first.txt").exists()
    assert sorted(submitted(printed)) == [("snakemake-make", "1"), ("snakemake-pair", "1")]
    assert batches(settings) == {}


def test_a_job_that_fails_is_told_with_its_stderr_and_log(settings, tmp_path):
    directory = made(
        tmp_path,
        """
rule all:
    input: "bad.txt", "none.txt"
rule bad:
    output: "bad.txt"
    log: "bad.log"
    shell: "echo noted >{log}; echo no such planet >&2; false; echo >{output}"
rule none:
    output: "none.txt"
    shell: "true"
""",
    )
    status, printed = run(settings, directory, "--keep-going")
    assert status == 1, printed
    assert "message: exit status 1; the end of its stderr:" in printed
    assert "no such planet" in printed
    assert "the command has not made none.txt" in printed
    assert (directory / "bad.log").read_text() == "noted\n"
    assert not (directory / "bad.txt").exists()
    states = batches(settings)
    assert states["snakemake-bad"] == states["snakemake-none"] == (BatchState.COMPLETE, 1)


def test_what_cannot_run_there_is_refused_before_a_job_is_sent(settings, tmp_path):
    directory = made(
        tmp_path,
        """
rule all:
    input: "here.txt", "run.txt", "script.txt"
rule here:
    output: "here.txt"
    shell: "echo >{output}"
rule python:
    output: "run.txt"
    run: open(output[0], "w").close()
rule other:
    output: "script.txt"
    script: "other.py"
""",
    )
    (directory / "other.py").touch()
    status, printed = run(settings, directory)
    assert status == 1
    assert "these have something else: other (script:), python (run:)" in printed
    assert "localrule: True" in printed
    assert batches(settings) == {}


@pytest.mark.parametrize("options", [(), ("--rerun-incomplete",)])
def test_a_killed_workflow_picks_its_jobs_up_and_sends_none_twice(settings, tmp_path, options):
    directory = made(
        tmp_path,
        """
rule all:
    input: expand("out/{n}.txt", n=range(6))
rule slow:
    output: "out/{n}.txt"
    shell: "sleep 4; echo {wildcards.n} >{output}"
""",
    )
    process = started(settings, directory)
    try:
        wait_for(lambda: [n for _, n in batches(settings).values()] == [6], "a batch", pause=0.5)
    finally:
        process.kill()
        process.communicate()
    assert run(settings, directory, "--unlock")[0] == 0
    status, printed = run(settings, directory, *options)
    assert status == 0, printed
    assert "6 jobs are in batch snakemake-slow" in printed
    texts = [(directory / "out" / f"{n}.txt").read_text() for n in range(6)]
    assert texts == [f"{n}\n" for n in range(6)]
    assert submitted(printed) == []
    assert batches(settings) == {}


def test_an_interrupted_workflow_aborts_its_jobs(settings, tmp_path):
    directory = made(
        tmp_path,
        """
rule all:
    output: "out.txt"
    shell: "sleep 100; echo >{output}"
""",
    )
    process = started(settings, directory)
    try:
        wait_for(lambda: batches(settings), "a batch", pause=0.5)
        process.send_signal(signal.SIGINT)
        printed, _ = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode != 0, printed
    with Project.from_settings(config=settings) as people:
        [batch] = people.batches()
        assert [job.state.value for job in batch] == ["failed"]
