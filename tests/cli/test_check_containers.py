"""What ``boinc_gahp check`` tells about container jobs."""

import pytest

from boinc_gahp.cli.check import project_checks
from boinc_gahp.localproject import new_app
from boinc_gahp.localproject.core import STOCK
from boinc_gahp.localproject.project import LocalProject
from tests import faultproxy
from tests.cli.conftest import told, write_settings
from tests.contract.replay import WIRE
from tests.faultproxy import FaultProxy
from tests.inside import batches, change, staged_files, workunit_names

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


@pytest.mark.parametrize("arguments", [[], ["--app", "docker"], ["--app", "uppercase"]])
@pytest.mark.usefixtures("settings")
def test_the_app_that_takes_container_jobs_is_looked_at_once(check, project, arguments):
    report = check(*arguments)
    may, limit, _, versions = report.of("app docker")
    told(may, "ok", ": jobs that bring their own programs may be submitted")
    told(limit, "note", "does not tell the largest file that it takes (upload_max_filesize")
    told(versions, "ok", ": versions 1.00 ", " (docker)")
    assert report.levels() == {"ok", "note"}
    assert bool(report.of("app uppercase")) == ("uppercase" in arguments)
    # Nothing is stored by it.
    assert (workunit_names(project), batches(project), staged_files(project)) == ([], [], [])


@pytest.mark.parametrize("both", [True, False], ids=["both templates", "the input template"])
def test_a_template_of_the_app_fails_with_what_to_remove(check, template, both):
    template.write_text(template.with_name("uppercase_in").read_text())
    if both:
        template.with_name("docker_out").write_text("<output_template/>")
    said = "has a file templates/docker_in, whose number of input files would apply"
    text = told(check().of("app docker")[0], "FAILED", said)
    assert text.endswith("ask the project's admin to remove templates/docker_in")


def test_an_output_template_alone_is_in_nobodys_way(check, template):
    template.with_name("docker_out").write_text("<output_template/>")
    assert check().of("app docker")[0][0] == "ok"


def test_an_app_without_templates_that_the_settings_do_not_name_fails_with_what_to_set(
    check, settings, project
):
    write_settings(settings, project.url, project.authenticator)
    said = 'set container_app = "docker" in the project\'s section of the settings'
    check("--app", "docker").only("app docker", "FAILED", "no template files", said)


def test_a_question_that_the_project_does_not_answer_fails(check, settings, project):
    with FaultProxy(project.url) as proxy:
        write_settings(settings, proxy.url, project.authenticator, APP)
        proxy.fail("estimate_batch", faultproxy.html(), times=None)
        told(check().of("app docker")[0], "FAILED", "[BG-")


def test_a_projects_words_are_the_recorded_ones():
    recording = WIRE / "estimate_batch__UNPATCHED_HEAD_template_entity_loader_bug.rep.xml"
    assert f"<error_msg>{project_checks._NOT_READ}" in recording.read_text()


@pytest.mark.parametrize(
    ("image", "level", "said"),
    [
        (None, "note", "a container job from HTCondor that names no image is held"),
        ("docker://python:3.12-slim", "ok", "docker.io/library/python:3.12-slim"),
        ("docker://Not An Image", "FAILED", "docker://Not An Image"),
        ("x.sif", "FAILED", "x.sif"),
        ("rootfs:no.tar", "FAILED", "no.tar' cannot be read: No such file or directory"),
        ("rootfs:root.tar", "ok", "root.tar, a file of 3"),
    ],
)
def test_the_image_is_told_or_refused(check, settings, image, level, said):
    settings.with_name("root.tar").write_bytes(bytes(3_000_000))
    if image:
        with settings.open("a") as file:
            file.write(f"container_image = '{image}'\n")
    check().only("container_image", level, said)


def test_an_image_without_an_app_is_a_warning(check, settings, project):
    more = "container_image = 'docker://python'\n"
    write_settings(settings, project.url, project.authenticator, more)
    check().only("container_image", "warning", "there is no container_app")


def test_an_app_without_a_plan_class_for_docker_is_a_warning(check, settings, project):
    rename = "UPDATE app_version SET plan_class = ? WHERE plan_class = ?"
    change(project, rename, "mt", "docker")
    report = check()
    change(project, rename, "docker", "mt")
    said = "no version has a plan class with docker in its name"
    told(report.of("app docker")[3], "warning", said)
