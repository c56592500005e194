"""``submit --wait``, ``submit --fetch``, ``wait`` for all batches."""

import csv
import re
import sys
import time

import pytest

from boinc_gahp.localproject.new_app import NewApp, insert
from boinc_gahp.states import BatchState
from tests.cli.conftest import ended
from tests.faultproxy import status as answer_status

pytestmark = pytest.mark.usefixtures("often")


@pytest.fixture
def volunteers(site):
    """Lets the volunteers work while the test runs, on nothing from before."""
    abort_all(site)
    site.project.resume_volunteers()
    yield
    site.project.pause_volunteers()


def abort_all(site):
    """Abort every batch that is not over."""
    for info in site.rpc.query_batches():
        if info.state in (BatchState.INIT, BatchState.IN_PROGRESS):
            site.rpc.abort_batch(batch_id=info.id)


# -- submit


def test_a_submit_can_wait_and_fetch(site, batch, here, volunteers):
    words = ("submit", "uppercase", "--input", "in=in.txt", "--count", 2)
    out = batch.prints(*words, "--fetch", "results")
    assert "Next:" not in out
    assert "Its outputs:" not in out
    assert out.splitlines()[-1].startswith("2 jobs fetched ")
    assert [path.read_text() for path in sorted(here.glob("results/*/out"))] == ["HELLO\n"] * 2


def test_a_submit_that_waits_has_the_exit_status_of_a_wait(site, batch, here, volunteers):
    words = ("submit", "uppercase", "--input", "in=in.txt", "--args", "--fail {index}")
    out = batch.prints(*words, "--count", 2, "--wait", status=3)
    assert "is complete, 1 failed: 1 of 2 jobs done." in out
    assert "1 job failed:" in out
    out = batch.prints(*words, "--count", 2, "--fetch", "results", status=3)
    assert out.count("1 job failed:") == 1
    assert len(list(here.glob("results/*/out"))) == 1


#: Stands for docker_wrapper and a container: writes what the script there does, of whose words the
#: last is the job's number. The file "ends" has how each ends: well (0), badly (3), or not at all.
_PROGRAM = """\
import pathlib, sys
ends = pathlib.Path(__file__).with_name("ends").read_text().splitlines()
pathlib.Path("_exit").write_text(ends[int(sys.argv[-1]) - 1] + "\\noutputs:\\n")
pathlib.Path("_stdout").touch()
pathlib.Path("_stderr").write_text("ValueError: x")
"""
_NOT_RUN = "no-program fit"


@pytest.fixture
def run(site, batch, here, volunteers):
    """``batch run --wait``, whose jobs' programs end as is said, with this exit status."""
    program = here / "program.py"
    program.write_text(_PROGRAM)
    core, app = site.project.core, f"like-{here.parent.name}"
    command = [sys.executable, str(program)]
    insert(core, NewApp(app), command)

    def run(name, *ends, status):
        program.with_name("ends").write_text("\n".join(ends))
        words = ("run", "--image", "x", "--app", app, "--count", len(ends), "--name", name)
        return batch.prints(*words, "--wait", "--", "fit", status=status)

    return run


def test_a_wait_tells_how_programs_ended_though_nothing_was_fetched(run, batch, here, tag):
    assert "ended badly" not in run(f"well-{tag}", "0", "0", status=0)
    run(f"bad-{tag}", _NOT_RUN, "3", status=4)
    out = run(tag, "0", "3", _NOT_RUN, "3", status=3)
    assert f'3 programs ended badly:\n  2 × exit status 3 ({tag}_1): "ValueError: x"\n' in out
    assert "  1 × the image has no program 'fit', and the job does not bring one of that " in out
    assert '"reasons": [{"reason": "exit status 3", "jobs": 2' in batch.prints(
        "wait", tag, "--json", status=3
    )
    assert "Send them again: " in out
    assert "3 jobs of batch" in batch.prints("retry", tag)
    again = batch.prints("wait", f"{tag}-retry1", status=4)
    assert "Send them again: " not in again
    batch.prints("fetch", tag, "out", status=3)
    with (here / "out/jobs.csv").open() as file:
        rows = [(row["state"], row["exit_status"]) for row in csv.DictReader(file)]
    assert rows == [("done", "0"), ("failed", "3"), ("failed", ""), ("failed", "3")]


def test_if_the_project_does_not_tell_how_programs_ended_a_wait_says_so(run, batch, site, tag):
    run(tag, "0", status=0)
    for path in site.project.core.directory.glob(f"upload/**/{tag}*"):
        path.unlink()
    status, _, err = batch("wait", tag)
    assert (status, "boinc_gahp: how the programs of batch " in err) == (1, True)


def test_several_batches_are_fetched_into_directories_with_their_names(
    small, batch, here, volunteers
):
    words = ("submit", "uppercase", "--input", "in=in.txt", "--count", 15, "--delay", "4242")
    words += ("--split", "--name", "parts", "--config", small)
    batch.prints(*words, "--fetch", "results")
    names = {path.name for path in (here / "results").iterdir()}
    assert names == {"parts-1", "parts-2"}
    assert len(list(here.glob("results/*/*/out"))) == 15


@pytest.mark.parametrize("other", ["--json", "--dry-run"])
@pytest.mark.parametrize("following", [("--wait",), ("--fetch", "x")], ids=["wait", "fetch"])
def test_what_prints_one_answer_does_not_wait(site, batch, here, other, following):
    err = batch.refuses("submit", "uppercase", "--input", "in=in.txt", other, *following, status=2)
    assert f"{other} and {following[0]} do not go together" in err


@pytest.mark.processes
def test_ctrl_c_in_the_wait_of_a_submit_tells_both_commands_that_go_on(site, batch, here):
    child = batch.on_terminal("submit", "uppercase", "--input", "in=in.txt", "--fetch", "results")
    child.expect(r"Batch (\d+) ")
    number = child.match[1]
    child.expect_exact("Ctrl-C ends the waiting, not the jobs.")
    child.sendintr()
    child.expect_exact("interrupted; the jobs continue; wait again with")
    child.expect(rf"boinc_gahp batch\s+wait {number}\r\n")
    child.expect(rf"and then: boinc_gahp batch fetch\s+{number} results\r\n")
    assert ended(child) == 130


# -- all batches


def test_without_a_name_all_batches_in_progress_are_waited_for(site, batch, volunteers):
    over, _ = site.batch("")
    site.rpc.abort_batch(batch_id=over)
    made = site.rpc.create_batch(f"half-made-{over}", "uppercase")
    numbers = [site.batch("--sleep 0.5")[0], site.batch("--sleep 0.5", "--fail 1")[0]]
    status, out, err = batch("wait")
    assert status == 3
    ended = re.findall(r"^Batch (\d+) ", out, re.MULTILINE)
    assert sorted(map(int, ended)) == numbers
    assert err == (
        f"boinc_gahp: batch {made} (half-made-{over}) is still being submitted, so it is not "
        "waited for\n"
    )


def test_if_no_batch_is_in_progress_there_is_nothing_to_wait_for(site, batch):
    abort_all(site)
    out = batch.prints("wait")
    assert re.fullmatch(r"None of your batches on 127\.0\.0\.1:\d+ is running\.\n", out)
    assert not batch.prints("wait", "--json")


# -- leases


def test_a_lease_that_cannot_be_renewed_is_told_at_a_quarter(site, batch, proxy):
    def refuse(exchange):
        abort_all(site)  # so the wait ends
        return answer_status(500)(exchange)

    told = {}
    proxy.fail("set_expire_time", refuse, times=1000)
    for days in (5, 3):
        number, name = site.batch("")
        site.rpc.set_expire_time(time.time() + days * 86400 + 3600, batch_id=number)
        status, _, told[days] = batch("wait", number)
        assert status == 4
    assert "The project keeps" not in told[5]
    err = told[3]
    said = rf"The project keeps batch {number} \({name}\) for 3 days more, and this cannot .*500"
    assert re.search(said, err)
    assert err.count("The project keeps") == 1
