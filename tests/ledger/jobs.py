"""Makes jobs and batches of the states that a test begins with."""

from collections import Counter
from contextlib import contextmanager
from dataclasses import replace

from boinc_gahp.config.urls import are_one_project
from boinc_gahp.ledger.account_lock import AccountLock
from boinc_gahp.ledger.rows import ALIVE, Hold, NewJob
from boinc_gahp.ledger.upkeep import drop_old

URL = "https://boinc.example.edu/test/"
ACCOUNT = "0123456789abcdef"
MINE = (URL, ACCOUNT)
HOLD = Hold("the app crashed", 2304, 11)
LEASE = 5000.0


@contextmanager
def at_work(directory, *owner):
    """Let a daemon, which is this process, manage an account; lend its lock."""
    lock = AccountLock(directory, *owner)
    assert lock.try_acquire()
    try:
        yield lock
    finally:
        lock.release()


def new_job(directory, *, account=ACCOUNT, description="{}", url=URL):
    return NewJob(directory, url, account, "", "uppercase", "0" * 32, 600, description)


def planned(jobs, *directories, name="bg-1"):
    """Return a batch, named ``name``, of new jobs, and their ids."""
    ids = [jobs.accept(new_job(directory)).id for directory in directories]
    batch = jobs.plan(*MINE, name, "uppercase", "0" * 32, ids, LEASE)
    return batch, ids


def in_request(jobs, batch_id):
    """Return the ids of the jobs that a submit_batch of a batch has, as the sender takes them."""
    batch = jobs.batch(batch_id)
    only = ["sending"] if batch is not None and batch.state == "planned" else []
    return [job.id for job in jobs.jobs_of(batch_id, *only)]


def submitted(jobs, *directories, name="bg-1"):
    batch, ids = planned(jobs, *directories, name=name)
    assert jobs.about_to_send(batch.id, 7, ids) == "go"
    jobs.submitted(batch.id, 7)
    return batch, ids


def finish(jobs, *job_ids):
    """Let the project say of these jobs that they are done."""
    for job_id in job_ids:
        job = jobs.job(job_id)
        jobs.statuses(job.batch_id, {job.job_name: "finished"})


def counts(jobs, url=None):
    """Return how many jobs are in each state, of all projects or one."""
    with jobs.store.read() as connection:
        rows = connection.execute(
            "SELECT url, state FROM job JOIN project ON project.id = project_id"
        )
        return Counter(state for of, state in rows if url is None or are_one_project(of, url))


def alive(jobs, url=None):
    """Return how many jobs are not over."""
    return sum(number for state, number in counts(jobs, url).items() if state in ALIVE)


def in_state(jobs, state, directory="d"):
    """Return a job of that state; a batch that it is in has another job, which is running."""
    if state == "waiting":
        return jobs.accept(new_job(directory)).id
    if state == "sending":
        return planned(jobs, directory, directory + " too")[1][0]
    alone = [directory] if state == "fetched" else [directory, directory + " too"]
    _, ids = submitted(jobs, *alone)
    job_id = ids[0]
    if len(ids) > 1:
        jobs.statuses(jobs.job(ids[1]).batch_id or 0, {"bg-1-2": "running"})
    if state == "running":
        jobs.statuses(jobs.job(job_id).batch_id or 0, {"bg-1-1": "running"})
    elif state == "failed":
        jobs.hold([job_id], replace(HOLD, exit_code=1, cpu_time=2.0))
    elif state == "cancelled":
        jobs.cancel(job_id)
    elif state != "queued":
        finish(jobs, job_id)
        if state in {"fetched", "done"}:
            jobs.fetched(job_id, 0, 1.5)
    assert jobs.job(job_id).state == state
    return job_id


def prune(jobs, before):
    """Drop what is known to be over since before then; return how many jobs."""
    count = counts(jobs).total()
    drop_old(jobs.store, 0.0, before, 0.0, untold=False)
    return count - counts(jobs).total()
