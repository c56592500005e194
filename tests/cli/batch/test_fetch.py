"""``boinc_gahp batch fetch``: folders, archives, failures; broken off and gone on."""

import json
import shlex
import signal
import subprocess
import zipfile

import pytest

from boinc_gahp.api.folders import NOTE
from tests import faultproxy
from tests.cli.conftest import COMMAND
from tests.helpers import wait_for

#: The batches are made by the web RPCs themselves.
NOT_KNOWN = "jobs.csv lacks arguments and parameters: they are not known on this machine.\n"


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The working directory, with a cache of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    return here


def test_into_a_directory_of_the_batchs_name(batch, here, done):
    _, name = done
    status, out, _ = batch("fetch", name)
    assert (status, out) == (0, f"2 jobs fetched (110 bytes); in {name}\n{NOT_KNOWN}")
    assert (here / name / f"{name}_0/out").read_text() == "HELLO\n"
    assert "boinc_finish" in (here / name / f"{name}_1/stderr.txt").read_text()
    (here / name / f"{name}_0/out").unlink()
    status, out, _ = batch("fetch", name)
    assert (status, out) == (0, f"1 job fetched (6 bytes), 1 already here; in {name}\n{NOT_KNOWN}")
    assert (here / name / f"{name}_0/out").read_text() == "HELLO\n"
    status, out, _ = batch("fetch", name, "other", "--no-stderr", "--job", f"{name}_0")
    assert (status, out) == (0, f"1 job fetched (6 bytes); in other\n{NOT_KNOWN}")


def test_some_failed(batch, here, mixed):
    number, name = mixed
    status, out, _ = batch("fetch", number, "results")
    assert status == 3
    assert out.splitlines()[0] == "1 job fetched (55 bytes), 1 failed; in results"
    assert out.splitlines()[1:] == [
        f"1 job failed: 1 × exit status 7 ({name}_1)",
        f"More: boinc_gahp batch logs {number} {name}_1",
        NOT_KNOWN.strip(),
    ]
    assert batch("fetch", number, "results", "--job", f"{name}_0")[0] == 0
    assert batch("fetch", number, "results", "--job", f"{name}_1")[0] == 4


def test_json(batch, here, mixed):
    number, name = mixed
    status, out, err = batch("fetch", number, "--json")
    assert (status, err) == (3, "")
    assert json.loads(out) == {
        "batch": number,
        "name": name,
        "directory": str(here / name),
        "table": str(here / name / "jobs.csv"),
        "jobs_fetched": 1,
        "jobs_already_here": 0,
        "jobs_failed": 1,
        "jobs_unfinished": 0,
        "jobs_retried": 0,
        "jobs_ended_badly": 0,
        "bytes": 55,
        "errors": [],
        "reasons": [
            {
                "reason": "exit status 7",
                "jobs": 1,
                "job": f"{name}_1",
                "exit_status": 7,
                "errors": ["too_many_error_results"],
                "stderr": None,
                "advice": None,
            }
        ],
        "retries": [],
    }
    status, out, _ = batch("fetch", number, "--zip", "all.zip", "--json")
    found = json.loads(out)
    assert (status, found["files"], found["zip"]) == (3, 2, str(here / "all.zip"))


def test_unfinished_jobs_are_waited_for_by_nobody(batch, here, site):
    number, name = site.batch("")
    status, out, _ = batch("fetch", number)
    assert status == 5
    assert out.splitlines()[0] == f"0 jobs fetched (0 bytes), 1 not finished yet; in {name}"
    assert out.splitlines()[1].startswith("The batch is in progress: run this again")
    empty, _ = site.batch()
    assert batch("fetch", empty)[0] == 5
    site.rpc.abort_batch(batch_id=number)
    assert batch("fetch", number)[0] == 4
    assert not list(here.rglob("out"))


def test_an_archive(batch, here, done, site):
    _, name = done
    assert batch("fetch", name, "--zip", "all.zip") == (
        0,
        f"2 jobs fetched (110 bytes); in all.zip\n{NOT_KNOWN}",
        "",
    )
    with zipfile.ZipFile(here / "all.zip") as archive:
        files = [f"{name}_{job}/{file}" for job in (0, 1) for file in ("out", "stderr.txt")]
        assert sorted(archive.namelist()) == [*files, "jobs.csv"]
    empty, _ = site.batch()
    status, out, _ = batch("fetch", empty, "--zip", "empty.zip")
    assert status == 5
    assert "The archive has only jobs.csv: there are no outputs." in out
    assert zipfile.ZipFile(here / "empty.zip").namelist() == ["jobs.csv"]


def test_an_archive_has_no_directory(batch):
    assert "--zip and DIR do not go together" in batch.refused(
        "fetch", "1", "--zip", "x.zip", "directory", status=2
    )


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
def test_interrupted_it_says_how_to_go_on_and_goes_on(batch, here, done, site):
    _, name = done
    with faultproxy.FaultProxy(site.project.url) as proxy:
        config = here.with_name("slow.toml")
        config.write_text(
            f"[project]\nurl = '{proxy.url}'\nauthenticator = '{site.project.authenticator}'\n"
        )
        config.chmod(0o600)
        proxy.fail("result_file", faultproxy.hang(), times=None, skip=1)
        words = ["batch", "fetch", name, "two words", "--config", str(config)]
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
        said = err.strip().splitlines()[-1]
        command = said.partition("the same command fetches the rest: ")[2]
        assert shlex.split(command) == ["boinc_gahp", *words]
        proxy.heal()
        status, out, _ = batch(*shlex.split(command)[2:])
    assert (status, out.split(";")[0]) == (0, "1 job fetched (55 bytes), 1 already here")


@pytest.mark.processes
def test_progress_on_a_terminal(batch, here, done):
    _, name = done
    child = batch.on_terminal("fetch", name)
    child.expect_exact("of 2 jobs")
    child.expect_exact(f"2 jobs fetched (110 bytes); in {name}")
    child.expect_exact("\n")
    wait_for(lambda: not child.isalive(), "its end")
    assert child.exitstatus == 0
    assert [path.name for path in here.iterdir()] == [name]


def test_after_retire_the_table_still_tells_what_was_submitted(site, batch, here):
    words = ["--input", "in=inline:x", "--args", "--sleep 0", "--name", f"kept-{here.name}"]
    status, out, _ = batch("submit", "uppercase", *words, "--json")
    number, name = json.loads(out)["id"], words[-1]
    site.work()
    for act in ("fetch", "retire"):
        assert batch(act, number)[0] == 0
    assert "lacks" not in batch.good("fetch", number)
    assert "--sleep 0" in (here / name / "jobs.csv").read_text()
