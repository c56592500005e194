"""Futures over jobs: results as they come, errors, cancelling, and the same call again."""

import asyncio
import concurrent.futures
import sys

import pytest

from boinc_gahp.api.futures import collecting
from boinc_gahp.api.futures.job_futures import JobFutures
from boinc_gahp.backoff import Backoff
from boinc_gahp.errors import (
    BadRequest,
    BatchConflict,
    JobFailed,
    NotFound,
    Stopped,
    TransportError,
)
from boinc_gahp.rpc.types import JobInfo
from boinc_gahp.states import BatchState, JobState
from boinc_gahp.submit.types import InlineFile, Job
from tests import faultproxy
from tests.api.conftest import QUICK, REFUSED
from tests.helpers import wait_for
from tests.inside import fail_workunit, tell_of_failed_jobs

LIMIT = 60


def mapped(site, rows=4, args="--n {n}", project=None, app="uppercase", **more):
    """Return futures of jobs, for rows or so many, whose batch no other test has."""
    options = {"inputs": {"in": InlineFile(f"{site.authenticator}\n")}, "poll": QUICK, **more}
    options.setdefault("directory", site.directory / "results")
    rows = [{"n": n} for n in range(rows)] if isinstance(rows, int) else rows
    return (project or site.project).map(app, rows, args=args, **options)


def test_results_come_in_the_order_of_the_rows(working):
    futures = mapped(working, 5, outputs=["out"])
    results = futures.results(LIMIT)
    assert [result.parameters for result in results] == [{"n": n} for n in range(5)]
    assert [future.parameters["n"] for future in futures] == list(range(5))
    names = [job.name for job in futures.batch.jobs()]
    assert [result.name for result in results] == names
    assert [future.job_name for future in futures] == names
    first = results[0]
    assert first.outputs["out"].read_text() == f"{working.authenticator.upper()}\n"
    assert first.folder == working.directory / "results" / names[0]
    assert (first.exit_status, first.stdout) == (0, "")
    assert "called boinc_finish(0)" in first.stderr
    assert (working.directory / "results" / "jobs.csv").read_text().count("\n") == 6


def test_the_rows_of_jobs_csv_have_the_order_of_the_jobs(working):
    # The later a job is in the table, the sooner it is over.
    rows = [{"n": n, "sleep": (5 - n) / 5} for n in range(6)]
    mapped(working, rows, args="--sleep {sleep}").results(LIMIT)
    lines = (working.directory / "results" / "jobs.csv").read_text().splitlines()
    assert [line.split(",")[1] for line in lines[1:]] == list("012345")


def test_what_concurrent_futures_and_asyncio_have_works(working):
    futures = mapped(working, 3)
    assert {each.job_name for each in futures.as_completed(LIMIT)} == {
        each.job_name for each in futures
    }
    done, left = concurrent.futures.wait(futures, LIMIT)
    assert (len(done), len(left)) == (3, 0)
    assert all(each in done for each in concurrent.futures.as_completed(futures))

    async def gathered():
        return await asyncio.gather(*map(asyncio.wrap_future, futures))

    assert asyncio.run(gathered()) == futures.results()


def test_the_same_call_finds_the_same_batch_and_fetches_nothing_again(working):
    before = mapped(working)
    results = before.results(LIMIT)
    assert working.proxy.count("result_file") == 4
    again = mapped(working, project=working.open())
    assert again.batch.existed
    assert again.batch.id == before.batch.id
    assert again.results(LIMIT) == results
    assert working.proxy.count("result_file") == 4
    assert working.proxy.count("submit_batch") == 1


def test_a_failed_job_raises_why_with_its_stderr(working, monkeypatch):
    tell_of_failed_jobs(monkeypatch)
    futures = mapped(working, 3, args="--fail {n}")
    futures.wait(LIMIT)
    error = futures[2].exception(LIMIT)
    assert isinstance(error, JobFailed)
    assert (error.job, error.exit_status, error.why) == (futures[2].job_name, 2, "exit status 2")
    said = (
        f"job {futures[2].job_name!r} of batch {futures.batch.name!r} (id {futures.batch.id}) of "
        f"{futures.batch.project.host} failed: exit status 2"
    )
    assert str(error) == f'{said}; the last line of its stderr: "failing with 2 as asked"'
    assert "starting uppercase" in error.stderr
    assert futures[0].exception() is None
    assert [each.job_name for each in futures.failed] == [each.job_name for each in futures[1:]]
    with pytest.raises(JobFailed, match="exit status 1"):
        futures.results()
    assert repr(futures).endswith("3/3 here, 2 failed>")
    table = (working.directory / "results" / "jobs.csv").read_text()
    assert table.count("exit status 2") == 1


def test_a_job_that_was_sent_again_counts_as_its_retry(working):
    # The first instance of a job fails as the project says; its retry runs.
    working.local.pause_volunteers()
    futures = mapped(working, 2)
    fail_workunit(working.local, futures[1].job_name)
    assert isinstance(futures[1].exception(LIMIT), JobFailed)
    futures.batch.retry()
    again = mapped(working, 2, project=working.open())
    assert not again[1].done()
    working.local.resume_volunteers()
    results = again.results(LIMIT)
    assert results[1].name == futures[1].job_name
    assert results[1].outputs["out"].read_text()
    assert futures[0].result(LIMIT) == results[0]


def test_an_output_that_a_job_has_to_have(working):
    with pytest.raises(
        BadRequest, match=r"which jobs of uppercase do not make.*did you mean 'out'"
    ):
        mapped(working, outputs=["outt"])
    assert not working.project.batches()
    # An optional one may be missing.
    error = mapped(working, 1, app="optmid", args=None, outputs=["out1"])[0].exception(LIMIT)
    assert isinstance(error, JobFailed)
    assert error.why == "it has no output 'out1'; its outputs are: 'out0', 'out2'"


def test_who_stops_waiting_aborts_nothing(working):
    working.local.pause_volunteers()
    futures = mapped(working, 2)

    async def wait_briefly():
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.wrap_future(futures[0]), 0.05)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.gather(*futures), 0.05)

    asyncio.run(wait_briefly())
    assert not futures[0].cancel()
    assert not futures[0].cancelled()
    assert futures.batch.counts().failed == 0
    working.local.resume_volunteers()

    async def result():
        return await futures[1]

    assert asyncio.run(result()) is futures[1].result()


def test_an_aborted_future_aborts_its_job_only(site):
    futures = mapped(site, 3)
    assert futures[1].abort()
    assert futures[1].abort()
    assert futures[1].cancel()
    assert futures[1].cancelled()
    done, _ = concurrent.futures.wait(futures, LIMIT, concurrent.futures.FIRST_COMPLETED)
    assert done == {futures[1]}
    with pytest.raises(concurrent.futures.CancelledError, match="was aborted from here"):
        futures[1].result()
    with pytest.raises(concurrent.futures.CancelledError, match=futures[1].job_name):
        futures[1].exception()
    assert futures.batch.counts().failed == 1
    assert [repr(each).split()[-1] for each in futures] == ["pending>", "cancelled>", "pending>"]


def test_aborting_all_aborts_the_batch_and_the_same_call_makes_a_new_one(site):
    futures = mapped(site, 3)
    futures.abort()
    assert futures.wait(LIMIT).here == 3
    assert all(each.cancelled() for each in futures)
    assert futures.batch.refresh().state is BatchState.ABORTED
    again = mapped(site, 3)
    assert again.batch.name == f"{futures.batch.name}-2"
    assert mapped(site, 3).batch == again.batch
    again.batch.retire()
    assert mapped(site, 3).batch.name == f"{futures.batch.name}-3"


def test_a_future_that_has_its_result_cannot_be_aborted(working):
    futures = mapped(working, 1)
    result = futures[0].result(LIMIT)
    assert not futures[0].abort()
    assert futures[0].result() is result


def test_nothing_is_cancelled_if_the_project_cannot_be_asked(site):
    project = site.open(retry=0)
    futures = mapped(site, 1, project=project)
    site.proxy.fail("abort_jobs", faultproxy.status(503), times=None)
    with pytest.raises(Exception, match="asked to abort jobs"):
        futures[0].abort()
    assert not futures[0].done()


def test_jobs_that_somebody_aborts_have_failed(site):
    futures = mapped(site, 2)
    site.open().batch(futures.batch.id).abort()
    assert "aborted" in str(futures[1].exception(LIMIT))


def test_a_closed_project_ends_the_futures_and_not_the_jobs(site):
    with site.open() as project:
        futures = mapped(site, 2, project=project)
    error = futures[0].exception(LIMIT)
    assert isinstance(error, Stopped)
    assert "the job goes on, and the same call picks it up" in str(error)
    again = mapped(site, 2)
    assert again.batch.id == futures.batch.id
    assert again.batch.counts().queued == 2


def test_a_project_that_is_down_for_a_while_only_delays_results(working):
    working.local.pause_volunteers()
    futures = mapped(working, 2, project=working.open(retry=0))
    with working.down():
        wait_for(lambda: futures.batch.trouble is not None, "a query that fails")
        assert futures.here == 0
    working.local.resume_volunteers()
    assert len(futures.results(LIMIT)) == 2


def test_a_project_that_refuses_the_account_ends_the_futures(site):
    futures = mapped(site, 1)
    site.proxy.fail("query_batch", REFUSED, times=None)
    assert "bad authenticator" in str(futures[0].exception(LIMIT))


def test_waiting_has_a_limit_and_shows_progress(site):
    futures = mapped(site, 2)
    seen = []
    with pytest.raises(TimeoutError, match=r"2 of 2 results of batch .* not here after 0\.3 s"):
        futures.wait("0.3s", progress=lambda each: seen.append(each.here))
    assert seen
    assert set(seen) == {0}
    with pytest.raises(concurrent.futures.TimeoutError):
        next(futures.as_completed(0.01))
    with pytest.raises(concurrent.futures.TimeoutError):
        futures[0].result(0)

    def stop(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        futures.results(progress=stop)


def test_the_rows_may_be_jobs_of_any_kind(site):
    jobs = [Job(args=["--x", "1"], inputs={"in": InlineFile("a\n")}, parameters={"x": 1})]
    futures = site.project.map("uppercase", iter(jobs), poll=QUICK, directory=site.directory)
    assert futures[0].parameters == {"x": 1}
    with pytest.raises(BadRequest, match="rows has jobs"):
        site.project.map("uppercase", jobs, args="--y")
    table = site.directory / "rows.csv"
    table.write_text("n\n1\n2\n")
    futures = mapped(site, table, name=site.name)
    assert futures.batch.name == site.name
    assert [each.parameters for each in futures] == [{"n": 1}, {"n": 2}]
    with pytest.raises(BatchConflict):
        mapped(site, table, args="-m {n}", name=site.name)
    with pytest.raises(NotFound):
        mapped(site, table, app="upercase")
    with pytest.raises(BadRequest, match="rows is a int"):
        site.project.map("uppercase", 3)


def test_the_folder_is_called_like_the_batch(working, monkeypatch):
    monkeypatch.chdir(working.directory)
    futures = mapped(working, 1, directory=None)
    monkeypatch.chdir("/")
    folder = futures[0].result(LIMIT).folder
    assert folder == working.directory / futures.batch.name / futures[0].job_name


def test_a_timeout_tells_why_results_do_not_come(working):
    working.proxy.fail("result_file", faultproxy.status(503), times=None)
    futures = mapped(working, 1, project=working.open(retry=0))
    wait_for(lambda: futures.trouble is not None, "an attempt that fails")
    with pytest.raises(TimeoutError, match="continue on the project; the last attempt failed: "):
        futures.results(0.01)
    for ask in (futures[0].result, futures[0].exception):
        with pytest.raises(concurrent.futures.TimeoutError):
            ask("0.01s")
    working.proxy.heal()
    assert futures.results(LIMIT)


@pytest.mark.processes  # hosts look for a container engine
def test_programs_with_the_same_contents_are_one_batch(site, monkeypatch):
    if ("docker",) not in site.rows("SELECT name FROM app"):
        site.local.add_container_app("docker")
    (site.directory / "in.txt").write_text("x")
    (site.directory / "tree").mkdir()
    (site.directory / "tree" / "a").write_text("a")
    monkeypatch.chdir(site.directory)
    command = ["/opt/my fit!.py", "in.txt", "--tree=tree", "{n}"]

    def run(project, **more):
        options = {"image": "bb", "rows": [{"n": 1}, {"n": 2}], "app": "docker", **more}
        return project.run(command, poll=QUICK, **options)

    futures = run(site.project)
    assert futures.batch.name.startswith("myfit.py-")
    assert [each.parameters for each in futures] == [{"n": 1}, {"n": 2}]
    (site.directory / "in.txt").touch()
    assert run(site.open()).batch == futures.batch
    assert run(site.project, environment={"A": "b"}).batch != futures.batch
    assert run(site.project, name="own").batch.name == "own"
    (site.directory / "tree" / "a").write_text("b")
    assert run(site.project).batch != futures.batch


def test_a_project_that_is_closed_during_a_fetch_says_so(working):
    hanging = faultproxy.hang()
    working.proxy.fail("result_file", hanging, times=None)
    try:
        project = working.open()
        futures = mapped(working, 2, project=project)
        wait_for(lambda: working.proxy.count("result_file"), "a fetch that hangs")
        project.close()
        assert isinstance(futures[0].exception(LIMIT), Stopped)
        assert isinstance(futures[1].exception(LIMIT), Stopped)
    finally:
        hanging.release()


def test_what_makes_a_value_may_raise_anything(working):
    futures = mapped(working, 2)
    futures.wait(LIMIT)

    def make(result):
        return 1 // int(result.parameters["n"] or 0)

    made = JobFutures(
        futures.batch,
        [(each.job_name, each.parameters) for each in futures],
        futures.directory,
        make,
        poll=QUICK,
    )
    assert made[1].result(LIMIT) == 1
    assert isinstance(made[0].exception(LIMIT), ZeroDivisionError)


def test_jobs_whose_outputs_are_gone_do_not_keep_the_others_waiting(working):
    # More in a row than after which a fetch gives up on a network that is broken.
    working.proxy.fail("result_file", faultproxy.status(404), times=8)
    futures = mapped(working, 10, project=working.open(retry=0))
    errors = [each.exception(LIMIT) for each in futures]
    gone = [each for each in errors if each is not None]
    assert len(gone) == 8
    assert all(isinstance(each, TransportError) and each.status == 404 for each in gone)


@pytest.mark.long
def test_outputs_that_never_come_end_in_an_error(working, monkeypatch):
    monkeypatch.setattr(collecting, "_BACKOFF", Backoff(0.01))
    working.proxy.fail("result_file", faultproxy.status(503), times=None)
    futures = mapped(working, 8, project=working.open(retry=0))
    for each in futures:
        error = each.exception(LIMIT)
        assert isinstance(error, TransportError)
        assert error.status == 503


def test_a_callback_that_exits_does_not_keep_the_others_waiting(working):
    working.local.pause_volunteers()
    project = working.open()
    done, closed = mapped(working, 3), mapped(working, 4, args="--m {n}", project=project)

    def leave(_):
        sys.exit("raised by a callback")

    for each in (*done, *closed):
        each.add_done_callback(leave)
    project.close()
    assert all(isinstance(each.exception(LIMIT), Stopped) for each in closed)
    working.local.resume_volunteers()
    assert len(done.results(LIMIT)) == 3


def test_a_state_that_nobody_knows_is_no_reason_to_wait_for_ever(working, monkeypatch):
    monkeypatch.setattr(JobInfo, "state", property(lambda _: JobState.UNKNOWN))
    futures = mapped(working, 2)
    error = futures[0].exception(LIMIT)
    assert isinstance(error, JobFailed)
    assert "calls its state" in error.why
