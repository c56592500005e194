"""The other actions of ``local-project``, on a project that does not run."""

import json
import stat

import pytest

from boinc_gahp.cli.main import main
from boinc_gahp.config import layers
from boinc_gahp.localproject import commands
from boinc_gahp.localproject.directory import open_core
from boinc_gahp.localproject.hosts import hosts
from tests.cli.conftest import empty_batch, rows

# Users.


def test_a_user_gets_settings_that_nobody_else_can_read(do, directory):
    status, out, errors = do("add-user", "alice", "--max-jobs", "5", "--app", "uppercase")
    path = directory / "users" / "alice.toml"
    assert (status, errors) == (0, "")
    assert f"export BOINC_GAHP_CONFIG={path}\n" in out
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    settings = layers.load(str(path), {})
    assert settings.project is not None
    assert settings.project.authenticator is not None
    secret = settings.project.authenticator.reveal()
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
    done = do("add-user", *words)
    assert done[0] == status
    assert said in done[2]
    assert rows(directory, "SELECT * FROM user WHERE name = 'dave'") == []
    assert not (directory / "users" / "dave.toml").exists()


# Apps.


def test_an_app_gets_templates_that_pass_the_checker(do, directory):
    words = ["--in", "a", "--in", "b", "--out", "c", "--optional-out", "d", "--out", "e"]
    more = [
        "--quorum",
        "2",
        "--validator",
        "bitwise",
        "--max-nbytes",
        "1e3",
    ]
    status, out, errors = do("add-app", "sorts", "--command", "sort -o c a b", *words, *more)
    assert (status, errors) == (0, "")
    assert out.startswith("App sorts, version 100: /")
    core = open_core(directory)
    try:
        read = core.input_template(core.templates / "sorts_in")
        written = core.output_template(core.templates / "sorts_out")
    finally:
        core.db.close()
    assert [(file.open_name, file.no_delete, file.copy_file) for file in read.files] == [
        ("a", True, False),
        ("b", True, False),
    ]
    assert (read.min_quorum, read.target_nresults) == (2, 2)
    assert [(file.open_name, file.optional) for file in written.files] == [
        ("c", False),
        ("d", True),
        ("e", False),
    ]
    assert all(f.no_delete and f.max_nbytes == 1000 for f in written.files)
    for kind in ("in", "out"):
        assert main(["template", "check", str(directory / "templates" / f"sorts_{kind}")]) == 0
    assert do("create-work", "sorts", "--wu_name", "so", "data.txt", "data.txt")[0] == 0


def test_another_version_of_an_app_is_added(do, directory):
    given = ["--in", "in", "--out", "out"]
    assert do("add-app", "grows", "--command", "true", *given)[0] == 0
    assert do("add-app", "grows", "--command", "false", "--version", "101")[0] == 0
    status, _, errors = do("add-app", "grows", "--command", "false", "--version", "101")
    assert (status, "has a version 101 already (it has 100, 101)" in errors) == (1, True)
    status, _, errors = do("add-app", "grows", "--command", "false", "--version", "102", *given)
    assert (status, "give only --version and --command" in errors) == (1, True)


# Hosts. They are made when a project runs; here by hand.


@pytest.fixture
def host(directory):
    core = open_core(directory)
    try:
        hosts.register(core.db, 1)
    finally:
        core.db.close()
    return "volunteer-0"


def test_hosts_and_jobs_are_told_how_to_behave(do, directory, host):
    assert do("behave", host, "fail=3", "slow=2x5") == (0, f"Host {host}: fail=3 slow=2x5\n", "")
    assert do("create-work", "uppercase", "--wu_name", "crashes", "data.txt")[0] == 0
    assert do("behave", "--job", "crashes", "crash") == (0, "Job crashes: crash\n", "")
    kinds = {row["kind"] for row in rows(directory, "SELECT kind FROM behaviour")}
    assert kinds == {"fail", "slow", "crash"}
    assert do("behave", host, "normal") == (0, f"Host {host}: normal\n", "")
    assert do("behave", "normal", "--job", "crashes")[0] == 0
    assert rows(directory, "SELECT kind FROM behaviour") == []


def test_a_host_gets_other_capacities(do, directory, host):
    assert do("set-host", host, "speed=5e9", "memory=2e9")[0] == 0
    (row,) = rows(directory, "SELECT * FROM host WHERE domain_name = ?", host)
    assert (row["p_fpops"], row["m_nbytes"], row["d_free"]) == (5e9, 2e9, 1e12)


# Status, help, and directories that cannot be used.


def test_status_tells_what_there_is_and_no_secrets(do, directory, host):
    batch_id = empty_batch(directory, "shown")
    do("create-work", "uppercase", "--wu_name", "seen", "--batch", batch_id, "data.txt")
    do("create-work", "uppercase", "--wu_name", "alone", "data.txt")
    do("behave", host, "late=5")
    status, out, errors = do("status")
    assert (status, errors) == (0, "")
    assert f"The project in {directory} does not run now" in out
    for words in (
        "shown",
        "uppercase",
        "in progress",
        "submitter",
        "late=5",
        "(jobs without a batch)",
    ):
        assert words in out
    status, text, _ = do("status", "--json")
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
        "add-app": ["a", "--command", "sh", "--out", "o"],
        "add-user": ["u"],
        "behave": ["h", "crash"],
        "create-work": ["a"],
        "set-host": ["h", "speed=1"],
        "stage-file": ["f"],
        "status": [],
    }
    assert main(["local-project", action, str(tmp_path), *words[action]]) == 1
    assert f"there is no project in {tmp_path}: make one with boinc_gahp local-project init" in (
        capsys.readouterr().err
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("action", ["init", "run", "status"])
def test_a_database_of_another_version_is_left_alone(action, tmp_path, capsys):
    directory = tmp_path / "p"
    assert main(["local-project", "init", str(directory)]) == 0
    core = open_core(directory)
    core.db.connection().execute("PRAGMA user_version = 99")
    core.db.close()
    before = (directory / "project.sqlite").read_bytes()
    assert main(["local-project", action, str(directory)]) == 1
    assert "made by another version of boinc_gahp (its schema is 99" in capsys.readouterr().err
    assert (directory / "project.sqlite").read_bytes() == before


def test_a_user_gets_an_address_and_a_password_from_standard_input(do, directory):
    status, out, errors = do(
        "add-user", "ada", "--email", "Ada@Example.edu", stdin="correct horse\n"
    )
    assert (status, errors) == (0, "")
    assert "correct horse" not in out
    (row,) = rows(directory, "SELECT email_addr, passwd_hash FROM user WHERE name = 'ada'")
    assert row["email_addr"] == "ada@example.edu"
    assert row["passwd_hash"]
