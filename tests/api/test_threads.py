"""One project object for many threads."""

import threading
from concurrent.futures import ThreadPoolExecutor

from boinc_gahp.states import BatchState
from tests.api.conftest import QUICK

THREADS = 4


def test_many_threads_use_one_project(site):
    project = site.project
    together = threading.Barrier(THREADS, timeout=60)

    def life(number):
        together.wait()
        batch = site.batch(number + 1, f"thread-{site.authenticator[:6]}-{number}")
        assert project.batch(batch.name).id == batch.id
        queued = batch.counts().queued
        batch.extend(4e9 + number)
        batch.abort()
        return batch, queued

    with ThreadPoolExecutor(THREADS) as pool:
        ends = list(pool.map(life, range(THREADS)))
    assert [queued for _, queued in ends] == list(range(1, THREADS + 1))
    assert [batch.expire_time for batch, _ in ends] == [4e9 + n for n in range(THREADS)]
    assert {batch.state for batch in project.batches()} == {BatchState.ABORTED}
    assert {batch.id for batch in project.batches()} == {batch.id for batch, _ in ends}


def test_many_threads_watch_one_batch_while_others_refresh_it(site):
    batch = site.batch(20)
    names = [job.name for job in batch.jobs()]
    together = threading.Barrier(THREADS + 1, timeout=60)

    def wait():
        together.wait()
        return batch.wait(timeout=60, poll=QUICK).state

    def refresh():
        together.wait()
        while not batch.is_over:
            assert 0 <= batch.refresh().nover <= 20
            assert repr(batch)

    with ThreadPoolExecutor(THREADS + 1) as pool:
        waiting = [pool.submit(wait) for _ in range(THREADS - 2)]
        others = [pool.submit(refresh) for _ in range(2)]
        together.wait()
        for start in range(0, 20, 5):
            site.open().batch(batch.id).abort(names[start : start + 5])
        # All of its jobs are over now, so the project counts the batch as complete.
        assert {future.result(60) for future in waiting} == {BatchState.COMPLETE}
        for future in others:
            future.result(60)
    assert batch.nerror_jobs == 20
