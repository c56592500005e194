"""A container job's own files: their names, what is in them, and which files travel in archives.

The wrapper's files, and BOINC's, are in the slot, which is ``/app`` in the container. The user's
are in a directory of it, so that no name of a user can meet one of these.

The Dockerfile and ``job.toml`` are the same for all jobs of an image (``containers.rst``, "Files").
Nothing that a user wrote gets into them but the name of an image, which was parsed.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from boinc_gahp.containers.image import Image

#: Where the slot directory is in the container.
APP = "/app"

#: What the wrapper reads (``containers.rst``, "What the wrapper does").
DOCKERFILE = "Dockerfile"
JOB_TOML = "job.toml"

#: What the container runs.
SCRIPT = "run.sh"

#: What a job has beside its user's files and archives of them.
OWN_FILES = frozenset({DOCKERFILE, JOB_TOML, SCRIPT})

#: The directory of the user's files.
WORK = "work/"

#: How the program ended (:func:`~boinc_gahp.containers.ending.read_ending`), and what it wrote.
ENDING = "_exit"
STDOUT = "_stdout"
STDERR = "_stderr"

#: A tar archive of the outputs whose names are not known beforehand: directories, and all that is
#: in them; if the job names no outputs, the new or changed files. Paths are relative to ``WORK``.
PACKED = "_outputs.tar"

#: The most files that a job has in its workunit beside its own: a line of create_work holds 99
#: words and 4,096 bytes (``containers.rst``, "On the server").
MOST_FILES = 60

#: Names that can be part of an open name. A ``'`` is an SQL error (``containers.rst``, "On the
#: server"), and clients have 255 bytes for the whole.
_PLAIN = re.compile(r"[A-Za-z0-9_.+=@,-](?:[A-Za-z0-9_.+=@,/ -]{0,180}[A-Za-z0-9_.+=@,-])?")

_FROM = {
    "registry": "FROM {}\n",
    # The build's context is the slot.
    "oci-archive": "FROM oci-archive:{}\n",
    "rootfs": "FROM scratch\nADD {} /\n",
}


def is_open_name(name: str) -> bool:
    """Tell whether a file of this name can be a file of a workunit or result by itself."""
    return _PLAIN.fullmatch(name) is not None and not {"", ".", ".."} & set(name.split("/"))


def archive_name(number: int) -> str:
    """Return the open name of an archive that is unpacked into the job's directory."""
    return f"_in{number}.tar"


def is_archive(open_name: str) -> bool:
    """Tell whether an open name is one of :func:`archive_name`."""
    return open_name.startswith("_in") and open_name.endswith(".tar")


def image_name(md5: str, extension: str) -> str:
    """Return the open name of an image that is a file; a host knows images by it."""
    return f"image-{md5[:16]}{extension}"


def is_image(open_name: str) -> bool:
    """Tell whether an open name is one of :func:`image_name`."""
    return open_name.startswith("image-")


def dockerfile(image: Image, file: str = "") -> bytes:
    """Return the Dockerfile for an image.

    ``USER 0``, because ``root`` is unknown to images without /etc/passwd, and because another user
    cannot write in the slot if the engine is rootless.

    Args:
        image: the image.
        file: for an image in a file, its open name, which must tell its contents: hosts know
            an image that they have by a hash of this text.
    """
    head = _FROM[image.source].format(file or image.name)
    return (f'{head}USER 0\nWORKDIR {APP}\nENTRYPOINT []\nCMD ["sh","./{SCRIPT}"]\n').encode()


def job_toml(dockerfile: bytes, *, network: bool) -> bytes:
    """Return the ``job.toml`` of all jobs with this Dockerfile.

    The image gets a name, so that a host builds it once for all these jobs; without a tag, because
    with one the wrapper would build it for each. ``boinc__`` lets clients remove it in the end.

    Args:
        dockerfile: the Dockerfile.
        network: whether the program may use the network.
    """
    name = f"boinc__gahp__{sha256(dockerfile).hexdigest()[:32]}"
    lines = [f'workdir = "{APP}"', f'image_name = "{name}"']
    if not network:
        lines.append('create_args = "--network none"')
    return "".join(f"{line}\n" for line in lines).encode()
