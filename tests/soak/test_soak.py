"""What judges a soak finds what is wrong; what misbehaves does so by its seed."""

import time

import pytest

from boinc_gahp.localproject.states import BatchState, ErrorMask
from tests.soak import verdict, work
from tests.soak.clock import Clock
from tests.soak.node import Job, Plan, Sample, User
from tests.soak.work import Work

BATCH = [7, "bg-1", BatchState.RETIRED, "alice"]


def workunit(number, *, error_mask=0, batch=7, successes=1):
    line = " ".join(Work(number, 60.0).arguments)
    document = f"<workunit><command_line>\n{line}\n</command_line></workunit>"
    return [f"bg-{batch}-{number}", document, error_mask, batch, successes]


def told(workunits, batches=None):
    return {"workunits": workunits, "batches": [BATCH] if batches is None else batches}


def life(memory=50 << 20, threads=8, more=0):
    return [Sample(at, 1, memory + at * more, threads, 20) for at in range(100)]


@pytest.fixture
def alice(tmp_path):
    plan = Plan(24, 120, 1, "1", Clock(time.time(), 720))
    job = Job(Work(1, 60.0), tmp_path / "job", 0.0, "boinc/1", "home")
    job.directory.mkdir()
    (job.directory / "out").write_bytes(job.work.output(work.text_of(job.input)))
    (job.directory / "job.err").write_text("job 1\n")
    return User("alice", tmp_path, plan, [job], samples=life())


def wrong(user, project):
    """Return what is found, which has to be one thing at most."""
    found = list(verdict.problems([user], project))
    assert len(found) <= 1, found
    return "".join(found)


def test_a_soak_in_which_all_is_right_is_right(alice):
    assert wrong(alice, told([workunit(1)])) == ""


def test_a_job_that_is_not_home_is_found(alice):
    alice.jobs[0].fate = ""
    assert "alice's job 1 has not come home" in wrong(alice, told([workunit(1)]))


@pytest.mark.parametrize("change", ["out", "job.err", ".boinc_gahp-left"])
def test_a_file_that_is_not_right_is_found(alice, change):
    (alice.jobs[0].directory / change).write_text("")
    assert "alice's job 1 was home, and now: " in wrong(alice, told([workunit(1)]))


def test_a_job_that_is_on_the_project_twice_is_found(alice):
    project = told([workunit(1), workunit(1, batch=8, successes=0)], [BATCH, [8, *BATCH[1:]]])
    [double, left] = verdict.problems([alice], project)
    assert double == "job 1 is on the project more than once: bg-7-1, bg-8-1"
    assert left == "1 jobs of alice's batch bg-1 still wait for a volunteer"


def test_a_batch_that_was_given_up_does_not_count_once_it_is_aborted(alice):
    alice.given_up.add("given up")
    twice = [workunit(1), workunit(1, batch=8)]
    assert wrong(alice, told(twice, [BATCH, [8, "given up", BatchState.ABORTED, "bob"]])) == ""
    alice.excused.add("given up")
    assert wrong(alice, told(twice, [BATCH, [8, "given up", BatchState.COMPLETE, "bob"]])) != ""


@pytest.mark.parametrize(
    ("more", "state", "found"),
    [
        ([workunit(1, error_mask=ErrorMask.CANCELLED)], BatchState.RETIRED, "more than once"),
        ([], BatchState.COMPLETE, "alice's batch bg-1 is COMPLETE, and not retired"),
    ],
)
def test_a_job_that_was_computed_twice_or_a_batch_that_is_not_retired_is_found(
    alice, more, state, found
):
    assert found in wrong(alice, told([workunit(1), *more], [[7, "bg-1", state, "alice"]]))


@pytest.mark.parametrize("samples", [life(more=1 << 20), [], life()[:50] + life(threads=60)[50:]])
def test_a_daemon_that_grows_or_was_not_seen_is_found(alice, samples):
    alice.samples = samples
    assert "alice's daemon" in wrong(alice, told([workunit(1)]))


def test_a_traceback_in_the_log_is_found(alice):
    alice.log.parent.mkdir(parents=True)
    alice.log.write_text("ERROR: it failed\nTraceback (most recent call last):\n")
    assert "line 2: a traceback after: ERROR: it failed" in wrong(alice, told([workunit(1)]))
