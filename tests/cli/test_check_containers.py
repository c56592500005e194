"""What ``boinc_gahp check`` tells about container jobs."""

import pytest

from boinc_gahp.cli.check import container_checks
from boinc_gahp.localproject import new_app
from boinc_gahp.localproject.php import STOCK
from boinc_gahp.localproject.project import LocalProject
from tests import faultproxy
from tests.cli.conftest import write_settings
from tests.contract.replay import WIRE
from tests.faultproxy import FaultProxy
from tests.inside import batches, staged_files, workunit_names

pytestmark = pytest.mark.usefixtures("log_stopped")

APP = "container_app = 'docker'\n"


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A local project without volunteers, with an app for container jobs."""
    directory = tmp_path_factory.mktemp("project")
    with LocalProject(directory, hosts=0, php=STOCK) as project:
        new_app.add(project.core, new_app.NewApp("docker", container=True))
        yield project


@pytest.fixture
def settings(home, project):
    path = home / ".config/boinc_gahp/boinc_gahp.toml"
    return write_settings(path, project.url, project.authenticator, APP)


@pytest.fixture
def template(settings, project):
    """The path of the app's input template; what a test writes there is removed."""
    path = project.core.templates / "docker_in"
    yield path
    for each in (path, path.with_name("docker_out")):
        each.unlink(missing_ok=True)


def add(settings, line):
    with settings.open("a") as file:
        file.write(line + "\n")


@pytest.mark.parametrize("arguments", [[], ["--app", "docker"], ["--app", "uppercase"]])
@pytest.mark.usefixtures("settings")
def test_the_app_that_takes_container_jobs_is_looked_at_once(check, arguments):
    report = check(*arguments)
    assert report.status == 0
    told = report.of("app docker")
    assert [level for level, _ in told] == ["ok", "note", "note", "ok"]
    assert told[0][1] == ": jobs that bring their own programs may be submitted"
    assert "does not tell the largest file that it takes (upload_max_filesize" in told[1][1]
    assert told[3][1].startswith(": versions 1.00 ")
    assert told[3][1].endswith(" (docker)")
    assert bool(report.of("app uppercase")) == ("uppercase" in arguments)


def test_nothing_is_stored_by_the_check(check, settings, project):
    check()
    assert (workunit_names(project), batches(project), staged_files(project)) == ([], [], [])


@pytest.mark.parametrize("both", [True, False], ids=["both templates", "the input template"])
def test_a_template_of_the_app_fails_with_what_to_remove(check, template, both):
    template.write_text(template.with_name("uppercase_in").read_text())
    if both:
        template.with_name("docker_out").write_text("<output_template/>")
    report = check()
    assert report.status == 1
    level, text = report.of("app docker")[0]
    assert level == "FAILED"
    assert "has a file templates/docker_in, whose number of input files would apply" in text
    assert text.endswith("ask the project's admin to remove templates/docker_in")


def test_an_output_template_alone_is_in_nobodys_way(check, template):
    template.with_name("docker_out").write_text("<output_template/>")
    assert check().of("app docker")[0][0] == "ok"


def test_an_app_without_templates_that_the_settings_do_not_name_fails_with_what_to_set(
    check, settings, project
):
    write_settings(settings, project.url, project.authenticator)
    report = check("--app", "docker")
    assert report.status == 1
    [(level, text)] = report.of("app docker")
    assert level == "FAILED"
    assert "no template files" in text
    assert 'set container_app = "docker" in the project\'s section of the settings' in text


def test_a_missing_app_and_a_missing_right_fail(check, settings, project):
    write_settings(settings, project.url, project.authenticator, "container_app = 'dokcer'")
    [(level, text)] = check().of("app dokcer")
    assert (level, "no app of this name" in text) == ("FAILED", True)
    other = project.add_user("other", apps=["multi"])
    write_settings(settings, project.url, other, APP)
    [(level, text)] = check().of("app docker")
    assert (level, "the account may not submit to it" in text) == ("FAILED", True)


def test_a_question_that_the_project_does_not_answer_fails(check, settings, project):
    with FaultProxy(project.url) as proxy:
        write_settings(settings, proxy.url, project.authenticator, APP)
        proxy.fail("estimate_batch", faultproxy.html(), times=None)
        report = check()
    assert report.status == 1
    level, text = report.of("app docker")[0]
    assert level == "FAILED"
    assert "[BG-" in text


def test_a_projects_words_are_the_recorded_ones():
    recording = WIRE / "estimate_batch__UNPATCHED_HEAD_template_entity_loader_bug.rep.xml"
    assert f"<error_msg>{container_checks._NOT_READ}" in recording.read_text()


class TestImage:
    @pytest.mark.usefixtures("settings")
    def test_none_is_told(self, check):
        [(level, text)] = check().of("container_image")
        assert level == "note"
        assert "a container job from HTCondor that names no image is held" in text

    def test_one_of_a_registry_is_told_by_its_whole_name(self, check, settings):
        add(settings, "container_image = 'docker://python:3.12-slim'")
        [(level, text)] = check().of("container_image")
        assert level == "ok"
        assert "docker.io/library/python:3.12-slim" in text

    @pytest.mark.parametrize("name", ["docker://Not An Image", "x.sif", "shub://a/b"])
    def test_what_is_no_image_fails(self, check, settings, name):
        add(settings, f"container_image = '{name}'")
        report = check()
        assert report.status == 1
        [(level, text)] = report.of("container_image")
        assert (level, name in text) == ("FAILED", True)

    def test_a_file_is_looked_at(self, check, settings):
        file = settings.with_name("root.tar")
        add(settings, "container_image = 'rootfs:root.tar'")
        [(level, text)] = check().of("container_image")
        assert level == "FAILED"
        assert f"{str(file)!r} cannot be read: No such file or directory" in text
        file.write_bytes(bytes(3_000_000))
        [(level, text)] = check().of("container_image")
        assert level == "ok"
        assert f"the one in {file}, a file of 3" in text

    def test_one_without_an_app_is_a_warning(self, check, settings, project):
        more = "container_image = 'docker://python'\n"
        write_settings(settings, project.url, project.authenticator, more)
        [(level, text)] = check().of("container_image")
        assert level == "warning"
        assert "there is no container_app" in text


def test_an_app_without_a_plan_class_for_docker_is_a_warning(check, settings, project):
    with project.core.db.write() as connection:
        connection.execute("UPDATE app_version SET plan_class = 'mt' WHERE plan_class = 'docker'")
    try:
        report = check()
    finally:
        with project.core.db.write() as connection:
            connection.execute(
                "UPDATE app_version SET plan_class = 'docker' WHERE plan_class = 'mt'"
            )
    assert report.status == 1
    level, text = report.of("app docker")[3]
    assert level == "warning"
    assert "no version has a plan class with docker in its name" in text
