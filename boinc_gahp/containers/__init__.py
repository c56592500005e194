"""Any program: from its description to the files of a container job, and back; no I/O.

A project has one app whose program is BOINC's ``docker_wrapper``; it builds an image and runs a
script in a container (``containers.rst``). ``types`` describes a program, ``image`` reads and checks
the name of an image, ``script`` writes the script that runs programs, ``build_files`` the other
files that the wrapper reads, ``job_files`` lists a job's inputs and outputs for its templates, and
``ending`` reads what the script tells about a program's end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from boinc_gahp.lazy import exports

if TYPE_CHECKING:
    from boinc_gahp.containers.ending import Ending as Ending, read_ending as read_ending
    from boinc_gahp.containers.names import (
        DOCKERFILE as DOCKERFILE,
        ENDING as ENDING,
        JOB_TOML as JOB_TOML,
        PACKED as PACKED,
        SCRIPT as SCRIPT,
        STDERR as STDERR,
        STDOUT as STDOUT,
        WORK as WORK,
    )

__getattr__, __dir__ = exports(
    __name__,
    {
        "ending": ["Ending", "read_ending"],
        "names": [
            "DOCKERFILE",
            "ENDING",
            "JOB_TOML",
            "PACKED",
            "SCRIPT",
            "STDERR",
            "STDOUT",
            "WORK",
        ],
    },
)
