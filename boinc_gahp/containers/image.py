"""The name of an image: read, checked, and written for a Dockerfile."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from boinc_gahp.text import quoted

#: Names of images as registries define them (OCI distribution specification 1.1, "Pulling
#: manifests"), with a host in front. Everything that is special in a shell or a Dockerfile is
#: refused with it.
_COMPONENT = r"[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*"
_HOST = r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]{1,5})?"
_REFERENCE = re.compile(
    rf"(?:(?P<host>{_HOST})/)?(?P<path>{_COMPONENT}(?:/{_COMPONENT})*)"
    r"(?P<tag>:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?P<digest>@sha256:[0-9a-f]{64})?",
    re.ASCII,
)
#: The most characters of a reference; a Dockerfile with more is not worth a try.
_LONGEST = 500

#: Docker's own registry, where a name without a host is looked up. Podman asks elsewhere, or not at
#: all, if a name is not complete.
_HUB = "docker.io"

Source = Literal["registry", "oci-archive", "rootfs"]
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(//)?(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Image:
    """An image, and where it comes from.

    Attributes:
        source: ``registry``; or a file that the job brings: ``oci-archive``, which only podman can
            read, or ``rootfs``, a tar archive of a root file system.
        name: the complete name in a registry, or the file's path on the submit node.
    """

    source: Source
    name: str

    def __str__(self) -> str:
        return self.name if self.source == "registry" else f"{self.source}:{self.name}"


def read_image(text: str) -> Image:
    """Return the image that a person names.

    Args:
        text: ``python:3.12-slim``, ``docker://ghcr.io/owner/name@sha256:...``,
            ``oci-archive:FILE`` or ``rootfs:FILE``.

    Raises:
        ValueError: it is none of these; says what to write.
    """
    name = text.strip()
    scheme = _SCHEME.fullmatch(name)
    if scheme is not None and scheme[1] in ("oci-archive", "rootfs"):
        if not scheme[3] or not scheme[3].isprintable():
            raise ValueError(f"{quoted(text)} names no file")
        return Image("rootfs" if scheme[1] == "rootfs" else "oci-archive", scheme[3])
    if name.lower().endswith(".sif"):
        raise ValueError(
            f"{quoted(text)} is an Apptainer image, which volunteers cannot run: they have podman "
            "or Docker. Name an image in a registry, such as docker://python:3.12-slim"
        )
    if name.lower().endswith((".tar", ".tar.gz", ".tgz")):
        raise ValueError(
            f"{quoted(text)} looks like a file: write oci-archive:FILE for an image that podman "
            "saved as an oci-archive, or rootfs:FILE for the files of a system"
        )
    if name.startswith("docker://"):
        name = name.removeprefix("docker://")
    elif scheme is not None and scheme[2]:
        raise ValueError(
            f"{quoted(text)} is not supported: expected docker://NAME for an image in a registry, "
            "or oci-archive:FILE or rootfs:FILE"
        )
    found = _REFERENCE.fullmatch(name) if len(name) <= _LONGEST else None
    if found is None:
        raise ValueError(
            f"{quoted(text)} is not the name of an image: expected one such as python:3.12-slim, "
            "ghcr.io/owner/name:tag or name@sha256:DIGEST, in small letters"
        )
    return Image("registry", _complete(found))


def _complete(found: re.Match[str]) -> str:
    """Return a name with its registry, as all engines understand it."""
    host, path = found["host"], found["path"]
    rest = (found["tag"] or "") + (found["digest"] or "")
    if host is not None and not re.search(r"[.:]", host) and host != "localhost":
        host, path = None, f"{host}/{path}"  # a user of Docker's registry
    if host is None:
        host = _HUB
    if host == _HUB and "/" not in path:
        path = f"library/{path}"
    return f"{host}/{path}{rest}"
