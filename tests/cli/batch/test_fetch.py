"""``boinc_gahp batch fetch``: folders, archives, failures; broken off and gone on."""

import shlex
import signal
import subprocess
import zipfile

import pytest

from boinc_gahp.api.outputs.folders import NOTE
from tests import faultproxy
from tests.cli.conftest import COMMAND
from tests.helpers import wait_for

#: The batches are made by the web RPCs themselves.
NOT_KNOWN = "jobs.csv lacks arguments and parameters: they are not known on this machine.\n"


def test_into_a_directory_of_the_batchs_name(batch, here, done):
    _, name = done
    assert batch.prints("fetch", name) == f"2 jobs fetched (110 bytes); in {name}\n{NOT_KNOWN}"
    assert (here / name / f"{name}_0/out").read_text() == "HELLO\n"
    assert "boinc_finish" in (here / name / f"{name}_1/stderr.txt").read_text()
    out = batch.prints("fetch", name, "other", "--no-stderr", "--job", f"{name}_0")
    assert out == f"1 job fetched (6 bytes); in other\n{NOT_KNOWN}"


def test_some_failed(batch, here, mixed):
    number, name = mixed
    assert batch.prints("fetch", number, "results", status=3) == (
        "1 job fetched (55 bytes), 1 failed; in results\n"
        f"1 job failed: 1 × exit status 7 ({name}_1)\n"
        f"More: boinc_gahp batch logs {number} {name}_1\n{NOT_KNOWN}"
    )
    batch.prints("fetch", number, "results", "--job", f"{name}_0")
    batch.prints("fetch", number, "results", "--job", f"{name}_1", status=4)
    found = batch.json("fetch", number, status=3)
    assert (found["batch"], found["name"], found["directory"]) == (number, name, str(here / name))
    assert found["table"] == str(here / name / "jobs.csv")
    counts = {key: count for key, count in found.items() if key.startswith("jobs_") and count}
    assert (counts, found["bytes"]) == ({"jobs_fetched": 1, "jobs_failed": 1}, 55)
    [reason] = found["reasons"]
    keys = ("reason", "jobs", "job", "exit_status", "errors")
    told = ["exit status 7", 1, f"{name}_1", 7, ["too_many_error_results"]]
    assert [reason[key] for key in keys] == told
    found = batch.json("fetch", number, "--zip", "all.zip", status=3)
    assert (found["files"], found["zip"]) == (2, str(here / "all.zip"))


def test_unfinished_jobs_are_waited_for_by_nobody(batch, here, site):
    number, name = site.batch("")
    first, second, *_ = batch.prints("fetch", number, status=5).splitlines()
    assert first == f"0 jobs fetched (0 bytes), 1 not finished yet; in {name}"
    assert second.startswith("The batch is running: run this again")
    site.rpc.abort_batch(batch_id=number)
    batch.prints("fetch", number, status=4)
    assert not list(here.rglob("out"))


def test_an_archive(batch, here, done, site):
    _, name = done
    said = f"2 jobs fetched (110 bytes); in all.zip\n{NOT_KNOWN}"
    assert batch.prints("fetch", name, "--zip", "all.zip") == said
    with zipfile.ZipFile(here / "all.zip") as archive:
        files = [f"{name}_{job}/{file}" for job in (0, 1) for file in ("out", "stderr.txt")]
        assert sorted(archive.namelist()) == [*files, "jobs.csv"]
    empty, _ = site.batch()
    out = batch.prints("fetch", empty, "--zip", "empty.zip", status=5)
    assert "The archive has only jobs.csv: there are no outputs." in out
    err = batch.refuses("fetch", "1", "--zip", "x.zip", "directory", status=2)
    assert "--zip and DIR do not go together" in err


def test_what_cannot_be_written_is_that_jobs_error(batch, here, done):
    _, name = done
    (here / name).mkdir()
    (here / name / f"{name}_0").write_text("a file\nof mine")
    status, out, err = batch("fetch", name)
    assert status == 1
    assert out.startswith(f"1 job fetched (55 bytes), 1 could not be fetched; in {name}\n")
    assert err.startswith(f"boinc_gahp: job '{name}_0': ")
    assert "is not a directory: move it away" in err
    assert err.count("\n") == 1


@pytest.mark.processes
def test_interrupted_it_says_how_to_go_on_and_goes_on(batch, here, done, proxy):
    _, name = done
    proxy.fail("result_file", faultproxy.hang(), times=None, skip=1)
    words = ["batch", "fetch", name, "two words"]
    child = subprocess.Popen(
        [COMMAND, *words], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with child:
        wait_for(lambda: proxy.count("result_file") >= 2, "an output that hangs")
        wait_for(lambda: list(here.rglob("*.part")), "a file that is begun")
        wait_for(lambda: list(here.rglob(NOTE)), "a job that is whole")
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
    assert (child.returncode, out) == (130, "")
    assert not list(here.rglob("*.part"))
    command = err.strip().partition("the same command fetches the rest: ")[2]
    assert shlex.split(command) == ["boinc_gahp", *words]
    proxy.heal()
    out = batch.prints(*shlex.split(command)[2:])
    assert out.startswith("1 job fetched (55 bytes), 1 already here;")


def test_after_retire_the_table_still_tells_what_was_submitted(site, batch, here, tag):
    words = ("--input", "in=inline:x", "--args", "--sleep 0", "--name", tag)
    number = batch.json("submit", "uppercase", *words)["id"]
    site.work()
    for act in ("fetch", "retire"):
        batch.prints(act, number)
    assert "lacks" not in batch.prints("fetch", number)
    assert "--sleep 0" in (here / tag / "jobs.csv").read_text()
