"""Defaults and checks that hold for each job in a container, whoever describes it."""

from __future__ import annotations

import math
import posixpath
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_FIVE_GFLOPS_FOR_A_DAY = 86400 * 5e9
#: Operations at which a client aborts a job that gives no bound. Nobody knows what a program needs:
#: this is two weeks at 5 GFLOPS.
FPOPS_BOUND = 14 * _FIVE_GFLOPS_FOR_A_DAY
#: Bytes of disk beside the inputs for a job that requests none; also the steps of such a default,
#: because jobs with different limits are not in one batch.
_DISK = 1e9
#: Parts of the names of variables that often hold secrets.
_SECRET = re.compile(r"TOKEN|KEY|SECRET|PASSWORD", re.IGNORECASE)


def default_disk(inputs: float, image: float = 0) -> float:
    """Return the bytes of disk for a job that asks for none: 1 GB beside its inputs.

    An input may be there twice: in an archive, and unpacked.

    Args:
        inputs: bytes of its files and directories.
        image: bytes of its image's file, if the job brings one.
    """
    return _DISK * math.ceil(1 + (image + 2 * inputs) / _DISK)


def secret_names(names: Iterable[str]) -> list[str]:
    """Return those names of variables that look like names of secrets."""
    return [name for name in names if _SECRET.search(name)]


def is_variable(name: str) -> bool:
    """Tell whether a variable of the environment can have this name; see :class:`.Program`."""
    return bool(name) and not name.startswith("-") and not set("=\0") & set(name)


def output_path(name: str) -> str:
    """Return the path of a file or directory that a program makes, below the job's directory.

    Raises:
        ValueError: it cannot be an output; says why, and what to do.
    """
    plain = posixpath.normpath(name)
    if plain.startswith(("/", "..")) or plain == ".":
        raise ValueError(
            "is not in the job's directory; a volunteer's computer sends back only what is there"
        )
    if "\\" in plain:  # GNU tar reads it as an escape in a name that it is given
        raise ValueError("has a backslash: rename it")
    return plain
