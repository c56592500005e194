"""Jobs that bring their own program, from an ad to the outputs, in real containers."""

from dataclasses import replace

import pytest

from boinc_gahp.localproject.core import STOCK
from boinc_gahp.localproject.project import LocalProject
from tests.containers_engine import IMAGE
from tests.htcondor.helpers import await_status
from tests.localproject.in_containers import APP

pytestmark = [pytest.mark.long, pytest.mark.containers]

_COMPLETED, _HELD = 4, 5


@pytest.fixture(scope="module")
def local_project(engine, tmp_path_factory):
    """A project as a real server, with volunteers that have an engine."""
    with LocalProject(tmp_path_factory.mktemp("project"), hosts=2, php=STOCK) as project:
        project.add_container_app(APP)
        yield project


@pytest.fixture
def node(site):
    """A submit node whose settings name the app for containers."""
    site.container_app = APP
    return site


@pytest.fixture
def service(node):
    with node.service() as service:
        yield service


def job(node, program, **attributes):
    """Return a job with a program of its own, a shell script."""
    usual = dict.fromkeys(["BoincApp", "TransferInput"], "undefined")
    usual |= {"BoincImage": f'"{IMAGE}"', "TransferExecutable": "true", "TransferOutput": '""'}
    made = node.job(**(usual | attributes))
    path = made.iwd / "fit.sh"
    path.write_text(f"#!/bin/sh\n{program}\n")
    return replace(made, ad=made.ad.replace('"/usr/bin/uppercase"', f'"{path}"'))


def ended(service, each, status=_HELD):
    """Submit a job and wait until it is held, or completed; return its status ad."""
    job_id = service.submit(each.ad)
    await_status(service, [job_id], status)
    return service.status(job_id)[1]


#: What a job does and asks for, and what its status ad says when it is held for that.
HELD = {
    "a failure that it wants to be held for": (
        "exit 3",
        {"BoincFailedJobs": '"hold"'},
        ["the program ended with exit status 3", "HoldReasonCode = 2304; HoldReasonSubCode = 3"],
    ),
    "a missing output": (
        "echo 1 >here",
        {"TransferOutput": '"here, result.json"'},
        ["did not make", "result.json", "HoldReasonCode = 2305"],
    ),
    "a program that the image lacks": (
        "",
        {"TransferExecutable": "false", "Cmd": '"/opt/none/fit"'},
        ["the image has no program '/opt/none/fit'", "HoldReasonCode = 2304"],
    ),
    "an image that nobody can get": (
        "true",
        {"BoincImage": '"localhost/no-such-image"'},
        [
            r"not of the program: its image \"localhost/no-such-image\" could not be pulled",
            "check the image: that its name is right, that everybody may pull it",
            "HoldReasonCode = 2304",
        ],
    ),
    "no computer that could take it": (
        "true",
        {"RequestMemory": "100000000"},
        ["no volunteer could take it; request less memory and disk"],
    ),
    "too much disk": (
        "head -c 20000000 /dev/zero >big; sleep 60",
        {"RequestDisk": "3000", "TransferOutput": '"big"'},
        ["exit status 196: it used more disk than allowed", "request_disk"],
    ),
}


@pytest.mark.parametrize("why", HELD)
def test_a_job_is_held_with_the_reason(node, service, why):
    program, attributes, words = HELD[why]
    ad = ended(service, job(node, program, **attributes))
    for each in words:
        assert each in ad
    assert ("could not be pulled" in ad) == (why == "an image that nobody can get")


@pytest.mark.parametrize("source", ["oci-archive", "rootfs"])
def test_a_file_that_is_no_such_image_holds_its_job_with_the_kind_that_is_needed(
    node, service, engine, source
):
    path = engine.root_file_system() if source == "oci-archive" else engine.archive()
    ad = ended(service, job(node, "true", BoincImage=f'"{source}:{path}"'))
    needed = "--format oci-archive" if source == "oci-archive" else "all files of a system"
    assert f"{source}:{path}" in ad
    assert needed in ad
    assert "everybody may pull it" not in ad


@pytest.mark.parametrize("source", ["oci-archive", "rootfs"])
def test_an_image_in_a_file_travels_with_the_job(node, service, engine, source):
    path = engine.archive() if source == "oci-archive" else engine.root_file_system()
    each = job(node, "echo runs", BoincImage=f'"{source}:{path}"')
    ended(service, each, _COMPLETED)
    assert (each.iwd / "job.out").read_text() == "runs\n"
