"""A batch's name stands for its jobs: the same name with others is an error, not an old result."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from boinc_gahp.api.manifest import describe
from boinc_gahp.api.manifest_files import difference
from boinc_gahp.api.rows.reading import jobs_from
from boinc_gahp.errors import BatchConflict, RpcError
from boinc_gahp.submit.types import InlineFile, Job, Parameters, SubmitRequest
from tests.api.conftest import inline
from tests.faultproxy import hang, status
from tests.helpers import wait_for


def called(site, jobs):
    """Return jobs with names of their own: others would depend on the number of jobs."""
    return [replace(job, name=f"{site.name}_{n}") for n, job in enumerate(jobs)]


@pytest.mark.parametrize(
    ("other", "told"),
    [
        (inline("-n 1", "-n 3"), "arguments of job NAME_1; "),
        (inline("-n 5", "-n 6"), "arguments of 2 jobs; "),
        (inline("-n 1", "-n 2", text="y"), 'file "in" of 2 jobs; '),
        (inline("-n 1"), "missing job NAME_1; "),
        (inline("-n 1", "-n 2", "-n 3"), "new job NAME_2; "),
        (
            [Job("-n 1", {"in": InlineFile("x")}, priority=3, memory=1e9), *inline("-n 3")],
            "priority of job NAME_0, memory of job NAME_0, arguments of job NAME_1; ",
        ),
        (
            [Job("-n 3", {"a": InlineFile("x")}, priority=3)],
            'arguments of job NAME_0, file "in" of job NAME_0, file "a" of job NAME_0, and more; ',
        ),
    ],
    ids=["an argument", "all arguments", "a file", "fewer jobs", "more jobs", "three", "more"],
)
def test_the_same_name_with_other_jobs_is_refused_and_what_differs_is_told(site, other, told):
    named, others = called(site, inline("-n 1", "-n 2")), called(site, other)
    batch = site.submit(named)
    sent = site.proxy.count("submit_batch")
    with pytest.raises(BatchConflict) as caught:
        site.submit(others)
    assert str(caught.value).startswith(f"batch {site.name!r} (id {batch.id}) of ")
    assert told.replace("NAME", site.name) in str(caught.value)
    assert isinstance(site.plan(others).refusal, BatchConflict)
    again = site.submit(named)
    assert (again.id, again.existed, again.compared) == (batch.id, True, True)
    assert site.proxy.count("submit_batch") == sent


def test_other_rows_with_the_same_words_are_the_same_jobs(site):
    for seed in (1, 2):
        batch = site.submit([replace(inline()[0], parameters={"s": seed})])
    assert (batch.existed, batch.compared) == (True, True)
    assert next(iter(batch)).parameters == {"s": 1}


def test_a_conflict_tells_a_name_for_a_new_batch(site):
    name = site.name
    site.submit(inline("-n 1"))
    site.submit(inline("-n 1"), name=f"{name}-2")
    for taken in (name, f"{name}-2"):
        with pytest.raises(BatchConflict) as caught:
            site.submit(inline("-n 2"), name=taken)
        assert str(caught.value).endswith(f"--name {name}-3 (in Python name='{name}-3')")
    within = jobs_from(
        [{"n": 1}], args="-n {n}", inputs={"in": InlineFile("x")}, name="{batch}_{n}"
    )
    site.submit(within, name=f"{name}-n")
    with pytest.raises(BatchConflict, match=r"in Python name='.*'\)$"):
        site.submit([replace(within[0], args="-n 2")], name=f"{name}-n")
    named = replace(inline("-n 1")[0], name=f"{name}_x")
    site.submit([named], name=f"{name}-3")
    with pytest.raises(BatchConflict, match="and its jobs, too: a job's name is used once"):
        site.submit([replace(named, args="-n 2")], name=f"{name}-3")


def test_other_parameters_are_other_jobs(site):
    site.submit(inline(), lease=5000)
    with pytest.raises(BatchConflict, match="than these: delay; to"):
        site.submit(inline(), parameters=Parameters(delay_bound=7200))
    assert site.submit(inline(), lease=6000).compared


def test_files_are_compared_by_what_is_in_them(site):
    path, copy = site.directory / "a.txt", site.directory / "b.txt"
    path.write_text("one")
    copy.write_text("one")
    site.submit([Job("", {"in": path})])
    assert site.submit([Job("", {"in": copy})]).compared
    path.write_text("two")
    with pytest.raises(BatchConflict, match='file "in" of job '):
        site.submit([Job("", {"in": path})])
    # What is gone cannot be compared, and was needed only once.
    path.unlink()
    assert site.submit([Job("", {"in": path})]).existed
    path.write_text("two")
    with pytest.raises(BatchConflict, match='file "in" of job '):
        site.submit([Job("", {"in": path})])


def test_what_was_submitted_elsewhere_is_not_compared_and_that_is_reported(site):
    site.submit(inline("-n 1"))
    again = site.submit(inline("-n 2"), home="other")
    assert (again.existed, again.compared) == (True, False)


def test_what_was_begun_elsewhere_and_completed_here_is_not_compared(site):
    named = called(site, inline("-n 1", "-n 2"))
    begun = site.submit(named[:1], home="other")
    site.change("UPDATE batch SET state = 0 WHERE id = ?", begun.id)
    assert not site.submit(named).existed
    again = site.submit(named)
    assert (again.existed, again.compared) == (True, False)


@pytest.mark.long
def test_jobs_that_were_never_sent_may_be_others_the_next_time(site):
    path = site.directory / "a.txt"
    path.write_text(site.name)
    site.proxy.fail("upload_files", status(500), times=None)
    with pytest.raises(RpcError):
        site.submit([Job("-n 1", {"in": path})], project=site.open(retry=0.1))
    site.proxy.heal()
    assert site.submit([Job("-n 2", {"in": path})]).njobs == 1


def test_jobs_that_the_project_refused_may_be_others_the_next_time(site):
    taken = [replace(inline()[0], name=f"{site.name}_x")]
    site.submit(taken, name=f"{site.name}2")
    with pytest.raises(Exception, match="in use"):
        site.submit(taken)
    batch = site.submit(inline("-n 2"))
    assert (batch.njobs, batch.existed) == (1, False)


def test_jobs_that_may_still_appear_are_not_replaced_by_others(site):
    held = hang()
    site.proxy.fail("submit_batch", held)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(lambda: site.submit(inline("-n 1")))
        wait_for(lambda: site.proxy.count("submit_batch") == 1, "the jobs being sent")
        with pytest.raises(BatchConflict, match=r"a moment ago.* wait a minute and try again"):
            site.submit(inline("-n 2"))
        held.release()
        assert first.result(timeout=30).njobs == 1


def test_a_name_that_another_process_fills_meanwhile_with_other_jobs_is_refused(site, tmp_path):
    (tmp_path / "in").write_text("x")
    winners = []

    def other(_):
        if not winners:
            winners.append(site.submit(inline("-n 2")))

    with pytest.raises(BatchConflict, match=f"arguments of job {site.name}_0;"):
        site.submit([Job("-n 1", {"in": tmp_path / "in"})], progress=other)
    assert [each.id for each in site.project.batches()] == [winners[0].id]


def test_a_record_is_for_its_owner_alone_and_goes_with_its_batch(site):
    batch = site.submit(inline())
    directory = site.directory / "state" / "submitted"
    (record,) = directory.iterdir()
    assert record.stat().st_mode & 0o777 == 0o600
    assert directory.stat().st_mode & 0o777 == 0o700
    batch.retire()
    assert list(directory.iterdir()) == []


def test_where_all_can_write_nothing_is_written_down_and_jobs_are_submitted_all_the_same(site):
    directory = site.directory / "state" / "submitted"
    directory.mkdir(parents=True)
    directory.chmod(0o777)
    site.submit(inline("-n 1"))
    again = site.submit(inline("-n 2"))
    assert (again.existed, again.compared) == (True, False)


texts = st.text(max_size=5)
requests = st.builds(
    lambda found, priority: SubmitRequest(
        "b",
        "a",
        [
            (f"j{n}", Job(tuple(args), {"in": InlineFile(text)}, fpops=fpops))
            for n, (args, text, fpops) in enumerate(found)
        ],
        priority=priority,
    ),
    st.lists(
        st.tuples(st.lists(texts, max_size=2), texts, st.none() | st.floats(1, 1e12)), max_size=3
    ),
    st.none() | st.integers(-5, 5),
)


@given(requests, requests)
def test_two_requests_differ_exactly_if_something_in_them_does(one, other):
    assert (difference(describe(one, {}), describe(other, {})) == "") == (one == other)
