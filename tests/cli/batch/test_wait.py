"""``boinc_gahp batch wait``."""

import io
import json
import re
import signal
import threading
from contextlib import contextmanager

import pexpect
import pytest

from boinc_gahp.backoff import Backoff
from boinc_gahp.cli.main import main
from tests.cli.conftest import write_settings
from tests.helpers import wait_for


@contextmanager
def started(monkeypatch, *words):
    """Run a command beside the test to its end; yield what it prints, and its exit status."""
    out, statuses = io.StringIO(), list[int]()
    with monkeypatch.context() as patch:
        patch.setattr("sys.stdout", out)
        running = threading.Thread(target=lambda: statuses.append(main(["batch", *words])))
        running.start()
        yield out, statuses
        running.join(60)


def test_a_batch_that_is_still_being_made_is_said_to_be_never_over_by_itself(site, batch):
    number = site.rpc.create_batch("half-made", "uppercase")
    status, _, err = batch("wait", number, "--timeout", "0.1")
    first, *_ = err.splitlines()
    assert status == 5
    assert first.startswith(f"boinc_gahp: batch {number} (half-made) is still being submitted; if ")


def test_the_exit_status_tells_success_and_partial_failure_and_failure(site, batch):
    good, good_name = site.finished("", "")
    mixed, mixed_name = site.batch("", "--fail 2")
    bad, _ = site.batch("--fail 3")
    site.work()
    aborted, _ = site.batch("")
    site.rpc.abort_batch(batch_id=aborted)
    out = batch.good("wait", good)
    assert f"Batch {good} {good_name} is complete: 2 of 2 jobs done.\n" in out
    assert out.endswith(f"Its outputs: boinc_gahp batch fetch {good}\n")
    status, out, _ = batch("wait", mixed)
    assert status == 3
    assert (
        f"Batch {mixed} {mixed_name} is complete, 1 failed: 1 of 2 jobs done.\n1 job failed: "
        in out
    )
    assert f"\nMore: boinc_gahp batch logs {mixed} {mixed_name}_1\n" in out
    assert batch("wait", bad)[0] == 4
    assert batch("wait", aborted)[0] == 4
    assert batch("wait", bad, aborted)[0] == 4
    assert batch("wait", good, bad, aborted)[0] == 3


def test_a_pipe_gets_a_line_for_each_change_and_json_an_object(site, batch, often, monkeypatch):
    one, one_name = site.batch("", "")
    with started(monkeypatch, "wait", str(one), "--config", str(site.config)) as (said, statuses):
        wait_for(lambda: "0 of 2 jobs over" in said.getvalue(), "the first line")
        site.work()
    assert statuses == [0]
    lines = [line for line in said.getvalue().splitlines() if re.match(r"2\d{3}-", line)]
    assert len(set(lines)) == len(lines) >= 2
    when = r"2\d{3}-\d\d-\d\d \d\d:\d\d:\d\d"
    assert re.fullmatch(rf"{when}  batch {one} {one_name}: complete, 2 of 2 jobs over", lines[-1])
    out = batch.good("wait", one, "--json")
    last = json.loads(out.splitlines()[-1])
    assert (last["name"], last["state"], last["jobs_over"]) == (one_name, "complete", 2)
    assert last["is_over"] is True


def test_a_time_that_is_over_is_reported_and_the_jobs_go_on(site, batch):
    number, name = site.batch("", "")
    status, _, err = batch("wait", name, "--timeout", "0.1")
    assert status == 5
    assert err == (
        f"boinc_gahp: batch {number} ({name}) is not over after 0 s: 0 of 2 jobs are; "
        "it continues on the project\n"
    )


def test_a_project_that_is_down_is_not_asked_for_longer_than_the_timeout(site, batch, monkeypatch):
    # The pause after the first attempt would be longer than the time there is.
    monkeypatch.setattr("boinc_gahp.rpc.retry.BACKOFF", Backoff(3600.0))
    number, _ = site.batch("")
    site.project.core.web_stopped = True
    try:
        status, out, err = batch("wait", number, "--timeout", "0.1")
    finally:
        site.project.core.web_stopped = False
    assert (status, out) == (5, "")
    assert err.startswith("boinc_gahp: ")
    told = "project down for maintenance; --timeout has passed [BG-PROJECT-DOWN]"
    assert err.endswith(f": {told}\n")


def test_a_project_that_is_down_is_reported_and_waited_out(site, often, monkeypatch, tmp_path):
    config = tmp_path / "impatient.toml"
    more = "[timeouts]\nretry = 0.1\n"
    write_settings(config, site.project.url, site.project.authenticator, more)
    number, _ = site.batch("")
    with started(monkeypatch, "wait", str(number), "--config", str(config)) as (out, statuses):
        wait_for(lambda: "0 of 1 job over" in out.getvalue(), "the first line")
        site.project.core.web_stopped = True
        try:
            wait_for(lambda: "cannot be asked at present" in out.getvalue(), "word of the trouble")
        finally:
            site.project.core.web_stopped = False
        wait_for(lambda: out.getvalue().count("0 of 1 job over") == 2, "word of its end")
        site.rpc.abort_batch(batch_id=number)
    assert statuses == [4]


@pytest.mark.processes
def test_a_terminal_shows_it_live_and_ctrl_c_ends_the_waiting_only(site, batch):
    number, name = site.batch("", "")
    child = batch.on_terminal("wait", name, "--timeout", "1h")
    child.expect_exact("Ctrl-C ends the waiting, not the jobs.")
    child.sendintr()
    child.expect_exact("boinc_gahp: interrupted; the jobs continue; wait again with")
    child.expect(rf"boinc_gahp batch\s+wait {number}\r\n")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 130


@pytest.mark.processes
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_ends_it_leaves_the_terminal_as_it_was(site, batch, number):
    _, name = site.batch("")
    child = batch.on_terminal("wait", name, "--timeout", "1h")
    child.expect_exact("\x1b[?25l")
    child.expect_exact("Ctrl-C ends the waiting, not the jobs.")
    child.kill(number)
    child.expect_exact("\x1b[?25h")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 128 + number


def test_the_last_state_stays_on_the_screen(site, batch):
    number, name = site.finished("", "--fail 1")
    screen = batch.screen("wait", number)
    last = screen.rpartition("over")[2]
    assert re.search(r"complete, 1 failed\S*\s.*100%\s+1\s+\S*1", last)
    assert "Ctrl-C" not in last
    assert f"Batch {number} {name} is " in last


def test_of_more_batches_than_a_terminal_has_lines_some_are_counted(site, batch):
    numbers = [site.batch("")[0] for _ in range(3)]
    for number in numbers:
        site.rpc.abort_batch(batch_id=number)
    batch.terminal = {"LINES": "7"}
    screen = batch.screen("wait", *numbers)
    assert "… and 1 more batch\n" in screen


def test_a_batch_that_vanishes_ends_the_waiting_and_is_reported(site, often, monkeypatch):
    number, name = site.batch("")
    out, err = io.StringIO(), io.StringIO()
    monkeypatch.setattr("sys.stdout", out)
    monkeypatch.setattr("sys.stderr", err)
    statuses = []
    waiting = threading.Thread(target=lambda: statuses.append(main(["batch", "wait", name])))
    waiting.start()
    wait_for(lambda: "0 of 1 job over" in out.getvalue(), "the first line")
    with site.project.core.db.write() as connection:
        connection.execute("DELETE FROM batch WHERE id = ?", (number,))
    waiting.join(60)
    assert statuses == [1]
    assert out.getvalue().endswith(f"{name}: the project no longer has it\n")
    assert re.fullmatch(
        rf"boinc_gahp: the project \S+ does not know batch {number} \({name}\) any more\n",
        err.getvalue(),
    )


def test_a_batch_that_cannot_be_found_is_reported_before_any_waiting(site, batch):
    number, _ = site.batch("")
    assert "no batch 'no-such-batch'" in batch.refused("wait", number, "no-such-batch")
