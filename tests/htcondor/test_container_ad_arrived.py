"""Ads of jobs in containers, as HTCondor 23.9.6 and 25.14.1 sent them."""

import pytest

from tests.htcondor.ads import container_job

#: What every routed job has.
ROUTED = {
    "JobUniverse": 5,
    "RequestCpus": b"undefined",
    "RequestDisk": b"undefined",
    "RequestMemory": b"undefined",
    "TransferOutputRemaps": b"undefined",
}


def job(iwd, **values):
    (iwd / "image.tar").write_text("image")
    (iwd / "data.csv").write_text("data")
    return container_job(iwd, **(ROUTED | {"ContainerImage": "docker://python"} | values))


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
    assert str(found.container.image) == read
    assert {name for name, _ in found.inputs} == {"fit.py", "data.csv"}


@pytest.mark.parametrize("scheme", ["oci-archive", "rootfs"])
def test_an_archive_that_is_an_image_is_no_input(tmp_path, scheme):
    named = f"{scheme}:image.tar"
    found = job(tmp_path, ContainerImage=named, TransferInput=named)
    assert str(found.container.image) == f"{scheme}:{tmp_path}/image.tar"
    assert found.container.image_file
    assert [name for name, _ in found.inputs] == ["fit.py"]


def test_an_input_that_is_called_like_an_image_in_a_registry_is_kept(tmp_path):
    (tmp_path / "python").write_text("a file")
    for values in ({"DockerImage": "python", "ContainerImage": None}, {}):
        found = job(tmp_path, TransferInput="python", **values)
        assert {name for name, _ in found.inputs} == {"fit.py", "python"}


def disk_bound(iwd, **values):
    return job(iwd, **values).parameters.by_element["rsc_disk_bound"]


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
        keys.add(job(tmp_path, TransferInput=f"in{number}").group_key)
    assert len(keys) == 1
