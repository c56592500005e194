"""``boinc_gahp batch wait``."""

import io
import re
import signal
import threading
from contextlib import contextmanager

import pytest

from boinc_gahp.backoff import Backoff
from boinc_gahp.cli.main import main
from tests.cli.conftest import ended, write_settings
from tests.helpers import wait_for
from tests.inside import change


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
    assert status == 5
    assert err.startswith(f"boinc_gahp: batch {number} (half-made) is still being submitted; if ")


def test_the_exit_status_tells_success_and_partial_failure_and_failure(site, batch, done, mixed):
    (good, good_name), (mixed, mixed_name) = done, mixed
    bad, _ = site.finished("--fail 3")
    aborted, _ = site.batch("")
    site.rpc.abort_batch(batch_id=aborted)
    out = batch.prints("wait", good)
    assert f"Batch {good} {good_name} is complete: 2 of 2 jobs done.\n" in out
    assert out.endswith(f"Its outputs: boinc_gahp batch fetch {good}\n")
    out = batch.prints("wait", mixed, status=3)
    assert (
        f"Batch {mixed} {mixed_name} is complete, 1 failed: 1 of 2 jobs done.\n1 job failed: "
        in out
    )
    assert f"\nMore: boinc_gahp batch logs {mixed} {mixed_name}_1\n" in out
    for none_done in ([bad], [aborted], [bad, aborted]):
        batch.prints("wait", *none_done, status=4)
    batch.prints("wait", good, bad, aborted, status=3)


def test_a_pipe_gets_a_line_for_each_change(site, often, monkeypatch):
    one, one_name = site.batch("", "")
    with started(monkeypatch, "wait", str(one)) as (said, statuses):
        wait_for(lambda: "2 waiting" in said.getvalue(), "the first line")
        site.work()
    assert statuses == [0]
    lines = [line for line in said.getvalue().splitlines() if re.match(r"2\d{3}-", line)]
    assert len(set(lines)) == len(lines) >= 2
    when = r"2\d{3}-\d\d-\d\d \d\d:\d\d:\d\d"
    assert re.fullmatch(rf"{when}  batch {one} {one_name}: complete: 2 done", lines[-1])


def test_a_time_that_is_over_is_reported_and_the_jobs_go_on(site, batch):
    number, name = site.batch("", "")
    assert batch("wait", name, "--timeout", "0.1")[::2] == (
        5,
        f"boinc_gahp: batch {number} ({name}) is not over after 0 s: 0 of 2 jobs are; "
        "it continues on the project\n",
    )


def test_a_project_that_is_down_is_not_asked_for_longer_than_the_timeout(site, batch, monkeypatch):
    # The pause after the first attempt would be longer than the time there is.
    monkeypatch.setattr("boinc_gahp.rpc.retry.BACKOFF", Backoff(3600.0))
    number, _ = site.batch("")
    with site.down():
        err = batch.refuses("wait", number, "--timeout", "0.1", status=5)
    told = "project down for maintenance; --timeout has passed [BG-PROJECT-DOWN]"
    assert re.fullmatch(rf"boinc_gahp: .*: {re.escape(told)}\n", err)


def test_a_project_that_is_down_is_reported_and_waited_out(site, often, monkeypatch, tmp_path):
    config = tmp_path / "impatient.toml"
    more = "[timeouts]\nretry = 0.1\n"
    write_settings(config, site.project.url, site.project.authenticator, more)
    number, _ = site.batch("")
    with started(monkeypatch, "wait", str(number), "--config", str(config)) as (out, statuses):
        wait_for(lambda: "1 waiting" in out.getvalue(), "the first line")
        with site.down():
            wait_for(lambda: "cannot be asked at present" in out.getvalue(), "word of the trouble")
        wait_for(lambda: out.getvalue().count("1 waiting") == 2, "word of its end")
        site.rpc.abort_batch(batch_id=number)
    assert statuses == [4]


@pytest.mark.processes
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_ends_it_leaves_the_terminal_as_it_was(site, batch, number):
    _, name = site.batch("")
    child = batch.on_terminal("wait", name, "--timeout", "1h")
    child.expect_exact("\x1b[?25l")
    child.expect_exact("Ctrl-C ends the waiting, not the jobs.")
    child.kill(number)
    child.expect_exact("\x1b[?25h")
    assert ended(child) == 128 + number


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


def test_a_batch_that_vanishes_ends_the_waiting_and_is_reported(site, often, monkeypatch, capsys):
    number, name = site.batch("")
    with started(monkeypatch, "wait", name) as (out, statuses):
        wait_for(lambda: "1 waiting" in out.getvalue(), "the first line")
        change(site.project, "DELETE FROM batch WHERE id = ?", number)
    assert statuses == [1]
    assert out.getvalue().endswith(f"{name}: the project no longer has it\n")
    assert re.fullmatch(
        rf"boinc_gahp: the project \S+ does not know batch {number} \({name}\) any more\n",
        capsys.readouterr().err,
    )


def test_a_batch_that_cannot_be_found_is_reported_before_any_waiting(site, batch):
    number, _ = site.batch("")
    assert "no batch 'no-such-batch'" in batch.refuses("wait", number, "no-such-batch")
