"""Names of batches that are made from their contents."""

from dataclasses import replace
from typing import Any

import pytest

from boinc_gahp.api.futures.mapping import UNNAMED, contents_name, free_name
from boinc_gahp.api.request import build_request, renamed
from boinc_gahp.api.rows.reading import jobs_from
from boinc_gahp.submit.checks import MAX_BATCH_NAME
from boinc_gahp.submit.types import InlineFile, Job, Parameters

JOB = {"args": ["-n", "1"], "inputs": {"in": InlineFile("a\n")}}

CHANGES = {
    "args": lambda job, _: job.update(args=["-n", "2"]),
    "contents": lambda job, _: job.update(inputs={"in": InlineFile("b\n")}),
    "open name": lambda job, _: job.update(inputs={"inn": InlineFile("a\n")}),
    "memory": lambda job, _: job.update(memory="1GB"),
    "priority": lambda job, _: job.update(priority=3),
    "template": lambda job, _: job.update(input_template="<x/>"),
    "name": lambda job, _: job.update(name="x"),
    "batch's memory": lambda _, batch: batch.update(parameters=Parameters(memory_bound="1GB")),
    "version": lambda _, batch: batch.update(app_version_num=2),
}


def named(site, *jobs, app="uppercase", **options):
    return name_for(site.project.session, app, jobs, **options)


def name_for(session, app, jobs, **options):
    request = build_request(app, jobs, **(options | {"name": UNNAMED}))
    return contents_name(session, app, request)


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_sent_changes_the_name(site, change):
    job, batch = dict(JOB), dict[str, Any]()
    before = named(site, Job(**job))
    CHANGES[change](job, batch)
    assert named(site, Job(**job), **batch) != before


def test_what_is_not_sent_leaves_the_name_as_it_is(site):
    one, two = site.directory / "one", site.directory / "two"
    for path in (one, two):
        path.write_text("a\n")
    before = named(site, Job(**JOB))
    assert before == named(site, Job(**JOB, parameters={"x": 1}), lease="30d", name="other")
    assert before == named(site, Job(args="-n 1", inputs={"in": one}))
    assert before == named(site, Job(args="-n 1", inputs={"in": two}))
    assert before.startswith("uppercase-")


def test_the_app_the_number_of_jobs_and_the_account_change_the_name(site):
    names = {
        named(site, Job(**JOB)),
        named(site, Job(**JOB), app="gzipped"),
        named(site, Job(**JOB), Job(**JOB)),
        name_for(site.somebody_else().session, "uppercase", [Job(**JOB)]),
    }
    assert len(names) == 4


def test_names_of_jobs_may_have_the_batchs_name(site):
    jobs = jobs_from([{"n": 1}], name="{batch}_{n}", inputs={"in": InlineFile("a\n")})
    name = name_for(site.project.session, "uppercase", jobs)
    batch = site.project.submit("uppercase", jobs, name=name)
    assert [job.name for job in batch.jobs()] == [f"{name}_1"]


def test_another_accounts_batch_takes_a_name(site):
    name = named(site, Job(args=["x"]))
    assert free_name(site.project.session, name) == name
    site.batch(1, name, project=site.somebody_else())
    assert free_name(site.project.session, name) == f"{name}-2"


def test_a_long_stem_leaves_room(site):
    request = build_request("uppercase", [Job(**JOB)], name=UNNAMED)
    name = contents_name(site.project.session, "x" * 300, request)
    assert len(name) <= MAX_BATCH_NAME - 20


@pytest.mark.parametrize("app", ["uppercase", "buda:fit"])
def test_a_request_that_gets_its_name_later_is_the_one_of_that_name(app):
    jobs = [*jobs_from([{"n": 1}, {"n": 2}], name="{batch}_{n}"), Job(), Job(name="x_1")]
    jobs = [replace(job, outputs=["out"]) for job in jobs]
    unnamed = build_request(app, jobs, name=UNNAMED, priority=1)
    assert renamed(unnamed, "sweep") == build_request(app, jobs, name="sweep", priority=1)
