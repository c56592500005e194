"""``boinc_gahp batch run``: what is sent for a command. Real containers: ``test_containers_*``."""

import json

import pytest

from boinc_gahp.api.programs import ProgramKeywords
from boinc_gahp.cli.batch.running import run_program_parser
from boinc_gahp.containers.rules import ASKED
from tests.cli.batch.conftest import opened

RUN = ("run", "--image", "debian:12-slim", "--app", "docker")


@pytest.fixture(scope="module")
def _site(tmp_path_factory):
    """A project with an app for containers; nobody computes its jobs."""
    with opened(tmp_path_factory.mktemp("run"), hosts=0) as site:
        site.project.add_container_app("docker")
        yield site


@pytest.fixture(autouse=True)
def data(here):
    """The working directory, with a program and data."""
    (here / "data").mkdir()
    for name in ("data/a.csv", "data/b 2.csv"):
        (here / name).write_text(f"{here} {name}\n")
    (here / "fit.sh").write_text("#!/bin/sh\n")
    (here / "rows.csv").write_text("n,label\n1,one\n2,two words\n")


def shown(batch, *words):
    """Send a batch; return what ``batch show`` tells of it, and its name."""
    name = json.loads(batch.prints(*RUN, "--json", *words))["name"]
    return batch.json("show", name), name


def commands(found):
    return [job["args"] for job in found["jobs"]]


def test_each_file_is_in_the_command_and_goes_along(site, batch):
    found, name = shown(batch, "--each", "data/*.csv", "--", "./fit.sh", "--to={stem}", "{file}")
    assert commands(found) == [
        ["./fit.sh", "--to=a", "data/a.csv"],
        ["./fit.sh", "--to=b 2", "data/b 2.csv"],
    ]
    assert name.startswith("fit-")
    assert [[each["name"] for each in job["inputs"]] for job in found["jobs"]] == [
        ["data/a.csv", "fit.sh"],
        ["data/b 2.csv", "fit.sh"],
    ]


def test_a_script_in_the_command_line_can_have_the_name_of_its_file(site, batch):
    script = ("--each", "data/a.csv", "--", "sh", "-c", "wc {file} > {stem}.out")
    found, _ = shown(batch, "--input", "{file}", *script)
    assert commands(found) == [["sh", "-c", "wc data/a.csv > a.out"]]
    assert [each["name"] for each in found["jobs"][0]["inputs"]] == ["data/a.csv"]
    found, _ = shown(batch, "--no-find", *script)
    assert found["jobs"][0]["inputs"] == []


def test_words_behind_the_dashes_are_the_commands(site, batch):
    found, _ = shown(batch, "--count", "2", "--", "echo", "{index:3}", "--name", "x")
    assert commands(found) == [["echo", "000", "--name", "x"], ["echo", "001", "--name", "x"]]


def test_the_same_command_again_sends_nothing_and_another_one_is_told(site, batch):
    words = ("--name", "run-twice", "--", "./fit.sh", "--n")
    batch.prints(*RUN, *words, "5")
    told = "It was there already, with these jobs: nothing was sent."
    assert told in batch.prints(*RUN, *words, "5")
    err = batch.refuses(*RUN, *words, "6")
    assert "than these: command of job run-twice_0; to submit these as a new batch" in err
    err = batch.refuses(*RUN, "--env", "A=1", *words, "5")
    assert "environment of job run-twice_0;" in err
    assert "outputs of job run-twice_0;" in batch.refuses(*RUN, "--output", "x", *words, "5")


def test_a_dry_run_shows_what_the_program_would_find(site, batch):
    words = ("--dry-run", "--input", "in.csv=data/a.csv", "--", "./fit.sh", "two words", "data")
    out = batch.prints(*RUN, *words)
    assert "./fit.sh 'two words' data  " in out
    assert "in.csv=data/a.csv data/ fit.sh" in out
    assert "run.sh (made for these jobs)" in out
    assert "It was not checked whether the image " in out
    assert not [info for info in site.rpc.query_batches() if info.name.startswith("fit-dry")]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--", "./no.sh"], 'the program "./no.sh" is no file here'),
        (["--", "fit.sh"], 'there is a file of this name here: write "./fit.sh" to send it'),
        (["--output", "{index}.out", "--", "id"], 'the output "{index}.out" has a placeholder'),
        (["--output", "../up", "--", "id"], 'the output "../up" is not in the job\'s directory'),
        (["--env", "API_KEY=1", "--", "id"], "API_KEY looks like that of a secret"),
        (["--env", "A", "--", "id"], "--env 'A': expected NAME=VALUE"),
    ],
)
def test_what_cannot_be_is_told_before_anything_is_sent(batch, words, told):
    err = batch.refuses(*RUN, *words)
    assert told in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["./fit.sh"], "the command is expected behind --"),
        (["./fit.sh", "--title", "x"], "the command is expected behind --, as in: -- ./fit.py"),
        (["--"], "there is no command behind --"),
        (["--cpus", "5000", "--", "id"], "'5000' was given; a number from 1 to 1024 is expected"),
        (["--", "echo", "{seed}"], "{seed} is not a placeholder"),
        (
            ["--each", "data/*", "--", "sh", "-c", "wc {file}"],
            "the word 'wc {file}' is no path, so its {file} would not be sent: add --input {file}",
        ),
        (["--each", "data/*", "--", "./fit.sh"], "the program is not told its file"),
        (["--", "echo", "{file}"], "there is no --each"),
    ],
)
def test_a_wrong_command_line_has_status_2(batch, words, told):
    assert told in batch.refuses(*RUN, *words, status=2)


def test_a_secret_can_be_allowed_and_an_image_can_be_wrong(site, batch):
    words = ("--env", "KEYBOARD=de", "--allow-env", "KEYBOARD", "--", "env")
    found, _ = shown(batch, *words)
    assert commands(found) == [["env"]]
    err = batch.refuses("run", "--image", "Not An Image", "--app", "docker", "--", "id")
    assert "is not the name of an image" in err


def test_without_an_app_the_setting_is_named(site, batch):
    assert 'container_app = "docker"' in batch.refuses("run", "--image", "debian", "--", "id")


def test_a_submit_tells_what_it_sends_along(site, batch, here):
    (here / "data/far").symlink_to("/etc/hostname")
    words = ("--name", "along", "--", "./fit.sh", "data")
    told = "data/far' is a symbolic link that leads out of the directory"
    assert told in batch.refuses(*RUN, *words)
    (here / "data/far").unlink()
    (here / "data/far").symlink_to("../rows.csv")
    names = ["data/a.csv", "data/b 2.csv", "data/far", "fit.sh"]
    size = sum((here / name).stat().st_size for name in names)
    told = f"4 files, {size} bytes sent along: data/ (3 files), fit.sh"
    follow = (*RUN, "--follow-links")
    out = batch.prints(*follow, "--dry-run", *words)
    listed = out.partition(told)[2].partition("\n\n")[0]
    assert [name for name in names if name not in listed] == []
    plan = json.loads(batch.prints(*follow, "--dry-run", "--json", *words))
    assert [each["path"] for each in plan["sent_along"]] == names
    assert batch.prints(*follow, *words).count(told) == 1
    assert "sent along" not in batch.prints(*follow, *words)


def test_what_may_be_asked_for_is_the_same_on_the_command_line_and_in_python():
    given = vars(run_program_parser().read(["--image", "x", "--", "id"]))
    for each in ASKED.values():
        assert given[each.name] == each.default
        assert each.name in ProgramKeywords.__annotations__
