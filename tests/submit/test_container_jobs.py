"""Jobs in containers: their templates, their inputs, and what they share."""

import hashlib
import io
import re
import shlex
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

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


def packed(made):
    """Return what is in the first archive of inputs."""
    with tarfile.open(fileobj=io.BytesIO(content(made, "_in0.tar"))) as archive:
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


def test_names_that_no_open_name_can_have_travel_in_an_archive(home):
    names = ["it's", "a\nb", "ü", " x", "<&>", "-", "x" * 200, "plain"]
    files = tuple((name, LocalFile(home / "data.csv")) for name in names)
    [made] = make(home, job(home, files=files, outputs=("it's", "plain")))
    assert "'" not in (made.input_template or "") + (made.output_template or "")
    alone = [name for name in made.inputs if name.startswith("work/")]
    assert alone == ["work/-", "work/plain"]
    assert sorted(packed(made)) == sorted(set(names) - {"-", "plain"})
    assert f"[ -e {shlex.quote('./' + names[0])} ]".encode() in content(made, "run.sh")


def test_more_files_than_a_line_of_create_work_holds_travel_in_an_archive(home):
    files = tuple((f"f{number}", LocalFile(home / "data.csv")) for number in range(500))
    [made] = make(home, job(home, files=files))
    assert len(made.inputs) < 95
    assert len(packed(made)) + len(made.inputs) - 4 == 500


def test_many_directories_travel_in_one_archive(home):
    for number in range(100):
        (home / f"d{number}").mkdir()
    trees = tuple(Member(f"d{number}", str(home / f"d{number}")) for number in range(100))
    few, many = make(home, job(home, trees=trees[:5]), job(home, trees=trees))
    assert [name for name in few.inputs if name.startswith("_in")] == [
        f"_in{number}.tar" for number in range(5)
    ]
    assert [name for name in many.inputs if name.startswith("_in")] == ["_in0.tar"]
    assert len(packed(many)) == 100
    assert content(many, "run.sh").count(b"tar -xf") == 1


def test_remote_files_are_never_left_out(home):
    remote = RemoteFile("http://h/x", 5, "0" * 32)
    files = (*((f"f{number}", LocalFile(home / "data.csv")) for number in range(100)),)
    [made] = make(home, job(home, files=(*files, ("far", remote), ("away", remote))))
    assert made.inputs["work/far"] == made.inputs["work/away"] == remote
    with tarfile.open(str(made.inputs["_in0.tar"].path)) as archive:
        alone = [name for name in made.inputs if name.startswith("work/")]
        assert len(archive.getnames()) + len(alone) == 102


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
