"""Programs of people, from a command line to folders, in real containers."""

import csv
from pathlib import Path

import pytest

from boinc_gahp.api.outputs.folders import read_note
from boinc_gahp.api.programs import program_batch
from tests.containers_engine import IMAGE

# A machine with other work starts a container in seconds.
pytestmark = [pytest.mark.long, pytest.mark.containers, pytest.mark.timeout(1200)]

#: How many jobs a batch has, and how many are done.
_OF = (
    "SELECT count(*), count(nullif(w.canonical_resultid, 0)) "
    "FROM workunit w JOIN batch b ON b.id = w.batch WHERE b.name = ?"
)
HARD = ["two words", "it's", "$HOME", "`id`", "\\", 'a"b', "*", "<&>", "ü", "", "{}"]


@pytest.fixture
def project(in_containers):
    return in_containers.project


def script(path, text):
    made = Path(path)
    made.parent.mkdir(parents=True, exist_ok=True)
    made.write_text(f"#!/bin/sh\n{text}\n")
    made.chmod(0o755)


def run(project, command, name, **more):
    """Submit a program, and wait for it."""
    return submitted(project, command, name, **more).wait(timeout=500)


def submitted(project, command, name, **more):
    made = program_batch(project.session, command, image=IMAGE, name=name, **more)
    return project.submit(made.app, made.jobs, **made.options)


def test_words_variables_files_and_directories_go_there_and_outputs_come_back(project, tmp_path):
    script(
        "bin/fit.sh",
        'printf "%s\\n" "$@" "$A"; cat data/a.csv model/deep/m in.txt b.csv >all; '
        "mkdir -p plots/x; echo 1 >plots/x/y; echo oops >&2",
    )
    here = tmp_path / "here"
    (here / "data").mkdir()
    (here / "data/a.csv").write_text("a\n")
    (here / "model/deep").mkdir(parents=True)
    (here / "model/deep/m").write_text("m\n")
    (tmp_path / "b.csv").write_text("b\n")
    batch = run(
        project,
        ["bin/fit.sh", "{word}", "data/a.csv", "--config=model", "../b.csv", "--to=/etc/passwd"],
        "words",
        rows=[{"word": each} for each in HARD if each],
        inputs={"in.txt": str(here / "data/a.csv")},
        environment={"A": " ".join(HARD)},
        outputs=["all", "plots"],
    )
    fetched = batch.fetch("out")
    assert fetched.is_complete
    for number, word in enumerate(each for each in HARD if each):
        job = batch.job(f"words_{number}")
        said = [word, "data/a.csv", "--config=model", "b.csv", "--to=/etc/passwd", " ".join(HARD)]
        assert (job.folder / "stdout.txt").read_text().splitlines() == said
        assert (job.folder / "stderr.txt").read_text() == "oops\n"
        assert (job.folder / "all").read_text() == "a\nm\na\nb\n"
        assert (job.folder / "plots/x/y").read_text() == "1\n"
        assert job.stderr == "oops\n"
    [first, *_] = batch.to_records()
    assert first["args"].startswith("bin/fit.sh 'two words' data/a.csv")
    assert not [key for key in first if key.startswith(("input:", "md5:"))]


def test_all_new_and_changed_files_come_back_if_none_is_named(project):
    Path("kept.txt").write_text("kept\n")
    Path("in.txt").write_text("in\n")
    command = ["sh", "-c", "echo more >>in.txt; echo x >new; echo s >stdout.txt", "kept.txt"]
    batch = run(project, [*command, "in.txt"], "new")
    batch.fetch("out")
    folder = batch.job("new_0").folder
    found = {path.name for path in folder.iterdir()}
    # The file of that name is the program's standard output.
    assert found == {
        ".boinc_gahp.json",
        "in.txt",
        "new",
        "stdout.txt",
        "stdout.program.txt",
        "stderr.txt",
    }
    assert (folder / "stdout.program.txt").read_text() == "s\n"
    # What is deleted is fetched again, also from the archive.
    (folder / "new").unlink()
    assert batch.fetch("out").fetched == 1
    assert (folder / "new").read_text() == "x\n"
    assert batch.fetch("out").here == 1


def test_programs_that_end_badly_have_failed_for_people_and_can_be_sent_again(
    in_containers, project, tmp_path
):
    script(
        "fit.sh",
        'case $1 in 1) echo "ValueError: bad" >&2; exit 3;; 2) kill -9 $$;; 3) exit 0;; esac\n'
        "echo $1 >result",
    )
    rows = [{"n": number} for number in range(4)]
    batch = run(project, "./fit.sh {n}", "bad", rows=rows, outputs=["result"])
    assert batch.reasons() == []
    fetched = batch.fetch("out")
    assert (fetched.fetched, fetched.failed, fetched.is_complete) == (4, 0, False)
    missing = "the program ended with status 0, but did not make 'result'"
    why = {"bad_1": "exit status 3", "bad_2": "signal 9 (SIGKILL)", "bad_3": missing}
    assert fetched.failed_programs == why
    rows_of = {row["job"]: row for row in batch.to_records()}
    assert {name: rows_of[name]["why"] for name in why} == why
    assert [row["state"] for row in rows_of.values()] == ["done", "failed", "failed", "failed"]
    assert [row["exit_status"] for row in rows_of.values()] == [0, 3, -9, 0]
    with (tmp_path / "here/out/jobs.csv").open(newline="") as file:
        table = {row["job"]: row for row in csv.DictReader(file)}
    assert {name: table[name]["why"] for name in why} == why
    reasons = {reason.end.why: reason for reason in batch.reasons()}
    assert set(reasons) == set(why.values())
    assert reasons["exit status 3"].stderr == "ValueError: bad"
    assert reasons["exit status 3"].end.exit_status == 3
    logs = {log.name: log for log in batch.logs()}
    assert (logs["bad_1"].stderr, logs["bad_1"].exit_statuses) == ("ValueError: bad\n", (3,))
    # Somebody mends the cause; here it is in the project, so the same is sent and fails again.
    again = batch.retry(["bad_1"])
    again.wait(timeout=500)
    assert batch.fetch("out").failed_programs == why
    assert {row["job"]: row["attempts"] for row in batch.to_records()}["bad_1"] == 2
    note = read_note(tmp_path / "here/out/bad_1")
    assert note.job_id == next(iter(again)).id
    assert note.failure == "exit status 3"
    assert in_containers.rows(_OF, "bad") == [(4, 4)]


def test_a_program_that_is_not_there_is_told(project):
    batch = run(project, "no-such-program", "none")
    [log] = batch.logs()
    assert log.why == (
        "the image has no program 'no-such-program', and the job does not bring one of that name"
    )
    assert batch.fetch("out").failed_programs == {"none_0": log.why}
