"""Commands that name a BUDA app: what they send, and what they say."""

import pytest

from boinc_gahp.localproject import new_app
from boinc_gahp.localproject.project import LocalProject
from boinc_gahp.templates.reading import read_input_template, read_output_template
from tests import faultproxy
from tests.cli.conftest import InProcess, write_settings
from tests.faultproxy import FaultProxy
from tests.helpers import command
from tests.inside import change, workunit_names

pytestmark = pytest.mark.usefixtures("log_stopped")


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A local project without volunteers, with a BUDA app."""
    directory = tmp_path_factory.mktemp("project")
    dockerfile = directory.with_name("Dockerfile")
    dockerfile.write_text("FROM scratch\n")
    with LocalProject(directory, hosts=0) as project:
        new_app.add(project.core, new_app.NewApp("buda:fit", dockerfile=dockerfile))
        yield project


@pytest.fixture
def settings(home, project):
    (home / "a.csv").write_text("1\n")
    (home / "b.csv").write_text("2\n")
    path = home / ".config/boinc_gahp/boinc_gahp.toml"
    return write_settings(path, project.url, project.authenticator)


@pytest.fixture
def do(settings, capsys):
    return InProcess(capsys, "batch")


def made(project, batch):
    """Return each job's BUDA app, inputs and outputs, as the project has them."""
    rows = project.core.db.connection().execute(
        "SELECT w.xml_doc, w.result_template_file FROM workunit w JOIN batch b ON w.batch = b.id "
        "WHERE b.name = ? ORDER BY w.id",
        (batch,),
    )
    found = []
    for document, path in rows.fetchall():
        template = read_input_template(document)
        outputs = read_output_template((project.directory / path).read_text())
        files = [[file.open_name for file in each.files] for each in (template, outputs)]
        found.append((template.buda_app_name, *files))
    return found


def test_a_batch_has_the_inputs_and_outputs_that_are_named(do, project):
    words = ["buda:fit", "--each", "*.csv", "--input", "data.csv={path}", "--args=--level 3"]
    words += ["--output", "fit.json", "--name", "one"]
    assert "2 jobs of buda on" in do.prints("submit", *words)
    assert made(project, "one") == [("fit", ["data.csv"], ["fit.json"])] * 2
    told = "Projects send no jobs of BUDA apps that they do not have"
    assert told in do.prints("show", "one")
    # The same again is the same batch.
    assert "It was there already" in do.prints("submit", *words)
    assert "output" in do.refuses("submit", *words, "--output", "x")


def test_a_name_that_is_made_up_has_no_colon(do, project):
    do.prints("submit", "buda:fit", "--input", "in=a.csv", "--output", "x")
    names = [str(name) for name in workunit_names(project) if str(name).startswith("fit-")]
    assert names
    assert not any(":" in name for name in names)


def test_an_estimate_counts_jobs_without_a_size_as_create_work_does(do):
    words = ("buda:fit", "--input", "in=a.csv", "--output", "x", "--count", "2")
    assert do.prints("estimate", *words).rstrip().endswith("2 jobs of buda:fit take about 2 h.")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["buda:other", "--input", "in=a.csv"], "does not tell which outputs its BUDA app"),
        (["buda:fit", "--each", "*.csv"], "name the one that gets the files: --input NAME={path}"),
    ],
)
def test_what_cannot_be_sent_is_said_and_nothing_is_made(do, project, words, said):
    before = len(workunit_names(project))
    assert said in do.refuses("submit", *words).splitlines()[0]
    assert len(workunit_names(project)) == before


def test_apps_and_check_say_what_a_project_does_not_tell(capsys, check, settings):
    out = command(capsys, "apps", "buda:fit")[1]
    assert "you may submit them" in out
    assert "does not tell which BUDA apps it has" in out
    report = check("--app", "buda:fit")
    assert report.levels() == {"ok", "note"}
    assert report.of("app buda")[0][0] == "ok"
    report.only("app buda:fit", "note", "wait for ever", "Jobs have to name the outputs")
    assert "FAILED" in check("--app", "buda:a/b").levels()


def test_a_project_without_a_version_that_runs_containers_is_warned_of(check, settings, project):
    rename = "UPDATE app_version SET plan_class = ? WHERE plan_class = ?"
    for classes in (("mt", "docker"), ("docker", "mt")):
        change(project, rename, *classes)
        points = check("--app", "buda:fit").of("app buda")
        said = [words for level, words in points if level == "warning"]
        assert ["plan class with docker" in words for words in said] == [True] * (
            classes[0] == "mt"
        )


def test_an_app_that_the_projects_form_does_not_find_is_refused(do, check, settings, project):
    warning = (
        b"<br />\n<b>Warning</b>:  file_get_contents(../../buda_apps/fti/desc.json): "
        b"Failed to open stream: No such file or directory in <b>/buda.inc</b> on line <b>38</b>"
    )
    with FaultProxy(project.url) as proxy:
        write_settings(settings, proxy.url, project.authenticator)
        proxy.fail("buda_submit", faultproxy.body(warning), times=None)
        for more in ([], ["--dry-run"]):
            words = ["buda:fti", "--input", "in=a.csv", "--output", "x", *more]
            status, _, err = do("submit", *words)
            assert (status, 'has no BUDA app "fti"' in err) == (1, True)
        assert check("--app", "buda:fti").of("app buda:fti")[0][0] == "FAILED"
        # The warning is about another app.
        do.prints("submit", "buda:fit", "--input", "in=a.csv", "--output", "x", "--dry-run")
