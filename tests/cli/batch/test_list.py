"""``boinc_gahp batch list``."""

import json
import os
import re
import sys
import time

import pytest

from boinc_gahp.rpc.client import WebRpcs as Rpc
from boinc_gahp.terminal.table import cells
from tests.cli.conftest import write_settings
from tests.helpers import ran
from tests.terminal.screen import plain


def test_batches_are_listed_newest_first_with_state_progress_failures_and_lease(site, batch):
    done, done_name = site.finished("", "--fail 3")
    waiting, waiting_name = site.batch("", "", "", lease=time.time() + 10.5 * 86400)
    empty, empty_name = site.batch()
    title, *rows = batch.prints("list", "--limit", 3).splitlines()[:4]
    assert " ".join(title.split()) == "id name app state over jobs failed age end kept for"
    names = [(empty, empty_name), (waiting, waiting_name), (done, done_name)]
    assert [row.split()[:2] for row in rows] == [[str(number), name] for number, name in names]
    assert re.search(r"uppercase +being made +0 ", rows[0])
    assert re.search(r"uppercase +running +0% +3 .* 10 days$", rows[1])
    assert re.search(
        r"uppercase +complete, 1 failed +━{20} +100% +2 +1 .*(just now|\d+ s ago)$", rows[2]
    )


def test_states_and_apps_choose_batches(site, batch):
    number, _ = site.batch("")
    empty, _ = site.batch()
    out = batch.prints("list", "--state", "init")
    assert out.splitlines()[1].split()[0] == str(empty)
    assert all("being made" in line for line in out.splitlines()[1:])
    out = batch.prints("list", "--state", "running", "--state", "being-made", "--app", "uppercase")
    listed = [line.split()[0] for line in out.splitlines()[1:]]
    assert listed[:2] == [str(empty), str(number)]
    out = batch.prints("list", "--app", "nothing")
    assert re.match(r"None of your batches on 127\.0\.0\.1:\d+ matches\.$", out)
    assert batch("list", "--app", "upercase")[1].endswith("matches; did you mean uppercase?\n")


def test_an_account_without_batches_is_told_how_to_make_one(site, batch, tmp_path):
    authenticator = site.project.add_user("newcomer")
    config = write_settings(
        tmp_path / "new.toml", site.project.url, authenticator, section="projects.new"
    )
    out = batch.prints("list", "--project", "new", "--config", config)
    assert out.startswith("You have no batches on 127.0.0.1:")
    assert "boinc_gahp batch submit" in out


def test_all_projects_of_the_settings_are_listed_and_one_that_is_down_is_told(
    site, batch, tmp_path
):
    other = site.project.add_user("elsewhere")
    config = write_settings(
        tmp_path / "three.toml",
        site.project.url,
        site.project.authenticator,
        f'[projects.other]\nurl = "{site.project.url}"\nauthenticator_file = "other"\n'
        '[projects.down]\nurl = "http://127.0.0.1:1/x/"\nauthenticator_file = "other"\n'
        "[timeouts]\nretry = 0.1\n",
    )
    (tmp_path / "other").write_text(other)
    (tmp_path / "other").chmod(0o600)
    with Rpc(site.project.url, other) as rpc:
        theirs = rpc.create_batch("a@b", "uppercase")
    mine, _ = site.batch("")
    listed = ("list", "--config", config, "--limit", 2)
    status, out, err = batch(*listed)
    assert status == 1
    assert "[projects.down]: " in err
    assert [line.split()[0] for line in out.splitlines()[1:3]] == [str(mine), f"{theirs}@other"]
    document = json.loads(batch(*listed, "--json")[1])
    assert [each["name"] for each in document["projects"] if each["error"]] == ["down"]
    assert [line.split()[:2] for line in batch.prints(*listed, "--project", "other").splitlines()][
        1
    ] == [str(theirs), "a@b"]
    named = ("show", "--config", config)
    assert batch.prints(*named, "a@b@other").startswith(f"Batch {theirs}  a@b\n")
    assert "; on another project it is 'lost@other'" in batch.refuses(*named, "lost")
    assert "not on one project" in batch.refuses(
        "abort", "--config", config, mine, f"{theirs}@other"
    )


def test_a_table_fits_any_terminal_and_names_are_cut_last(site, batch):
    site.batch("", name="批次" * 25)
    for columns in (40, 80, 200):
        screen = batch.screen("list", "--limit", 3, columns=columns)
        assert "\x1b[" in screen
        lines = plain(screen).splitlines()
        assert all(cells(line) <= columns for line in lines)
        assert "批" in screen
    assert "批次" * 25 in screen
    assert "批次" * 25 in batch("list")[1]


def test_at_80_columns_names_are_whole_or_have_half_of_the_line(site, batch):
    for length in (30, 60):
        site.batch("", name=f"sweep{'_' * (length - 10)}{length}end")
    screen = plain(batch.screen("list", "--limit", 2))
    long, usual = screen.splitlines()[1:3]
    assert usual.split()[1] == f"sweep{'_' * 20}30end"
    assert len(long.split()[1]) >= 40
    assert long.split()[1].endswith("60end")
    assert "running" in long


@pytest.mark.processes
def test_nothing_is_imported_that_a_list_does_not_need(site):
    program = (
        "import sys; from boinc_gahp.cli.main import main; main(['batch', 'list']); "
        "print(*sys.modules, file=sys.stderr)"
    )
    # Measuring coverage takes modules of its own.
    env = {name: text for name, text in os.environ.items() if not name.startswith("COVERAGE_")}
    done = ran(sys.executable, "-c", program, env=env)
    assert done.returncode == 0, done.stderr
    rooms = {f"boinc_gahp.{room}" for room in ("htcondor", "daemon", "ledger", "localproject")}
    heavy = "asyncio flask matplotlib prompt_toolkit rich.console sqlite3 waitress"
    assert not (rooms | {*heavy.split()}) & {*done.stderr.split()}


def test_a_project_that_does_not_answer_is_reported_while_it_is_asked_again(batch, tmp_path):
    config = tmp_path / "closed.toml"
    key = "0" * 32
    write_settings(config, "http://127.0.0.1:1/test/", key, "[timeouts]\nretry = 1.2\n")
    err = batch.refuses("list", "--config", config)
    first, last = err.splitlines()
    assert re.search(r"cannot connect .*; trying again for up to 1 s$", first)
    assert "cannot connect" in last
    assert key not in err
