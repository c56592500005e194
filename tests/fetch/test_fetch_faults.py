"""Fetches while the project, or the way to it, goes wrong."""

import os
import signal
import subprocess
import sys

import pytest

from tests import faultproxy
from tests.fetch.farm import TEXT, contents, everything, lasting_faults, passing_faults
from tests.helpers import wait_for

pytestmark = pytest.mark.long

RPCS = ["query_batch", "query_job", "query_completed_job", "get_templates", "result_file"]


@pytest.mark.parametrize("rpc", RPCS)
@passing_faults
def test_trouble_that_passes_is_not_noticed(rpc, fault, healthy, home):
    healthy.proxy.fail(rpc, fault)
    assert healthy.fetch(everything("upper#1.2", home)).exit_status == 0
    assert contents(home)["out"] == TEXT.upper()
    assert sorted(contents(home)) == ["job.err", "out"]


@lasting_faults
def test_trouble_that_stays_leaves_no_partial_file(fault, kind, healthy, home):
    (home / "out").write_text("old")
    healthy.proxy.fail("result_file", fault, times=None)
    with pytest.raises(kind):
        healthy.fetch(everything("upper#1.3", home))
    assert contents(home)["out"] == b"old"
    assert sorted(contents(home)) == ["job.err", "out"]


FETCHER = """
import sys
from pathlib import Path
from boinc_gahp.fetch.context import FetchContext
from boinc_gahp.config.settings import Settings
from boinc_gahp.fetch.types import FetchRequest
from boinc_gahp.fetch.job_directory import fetch_output
from boinc_gahp.rpc.client import WebRpcs
url, authenticator, home, cache = sys.argv[1:]
context = FetchContext.of(WebRpcs(url, authenticator), Settings(), None, Path(cache))
fetch_output(context, FetchRequest("upper#1.5", home, None, "ALL", ()))
"""


def test_a_killed_fetch_leaves_nothing_that_the_next_does_not_remove(healthy, home, tmp_path):
    gets = healthy.count("result_file")
    healthy.proxy.fail("result_file", faultproxy.drip(0.001))
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            FETCHER,
            healthy.proxy.url,
            healthy.local.authenticator,
            str(home),
            str(tmp_path / "cache"),
        ]
    )
    with process:
        wait_for(lambda: healthy.count("result_file") > gets, "an output on its way")
        assert len(list(home.glob(".boinc_gahp-*.part"))) == 1
        os.kill(process.pid, signal.SIGKILL)
    assert not (home / "out").exists()
    assert len(list(home.glob(".boinc_gahp-*.part"))) == 1
    healthy.fetch(everything("upper#1.5", home), cache=tmp_path / "cache")
    assert sorted(contents(home)) == ["job.err", "out"]
    assert contents(home)["out"] == TEXT.upper()
