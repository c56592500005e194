"""BUDA apps on a project: what is made for one, and which of its jobs the scheduler hands out."""

import hashlib
import json

import pytest

from boinc_gahp.localproject import buda
from boinc_gahp.localproject.commands import explained, run
from boinc_gahp.localproject.errors import LocalProjectTrouble
from boinc_gahp.localproject.states import ServerState
from boinc_gahp.templates.documents import read_workunit
from boinc_gahp.templates.filling import JobFile, fill_input
from boinc_gahp.templates.reading import read_input_template, read_output_template
from boinc_gahp.templates.types import InputFileInfo, InputTemplate
from tests.localproject.in_buda import APP, NAME, add_buda_app


def document(name=NAME):
    """Return a workunit for the app, as create_work writes it."""
    file = JobFile("in.txt", 1, "0" * 32, ("http://h/in.txt",))
    template = InputTemplate(
        (InputFileInfo("in", copy_file=True),), avg_ncpus=4.0, flops=1.0, buda_app_name=name
    )
    return fill_input(template, [file], command_line="-r")


def give_engines(bench):
    """Give all hosts an engine; return the number of the app of all BUDA apps."""
    bench.set("host", docker_version="4.3", core_client_version=80300)
    return bench.rows("SELECT id FROM app WHERE name = 'buda'")[0]["id"]


# What there is for an app.


def test_an_app_has_boincs_files_and_the_templates_that_boincs_form_would_make(bench, capsys):
    assert add_buda_app(bench.directory) == 0
    assert capsys.readouterr().out.startswith(f"App {APP}, version 100: docker_wrapper\n")
    app = bench.directory / "buda_apps" / NAME
    description = json.loads((app / "desc.json").read_text())
    assert (description["name"], description["output_file_names"]) == (NAME, ["out", "log"])
    template = read_input_template((app / "template_in").read_text())
    assert template.buda_app_name == NAME
    assert [(file.open_name, file.copy_file) for file in template.files] == [("in", True)]
    assert len(read_output_template((app / "template_out").read_text()).files) == 2
    (variant,) = app.glob("*_cpu/variant.json")
    found = json.loads(variant.read_text())
    assert found["app_files"] == ["main.sh", "job.toml"]
    assert found["dockerfile"] == "recipe"
    assert found["plan_class"] == ""
    # The app of all of them has no templates, which would apply to every job; it runs no program.
    assert not list((bench.directory / "templates").glob("buda*"))
    assert "container_app" not in (bench.directory / "boinc_gahp.toml").read_text()
    with pytest.raises(LocalProjectTrouble, match="there is a BUDA app 'sorter' already"):
        add_buda_app(bench.directory)


# What its jobs get.


def test_a_host_gets_the_jobs_inputs_and_the_apps_files(bench):
    add_buda_app(bench.directory)
    number = give_engines(bench)
    bench.made(appid=number, xml_doc=document())
    task = bench.send(1)
    assert task.in_container
    workunit = read_workunit(task.xml_doc)
    files = {file.open_name: file for file in workunit.files}
    assert list(files) == ["in", "Dockerfile", "main.sh", "job.toml"]
    assert all(file.copy_file for file in files.values())
    stored = bench.core.download.find(files["main.sh"].name)
    md5 = hashlib.md5(stored.path.read_bytes()).hexdigest()
    assert files["main.sh"].md5_cksum == md5
    assert files["main.sh"].name == f"buda_{NAME}_{_variant(bench)}_{md5}"
    assert workunit.command_line == "-r"
    # What the scheduler thinks of the variant counts, not the job's template.
    assert workunit.avg_ncpus == 1.0
    assert bench.wu["xml_doc"] == document()
    (again,) = bench.scheduler.all_unfinished(1)
    assert again.xml_doc == task.xml_doc


def _variant(bench):
    (path,) = (bench.directory / "buda_apps" / NAME).glob("*/variant.json")
    return path.parent.name


def test_a_job_whose_app_does_not_exist_waits_and_is_in_nobodys_way(bench):
    add_buda_app(bench.directory)
    number = give_engines(bench)
    for name in ("nosuch", "../sorter", NAME[:-1]):
        bench.made(f"of {name}", appid=number, xml_doc=document(name))
    bench.made("good", appid=number, xml_doc=document())
    for _ in range(20):
        task = bench.send(1)
        if task is not None:
            assert task.result_name.startswith("good")
    assert bench.results("server_state").count(ServerState.UNSENT) == 3


def test_a_job_waits_for_a_host_with_an_engine_and_the_variants_processor(bench):
    add_buda_app(bench.directory)
    number = give_engines(bench)
    bench.made(appid=number, xml_doc=document())
    (path,) = (bench.directory / "buda_apps" / NAME).glob("*/variant.json")
    whole = path.read_text()
    path.write_text(json.dumps({**json.loads(whole), "cpu_type": "other"}))
    assert bench.send(1) is None
    path.write_text(whole)
    bench.set("host", "id = 1", dont_use_docker=1)
    assert bench.send(1) is None
    assert bench.send(2) is not None


def test_other_documents_stay_as_they_are(bench):
    add_buda_app(bench.directory)
    for text in ("", "<workunit></workunit>", "<buda_app_name>sorter</buda_app_name>"):
        assert buda.with_variant(bench.directory, text, 1e9) == text


# What is refused.


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([APP], "--dockerfile is missing"),
        *(
            (
                [APP, "--dockerfile", "f", *each.split()],
                f"{each.split()[0]} does not go with a BUDA",
            )
            for each in (
                *("--command true", "--container", "--quorum 2", "--version 2"),
                "--optional-out x",
            )
        ),
        (["sorter", "--dockerfile", "f"], "--dockerfile and --file are for a BUDA app, buda:NAME"),
        (["sorter", "--container", "--file", "f"], "--dockerfile and --file are for a BUDA app"),
    ],
)
def test_what_does_not_go_together_is_said(bench, words, told, capsys):
    with pytest.raises(SystemExit) as left:
        run(["add-app", str(bench.directory), *words], None)
    assert left.value.code == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("app", "more", "told"),
    [
        ("buda:a/b", [], "a BUDA app cannot be named 'a/b'"),
        ("buda:", [], "a BUDA app cannot be named ''"),
        (APP, ["--out", "../x"], "leads out of the job's directory"),
        (APP, ["--out", "out"], "'out' is given twice"),
        (APP, ["--file", "nosuchfile"], "nosuchfile: No such file"),
        (APP, ["--file", "elsewhere/main.sh"], "'main.sh' is given twice"),
    ],
)
def test_a_wrong_description_changes_nothing(bench, app, more, told):
    with pytest.raises(LocalProjectTrouble, match=told), explained():
        add_buda_app(bench.directory, app, *more)
    assert not list((bench.directory / "buda_apps").glob("*/*.json"))
    assert not bench.rows("SELECT 1 FROM app WHERE name = 'buda'")
