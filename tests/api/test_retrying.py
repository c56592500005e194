"""Failed jobs are sent again, each once, whatever happens meanwhile."""

import re
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, strategies as st

from boinc_gahp.api import family
from boinc_gahp.api.family import retry_name
from boinc_gahp.api.manifest_files import Manifests
from boinc_gahp.api.types import InlineFile, Job, Parameters
from boinc_gahp.api.watching import Poll
from boinc_gahp.errors import (
    BatchConflict,
    BatchTooLarge,
    GahpError,
    NoSuchJob,
    NotKnownHere,
    StagingError,
)
from boinc_gahp.states import BatchState, JobState
from boinc_gahp.submit.checks import check_job_name
from boinc_gahp.submit.staging import physical_names
from tests import faultproxy
from tests.api.test_reasons import QUICK, spoil
from tests.api.test_submission import small
from tests.helpers import wait_for

#: No watch of these tests needs to be polite.
assert isinstance(QUICK, Poll)


def submitted(site, count=3, *, name=None, **more):
    """Return a batch of the test's own; its jobs differ in their arguments."""
    name = name or f"s-{site.directory.name}"
    jobs = [
        Job(args=["-n", str(n)], inputs={"in": InlineFile(f"{n}\n")}, parameters={"n": n})
        for n in range(count)
    ]
    return site.project.submit("uppercase", jobs, name=name, **more)


def names_of(batch):
    return [] if batch is None else [job.name for job in batch.jobs()]


def workunits(site, mark):
    """Return the names of all jobs of the project that contain ``mark``, in order."""
    with site.local.core.db.read() as connection:
        rows = connection.execute("SELECT name FROM workunit ORDER BY name").fetchall()
    return [row["name"] for row in rows if mark in row["name"]]


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
    batch = submitted(site, 3, parameters=needs, priority=7)
    spoil(site, batch, 2, f"{batch.name}_1")
    made = batch.retry()
    assert made is not None
    assert (made.name, names_of(made)) == (f"{batch.name}-retry1", [f"{batch.name}_1-retry1"])
    manifest = Manifests(site.project.session).of(made.name, made.id)
    assert manifest is not None
    job = manifest.job(f"{batch.name}_1-retry1")
    assert manifest.parent == batch.id
    assert (job.retry_of, job.args, job.parameters) == (f"{batch.name}_1", ("-n", "1"), {"n": 1})
    assert job.inputs["in"].source == "inline:1\n"
    with site.local.core.db.read() as connection:
        [row] = connection.execute(
            "SELECT delay_bound, priority FROM workunit WHERE name = ?", (job.name,)
        ).fetchall()
    assert (row["delay_bound"], row["priority"]) == (4000, 7)
    assert batch.retry() is None
    assert [each.id for each in batch.retries()] == [made.id]


def test_nothing_is_sent_if_nothing_has_failed(site):
    batch = submitted(site)
    assert batch.retry() is None
    with pytest.raises(BatchConflict, match="is waiting: only jobs that failed are sent again"):
        batch.retry(f"{batch.name}_0")
    with pytest.raises(NoSuchJob):
        batch.retry("nosuch")


def test_a_job_whose_retry_failed_is_sent_once_more(site):
    batch = submitted(site)
    spoil(site, batch, 2, f"{batch.name}_0", f"{batch.name}_1")
    first = batch.retry(f"{batch.name}_0")
    assert first is not None
    assert names_of(first) == [f"{batch.name}_0-retry1"]
    spoil(site, first)
    second = batch.retry()
    assert names_of(second) == [f"{batch.name}_0-retry2", f"{batch.name}_1-retry2"]
    assert batch.retry() is None


def test_a_retry_of_a_retry_repeats_jobs_of_the_first_batch(site):
    batch = submitted(site)
    spoil(site, batch, 2, f"{batch.name}_0", f"{batch.name}_1")
    first = batch.retry()
    assert first is not None
    spoil(site, first, 2, f"{batch.name}_1-retry1")
    second = first.retry()
    assert second is not None
    assert (second.name, names_of(second)) == (
        f"{batch.name}-retry2",
        [f"{batch.name}_1-retry2"],
    )
    assert first.retry() is None


def test_reasons_leave_out_what_is_sent_again(site):
    batch = submitted(site)
    spoil(site, batch, 2, f"{batch.name}_0", f"{batch.name}_1")
    assert [each.count for each in batch.reasons()] == [2]
    made = batch.retry(f"{batch.name}_0")
    assert made is not None
    assert [(each.count, each.end.name) for each in batch.reasons()] == [(1, f"{batch.name}_1")]
    spoil(site, made)
    assert [each.count for each in batch.reasons()] == [2]


def test_another_machine_says_that_it_does_not_know_what_was_sent(site):
    batch = site.batch(1)  # with the web RPCs alone
    spoil(site, batch)
    with pytest.raises(NotKnownHere, match="on the machine that submitted it"):
        batch.retry()


def test_a_file_that_has_changed_is_the_projects_copy_or_an_error(site, tmp_path):
    path = tmp_path / "in.txt"
    path.write_text(f"first {tmp_path}")
    name = f"f-{site.directory.name}"
    batch = site.project.submit("uppercase", [Job(inputs={"in": str(path)})], name=name)
    spoil(site, batch)
    path.write_text("another text")
    made = batch.retry()
    assert made is not None
    manifest = Manifests(site.project.session).of(made.name, made.id)
    assert manifest is not None
    [source] = [each.source for each in manifest.job(f"{name}_0-retry1").inputs.values()]
    assert source.startswith("staged:")
    spoil(site, made)
    site.local.core.download.remove(source.removeprefix("staged:"))
    with pytest.raises(StagingError, match=r"has changed or is gone, and .* no longer has"):
        batch.retry()


def test_a_name_that_another_batch_has_is_left_out(site):
    batch = submitted(site)
    spoil(site, batch, 2, f"{batch.name}_0")
    submitted(site, 1, name=f"{batch.name}-retry1")
    site.somebody_else().rpc.create_batch(f"{batch.name}-retry2", "uppercase")
    made = batch.retry()
    assert made is not None
    assert made.name == f"{batch.name}-retry3"
    assert [each.name for each in batch.retries()] == [made.name]


def test_too_many_failed_jobs_for_a_request_are_retried_in_parts(site):
    batch = submitted(site, 60)
    spoil(site, batch)
    project = small(site, 10_000)
    with pytest.raises(BatchTooLarge, match="batch retry --job") as caught:
        project.batch(batch.id).retry()
    assert "split" not in str(caught.value).partition("fit into one request")[2]
    found = re.search(r"(\d+) of these 60 jobs fit", str(caught.value))
    assert found
    jobs = [f"{batch.name}_{n:02}" for n in range(60)]
    part = project.batch(batch.id).retry(jobs[: int(found[1])])
    assert len(names_of(part)) == int(found[1])


def test_the_lease_of_the_parent_is_renewed(site):
    batch = submitted(site, lease=3600)
    spoil(site, batch, 2, f"{batch.name}_0")
    before = batch.expire_time or 0
    batch.retry()
    assert (batch.refresh().expire_time or 0) > before + 86400


def test_outputs_of_retries_are_in_the_folders_of_the_jobs_that_failed(working, tmp_path):
    working.local.pause_volunteers()
    batch = submitted(working, 2)
    batch.abort(f"{batch.name}_1")
    made = batch.retry()
    assert made is not None
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
    with working.local.core.db.write() as connection:
        connection.execute(
            "UPDATE workunit SET error_mask = 0, canonical_resultid = "
            "(SELECT min(id) FROM result WHERE workunitid = workunit.id) WHERE name = ?",
            (f"{batch.name}_1",),
        )
    late = batch.fetch(tmp_path / "out")
    assert (late.errors, late.here, late.retried) == ({}, 2, 0)


def test_a_job_whose_retry_is_not_over_is_unfinished(site, tmp_path):
    batch = submitted(site, 1)
    spoil(site, batch)
    assert batch.fetch(tmp_path / "out").failed == 1
    batch.retry()
    fetched = batch.fetch(tmp_path / "out")
    assert (fetched.failed, fetched.unfinished) == (0, 1)


# -- exactly once

RETRIER = """
import sys
from pathlib import Path
from boinc_gahp.api.project import Project
from boinc_gahp.config.settings import ProjectSettings, Settings, State
from boinc_gahp.config.urls import ProjectUrl
url, authenticator, home, batch = sys.argv[1:]
settings = Settings(
    project=ProjectSettings(ProjectUrl(url)),
    state=State(dir=Path(home) / "state", cache_dir=Path(home) / "cache"),
)
with Project(url, authenticator, settings=settings) as project:
    project.batch(int(batch)).retry()
"""


def retrier(site, batch):
    arguments = [site.proxy.url, site.authenticator, str(site.directory), str(batch.id)]
    return subprocess.Popen([sys.executable, "-c", RETRIER, *arguments])


@pytest.mark.long
@pytest.mark.parametrize("carried_out", [True, False], ids=["done", "arrives later"])
@pytest.mark.parametrize("step", ["create_batch", "query_files", "upload_files", "submit_batch"])
def test_after_a_kill_at_any_step_each_job_is_sent_again_once(site, tmp_path, step, carried_out):
    name = f"k-{site.directory.name}"
    path = tmp_path / "in.txt"
    path.write_text(f"{name} {step}")
    jobs = [Job(inputs={"in": str(path)}) for _ in range(3)]
    batch = site.project.submit("uppercase", jobs, name=name)
    spoil(site, batch, 2, f"{name}_0", f"{name}_1")
    if step == "upload_files":
        # As if the project had deleted it.
        [physical] = physical_names(site.project.session.context, [str(path)]).values()
        site.local.core.download.remove(physical)
    hang = faultproxy.hang(carried_out=carried_out)
    site.proxy.fail(step, hang)
    with retrier(site, batch) as process:
        wait_for(hang.reached.is_set, f"{step} under way")
        process.kill()
    # One more has failed since.
    spoil(site, batch, 2, f"{name}_2")
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
    batch = submitted(site, 4)
    spoil(site, batch)
    names = names_of(batch)
    ready = threading.Barrier(2)

    def run(project, jobs):
        its = project.batch(batch.id)
        ready.wait(30)
        try:
            return its.retry(jobs)
        except GahpError as error:
            return error

    wanted = [None, None] if same else [names[:2], names[2:]]
    with ThreadPoolExecutor(2) as pool:
        running = [pool.submit(run, site.open(), jobs) for jobs in wanted]
        made = [each.result(60) for each in running]
    assert not [each for each in made if isinstance(each, BaseException)]
    sent = [name for each in batch.retries() for name in names_of(each)]
    assert sorted(name.partition("-retry")[0] for name in sent) == names
    assert batch.retry() is None
    assert all(job.state is JobState.QUEUED for each in batch.retries() for job in each.jobs())


def test_a_retry_whose_reply_is_lost_sends_each_job_once(site):
    batch = submitted(site)
    spoil(site, batch)
    site.proxy.fail("submit_batch", faultproxy.lose_reply())
    assert len(names_of(batch.retry())) == 3
    assert len(workunits(site, f"{batch.name}_0-retry")) == 1


def test_a_project_that_has_a_batch_of_every_name_is_asked_for_so_many_retries(site, monkeypatch):
    monkeypatch.setattr(family, "_MOST", 3)
    batch = site.batch(0)
    for number in range(1, 6):
        site.batch(0, name=f"{batch.name}-retry{number}")
    assert [
        retry.number for retry in family.family_of(site.project.session, batch.name).retries
    ] == [
        1,
        2,
        3,
    ]
