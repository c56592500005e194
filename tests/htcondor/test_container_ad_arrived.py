"""Ads of jobs in containers, as HTCondor 23.9.6 and 25.14.1 sent them."""

import pytest

from boinc_gahp.config.settings import HTCondor, ProjectSettings
from boinc_gahp.config.urls import ProjectUrl
from boinc_gahp.htcondor._job_ad import read_ad
from boinc_gahp.htcondor.attributes import AdRefused
from tests.htcondor.test_job_ad import ad

#: What every routed job has.
ROUTED = {
    "BoincApp": None,
    "JobUniverse": 5,
    "RequestCpus": b"undefined",
    "RequestDisk": b"undefined",
    "RequestMemory": b"undefined",
    "TransferOutputRemaps": b"undefined",
}


def job(iwd, **values):
    (iwd / "fit.sh").write_text("#!/bin/sh\n")
    (iwd / "image.tar").write_text("image")
    (iwd / "data.csv").write_text("data")
    text = ad(iwd, **(ROUTED | {"Cmd": f"{iwd}/fit.sh"} | values))
    chosen = ProjectSettings(ProjectUrl("http://127.0.0.1/test/"), container_app="docker")
    return read_ad(text, HTCondor(), lambda _: chosen)


@pytest.mark.parametrize(
    ("image", "entry", "read"),
    [
        ("docker://python:3.12-slim", None, "docker.io/library/python:3.12-slim"),
        ("python:3.12-slim", "python:3.12-slim", "docker.io/library/python:3.12-slim"),
        # With and without the settings of conf/.
        ("localhost/bb", "localhost/bb", "localhost/bb"),
        ("bb", "localhost/bb", "localhost/bb"),
    ],
)
def test_an_image_that_htcondor_takes_for_a_file_is_no_input(tmp_path, image, entry, read):
    inputs = ",".join(filter(None, ("data.csv", entry)))
    found = job(tmp_path, ContainerImage=image, TransferInput=inputs)
    assert found.container is not None
    assert str(found.container.image) == read
    assert {name for name, _ in found.inputs} == {"fit.sh", "data.csv"}


@pytest.mark.parametrize("scheme", ["oci-archive", "rootfs"])
def test_an_archive_that_is_an_image_is_no_input(tmp_path, scheme):
    named = f"{scheme}:image.tar"
    found = job(tmp_path, ContainerImage=named, TransferInput=named)
    assert found.container is not None
    assert str(found.container.image) == f"{scheme}:{tmp_path}/image.tar"
    assert found.container.image_file is not None
    assert [name for name, _ in found.inputs] == ["fit.sh"]


def test_an_input_that_is_called_like_an_image_in_a_registry_is_kept(tmp_path):
    (tmp_path / "python").write_text("a file")
    for values in ({"DockerImage": "python"}, {"ContainerImage": "docker://python"}):
        found = job(tmp_path, TransferInput="python", **values)
        assert {name for name, _ in found.inputs} == {"fit.sh", "python"}


def test_a_job_without_an_executable_is_refused_although_htcondor_takes_it(tmp_path):
    with pytest.raises(AdRefused, match="the job has no executable"):
        job(
            tmp_path, ContainerImage="docker://python", Cmd=f"{tmp_path}/", TransferExecutable=False
        )


@pytest.mark.parametrize(
    ("attribute", "command"),
    [
        ("OAuthServicesNeeded", "use_oauth_services"),
        ("ScitokensFile", "use_scitokens"),
        ("x509userproxy", "x509userproxy"),
    ],
)
def test_a_job_that_asks_for_credentials_is_refused(tmp_path, attribute, command):
    with pytest.raises(AdRefused, match=f"needs credentials.*{command}"):
        job(tmp_path, ContainerImage="docker://python", **{attribute: "something"})


def disk_bound(iwd, **values):
    return job(iwd, ContainerImage="docker://python", **values).parameters.by_element[
        "rsc_disk_bound"
    ]


def test_without_request_disk_a_job_has_1_gb_beside_its_image_and_inputs(tmp_path):
    assert disk_bound(tmp_path, RequestDisk=2048) == 2048 * 1024
    (tmp_path / "model").mkdir()
    for name in ("model/weights", "image.bin", "one.bin"):
        with (tmp_path / name).open("wb") as file:
            file.truncate(1_100_000_000)
    assert disk_bound(tmp_path, TransferInput="one.bin") == 4e9
    assert disk_bound(tmp_path, TransferInput="model/") == 4e9
    assert disk_bound(tmp_path, BoincImage=f"oci-archive:{tmp_path}/image.bin") == 3e9


def test_jobs_with_small_inputs_of_different_sizes_can_be_in_one_batch(tmp_path):
    keys = set()
    for number in range(3):
        (tmp_path / f"in{number}").write_bytes(bytes(1000 * number))
        found = job(tmp_path, ContainerImage="docker://python", TransferInput=f"in{number}")
        keys.add(found.group_key)
    assert len(keys) == 1
