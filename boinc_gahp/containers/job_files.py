"""Which of a job's files are files of its workunit and results, and which travel in archives."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from boinc_gahp.containers.names import ENDING, PACKED, STDERR, STDOUT, WORK

if TYPE_CHECKING:
    from boinc_gahp.containers.script import Layout

#: The most files that a job has in its workunit beside its own: a line of create_work holds 99
#: words and 4,096 bytes (``containers.rst``, "On the server").
MOST_FILES = 60

#: Names that can be part of an open name. A ``'`` is an SQL error (``containers.rst``, "On the
#: server"), and clients have 255 bytes for the whole.
_PLAIN = re.compile(r"[A-Za-z0-9_.+=@,-](?:[A-Za-z0-9_.+=@,/ -]{0,180}[A-Za-z0-9_.+=@,-])?")


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


def output_files(layout: Layout) -> list[tuple[str, bool]]:
    """Return the open names of a job's outputs, and whether each is optional."""
    # Outputs are fetched by their places, also those of jobs that an earlier version has sent: so
    # the order must never change.
    files = [(ENDING, False)]
    if layout.stdout:
        files.append((STDOUT, True))
    if layout.stderr and not layout.merged:
        files.append((STDERR, True))
    files += [(WORK + name, True) for name in layout.alone]
    if layout.outputs is None or layout.outputs:
        files.append((PACKED, True))
    return files
