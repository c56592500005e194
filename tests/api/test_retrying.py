"""Failed jobs are sent again, each once, whatever happens meanwhile."""

import re

import pytest
from hypothesis import given, strategies as st

from boinc_gahp.api import family
from boinc_gahp.api.family import retry_name
from boinc_gahp.errors import (
    BatchConflict,
    BatchTooLarge,
    NoSuchJob,
    NotKnownHere,
    StagingError,
)
from boinc_gahp.states import BatchState, JobState
from boinc_gahp.submit.checks import check_job_name
from boinc_gahp.submit.staging import physical_names
from boinc_gahp.submit.types import Job, Parameters
from tests import faultproxy
from tests.api.conftest import QUICK
from tests.helpers import at_once, wait_for


def names_of(batch):
    return [] if batch is None else [job.name for job in batch.jobs()]


def workunits(site, mark):
    """Return the names of all jobs of the project that contain ``mark``, in order."""
    return [name for (name,) in site.rows("SELECT name FROM workunit ORDER BY 1") if mark in name]


@given(st.text(min_size=1), st.integers(1, 10**6), st.integers(60, 255))
def test_a_retrys_name_fits_and_has_the_number(name, number, longest):
    name = name.encode("utf-8", "ignore").decode() or "x"
    made = retry_name(name, number, longest)
    assert made.endswith(f"-retry{number}")
    assert len(made.encode()) <= longest
    assert made == f"{name}-retry{number}" or len(f"{name}-retry{number}".encode()) > longest


@given(st.integers(170, 180))
def test_long_names_of_jobs_stay_different(length):
    one, other = "a" * length + "1", "a" * length + "2"
    names = {retry_name(name, 12, 180) for name in (one, other)}
    assert len(names) == 2
    for name in names:
        check_job_name(name, {})


def test_failed_jobs_are_sent_again_with_the_same_contents(site):
    needs = Parameters(delay_bound=4000)
    batch = site.submit(3, parameters=needs, priority=7)
    site.spoil(batch, f"{batch.name}_1")
    made = batch.retry()
    assert (made.name, names_of(made)) == (f"{batch.name}-retry1", [f"{batch.name}_1-retry1"])
    manifest = site.project.session.manifests.of(made.name, made.id)
    job = manifest.job(f"{batch.name}_1-retry1")
    assert manifest.parent == batch.id
    assert (job.retry_of, job.args, job.parameters) == (f"{batch.name}_1", ("-n", "1"), {"n": 1})
    assert job.inputs["in"].source == "inline:1\n"
    query = "SELECT delay_bound, priority FROM workunit WHERE name = ?"
    assert site.rows(query, job.name) == [(4000, 7)]
    assert batch.retry() is None
    assert [each.id for each in batch.retries()] == [made.id]


def test_nothing_is_sent_if_nothing_has_failed(site):
    batch = site.submit(3)
    assert batch.retry() is None
    with pytest.raises(BatchConflict, match="is waiting: only jobs that failed are sent again"):
        batch.retry(f"{batch.name}_0")
    with pytest.raises(NoSuchJob):
        batch.retry("nosuch")


def test_a_job_whose_retry_failed_is_a_reason_again_and_is_sent_once_more(site):
    batch = site.submit(3)
    site.spoil(batch, f"{batch.name}_0", f"{batch.name}_1")
    assert [each.count for each in batch.reasons()] == [2]
    first = batch.retry(f"{batch.name}_0")
    assert names_of(first) == [f"{batch.name}_0-retry1"]
    assert [(each.count, each.end.name) for each in batch.reasons()] == [(1, f"{batch.name}_1")]
    site.spoil(first)
    assert [each.count for each in batch.reasons()] == [2]
    second = batch.retry()
    assert names_of(second) == [f"{batch.name}_0-retry2", f"{batch.name}_1-retry2"]
    assert batch.retry() is None


def test_a_retry_of_a_retry_repeats_jobs_of_the_first_batch(site):
    batch = site.submit(3)
    site.spoil(batch, f"{batch.name}_0", f"{batch.name}_1")
    first = batch.retry()
    site.spoil(first, f"{batch.name}_1-retry1")
    second = first.retry()
    assert (second.name, names_of(second)) == (f"{batch.name}-retry2", [f"{batch.name}_1-retry2"])
    assert first.retry() is None


def test_another_machine_says_that_it_does_not_know_what_was_sent(site):
    batch = site.batch(1)  # with the web RPCs alone
    site.spoil(batch)
    with pytest.raises(NotKnownHere, match="on the machine that submitted it"):
        batch.retry()


def test_a_file_that_has_changed_is_the_projects_copy_or_an_error(site, tmp_path):
    path = tmp_path / "in.txt"
    path.write_text(f"first {tmp_path}")
    batch = site.submit([Job(inputs={"in": str(path)})])
    site.spoil(batch)
    path.write_text("another text")
    made = batch.retry()
    manifest = site.project.session.manifests.of(made.name, made.id)
    [source] = [each.source for each in manifest.job(f"{site.name}_0-retry1").inputs.values()]
    assert source.startswith("staged:")
    site.spoil(made)
    site.local.core.download.remove(source.removeprefix("staged:"))
    with pytest.raises(StagingError, match=r"has changed or is gone, and .* no longer has"):
        batch.retry()


def test_a_name_that_another_batch_has_is_left_out(site):
    batch = site.submit(3)
    site.spoil(batch, f"{batch.name}_0")
    site.submit(1, name=f"{batch.name}-retry1")
    site.somebody_else().rpc.create_batch(f"{batch.name}-retry2", "uppercase")
    made = batch.retry()
    assert made.name == f"{batch.name}-retry3"
    assert [each.name for each in batch.retries()] == [made.name]


def test_too_many_failed_jobs_for_a_request_are_retried_in_parts(site):
    batch = site.submit(60)
    site.spoil(batch)
    project = site.open(max_post_bytes=10_000)
    with pytest.raises(BatchTooLarge, match="batch retry --job") as caught:
        project.batch(batch.id).retry()
    assert "split" not in str(caught.value).partition("fit into one request")[2]
    found = re.search(r"(\d+) of these 60 jobs fit", str(caught.value))
    assert found
    jobs = [f"{batch.name}_{n:02}" for n in range(60)]
    part = project.batch(batch.id).retry(jobs[: int(found[1])])
    assert len(names_of(part)) == int(found[1])


def test_the_lease_of_the_parent_is_renewed(site):
    batch = site.submit(3, lease=3600)
    site.spoil(batch, f"{batch.name}_0")
    before = batch.expire_time or 0
    batch.retry()
    assert (batch.refresh().expire_time or 0) > before + 86400


def test_outputs_of_retries_are_in_the_folders_of_the_jobs_that_failed(working, tmp_path):
    working.local.pause_volunteers()
    batch = working.submit(2)
    batch.abort(f"{batch.name}_1")
    made = batch.retry()
    working.local.resume_volunteers()
    batch.wait(timeout=60, poll=QUICK)
    made.wait(timeout=60, poll=QUICK)
    folder = tmp_path / "out" / f"{batch.name}_1"
    fetched = batch.fetch(tmp_path / "out")
    assert (fetched.fetched, fetched.failed, fetched.unfinished, fetched.retried) == (2, 0, 0, 1)
    assert fetched.is_complete
    assert (folder / "out").read_text() == "1\n"
    assert "args: -n 1" in (folder / "stderr.txt").read_text()
    again = batch.fetch(tmp_path / "out")
    assert (again.fetched, again.here) == (0, 2)
    packed = batch.fetch_zip(tmp_path / "out.zip")
    assert (packed.fetched, packed.retried) == (2, 1)
    one, other = batch.to_records()
    assert [(each["state"], each["attempts"]) for each in (one, other)] == [
        ("done", 1),
        ("done", 2),
    ]
    assert (other["n"], other["exit_status"], other["folder"]) == (1, 0, str(folder))
    assert batch[f"{batch.name}_1"].outputs["out"].read_text() == "1\n"
    # A result that came after the job was aborted counts, too; what is here is as good.
    working.change(
        "UPDATE workunit SET error_mask = 0, canonical_resultid = "
        "(SELECT min(id) FROM result WHERE workunitid = workunit.id) WHERE name = ?",
        f"{batch.name}_1",
    )
    late = batch.fetch(tmp_path / "out")
    assert (late.errors, late.here, late.retried) == ({}, 2, 0)


def test_a_job_whose_retry_is_not_over_is_unfinished(site, tmp_path):
    batch = site.submit(1)
    site.spoil(batch)
    assert batch.fetch(tmp_path / "out").failed == 1
    batch.retry()
    fetched = batch.fetch(tmp_path / "out")
    assert (fetched.failed, fetched.unfinished) == (0, 1)


# -- exactly once


@pytest.mark.long
@pytest.mark.parametrize("carried_out", [True, False], ids=["done", "arrives later"])
@pytest.mark.parametrize("step", ["create_batch", "query_files", "upload_files", "submit_batch"])
def test_after_a_kill_at_any_step_each_job_is_sent_again_once(site, tmp_path, step, carried_out):
    name = site.name
    path = tmp_path / "in.txt"
    path.write_text(f"{name} {step}")
    jobs = [Job(inputs={"in": str(path)}) for _ in range(3)]
    batch = site.submit(jobs)
    site.spoil(batch, f"{name}_0", f"{name}_1")
    if step == "upload_files":
        # As if the project had deleted it.
        [physical] = physical_names(site.project.session.context, [str(path)]).values()
        site.local.core.download.remove(physical)
    hang = faultproxy.hang(carried_out=carried_out)
    site.proxy.fail(step, hang)
    with site.program("project.batch(int(given[0])).retry()", batch.id) as process:
        wait_for(hang.reached.is_set, f"{step} under way")
        process.kill()
    # One more has failed since.
    site.spoil(batch, f"{name}_2")
    site.open().batch(batch.id).retry()
    hang.release()
    site.open().batch(batch.id).retry()
    assert batch.retry() is None
    sent = [name for each in batch.retries() for name in names_of(each)]
    assert sorted(each.partition("-retry")[0] for each in sent) == [f"{name}_{n}" for n in range(3)]
    assert sorted(sent) == [each for each in workunits(site, f"{name}_") if "-retry" in each]
    assert {each.state for each in batch.retries()} == {BatchState.IN_PROGRESS}


@pytest.mark.parametrize("same", [True, False], ids=["the same jobs", "others"])
def test_two_retries_at_the_same_time_send_each_job_once(site, same):
    batch = site.submit(4)
    site.spoil(batch)
    names = names_of(batch)
    wanted = [None, None] if same else [names[:2], names[2:]]
    at_once(lambda jobs: site.open().batch(batch.id).retry(jobs), wanted)
    sent = [name for each in batch.retries() for name in names_of(each)]
    assert sorted(name.partition("-retry")[0] for name in sent) == names
    assert batch.retry() is None
    assert all(job.state is JobState.QUEUED for each in batch.retries() for job in each.jobs())


def test_a_project_that_has_a_batch_of_every_name_is_asked_for_so_many_retries(site, monkeypatch):
    monkeypatch.setattr(family, "_MOST", 3)
    batch = site.batch(0)
    for number in range(1, 6):
        site.batch(0, name=f"{batch.name}-retry{number}")
    found = family.family_of(batch).retries
    assert [retry.number for retry in found] == [1, 2, 3]
