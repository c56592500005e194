"""``boinc_gahp files``: where the settings and submit files are that come with the program."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import boinc_gahp
from boinc_gahp.terminal.parsing import Parser

if TYPE_CHECKING:
    from argparse import Namespace

_DESCRIPTION = """\
Prints the directory of the files that come with boinc_gahp. Copy what you need:

  boinc_gahp.toml             all settings, with their defaults
  20-boinc_gahp.condor.conf   for HTCondor 10 and later, and with it
  zz-boinc_gahp.router.conf   for ordinary jobs, by the Job Router
  10-boinc_gahp.condor9.conf  for HTCondor 9 and before, instead of both
  boinc_gahp.cron             what cron may run for each user
  submit                      submit files, and a DAG
"""


def run(_options: Namespace) -> int:
    """Print the directory; return 0."""
    print(Path(boinc_gahp.__file__).parent / "conf")
    return 0


def run_parser() -> Parser:
    """Return the parser of the command's arguments."""
    return Parser(
        "files",
        _DESCRIPTION,
        examples=("boinc_gahp files", "cp -r $(boinc_gahp files)/submit ."),
    )
