"""Two users of a submit node."""

import os
import shutil

import pytest

from boinc_gahp.files import user_name

#: Users who need not exist.
ALICE, BOB = 54320, 54321

ME = user_name(os.geteuid())

needs_root = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("setpriv") is None,
    reason="only root can be two users (with setpriv, of util-linux)",
)


def become(uid):
    """Return what runs a command as another user, who may read all: Python may be in a home."""
    capability = "-all,+dac_read_search"
    return [
        "setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups",
        f"--inh-caps={capability}", f"--ambient-caps={capability}", f"--bounding-set={capability}",
    ]  # fmt: skip
