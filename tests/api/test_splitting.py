"""Jobs that do not fit into one request become several batches."""

import pytest

from boinc_gahp.errors import BatchConflict, BatchTooLarge
from boinc_gahp.submit.types import InlineFile, Job, Parameters
from tests.api.conftest import inline

#: With it each job takes a template with it, and a request of 10,000 bytes holds about ten.
NEEDS = Parameters(delay_bound=4242)


def stored(site):
    query = "SELECT name, delay_bound FROM workunit WHERE name LIKE ? ORDER BY name"
    return site.rows(query, f"{site.name}%")


def test_jobs_with_templates_are_split_into_batches_that_fit(site):
    project, name, jobs = site.open(max_post_bytes=10_000), site.name, inline(*35 * [""])
    with pytest.raises(BatchTooLarge, match=r"input templates.*Project\.submit_split"):
        project.submit("uppercase", jobs, name=name, parameters=NEEDS)
    batches = project.submit_split("uppercase", jobs, name=name, parameters=NEEDS)
    assert [batch.name for batch in batches] == [f"{name}-{n}" for n in range(1, len(batches) + 1)]
    assert 3 <= len(batches) <= 5
    assert max(batch.njobs for batch in batches) - min(batch.njobs for batch in batches) <= 1
    assert stored(site) == [(f"{name}_{n:02}", 4242) for n in range(35)]
    # Again it finds all there.
    again = project.submit_split("uppercase", jobs, name=name, parameters=NEEDS)
    assert [(each.id, each.existed) for each in again] == [(each.id, True) for each in batches]
    assert len(stored(site)) == 35


def test_jobs_that_fit_are_one_batch_of_the_name_that_was_given(site):
    project = site.open(max_post_bytes=10_000)
    [batch] = project.submit_split("uppercase", inline(*20 * [""]), name=site.name)
    assert (batch.name, batch.njobs) == (site.name, 20)
    assert site.submit(inline(*20 * [""])).existed


def test_one_large_job_among_small_ones_makes_no_batch_too_large(site):
    project = site.open(max_post_bytes=6_000)
    jobs = inline(*12 * [""])
    jobs[5] = Job(inputs={"in": InlineFile("y" * 5_000)})
    batches = project.submit_split("uppercase", jobs, name=site.name)
    assert sum(batch.njobs for batch in batches) == 12
    jobs[5] = Job(inputs={"in": InlineFile("y" * 7_000)})
    with pytest.raises(BatchTooLarge):
        project.submit_split("uppercase", jobs, name=f"{site.name}-large")


def test_with_another_limit_in_between_no_job_exists_twice(site):
    def submit(limit):
        project = site.open(max_post_bytes=limit)
        project.submit_split("uppercase", inline(*30 * [""]), name=site.name, parameters=NEEDS)

    submit(10_000)
    with pytest.raises(BatchConflict):
        submit(14_000)
    assert len(stored(site)) == 30
