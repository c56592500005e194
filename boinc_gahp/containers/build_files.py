"""The Dockerfile and ``job.toml``: the same for all jobs of an image (``containers.rst``, "Files").

Nothing that a user wrote gets into them but the name of an image, which was parsed.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from boinc_gahp.containers.names import SCRIPT

if TYPE_CHECKING:
    from boinc_gahp.containers.image import Image

#: Where the slot directory is in the container.
APP = "/app"

_FROM = {
    "registry": "FROM {}\n",
    # The build's context is the slot.
    "oci-archive": "FROM oci-archive:{}\n",
    "rootfs": "FROM scratch\nADD {} /\n",
}


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
