"""What an ad asks to be run in a container, and why it cannot be."""

import json
import os
from dataclasses import replace
from functools import partial

import pytest

from boinc_gahp.config.settings import HTCondor
from boinc_gahp.containers.image import Image
from boinc_gahp.containers.script import Program
from boinc_gahp.htcondor._description import JobDescription
from boinc_gahp.htcondor._fetching import request_for
from boinc_gahp.rpc._build import submission_document
from boinc_gahp.rpc.types import BatchSubmission, InputFile, JobSubmission
from boinc_gahp.secret import Authenticator
from boinc_gahp.submit.container_jobs import ContainerJob, make_container_jobs
from boinc_gahp.submit.generated_files import GeneratedFiles, Member
from boinc_gahp.submit.types import LocalFile
from tests.htcondor import ads
from tests.htcondor.ads import MD5, PROJECT, container_job as job, inside

WITH_IMAGE = replace(PROJECT, container_image="debian:13")
NO_CONTAINERS = replace(PROJECT, container_app=None)

refused = partial(ads.refused, read=job)


def test_a_job_with_an_image_runs_its_executable_in_a_container(tmp_path):
    found = job(tmp_path, Arguments="--title 'two words'", Environment="A=1 B='x y'")
    assert found.app_name == "docker"
    assert found.args == ("--title", "two words")
    [(name, _)] = found.inputs
    assert name == "fit.py"
    assert found.container_job == ContainerJob(
        Image("registry", "docker.io/library/python:3"),
        "./fit.py",
        is_input=True,
        program=Program(found.args, (("A", "1"), ("B", "x y"))),
        files=found.inputs,
        stdout=False,
        stderr=False,
        output_bytes=found.parameters.by_element["rsc_disk_bound"] or 0,
    )


@pytest.mark.parametrize("name", ["BoincImage", "ContainerImage", "DockerImage"])
def test_the_image_can_be_named_in_three_ways(tmp_path, name):
    values = {"ContainerImage": None, name: "docker://debian:13"}
    assert inside(tmp_path, **values).image.name == "docker.io/library/debian:13"


@pytest.mark.parametrize(
    ("values", "settings", "app", "image"),
    [
        ({"ContainerImage": None}, HTCondor(), "docker", "debian:13"),
        ({"BoincApp": "docker"}, HTCondor(), "docker", "python:3"),
        ({"BoincApp": "uppercase"}, HTCondor(), "uppercase", None),
        ({"Queue": "uppercase@"}, HTCondor(), "uppercase", None),
        ({"ContainerImage": None}, HTCondor(ignore="executable"), "fit.py", None),
    ],
)
def test_the_app_decides_whether_a_job_runs_in_a_container(tmp_path, values, settings, app, image):
    found = job(tmp_path, WITH_IMAGE, settings, **values)
    assert found.app_name == app
    name = found.container and found.container.image.name
    assert name == (image and f"docker.io/library/{image}")


def test_a_mere_name_is_still_an_app(tmp_path):
    values = {"Cmd": f"{tmp_path}/uppercase", "ContainerImage": None, "TransferExecutable": False}
    assert job(tmp_path, WITH_IMAGE, **values).app_name == "uppercase"


def test_without_any_image_both_ways_are_told(tmp_path):
    told = refused(tmp_path, ContainerImage=None)
    assert "container_image = docker://NAME" in told
    assert '+remote_BoincApp = "NAME"' in told


def test_without_an_app_for_containers_the_admin_is_told_what_to_set(tmp_path):
    for values in ({}, {"ContainerImage": None}):
        told = refused(tmp_path, project=NO_CONTAINERS, **values)
        assert "container_app in boinc_gahp.toml" in told


@pytest.mark.parametrize(
    ("cmd", "transfer", "command"),
    [
        ("{iwd}/Rscript", False, "Rscript"),
        ("/usr/bin/python3", False, "/usr/bin/python3"),
        ("{iwd}/bin/fit", False, "bin/fit"),
        ("{iwd}/fit.py", True, "./fit.py"),
        ("{iwd}/fit.py", None, "./fit.py"),
        ("{iwd}/Rscript", None, "Rscript"),
    ],
)
def test_the_program_is_the_jobs_or_the_images(tmp_path, cmd, transfer, command):
    values = {} if transfer is None else {"TransferExecutable": transfer}
    found = inside(tmp_path, Cmd=cmd.format(iwd=tmp_path), **values)
    assert (found.command, found.is_input) == (command, command.startswith("./"))


def test_directories_and_files_travel(tmp_path):
    for name in ("model/a", "more/b", "data/in.csv", "in.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    found = job(tmp_path, TransferInput="model, more/, data/in.csv", In="in.txt")
    assert [name for name, _ in found.inputs] == ["fit.py", "in.csv", "in.txt"]
    assert [tree[:2] for tree in found.container.trees] == [
        ("model", f"{tmp_path}/model"),
        ("", f"{tmp_path}/more"),
    ]
    assert found.container.program.stdin == "in.txt"


def test_stdin_does_not_replace_an_input_of_the_same_name(tmp_path):
    for name in ("one/in", "two/in"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(name)
    found = job(tmp_path, TransferInput="one/in", In="two/in")
    files = {name: os.path.relpath(file.path, tmp_path) for name, file in found.inputs}
    assert files == {"fit.py": "fit.py", "in": "one/in", "_condor_stdin_in": "two/in"}


def test_outputs_may_be_directories_but_are_below_the_jobs(tmp_path):
    assert job(tmp_path, TransferOutput="a, plots, out/b").outputs == ("a", "plots", "out/b")
    assert job(tmp_path).outputs is None
    assert job(tmp_path, TransferOutput="").outputs == ()
    for name in ("/etc/passwd", "../x", "."):
        assert "not in the job's directory" in refused(tmp_path, TransferOutput=name)
    assert job(tmp_path, TransferOutput="plots/, plots").outputs == ("plots/", "plots")
    assert inside(tmp_path, TransferOutput="plots/, plots").outputs == ("plots",)


def test_two_outputs_cannot_get_the_same_name(tmp_path):
    assert "transfer_output_remaps" in refused(tmp_path, TransferOutput="a/log, b/log")
    remapped = job(tmp_path, TransferOutput="a/log, b/log", TransferOutputRemaps="a/log=other")
    assert remapped.outputs == ("a/log", "b/log")
    assert job(tmp_path, TransferOutput="a/, b/").outputs == ("a/", "b/")


def test_output_and_error_may_be_one_file(tmp_path):
    assert inside(tmp_path, Out="log", Err="./log").merged
    assert not inside(tmp_path, Out="log", Err="other").merged
    assert not inside(tmp_path).stdout


def test_variables_that_look_like_secrets_hold_the_job_and_are_named_at_once(tmp_path):
    values = {"Environment": None, "Env": "A=x y;API_TOKEN=sesame;KEYS=3"}
    told = refused(tmp_path, **values, BoincAllowEnvironment="B, KEYS")
    assert 'look like those of secrets ("API_TOKEN");' in told
    assert "sesame" not in told
    assert '+BoincAllowEnvironment = "API_TOKEN, KEYS" in the submit file' in told
    allowed = inside(tmp_path, **values, BoincAllowEnvironment="API_TOKEN, KEYS")
    wanted = (("A", "x y"), ("API_TOKEN", "sesame"), ("KEYS", "3"))
    assert allowed.program.environment == wanted


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"ContainerImage": "my.sif"}, "Apptainer"),
        ({"ContainerImage": "Not An Image"}, "is not the name of an image"),
        ({"GPUNumber": 1}, "GPU"),
        ({"RequestGPUs": 1}, "GPU"),
        ({"OAuthServicesNeeded": "box"}, "use_oauth_services"),
        ({"ScitokensFile": "/tmp/token"}, "use_scitokens"),
        ({"x509userproxy": "/tmp/x509"}, "needs credentials (x509userproxy)"),
        ({"Cmd": None}, "no executable"),
        ({"Cmd": "/home/alice/", "TransferExecutable": False}, "no executable"),
        ({"Cmd": "/none/fit.py", "TransferExecutable": True}, "executable names"),
        ({"BoincImage": "rootfs:none.tar.gz"}, "the job's image"),
        ({"BoincNetwork": "perhaps"}, "true or false"),
        ({"BoincQuorum": 0}, "BoincQuorum"),
        ({"BoincQuorum": 21}, "from 1 to 20"),
        ({"BoincMaxErrors": 101}, "from 0 to 100"),
        ({"RequestCpus": 1.5}, "whole number"),
        ({"RequestDisk": 1e308}, "more than any computer has"),
        ({"TransferOutput": "results\\out.csv"}, "has a backslash"),
        ({"TransferInput": "none"}, "none"),
        ({"TransferInput": "none/"}, "none"),
        ({"Environment": "-x=1"}, "variable"),
        ({"Environment": "A='x"}, "cannot be read: the ' in front of 'x' is not closed"),
        ({"BoincRemoteFiles": f"http://h/fit.py 1 {MD5}"}, "cannot have this name"),
        ({"BoincRemoteFiles": f"http://h/it%27s 1 {MD5}"}, "cannot have this name"),
        ({"BoincInputTemplate": "x"}, "installed apps"),
    ],
)
def test_what_volunteers_cannot_do_is_refused(tmp_path, values, says):
    assert says in refused(tmp_path, **values)


def test_requests_reach_the_description(tmp_path):
    found = job(
        tmp_path, RequestCpus=2, RequestDisk=2048, RequestMemory=512, BoincNetwork=True,
        BoincQuorum=2, BoincMaxErrors=7, BoincPriority=5,
    )  # fmt: skip
    assert (found.container.cpus, found.container.network, found.container.quorum) == (2, True, 2)
    assert (found.container_job.max_errors, found.container_job.priority) == (7, 5)
    assert found.parameters.disk_bound == 2 * 2**20
    assert found.parameters.memory_bound == 512 * 2**20


@pytest.mark.parametrize("outputs", [(), ("result.json",), tuple(f"o{n}" for n in range(20)), None])
@pytest.mark.parametrize("trees", [0, 3])
@pytest.mark.parametrize("inputs", [0, 10, 70])
def test_the_size_of_a_job_is_not_estimated_too_low(tmp_path, outputs, trees, inputs):
    for number in range(inputs):
        (tmp_path / f"in.{number}").write_text("")
    for number in range(trees):
        (tmp_path / f"d.{number}").mkdir()
    given = [f"in.{number}" for number in range(inputs)] + [f"d.{n}" for n in range(trees)]
    described = job(
        tmp_path,
        TransferInput=", ".join(given),
        TransferOutput=None if outputs is None else ", ".join(outputs),
        Out="out",
        Err="err",
    )
    [(_, made)] = make_container_jobs(
        [("bg-" + 32 * "0" + "-10000", described.container_job)],
        GeneratedFiles.of(tmp_path / "state"),
        lambda _: 32 * "0",
    )
    submission = JobSubmission(
        name="bg-" + 32 * "0" + "-10000",
        command_line="10000",
        input_files=tuple(InputFile.local_staged(32 * "0" + ".tar") for _ in made.inputs),
        input_template=made.input_template,
        output_template=made.output_template,
    )
    batch = BatchSubmission(app_name="docker", batch_id=1, jobs=[submission] * 2)
    two = submission_document("submit_batch", Authenticator("x"), batch)
    one = submission_document("submit_batch", Authenticator("x"), replace(batch, jobs=[submission]))
    assert len(two) - len(one) <= described.size <= 1.5 * (len(two) - len(one))


def test_an_input_directory_has_its_real_name(tmp_path):
    iwd = tmp_path / "above" / "iwd"
    iwd.mkdir(parents=True)
    (tmp_path / "above" / "x").write_text("x")
    assert [tree.name for tree in inside(iwd, TransferInput="..").trees] == ["above"]
    assert [tree.name for tree in inside(iwd, TransferInput=".").trees] == ["iwd"]
    assert [tree.name for tree in inside(iwd, TransferInput="../").trees] == [""]


@pytest.mark.parametrize(
    ("outputs", "remaps", "kept"),
    [
        (None, None, True),
        ("results/", None, True),
        ("results/, run/fit.py", None, False),
        ("results/", "fit.py=other.py", False),
    ],
)
def test_the_program_of_a_job_is_replaced_only_if_the_job_names_it(
    tmp_path, outputs, remaps, *, kept
):
    found = job(tmp_path, TransferOutput=outputs, TransferOutputRemaps=remaps)
    request = request_for("j", found, None)
    assert (("fit.py", "/dev/null") in request.remaps) is kept


@pytest.mark.parametrize("how", ["TransferInput", "In"])
def test_another_file_of_the_executables_name_is_refused(tmp_path, how):
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "fit.py").write_text("settings")
    assert "two files of the name" in refused(tmp_path, **{how: "conf/fit.py"})
    assert inside(tmp_path, **{how: "fit.py"}).command == "./fit.py"


STORED = (
    '{"job_directory":"key","app_name":"docker","iwd":"/iwd","args":["a"],'
    '"inputs":[["/iwd/fit.py","fit.py",19,1]],"outputs":["plots/"],"stdout":"log","rsc_disk_bound":2e9,'
    '"container":{"command":"./fit.py","is_input":true,"trees":[["","/iwd/more","stamp"]],'
    '"max_errors":7,"image":"rootfs:/iwd/root.tar","image_state":[5,6],"environment":[["A","1"]],'
    '"stdin":"in"}}'
)


def test_a_description_of_the_ledger_is_read_as_it_was_written():
    found = JobDescription.from_json(STORED)
    assert json.loads(found.to_json()) == json.loads(STORED)
    assert found.container_job == ContainerJob(
        Image("rootfs", "/iwd/root.tar"), "./fit.py", LocalFile("/iwd/root.tar", (5, 6)),
        is_input=True, program=Program(("a",), (("A", "1"),), "in"), files=found.inputs,
        trees=(Member("", "/iwd/more", "stamp"),), outputs=("plots",), stderr=False, max_errors=7,
        output_bytes=2e9,
    )  # fmt: skip
