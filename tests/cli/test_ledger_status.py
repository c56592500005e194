"""``boinc_gahp ledger status``, at the command line."""

import os
import sqlite3
import time
from contextlib import closing

import pytest

from boinc_gahp.config.places import user_name
from boinc_gahp.errors import OutputError
from boinc_gahp.ledger._migrations import VERSION
from boinc_gahp.ledger.account_lock import AccountLock
from boinc_gahp.ledger.rows import Hold
from tests.cli.conftest import COMMAND
from tests.cli.watching import ACCOUNT, MINE, NAME, OTHER, URL, accept, on_project, silent
from tests.helpers import ran
from tests.ledger.jobs import at_work

# -- what there is


def test_jobs_by_state_the_last_poll_and_pending_requests_are_shown_to_people(desk):
    batch_id, ids = on_project(desk.jobs, 11, 12, 13)
    accept(desk.jobs, 14)
    desk.jobs.statuses(batch_id, {f"{NAME}-1": "running"})
    desk.jobs.cancel(ids[1])
    desk.do("UPDATE job SET accepted = accepted - 7300 WHERE state = 'waiting'")
    desk.jobs.polled(*MINE, time.time() - 200)
    status, out, err = desk.status()
    assert (status, err) == (0, "")
    lines = [line.split() for line in out.splitlines()]
    assert [*URL.split(), "[project]", "none", "3", "min", "ago", "1", "abort"] in lines
    assert ["waiting", "to", "be", "sent", "1", "2", "h"] in lines
    assert ["running", "on", "the", "project", "1", "0", "s"] in lines
    assert ["cancelled", "1"] in lines
    assert out.endswith("\nNo problems.\n")


def test_several_projects_and_accounts_are_told_apart(desk):
    for cluster, url, account in ((1, URL, ACCOUNT), (2, URL, "other"), (3, OTHER, ACCOUNT)):
        accept(desk.jobs, cluster, url=url, account=account)
    desk.ledger.record_abort("https://third.example/", ACCOUNT, "b", 3, 0.0)
    _, out, _ = desk.status()
    shown = [line.split() for line in out.partition("Jobs\n")[2].splitlines()]
    assert [URL, "[project]", "other", "waiting", "to", "be", "sent", "1", "0", "s"] in shown
    assert [OTHER, "[project]", "waiting", "to", "be", "sent", "1", "0", "s"] in shown
    desk.status("--textfile", str(desk.metrics))
    waiting = [
        (labels["project"], labels["account"])
        for labels, number in desk.samples("boinc_gahp_jobs")
        if labels["state"] == "waiting" and number == 1
    ]
    assert sorted(waiting) == sorted([MINE, (URL, "other"), (OTHER, ACCOUNT)])
    pending = {labels["project"]: n for labels, n in desk.samples("boinc_gahp_owed") if n}
    assert pending == {"https://third.example/": 1}


def test_json_and_metrics_say_the_same(desk):
    _, ids = on_project(desk.jobs, 11, 12)
    desk.jobs.cancel(ids[1])
    desk.jobs.project_trouble(*MINE, "HTTP 503")
    desk.jobs.polled(*MINE, 1e9)
    (project,) = desk.json()["projects"]
    desk.status("--textfile", str(desk.metrics))
    labels = {"user": user_name(), "project": URL, "section": "", "account": ACCOUNT}
    numbers = [({**labels, "state": each["state"]}, each["number"]) for each in project["jobs"]]
    assert desk.samples("boinc_gahp_jobs") == numbers
    owed = [({**labels, "kind": kind}, number) for kind, number in project["owed"].items()]
    assert desk.samples("boinc_gahp_owed") == owed
    assert project["owed"] == {"aborts": 1, "retirements": 0, "unsure_aborts": 0, "old_aborts": 0}
    assert desk.samples("boinc_gahp_last_poll_timestamp_seconds") == [(labels, 1e9)]
    assert (project["last_poll"], project["trouble"]) == ("2001-09-09T01:46:40Z", "HTTP 503")
    for name, value in (("daemon_running", 0), ("account_known", 1)):
        assert desk.samples(f"boinc_gahp_{name}") == [(labels, value)]
    [(_, since)] = desk.samples("boinc_gahp_trouble_timestamp_seconds")
    assert since == pytest.approx(time.time(), abs=60)


def test_a_daemon_at_work_is_reported(desk):
    accept(desk.jobs, 1)
    with at_work(desk.path.parent, *MINE):
        assert f"process {os.getpid()}" in desk.status()[1]
        assert desk.json()["projects"][0]["daemon"] is True
    assert desk.json()["projects"][0]["daemon"] is False


# -- whether a person should look


def down(desk):
    desk.jobs.project_trouble(*MINE, "HTTP 503")
    desk.do("UPDATE project SET trouble_since = trouble_since - 3700")


def batch(desk):
    batch_id, _ = on_project(desk.jobs, 5)
    desk.jobs.postpone(batch_id, 0.0, "HTTP 504")
    desk.do("UPDATE batch SET trouble_since = trouble_since - 3700")


def pending(desk):
    _, ids = on_project(desk.jobs, 5, 6)
    desk.jobs.cancel(ids[0])
    desk.do("UPDATE job SET changed = changed - 3700 WHERE state = 'cancelled'")


def unpaid(desk):
    _, ids = on_project(desk.jobs, 5)
    desk.jobs.cancel(ids[0])
    desk.jobs.abort_done(ids)
    desk.do("UPDATE batch SET changed = changed - 90000 WHERE state = 'ended'")


def cut_short(desk):
    desk.ledger.begin_submit(*MINE, "b_1", 7, time.time() - 90000)


def given_up(desk):
    desk.ledger.record_abort(*MINE, "b_17", 17, 0.0)
    desk.do("UPDATE batch SET sent = sent - 3700")


def stranded(desk):
    accept(desk.jobs, 5, account="another")


def orphans(desk):
    silent(desk.jobs, accept(desk.jobs, 4), 15)


def daemon(desk):
    desk.do("UPDATE job SET last_polled = last_polled - 3700")


def outputs(desk, trouble="out cannot be written: No space left on device"):
    batch_id, ids = on_project(desk.jobs, 5)
    desk.jobs.statuses(batch_id, {f"{NAME}-1": "finished"})
    desk.jobs.job_trouble(ids, trouble)
    desk.do("UPDATE job SET changed = changed - 3700 WHERE state = 'finished'")


def no_room(desk):
    outputs(desk, OutputError("out cannot be written: the disk is full").with_code())
    desk.do("UPDATE job SET changed = changed + 3700 WHERE state = 'finished'")


def account(desk):
    job_id = accept(desk.jobs, 5)
    desk.jobs.hold([job_id], Hold("bad authenticator", 2303, 0))
    desk.jobs.cancel(job_id)


CASES = {
    "down": (down, "project", f"{URL} for 61 min: HTTP 503"),
    "batch": (batch, "batch", "HTTP 504"),
    "owed": (pending, "owed", "1 job is still to be aborted"),
    "unpaid": (unpaid, "owed", "1 batch of this project should have been retired"),
    "cut short": (cut_short, "owed", "boinc_gahp ledger reconcile"),
    "given up": (given_up, "owed", "batch b_17 is still to be aborted"),
    "stranded": (stranded, "stranded", "boinc_gahp ledger move"),
    "orphans": (orphans, "orphans", "has not asked about 1 job for as long as"),
    "daemon": (daemon, "daemon", "no daemon works on 1 job"),
    "outputs": (outputs, "outputs", "No space left on device"),
    "no room, just now": (no_room, "outputs", "out cannot be written: the disk is full"),
    "account": (account, "account", "1 job went on hold lately with code 2303"),
}


@pytest.mark.parametrize("name", CASES)
def test_what_a_person_should_look_at_is_reported_in_words_and_by_the_exit_status(desk, name):
    accept(desk.jobs, 99)
    assert desk.reasons() == []
    make, reason, text = CASES[name]
    make(desk)
    assert desk.reasons() == [reason]
    assert text in desk.status()[1]


def test_a_daemon_that_asks_nothing_is_reported_once_it_should_have(desk):
    on_project(desk.jobs, 1)
    with at_work(desk.path.parent, *MINE) as lock:
        long_ago = time.time() - 5000
        desk.jobs.polled(*MINE, long_ago)
        # It may have begun a moment ago, or the jobs may have been sent a moment ago.
        assert desk.reasons() == []
        os.utime(lock.path, (long_ago, long_ago))
        assert desk.reasons() == []
        desk.do("UPDATE job SET changed = ?", long_ago)
        assert desk.reasons() == ["project"]
        assert f"process {os.getpid()}) has sent no jobs, and has had no answer" in desk.status()[1]
        # If nothing happens it asks every ten minutes.
        desk.jobs.polled(*MINE, time.time() - 4100)
        assert desk.reasons() == []


def test_a_daemon_that_hung_before_it_sent_anything_is_reported_but_not_one_that_is_sending(desk):
    sending, _ = (accept(desk.jobs, cluster) for cluster in (1, 2))
    with at_work(desk.path.parent, *MINE) as lock:
        long_ago = time.time() - 5000
        os.utime(lock.path, (long_ago, long_ago))
        desk.do("UPDATE job SET accepted = ?, changed = ?", long_ago, long_ago)
        assert desk.reasons() == ["project"]
        assert f"(kill -KILL {os.getpid()})" in desk.status()[1]
        desk.do("UPDATE job SET state = 'sending' WHERE id = ?", sending)
        assert desk.reasons() == []


def test_jobs_that_wait_for_weeks_are_no_reason(desk):
    on_project(desk.jobs, 1, 2)
    accept(desk.jobs, 3)
    desk.do("UPDATE job SET accepted = 1e9, changed = 1e9")
    assert desk.reasons() == []


def test_what_is_wrong_for_less_than_an_hour_is_no_reason_unless_asked_for(desk):
    accept(desk.jobs, 1)
    desk.jobs.project_trouble(*MINE, "HTTP 503")
    desk.do("UPDATE project SET trouble_since = trouble_since - 600")
    assert desk.reasons() == []
    assert desk.reasons("--after", "500") == desk.reasons("--after", "9min") == ["project"]
    assert desk.reasons("--after", "11min") == []


def test_the_gravest_comes_first(desk):
    for make in (orphans, pending, down):
        make(desk)
    assert desk.reasons() == ["project", "owed", "orphans"]


@pytest.mark.processes
@pytest.mark.parametrize("free", [0, 8000])
def test_a_disk_that_is_full_or_nearly_is_reported(desk, tmp_path, free):
    accept(desk.jobs, 1)
    desk.close()
    state = tmp_path / "small"
    state.mkdir()
    with desk.settings.open("a") as file:
        file.write(f"[state]\ndir = '{state}'\n")
    script = (
        'mount -t tmpfs -o size=8m,mode=700 none "$1" && cp "$2" "$1/ledger.sqlite" && '
        'chmod 600 "$1/ledger.sqlite" && '
        '{ [ "$3" != 0 ] || ! head -c 9m /dev/zero 2>/dev/null >"$1/fill"; } && '
        'shift 3 && "$@"; test $? = 1'
    )
    enter = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
    if ran(*enter, "true").returncode:
        pytest.skip("this user cannot have mounts of their own")
    command = [COMMAND, "ledger", "status"]
    ended = ran(*enter, script, "sh", state, desk.path, free, *command)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert f"are free on the disk with {state}; with less than 17 MB" in ended.stdout
    assert ("disk: 0 bytes are free" in ended.stdout) == (free == 0)


# -- a ledger that is not there, or not to be read


def test_without_a_ledger_all_is_well_and_none_is_made(desk):
    status, out, _ = desk.status()
    assert (status, out) == (0, f"There is no ledger {desk.path} yet; the first job creates it.\n")
    assert desk.reasons() == []
    assert desk.json()["projects"] == []
    assert desk.samples("boinc_gahp_ledger_readable")[0][1] == 1
    assert not desk.path.parent.exists()


def later_version(desk):
    accept(desk.jobs, 1)
    desk.close()
    with closing(sqlite3.connect(desk.path)) as connection:
        connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    return "install the boinc_gahp that made it"


def no_ledger(desk):
    desk.path.parent.mkdir(parents=True)
    desk.path.write_text("A letter, and no database: " + "x" * 4096)
    return "it is not a ledger: move it away"


def link(desk):
    desk.path.parent.mkdir(parents=True)
    desk.path.symlink_to(desk.home / "elsewhere")
    (desk.home / "elsewhere").touch()
    return "is a symbolic link"


def lost(desk):
    desk.path.parent.mkdir(parents=True)
    lock = AccountLock(desk.path.parent, URL, ACCOUNT)
    assert lock.try_acquire()
    lock.release()
    return "was here and is gone"


def broken_settings(desk):
    desk.settings.write_text("[project\n")
    return "boinc_gahp.toml"


@pytest.mark.parametrize("break_it", [later_version, no_ledger, link, lost, broken_settings])
def test_what_cannot_be_read_is_a_reason_and_metrics_are_written_all_the_same(desk, break_it):
    words = break_it(desk)
    reason = "settings" if break_it is broken_settings else "ledger"
    before = time.time()
    assert desk.reasons() == [reason]
    found = desk.json()
    assert words in found["problems"][0]["text"]
    assert (found["readable"], found["projects"]) == (False, [])
    assert desk.samples("boinc_gahp_ledger_readable") == [({"user": user_name()}, 0)]
    [(_, written)] = desk.samples("boinc_gahp_status_timestamp_seconds")
    assert written >= before


def test_it_changes_nothing_while_another_process_writes(desk):
    accept(desk.jobs, 1)
    with closing(sqlite3.connect(desk.path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("UPDATE job SET state = 'done'")
        before = {path.name: path.stat().st_mtime_ns for path in desk.path.parent.iterdir()}
        (project,) = desk.json()["projects"]
        after = {path.name: path.stat().st_mtime_ns for path in desk.path.parent.iterdir()}
        connection.execute("ROLLBACK")
    assert {job["state"] for job in project["jobs"] if job["number"]} == {"waiting"}
    # Of what SQLite's processes share about the log, times of looking are part.
    before.pop("ledger.sqlite-shm")
    after.pop("ledger.sqlite-shm")
    assert after == before


# -- whatever is in it


def test_what_others_wrote_can_do_nothing_to_a_terminal_or_a_parser(desk):
    url = 'https://boinc.example.edu/"a\\b\n\x1b[31m/'
    accept(desk.jobs, 1)
    desk.do("UPDATE project SET url = ?, trouble = ?, trouble_since = 1.0", url, "\x1b[31m\nred")
    _, out, _ = desk.status()
    assert "\x1b" not in out
    desk.status("--textfile", str(desk.metrics))
    shown = 'https://boinc.example.edu/"a\\b\\n\\x1b[31m/'
    assert {labels["project"] for labels, _ in desk.samples("boinc_gahp_jobs")} == {shown}
