"""Jobs that do not fit into one request become several batches."""

from itertools import count

import pytest

from boinc_gahp.api.types import InlineFile, Job, Parameters
from boinc_gahp.errors import BatchConflict, BatchTooLarge
from tests.api.test_submission import small

#: With it each job takes a template with it, and a request of 10,000 bytes holds about ten.
NEEDS = Parameters(delay_bound=4242)


_numbers = count(1)


def new_name():
    return f"split{next(_numbers)}"


def jobs_of(number):
    return [Job(args=[f"-n{n}"], inputs={"in": InlineFile("x")}) for n in range(number)]


def stored(site, prefix):
    rows = site.local.core.db.connection().execute(
        "SELECT name, delay_bound FROM workunit WHERE name LIKE ? ORDER BY name", (f"{prefix}%",)
    )
    return [tuple(row) for row in rows]


def test_jobs_with_templates_are_split_into_batches_that_fit(site):
    project, name, jobs = small(site, 10_000), new_name(), jobs_of(35)
    with pytest.raises(BatchTooLarge, match=r"input templates.*Project\.submit_split"):
        project.submit("uppercase", jobs, name=name, parameters=NEEDS)
    batches = project.submit_split("uppercase", jobs, name=name, parameters=NEEDS)
    assert [batch.name for batch in batches] == [f"{name}-{n}" for n in range(1, len(batches) + 1)]
    assert 3 <= len(batches) <= 5
    assert max(batch.njobs for batch in batches) - min(batch.njobs for batch in batches) <= 1
    assert stored(site, name) == [(f"{name}_{n:02}", 4242) for n in range(35)]
    # Again it finds all there.
    again = project.submit_split("uppercase", jobs, name=name, parameters=NEEDS)
    assert [(each.id, each.existed) for each in again] == [(each.id, True) for each in batches]
    assert len(stored(site, name)) == 35


def test_jobs_that_fit_are_one_batch_of_the_name_that_was_given(site):
    project, name = small(site, 10_000), new_name()
    [batch] = project.submit_split("uppercase", jobs_of(20), name=name)
    assert (batch.name, batch.njobs) == (name, 20)
    assert project.submit("uppercase", jobs_of(20), name=name).existed


def test_one_large_job_among_small_ones_makes_no_batch_too_large(site):
    project = small(site, 6_000)
    jobs = jobs_of(12)
    jobs[5] = Job(inputs={"in": InlineFile("y" * 5_000)})
    batches = project.submit_split("uppercase", jobs, name=new_name())
    assert sum(batch.njobs for batch in batches) == 12
    jobs[5] = Job(inputs={"in": InlineFile("y" * 7_000)})
    with pytest.raises(BatchTooLarge):
        project.submit_split("uppercase", jobs, name=new_name())


def test_with_another_limit_in_between_no_job_exists_twice(site):
    name, jobs = new_name(), jobs_of(30)
    small(site, 10_000).submit_split("uppercase", jobs, name=name, parameters=NEEDS)
    with pytest.raises(BatchConflict):
        small(site, 14_000).submit_split("uppercase", jobs, name=name, parameters=NEEDS)
    assert len(stored(site, name)) == 30
