"""``local-project add-app --container``, and what does not go with it."""

import pytest

from boinc_gahp.localproject.commands import run
from boinc_gahp.localproject.directory import make, open_core
from boinc_gahp.localproject.errors import LocalProjectTrouble


@pytest.fixture
def directory(tmp_path):
    made = tmp_path / "project"
    make(made)
    return made


def add(directory, *words):
    return run(["add-app", str(directory), *words], None)


def test_a_container_app_has_the_wrapper_a_plan_class_and_no_templates(directory, capsys):
    assert add(directory, "docker", "--container", "--validator", "bitwise") == 0
    printed = capsys.readouterr().out
    assert ("To run a program with it" in printed) != ("Jobs that need containers wait" in printed)
    core = open_core(directory)
    row = (
        core.db.connection()
        .execute(
            "SELECT a.validator, v.command, v.plan_class FROM app a JOIN app_version v "
            "ON v.appid = a.id WHERE a.name = 'docker'"
        )
        .fetchone()
    )
    core.db.close()
    assert tuple(row) == ("bitwise", '["docker_wrapper"]', "docker")
    assert not list((directory / "templates").glob("docker_*"))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["docker", "--container"], "there is an app 'docker' already"),
        (["uppercase", "--container"], "there is an app 'uppercase' already"),
        (["docker", "--version", "101", "--command", "true"], "it has one version only"),
        (["other", "--container", "--validator", "nosuch"], "nosuch"),
    ],
)
def test_a_second_app_of_a_name_or_another_version_is_refused(directory, words, told):
    add(directory, "docker", "--container")
    with pytest.raises(LocalProjectTrouble, match=told):
        add(directory, *words)


def test_a_template_that_would_apply_to_every_job_is_in_the_way(directory):
    (directory / "templates" / "docker_in").write_text("<input_template/>")
    with pytest.raises(LocalProjectTrouble, match="docker_in would apply to every job"):
        add(directory, "docker", "--container")


@pytest.mark.parametrize(
    "more",
    [
        ["--command", "true"],
        ["--in", "a"],
        ["--out", "a"],
        ["--quorum", "2"],
        ["--max-nbytes", "2"],
    ],
)
def test_what_jobs_bring_themselves_does_not_go_with_it(directory, more, capsys):
    with pytest.raises(SystemExit) as left:
        add(directory, "docker", "--container", *more)
    assert (left.value.code, "does not go with --container" in capsys.readouterr().err) == (2, True)


def test_an_app_needs_a_command_or_a_container(directory, capsys):
    with pytest.raises(SystemExit):
        add(directory, "app", "--out", "x")
    assert "--command is missing (or --container" in capsys.readouterr().err
