"""The other actions of ``local-project``, on a project that does not run."""

import json
import re
import stat

import pytest

from boinc_gahp.cli.main import main
from boinc_gahp.config import layers
from boinc_gahp.localproject import commands
from boinc_gahp.localproject.directory import open_core
from boinc_gahp.localproject.hosts import hosts
from tests.cli.conftest import LocalProjectCommand, empty_batch, rows

# Users.


def test_a_user_gets_settings_that_nobody_else_can_read(do, directory):
    out = do.prints("add-user", "alice", "--max-jobs", "5", "--app", "uppercase")
    path = directory / "users" / "alice.toml"
    assert f"export BOINC_GAHP_CONFIG={path}\n" in out
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    secret = layers.load(str(path), {}).project.authenticator.reveal()
    assert secret not in out
    (user,) = rows(directory, "SELECT id FROM user WHERE authenticator = ?", secret)
    (rights,) = rows(directory, "SELECT * FROM user_submit WHERE user_id = ?", user["id"])
    assert (rights["submit_all"], rights["max_jobs_in_progress"]) == (0, 5)
    assert len(rows(directory, "SELECT * FROM user_submit_app WHERE user_id = ?", user["id"])) == 1


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["submitter"], 1, "there is a user 'submitter' already"),
        (["../x"], 1, "cannot be named '../x'"),
        (["dave", "--app", "nosuch"], 1, "app not found: nosuch"),
        (["dave", "--max-jobs", "0"], 2, "'0' was given"),
    ],
    ids=["taken", "name", "app", "limit"],
)
def test_a_user_that_cannot_be_added_leaves_nothing(do, directory, words, status, said):
    assert said in do.refuses("add-user", *words, status=status)
    assert rows(directory, "SELECT * FROM user WHERE name = 'dave'") == []
    assert not (directory / "users" / "dave.toml").exists()


# Apps.


def test_an_app_gets_templates_that_pass_the_checker(do, directory):
    files = "--in a --in b --out c --optional-out d --out e"
    more = f"{files} --quorum 2 --validator bitwise --max-nbytes 1e3"
    out = do.prints("add-app", "sorts", "--command", "sort -o c a b", *more.split())
    assert out.startswith("App sorts, version 100: /")
    core = open_core(directory)
    try:
        read = core.input_template(core.templates / "sorts_in")
        written = core.output_template(core.templates / "sorts_out")
    finally:
        core.db.close()
    inputs = [(file.open_name, file.no_delete, file.copy_file) for file in read.files]
    assert inputs == [("a", True, False), ("b", True, False)]
    assert (read.min_quorum, read.target_nresults) == (2, 2)
    outputs = [(file.open_name, file.optional) for file in written.files]
    assert outputs == [("c", False), ("d", True), ("e", False)]
    assert all(f.no_delete and f.max_nbytes == 1000 for f in written.files)
    for kind in ("in", "out"):
        assert main(["template", "check", str(directory / "templates" / f"sorts_{kind}")]) == 0
    do.prints("create-work", "sorts", "--wu_name", "so", "data.txt", "data.txt")


def test_another_version_of_an_app_is_added(do, directory):
    given = ("--in", "in", "--out", "out")
    words = ("add-app", "grows", "--command", "false")
    do.prints(*words, *given)
    do.prints(*words, "--version", "101")
    told = "has a version 101 already (it has 100, 101)"
    assert told in do.refuses(*words, "--version", "101")
    assert "give only --version and --command" in do.refuses(*words, "--version", "102", *given)


@pytest.fixture
def container_app(directory, do):
    """An app for containers, called docker."""
    if not rows(directory, "SELECT * FROM app WHERE name = 'docker'"):
        out = do.prints("add-app", "docker", "--container", "--validator", "bitwise")
        assert ("To run a program with it" in out) != ("Jobs that need containers wait" in out)


@pytest.mark.usefixtures("container_app")
@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        ("docker --container", 1, "there is an app 'docker' already"),
        ("docker --version 101 --command true", 1, "it has one version only"),
        ("other --container --validator nosuch", 1, "nosuch"),
        ("barred --container", 1, "barred_in would apply to every job"),
        # What jobs bring themselves.
        ("other --container --command true", 2, "does not go with --container"),
        ("other --container --in a", 2, "does not go with --container"),
        ("other --container --max-nbytes 2", 2, "does not go with --container"),
        ("app --out x", 2, "--command is missing (or --container"),
    ],
)
def test_what_does_not_go_with_an_app_for_containers_is_refused(do, directory, words, status, told):
    (directory / "templates" / "barred_in").write_text("<input_template/>")
    assert told in do.refuses("add-app", *words.split(), status=status)


# Hosts. They are made when a project runs; here by hand.


@pytest.fixture
def host(directory):
    core = open_core(directory)
    hosts.register(core.db, 1)
    core.db.close()
    return "volunteer-0"


def test_hosts_and_jobs_are_told_how_to_behave(do, directory, host):
    assert do.prints("behave", host, "fail=3", "slow=2x5") == f"Host {host}: fail=3 slow=2x5\n"
    do.prints("create-work", "uppercase", "--wu_name", "crashes", "data.txt")
    assert do.prints("behave", "--job", "crashes", "crash") == "Job crashes: crash\n"
    kinds = {row["kind"] for row in rows(directory, "SELECT kind FROM behaviour")}
    assert kinds == {"fail", "slow", "crash"}
    assert do.prints("behave", host, "normal") == f"Host {host}: normal\n"
    do.prints("behave", "normal", "--job", "crashes")
    assert rows(directory, "SELECT kind FROM behaviour") == []


def test_a_host_gets_other_capacities(do, directory, host):
    do.prints("set-host", host, "speed=5e9", "memory=2e9")
    (row,) = rows(directory, "SELECT * FROM host WHERE domain_name = ?", host)
    assert (row["p_fpops"], row["m_nbytes"], row["d_free"]) == (5e9, 2e9, 1e12)


# Status, help, and directories that cannot be used.


def test_status_tells_what_there_is_and_no_secrets(do, directory, host):
    batch_id = empty_batch(directory, "shown")
    do("create-work", "uppercase", "--wu_name", "seen", "--batch", batch_id, "data.txt")
    do("create-work", "uppercase", "--wu_name", "alone", "data.txt")
    do("behave", host, "late=5")
    out = do.prints("status")
    assert f"The project in {directory} does not run now" in out
    words = ("shown", "uppercase", "running", "submitter", "late=5", "(jobs without a batch)")
    assert [word for word in words if word not in out] == []
    jobs = "Jobs: # total, # waiting, # running, # done, # failed"
    assert jobs in re.sub("[0-9]+", "#", out).splitlines()
    text = do.prints("status", "--json")
    found = json.loads(text)
    assert found["running"] is False
    (batch,) = [batch for batch in found["batches"] if batch["name"] == "shown"]
    assert batch["jobs"]["queued"] == batch["jobs"]["total"] == 1
    assert found["jobs_without_batch"]["queued"] >= 1
    assert {host["name"]: host["behaviours"] for host in found["hosts"]} == {host: ["late=5"]}
    for row in rows(directory, "SELECT authenticator FROM user"):
        assert str(row["authenticator"]) not in out + text


@pytest.mark.parametrize("action", sorted(set(commands.ACTIONS) - {"init", "run"}))
def test_an_action_on_no_project_says_how_to_make_one(action, tmp_path, capsys):
    words = {
        "add-app": "a --command sh --out o",
        "add-user": "u",
        "behave": "h crash",
        "create-work": "a",
        "set-host": "h speed=1",
        "stage-file": "f",
        "status": "",
    }[action]
    err = LocalProjectCommand(capsys, tmp_path).refuses(action, *words.split())
    assert f"no project in {tmp_path}: make one with boinc_gahp local-project init" in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("action", ["init", "run", "status"])
def test_a_database_of_another_version_is_left_alone(action, tmp_path, capsys):
    directory = tmp_path / "p"
    do = LocalProjectCommand(capsys, directory)
    do.prints("init")
    core = open_core(directory)
    core.db.connection().execute("PRAGMA user_version = 99")
    core.db.close()
    before = (directory / "project.sqlite").read_bytes()
    assert "made by another version of boinc_gahp (its schema is 99" in do.refuses(action)
    assert (directory / "project.sqlite").read_bytes() == before


def test_a_user_gets_an_address_and_a_password_from_standard_input(do, directory):
    out = do.prints("add-user", "ada", "--email", "Ada@Example.edu", stdin="correct horse\n")
    assert "correct horse" not in out
    (row,) = rows(directory, "SELECT email_addr, passwd_hash FROM user WHERE name = 'ada'")
    assert row["email_addr"] == "ada@example.edu"
    assert row["passwd_hash"]
