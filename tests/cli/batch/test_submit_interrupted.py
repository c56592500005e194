"""``boinc_gahp batch submit`` when it is interrupted, and when it fails."""

import shlex
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import ended
from tests.faultproxy import hang, status
from tests.helpers import ran, wait_for


@pytest.mark.processes
def test_an_interrupted_submit_tells_how_to_go_on_and_that_makes_each_job_once(site, batch, proxy):
    held = hang()
    proxy.fail("submit_batch", held)
    child = batch.on_terminal("submit", "uppercase", "--input", "in=in.txt", "--count", "5")
    wait_for(lambda: proxy.count("submit_batch"), "the jobs on their way")
    child.expect("sending jobs")
    child.sendintr()
    child.expect(r"boinc_gahp: interrupted; to continue:\s+boinc_gahp batch (submit [^\r\n]*)")
    again = shlex.split(child.match.group(1))
    child.expect_exact("\r\n")
    assert ended(child) == 130
    held.release()
    assert f"{again[-1]!r}: 5 jobs" in batch.prints(*again)
    assert [each.name for each in site.rpc.query_batches()].count(again[-1]) == 1


@pytest.mark.processes
def test_what_goes_on_is_reported_as_a_shell_reads_it_and_harmless_to_the_terminal(
    batch, proxy, here
):
    proxy.fail("query_files", status(500), times=None)
    (here / "it's  \x1b[31m\udcff").write_text("hello")
    _, _, err = batch("submit", "uppercase", "--input", "in=it's  \x1b[31m\udcff")
    assert "\x1b" not in err
    line = err.splitlines()[-1].partition("to continue: ")[2]
    told = subprocess.run(
        ["bash", "-c", f"printf '%s\\n' {line}"], stdout=subprocess.PIPE, check=True, timeout=60
    ).stdout.splitlines()
    assert b"in=it's  \x1b[31m\xff" in told


@pytest.mark.processes
def test_a_batch_that_cannot_be_told_on_stdout_is_reported_on_stderr(site, batch, proxy):
    with Path("/dev/full").open("w") as full:
        words = ("submit", "uppercase", "--input", "in=in.txt", "--name", "unsaid")
        done = ran(*batch.installed, *words, stdout=full)
    first, second = done.stderr.splitlines()
    assert (done.returncode, first.endswith("(unsaid) is submitted")) == (1, True)
    assert "the output could not be written" in second
    assert "unsaid" in [each.name for each in site.rpc.query_batches()]
