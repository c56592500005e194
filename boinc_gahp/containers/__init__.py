"""Any program: from its description to the files of a container job, and back; no I/O.

A project has one app whose program is BOINC's ``docker_wrapper``; it builds an image and runs a
script in a container (``containers.rst``). ``image`` reads and checks the name of an image,
``script`` writes the script that runs programs, ``build_files`` the other files that the wrapper
reads, ``job_files`` tells which files a job's templates have, and ``ending`` reads what the script
tells about a program's end. The files' names are in ``names``, defaults and checks in ``rules``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from boinc_gahp.lazy import exports

if TYPE_CHECKING:
    from boinc_gahp.containers.build_files import dockerfile as dockerfile, job_toml as job_toml
    from boinc_gahp.containers.ending import (
        LARGEST as LARGEST,
        Ending as Ending,
        read_ending as read_ending,
    )
    from boinc_gahp.containers.image import Image as Image, read_image as read_image
    from boinc_gahp.containers.job_files import (
        MOST_FILES as MOST_FILES,
        archive_name as archive_name,
        image_name as image_name,
        is_archive as is_archive,
        is_image as is_image,
        is_open_name as is_open_name,
        output_files as output_files,
    )
    from boinc_gahp.containers.names import (
        DOCKERFILE as DOCKERFILE,
        ENDING as ENDING,
        JOB_TOML as JOB_TOML,
        OWN_FILES as OWN_FILES,
        PACKED as PACKED,
        SCRIPT as SCRIPT,
        STDERR as STDERR,
        STDOUT as STDOUT,
        WORK as WORK,
    )
    from boinc_gahp.containers.rules import (
        FPOPS_BOUND as FPOPS_BOUND,
        check_word as check_word,
        default_disk as default_disk,
        is_variable as is_variable,
        may_be_secret as may_be_secret,
        output_path as output_path,
        secret_names as secret_names,
    )
    from boinc_gahp.containers.script import (
        Layout as Layout,
        Program as Program,
        by_script as by_script,
        write_script as write_script,
    )

__getattr__, __dir__ = exports(
    __name__,
    {
        "build_files": ["dockerfile", "job_toml"],
        "ending": ["Ending", "LARGEST", "read_ending"],
        "image": ["Image", "read_image"],
        "job_files": [
            "MOST_FILES",
            "archive_name",
            "image_name",
            "is_archive",
            "is_image",
            "is_open_name",
            "output_files",
        ],
        "names": [
            "DOCKERFILE",
            "ENDING",
            "JOB_TOML",
            "OWN_FILES",
            "PACKED",
            "SCRIPT",
            "STDERR",
            "STDOUT",
            "WORK",
        ],
        "rules": [
            "FPOPS_BOUND",
            "check_word",
            "default_disk",
            "is_variable",
            "may_be_secret",
            "output_path",
            "secret_names",
        ],
        "script": ["Layout", "Program", "by_script", "write_script"],
    },
)
