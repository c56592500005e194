"""The other actions of ``local-project``, on a project that does not run."""

import json
import stat
from pathlib import Path

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


def test_a_command_names_its_files_by_full_paths_and_keeps_placeholders(
    do, directory, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    Path("app.py").write_text("")
    Path("in").write_text("")
    for name, command in (("plain", "sh app.py in $HOME '*'"), ("placed", "{python} -I app.py")):
        given = ["--command", command, "--in", "in", "--out", "out"]
        assert do("add-app", name, *given)[0] == 0
    commands = rows(
        directory,
        "SELECT command FROM app_version v JOIN app a ON a.id = v.appid "
        "WHERE name IN ('plain', 'placed') ORDER BY v.id",
    )
    plain, placed = (json.loads(str(row["command"])) for row in commands)
    assert Path(plain[0]).is_absolute()
    assert plain[1:] == [f"{tmp_path}/app.py", "in", "$HOME", "*"]
    assert placed == ["{python}", "-I", f"{tmp_path}/app.py"]


def test_another_version_of_an_app_is_added(do, directory):
    given = ["--in", "in", "--out", "out"]
    assert do("add-app", "grows", "--command", "true", *given)[0] == 0
    assert do("add-app", "grows", "--command", "false", "--version", "101")[0] == 0
    status, _, errors = do("add-app", "grows", "--command", "false", "--version", "101")
    assert (status, "has a version 101 already (it has 100, 101)" in errors) == (1, True)
    status, _, errors = do("add-app", "grows", "--command", "false", "--version", "102", *given)
    assert (status, "give only --version and --command" in errors) == (1, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--command", "/etc/passwd", "--out", "o"], "it is not an executable file"),
        (["--command", "sh 'x", "--out", "o"], "cannot be split: No closing quotation"),
        (["--command", "sh", "--out", "o", "--out", "o"], "'o' is given twice"),
        (["--command", "sh", "--out", "o", "--validator", "nosuch"], "no module 'nosuch'"),
        (["--command", "sh", "--out", "o", "--assimilator", "json:nosuch"], "has no 'nosuch'"),
    ],
    ids=["not-executable", "quote", "twice", "plugin", "attr"],
)
def test_an_app_that_could_not_work_is_refused(do, directory, words, said):
    status, _, errors = do("add-app", "bad", *words)
    assert status == 1
    assert said in errors
    assert rows(directory, "SELECT * FROM app WHERE name = 'bad'") == []
    assert not (directory / "templates" / "bad_in").exists()


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


def test_to_a_job_that_has_ended_it_is_too_late_to_say(do, directory):
    assert do("create-work", "uppercase", "--wu_name", "over", "data.txt")[0] == 0
    core = open_core(directory)
    with core.db.write() as connection:
        connection.execute("UPDATE workunit SET error_mask = 2 WHERE name = 'over'")
    core.db.close()
    assert do("behave", "--job", "over", "crash") == (0, "Job over (it has ended): crash\n", "")
    assert do("behave", "--job", "over", "normal")[0] == 0


def test_a_host_gets_other_capacities(do, directory, host):
    assert do("set-host", host, "speed=5e9", "memory=2e9")[0] == 0
    (row,) = rows(directory, "SELECT * FROM host WHERE domain_name = ?", host)
    assert (row["p_fpops"], row["m_nbytes"], row["d_free"]) == (5e9, 2e9, 1e12)


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["behave", "volunteer-0"], 2, "the behaviour is missing: fail=STATUS"),
        (
            ["behave", "volunteer-0", "normal", "crash"],
            1,
            "cannot be combined with other behaviours",
        ),
        (["set-host", "nosuch", "speed=1"], 1, "there is no host 'nosuch'"),
        (["set-host", "volunteer-0", "speed=fast"], 2, "speed: 'fast' was given; a number"),
        (["set-host", "volunteer-0", "wheels=4"], 2, "expected one of speed=X, memory=X"),
        (["set-host", "volunteer-0", "speed=0"], 1, "expected a positive number"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "",
)
def test_a_wrong_word_about_hosts_is_answered_with_what_is_expected(do, host, words, status, said):
    done = do(*words)
    assert done[0] == status
    assert said in done[2]


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
        "all apps",
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


@pytest.mark.parametrize(
    ("email", "password", "says"),
    [("eve@example.edu", "short", "at least 6"), ("no address", "correct horse", "is not an")],
)
def test_a_user_with_a_wrong_login_is_not_added(do, directory, email, password, says):
    status, _, errors = do("add-user", "eve", "--email", email, stdin=password)
    assert status == 1
    assert says in errors
    assert rows(directory, "SELECT name FROM user WHERE name = 'eve'") == []
