"""What a project's server makes of the jobs of a container app; no job is run."""

import re
from functools import partial

import pytest

from boinc_gahp.localproject.core import STOCK
from boinc_gahp.localproject.directory import make
from boinc_gahp.localproject.project import LocalProject
from boinc_gahp.localproject.states import Outcome, ServerState
from tests.helpers import wait_for
from tests.localproject.client import error
from tests.localproject.in_containers import (
    ContainerJobs,
    add_container_app,
    files,
    output,
    templates,
)

# A project with such an app looks for a container engine when it begins.
pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    directory = tmp_path_factory.mktemp("server") / "project"
    make(directory)
    add_container_app(directory)
    with LocalProject(directory, hosts=0, php=STOCK) as project:
        yield project


@pytest.fixture(scope="module")
def jobs(project):
    return ContainerJobs(project)


def number_of_jobs(jobs):
    ((number,),) = jobs.client.rows("SELECT count(*) FROM workunit")
    return int(number)


def test_the_app_has_no_templates_so_the_number_of_inputs_is_the_jobs_own(jobs):
    for inputs in (files("exit 0"), files("exit 0", more=b"x", still__more=b"y")):
        name = jobs.submit(inputs)
        wait_for(partial(jobs.result, name), "a result")


def test_a_job_without_templates_of_its_own_is_not_made(jobs):
    inputs = files("exit 0")
    before = number_of_jobs(jobs)
    whole = templates(list(inputs), [output("out")])
    place = whole.index("<output_template>")
    said = jobs.submit(inputs, own=whole[place:], reply=True)
    assert "Can't read WU template" in error(said)
    assert "<batch_id>" in jobs.submit(inputs, own=whole[:place], reply=True)
    assert number_of_jobs(jobs) == before


def test_where_jobs_templates_cannot_be_written_a_submit_succeeds_without_jobs(jobs):
    tmp = jobs.project.core.templates / "tmp"
    kept = tmp.rename(tmp.with_name("kept")) if tmp.exists() else None
    tmp.write_text("not a directory")
    before = number_of_jobs(jobs)
    try:
        said = jobs.submit(files("exit 0"), [output("unwritten")], reply=True)
    finally:
        tmp.unlink()
        if kept is not None:
            kept.rename(tmp)
    assert "<batch_id>" in said
    assert number_of_jobs(jobs) == before


def test_no_failure_allowed_is_refused_and_one_attempt_is_not(jobs):
    said = jobs.submit(files("exit 0"), max_error_results=0, reply=True)
    assert error(said).startswith("create_work failed: no max_error_results given")
    assert "<batch_id>" in jobs.submit(files("exit 0"), max_error_results=1, reply=True)


@pytest.mark.parametrize(("number", "taken"), [(93, True), (94, False)])
def test_a_job_line_holds_93_inputs_beside_a_name_and_two_templates(jobs, number, taken):
    inputs = {**files("exit 0"), **{f"in{n}": b"%d" % n for n in range(number - 3)}}
    said = jobs.submit(inputs, reply=True)
    assert ("<batch_id>" in said) == taken, said


def test_a_job_without_a_newline_after_result_is_marked_sent_and_never_delivered(bench):
    path = bench.core.templates / "uppercase_out"
    path.write_text(re.sub(r"<result>\n", "<result>", path.read_text("utf-8")), "utf-8")
    bench.made()
    assert "<result>\n" not in bench.results("xml_doc_in")[0]
    assert bench.send() is None
    (sent,) = bench.rows("SELECT * FROM result")
    assert (sent["server_state"], sent["hostid"]) == (ServerState.IN_PROGRESS, 1)
    assert bench.scheduler.all_unfinished(1) == []
    bench.now = sent["report_deadline"] + 1
    bench.transition()
    assert bench.results("outcome")[0] == Outcome.NO_REPLY
