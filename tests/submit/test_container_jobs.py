"""Jobs in containers: their templates, their inputs, and what they share."""

import hashlib
import io
import re
import shlex
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from boinc_gahp.containers.image import Image, read_image
from boinc_gahp.containers.script import Program
from boinc_gahp.errors import StagingError
from boinc_gahp.submit.container_jobs import ContainerJob, make_container_jobs, output_template
from boinc_gahp.submit.generated_files import GeneratedFiles, Member
from boinc_gahp.submit.trees import look
from boinc_gahp.submit.types import LocalFile, RemoteFile
from boinc_gahp.templates.reading import read_input_template, read_output_template
from boinc_gahp.templates.rules import faults
from tests.helpers import wait_for

IMAGE = read_image("python:3.12-slim")


@pytest.fixture
def home(tmp_path):
    """A directory with a program, data and a directory."""
    (tmp_path / "fit.py").write_text("#!/bin/sh\n")
    (tmp_path / "data.csv").write_text("1,2\n")
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "w").write_text("weights")
    return tmp_path


def job(home, *arguments, **more):
    usual = ContainerJob(
        image=IMAGE,
        command="./fit.py",
        is_input=True,
        program=Program(arguments),
        files=(("fit.py", LocalFile(home / "fit.py")),),
        outputs=("result.json",),
    )
    return replace(usual, **more)


def make(home, *jobs):
    def md5_of(path):
        return hashlib.md5(Path(path).read_bytes()).hexdigest()

    named = [(str(number), each) for number, each in enumerate(jobs)]
    made = make_container_jobs(named, GeneratedFiles.of(home / "state"), md5_of)
    assert [name for name, _ in made] == [name for name, _ in named]
    return [each for _, each in made]


def content(made, name):
    file = made.inputs[name]
    assert isinstance(file, LocalFile)
    return Path(file.path).read_bytes()


def packed_in(made, name):
    """Return the names in an archive of inputs."""
    with tarfile.open(fileobj=io.BytesIO(content(made, name))) as archive:
        return archive.getnames()


def open_names(made):
    return [file.open_name for file in read_input_template(made.input_template or "").files]


def test_jobs_that_differ_in_their_words_share_everything_but_a_number(home):
    priorities = [5, *[None] * 999]
    made = make(
        home, *(job(home, "--seed", str(n), priority=each) for n, each in enumerate(priorities))
    )
    assert [each.priority for each in made] == priorities
    assert len({id(each.inputs) for each in made}) == 1
    assert len({(each.input_template, each.output_template) for each in made}) == 1
    assert [list(each.args) for each in made] == [[str(number + 1)] for number in range(1000)]
    assert b"17) set -- --seed 16;;" in content(made[0], "run.sh")


def test_the_templates_name_the_inputs_in_their_order_and_keep_all_files(home):
    tree = Member("model", str(home / "model"))
    files = (("fit.py", LocalFile(home / "fit.py")), ("a b.csv", LocalFile(home / "data.csv")))
    [made] = make(home, job(home, files=files, trees=(tree,)))
    wanted = ["run.sh", "Dockerfile", "job.toml", "work/fit.py", "work/a b.csv", "_in0.tar"]
    assert open_names(made) == list(made.inputs) == wanted
    template = read_input_template(made.input_template or "")
    assert all(file.copy_file and file.no_delete for file in template.files)
    outputs = read_output_template(made.output_template or "").files
    assert [(file.open_name, file.optional) for file in outputs] == [
        ("_exit", False),
        ("_stdout", True),
        ("_stderr", True),
        ("work/result.json", True),
        ("_outputs.tar", True),
    ]
    assert all(file.copy_file and file.no_delete for file in outputs)
    assert "<result>\n" in (made.output_template or "")


def test_the_output_template_is_the_same_when_outputs_are_fetched(home):
    for each in (job(home), job(home, outputs=None), job(home, merged=True, stdout=False)):
        [made] = make(home, each)
        assert read_output_template(made.output_template or "") == output_template(each)


def test_a_job_takes_2_kb_of_a_request_with_its_templates(home):
    [made] = make(home, job(home, stdout=False, stderr=False))
    inputs = len(made.inputs) * len(
        "<input_file><mode>local_staged</mode><source>.toml</source></input_file>" + 32 * "0"
    )
    templates = len(made.input_template or "") + len(made.output_template or "")
    assert inputs + templates + 150 < 2000


NAMES = st.text(st.sampled_from("ab-_ '\"\n<>&ü"), min_size=1, max_size=4) | st.sampled_from(
    ["x" * 200, "plain", "a.csv"]
)
REMOTE = RemoteFile("http://h/x", 5, "0" * 32)


@pytest.mark.parametrize("many", [0, 200], ids=["few", "more than a line of create_work holds"])
@given(st.sets(NAMES, max_size=8), st.integers(0, 3), st.integers(0, 80))
@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_a_job_has_travels_once_alone_or_in_an_archive(home, many, names, far, trees):
    local = [*names, *(f"file {n}" for n in range(many))]
    (home / "d").mkdir(exist_ok=True)
    files = [(name, LocalFile(home / "data.csv")) for name in local]
    files += [(f"far{n}", REMOTE) for n in range(far)]
    members = [Member(f"d{n}", str(home / "d")) for n in range(trees)]
    [made] = make(home, job(home, files=tuple(files), trees=tuple(members), outputs=("plain",)))
    assert len(made.inputs) < 95
    assert "'" not in (made.input_template or "") + (made.output_template or "")
    alone = {name.removeprefix("work/") for name in made.inputs if name.startswith("work/")}
    archives = [name for name in made.inputs if name.startswith("_in")]
    packed = sorted(each for name in archives for each in packed_in(made, name))
    assert sorted([*alone, *packed]) == sorted([name for name, *_ in [*files, *members]])
    # What is on another server cannot be packed.
    assert all(made.inputs[f"work/far{n}"] == REMOTE for n in range(far))
    assert content(made, "run.sh").count(b"tar -xf") == len(archives)


def test_a_name_that_no_open_name_can_have_is_quoted_in_the_script(home):
    [made] = make(home, job(home, outputs=("it's",)))
    quoted = shlex.quote("./it's")
    assert f"[ -e {quoted} ]".encode() in content(made, "run.sh")


def test_jobs_with_files_of_their_own_share_the_script(home):
    jobs = [
        job(home, files=(("in", LocalFile(home / f"in.{number}")),), command="sort", is_input=False)
        for number in range(3)
    ]
    made = make(home, *jobs)
    assert len({each.inputs["run.sh"] for each in made}) == 1
    assert len({each.inputs["work/in"] for each in made}) == 3


def test_another_image_or_network_is_another_image_name(home):
    other = read_image("debian:13")
    made = make(home, job(home), job(home, image=other), job(home, network=True))
    names = [re.findall(rb'image_name = "(.*)"', content(each, "job.toml")) for each in made]
    assert names[0] == names[2] != names[1]
    assert b"--network none" in content(made[0], "job.toml")
    assert b"create_args" not in content(made[2], "job.toml")


def test_an_image_in_a_file_is_known_by_its_contents(home):
    (home / "one.tar.gz").write_text("one")
    (home / "two.tar.gz").write_text("two")
    jobs = [
        job(home, image=Image("rootfs", name), image_file=LocalFile(home / name))
        for name in ("one.tar.gz", "two.tar.gz")
    ]
    made = make(home, *jobs)
    names = [next(name for name in each.inputs if name.startswith("image-")) for each in made]
    assert names[0] != names[1]
    for name, each in zip(names, made, strict=True):
        assert name.endswith(".gz")
        assert f"ADD {name} /".encode() in content(each, "Dockerfile")
    assert content(made[0], "job.toml") != content(made[1], "job.toml")


@pytest.mark.parametrize("quorum", [1, 2, 20])
def test_processors_are_in_the_template_and_a_quorum_that_can_be_reached(home, quorum):
    [made] = make(home, job(home, cpus=2, quorum=quorum))
    template = read_input_template(made.input_template or "")
    assert (template.avg_ncpus, template.flops) == (2, 1e9)
    counts = template.counts
    assert counts["min_quorum"] == counts["target_nresults"] == quorum
    assert quorum < counts["max_success_results"]
    assert counts["max_total_results"] == counts["max_success_results"] + 4


@pytest.mark.parametrize(("errors", "attempts"), [(0, 1), (1, 2), (3, 4), (100, 101)])
def test_a_job_has_as_many_attempts_as_it_may_have_errors_and_one_more(home, errors, attempts):
    """As create_work and the transitioner count (``back-end.rst``, "Transitioner")."""
    [made] = make(home, job(home, max_errors=errors))
    template = read_input_template(made.input_template or "")
    assert faults(template) == []
    assert template.max_error_results >= 1
    assert min(template.max_error_results + 1, template.max_total_results) == attempts


def test_a_directory_that_changed_since_the_submit_is_not_sent(home):
    stamp = look(str(home / "model")).stamp
    tree = Member("model", str(home / "model"), stamp)
    make(home, job(home, trees=(tree,)))
    (home / "model" / "new").write_text("")
    # A look at a directory is remembered for a moment.
    wait_for(lambda: look(str(home / "model")).stamp != stamp, "another look")
    with pytest.raises(StagingError, match="changed since the job was submitted"):
        make(home, job(home, trees=(tree,)))


def test_a_packed_file_that_changed_since_the_submit_is_not_sent(home):
    file = LocalFile(home / "data.csv", (1, 1))
    with pytest.raises(StagingError, match="changed after the job was submitted"):
        make(home, job(home, files=(("it's", file),)))


def test_a_long_list_of_jobs_with_long_words_has_several_scripts(home):
    made = make(home, *(job(home, "x" * 1000, str(number)) for number in range(200)))
    scripts = {each.inputs["run.sh"] for each in made}
    assert 3 <= len(scripts) <= 5
