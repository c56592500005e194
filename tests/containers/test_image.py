"""Names of images: what is accepted, what is refused, and what reaches a Dockerfile."""

import re
import sys

import pytest
from hypothesis import example, given, strategies as st

from boinc_gahp.containers.image import Image, read_image
from boinc_gahp.containers.job_files import dockerfile, job_toml

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DIGEST = "@sha256:" + "0" * 64


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("python:3.12-slim", "docker.io/library/python:3.12-slim"),
        ("docker://python:3.12-slim", "docker.io/library/python:3.12-slim"),
        ("rocker/r-ver:4", "docker.io/rocker/r-ver:4"),
        ("docker.io/python", "docker.io/library/python"),
        ("docker://ghcr.io/owner/name" + DIGEST, "ghcr.io/owner/name" + DIGEST),
        ("localhost/made-here", "localhost/made-here"),
        ("registry.example.edu:5000/a/b__c:1.0" + DIGEST, None),
        (" python ", "docker.io/library/python"),
    ],
)
def test_an_image_in_a_registry_gets_its_complete_name(text, name):
    assert read_image(text) == Image("registry", name or text)


@pytest.mark.parametrize(
    ("text", "image"),
    [
        ("oci-archive:image.tar", Image("oci-archive", "image.tar")),
        ("rootfs:/data/my root.tar.gz", Image("rootfs", "/data/my root.tar.gz")),
    ],
)
def test_an_image_in_a_file_keeps_the_files_name(text, image):
    assert read_image(text) == image
    assert read_image(str(image)) == image


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("image.sif", "Apptainer"),
        ("image.tar", "oci-archive:FILE"),
        ("rootfs.tar.gz", "rootfs:FILE"),
        ("docker://x/image.SIF", "Apptainer"),
        ("library://x/y", "docker://NAME"),
        ("rootfs:", "names no file"),
        ("", "is not the name of an image"),
        ("Python", "small letters"),
        ("python; rm -rf /", "is not the name"),
        ("python\nRUN evil", "is not the name"),
        ("python --mount=x", "is not the name"),
        ("-v", "is not the name"),
        ("a" * 501, "is not the name"),
        ("python:tag@sha256:12", "is not the name"),
    ],
)
def test_anything_else_is_refused_with_what_to_write(text, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        read_image(text)


@given(st.text())
@example("docker.io/a\n")
@example("a@sha256:" + "0" * 64 + "\n")
def test_no_text_brings_more_than_a_name_into_a_dockerfile(text):
    try:
        image = read_image(text)
    except ValueError:
        return
    written = dockerfile(image, "image-0123456789abcdef.tar").decode()
    assert re.fullmatch(
        r"FROM (?:scratch\nADD )?[A-Za-z0-9._:/@-]+(?: /)?\nUSER 0\nWORKDIR /app\n"
        r'ENTRYPOINT \[\]\nCMD \["sh","\./run\.sh"\]\n',
        written,
    )


@pytest.mark.parametrize(
    ("image", "head"),
    [
        (Image("registry", "docker.io/library/python"), "FROM docker.io/library/python\n"),
        (Image("oci-archive", "/x/i.tar"), "FROM oci-archive:image-1.tar\n"),
        (Image("rootfs", "/x/r.tar.gz"), "FROM scratch\nADD image-1.tar /\n"),
    ],
    ids=["registry", "oci-archive", "rootfs"],
)
def test_a_dockerfile_begins_with_the_image(image, head):
    file = "" if image.source == "registry" else "image-1.tar"
    assert dockerfile(image, file).decode().startswith(head)


def test_a_job_toml_names_the_image_by_its_dockerfile_and_without_a_tag():
    one = tomllib.loads(job_toml(b"FROM a\n", network=False).decode())
    other = tomllib.loads(job_toml(b"FROM b\n", network=True).decode())
    assert one == {
        "workdir": "/app",
        "image_name": one["image_name"],
        "create_args": "--network none",
    }
    assert other == {"workdir": "/app", "image_name": other["image_name"]}
    assert re.fullmatch(r"boinc__gahp__[0-9a-f]{32}", one["image_name"])
    assert one["image_name"] != other["image_name"]
