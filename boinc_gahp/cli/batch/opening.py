"""The project that an action of ``boinc_gahp batch`` talks to."""

from __future__ import annotations

import logging
import shlex
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

    from boinc_gahp.remote import Project


@contextmanager
def opened(options: Namespace) -> Iterator[Project]:
    """Lend the project that ``--project`` and ``--config`` name; its connections end afterwards.

    Raises:
        ConfigError: the settings are wrong, or name no such project, or no authenticator.
    """
    # Little of what is imported for a project is needed to say what is wrong with a command line.
    from boinc_gahp.remote import Project

    # Without any handler, logging would print warnings between what there is to say.
    logging.getLogger().addHandler(logging.NullHandler())
    with Project.from_settings(options.project, config=options.config) as project:
        yield project


def command(options: Namespace, action: str, *words: object) -> str:
    """Return what to type for another action on the same project."""
    line = ["boinc_gahp", "batch", action, *map(str, words)]
    for option in ("project", "config"):
        value = getattr(options, option)
        if value is not None:
            line += [f"--{option}", str(value)]
    return shlex.join(line)


def complain(text: str) -> None:
    """Print a line on stderr."""
    print(f"boinc_gahp: {text}", file=sys.stderr, flush=True)
