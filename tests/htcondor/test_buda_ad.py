"""What an ad for a BUDA app asks for, and why it cannot be."""

from functools import partial

import pytest

from boinc_gahp.containers.rules import FPOPS_BOUND
from boinc_gahp.fetch.job_directory import of_ad
from boinc_gahp.htcondor._description import JobDescription
from boinc_gahp.htcondor._fetching import request_for
from boinc_gahp.templates.reading import read_input_template, read_output_template
from tests.htcondor import ads


def job(iwd, project=ads.PROJECT, **values):
    (iwd / "data.csv").write_text("1\n")
    usual = {"BoincApp": "buda:fit", "TransferInput": "data.csv", "TransferOutput": "fit.json,log"}
    return ads.job(iwd, project, **(usual | values))


refused = partial(ads.refused, read=job)


def outputs(description):
    files = read_output_template(description.output_template or "").files
    return [file.open_name for file in files]


@pytest.mark.parametrize(
    "app", [{}, {"BoincApp": None, "Queue": "buda:fit@here"}], ids=["attribute", "queue"]
)
def test_a_job_of_a_buda_app_becomes_one_of_the_projects_app_with_its_own_templates(tmp_path, app):
    found = job(tmp_path, **app, Arguments="--level 3")
    assert found.app_name == "buda"
    assert found.args == ("--level", "3")
    assert found.container is None
    template = read_input_template(found.input_template or "")
    assert template.buda_app_name == "fit"
    assert [file.open_name for file in template.files] == ["data.csv"]
    assert outputs(found) == ["fit.json", "log"]
    assert found.parameters.fpops_bound == FPOPS_BOUND
    assert JobDescription.from_json(found.to_json()) == found


def test_the_outputs_that_a_job_names_are_those_that_it_has(tmp_path):
    (tmp_path / "old").mkdir()
    found = job(
        tmp_path,
        TransferOutput="run/a.txt,run/b,c",
        TransferOutputRemaps="a.txt=old;run/b=d",
        BoincRscFpopsBound=1e12,
    )
    assert outputs(found) == ["run/a.txt", "run/b", "c"]
    assert found.parameters.fpops_bound == 1e12
    fetch = of_ad(request_for("job", found, 1))
    assert fetch.specs == (("run/a.txt", "old/a.txt"), ("run/b", "d"), ("c", "c"))
    assert fetch.output_template == read_output_template(found.output_template)


def test_a_job_that_names_no_outputs_is_refused(tmp_path):
    assert (
        'the job: a project does not tell which outputs its BUDA app "fit" makes: name them '
        "(transfer_output_files in a submit file, --output, Job.outputs)"
    ) in refused(tmp_path, TransferOutput=None)
    assert outputs(job(tmp_path, TransferOutput="")) == []
    assert outputs(job(tmp_path, project=None, TransferOutput="x")) == ["x"]


def test_what_a_buda_app_cannot_get_is_refused_when_the_job_is_accepted(tmp_path):
    assert 'the argument "$HOME" has a $' in refused(tmp_path, Arguments="'$HOME'")
    assert "internal name of a BUDA app" in refused(tmp_path, BoincApp="buda:a/b")
    (tmp_path / "Dockerfile").write_text("FROM scratch\n")
    assert "cannot be called Dockerfile" in refused(tmp_path, TransferInput="Dockerfile")


def test_jobs_of_different_buda_apps_are_not_in_one_batch(tmp_path):
    keys = {job(tmp_path, BoincApp=f"buda:{name}", TransferOutput="x").group_key for name in "ab"}
    assert len(keys) == 2
