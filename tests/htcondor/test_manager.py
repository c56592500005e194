"""Jobs from their submit to their end, with a real project behind a proxy that can go wrong."""

import sys
import threading
import time
from types import SimpleNamespace

import pytest

from boinc_gahp.states import BatchState
from tests import faultproxy
from tests.helpers import wait_for
from tests.htcondor.helpers import await_state, await_status, row_of

pytestmark = pytest.mark.long


@pytest.fixture
def service(site):
    with site.service() as service:
        yield service


def await_end(jobs):
    """Wait until nothing is pending."""
    wait_for(lambda: not jobs.owners(), "the end of all that is pending")


def test_a_job_cancelled_while_its_batch_is_sent_is_aborted_when_that_is_certain(
    service, site, jobs
):
    site.local.pause_volunteers()
    hang = faultproxy.hang()
    site.proxy.fail("submit_batch", hang)
    with site.held_back():
        first, second = (service.submit(site.job().ad) for _ in range(2))
    wait_for(hang.reached.is_set, "the submission")
    service.cancel(first)
    assert service.status(first)[0] == 3
    assert site.proxy.count("abort_jobs") == 0
    hang.release()
    await_state(jobs, second, "queued")
    wait_for(lambda: len(site.failed()) == 1, "the abort")
    assert len(site.workunits()) == 2
    site.local.resume_volunteers()
    await_status(service, [second], 4)
    await_end(jobs)
    assert site.batch_states() == [BatchState.RETIRED]


@pytest.mark.parametrize("through_another", [False, True])
def test_nothing_is_written_into_a_jobs_directory_after_its_cancel_was_answered(
    service, site, jobs, through_another
):
    hang = faultproxy.hang()
    site.proxy.fail("result_file", hang)
    job = site.job(text=b"some text\n" * 200_000)
    job_id = service.submit(job.ad)
    wait_for(hang.reached.is_set, "the fetch")
    with site.service() as another:
        asked = another if through_another else service
        cancel = threading.Thread(target=asked.cancel, args=[job_id])
        cancel.start()
        await_state(jobs, job_id, "cancelled")
        hang.release()
        cancel.join(60)
        assert not cancel.is_alive()
        before = written(job)
        # What HTCondor does next: it has the directory for itself.
        job.output.write_bytes(b"the scientist's own")
        await_end(jobs)
        service.close()
    assert job.output.read_bytes() == b"the scientist's own"
    assert written(job) == before


def test_a_cancel_need_not_wait_for_what_a_dead_manager_was_writing(site, jobs):
    site.local.pause_volunteers()
    with site.service() as service:
        job_id = service.submit(site.job().ad)
        await_state(jobs, job_id, "queued")
    jobs.store.execute("UPDATE job SET writing = 1", ())
    assert row_of(jobs, job_id).writing
    with site.service() as service:
        service.status(job_id)
        wait_for(lambda: not row_of(jobs, job_id).writing, "the next manager")


def written(job):
    """Return when each file in a job's directory was written, but for its output."""
    files = {path: path.stat().st_mtime_ns for path in job.iwd.iterdir() if path != job.output}
    assert not list(job.iwd.glob(".boinc_gahp*"))
    return files


def test_a_retirement_that_does_not_come_in_time_is_owed(site, jobs):
    site.reset(retire_wait=0.5)
    site.proxy.fail("retire_batch", faultproxy.status(503), times=None)
    with site.service() as service:
        job_id = service.submit(site.job().ad)
        await_status(service, [job_id], 4)
        (batch,) = jobs.batches(*site.owner)
        assert batch.state == "ended"
        assert site.batch_states() != [BatchState.RETIRED]
        assert "503" in str(jobs.batches(*site.owner)[0].trouble)
        site.proxy.heal()
        await_end(jobs)
    assert site.batch_states() == [BatchState.RETIRED]


def test_a_job_accepted_by_a_process_that_is_not_the_manager_is_seen_by_the_manager(
    site, jobs, monkeypatch
):
    monkeypatch.setattr("boinc_gahp.htcondor._manager._LONGEST_WAIT", 3600.0)
    site.local.pause_volunteers()
    site.reset(poll_shortest=3600.0, poll_longest=3600.0)
    with site.service() as service, site.service() as another:
        await_state(jobs, service.submit(site.job().ad), "queued")
        # Until nothing that the manager has done itself wakes it.
        threading.Event().wait(0.7)
        job_id = another.submit(site.job().ad)
        # Sooner than the next look at leases, after a minute.
        wait_for(lambda: row_of(jobs, job_id).state == "queued", "the job on the project", 40)


def test_a_clock_that_is_set_back_stops_nothing(service, site, jobs, monkeypatch):
    site.local.pause_volunteers()
    job_id = service.submit(site.job().ad)
    await_state(jobs, job_id, "queued")
    # The submit node's clock: that of the project, which is in this process, goes on.
    yesterday = SimpleNamespace(time=lambda: time.time() - 86400, monotonic=time.monotonic)
    for name, module in list(sys.modules.items()):
        if name.startswith(("boinc_gahp.htcondor.", "boinc_gahp.ledger.")) and hasattr(
            module, "time"
        ):
            monkeypatch.setattr(module, "time", yesterday)
    jobs.postpone(row_of(jobs, job_id).batch_id or 0, time.time(), "it was tried before")
    site.local.resume_volunteers()
    await_status(service, [job_id], 4)


def test_a_ledger_that_fails_is_tried_now_and_then_and_logged_once(site, caplog, monkeypatch):
    with site.service() as service:
        await_status(service, [service.submit(site.job().ad)], 4)
        caplog.clear()
        service._opener.close()
        monkeypatch.setattr("boinc_gahp.htcondor._context.FAULT", 3600.0)
        [manager] = service._managers.values()
        for _ in range(20):
            manager.wake()
            wait_for(lambda: not manager._news.is_set(), "the look")
        errors = [record for record in caplog.records if record.name == "boinc_gahp.htcondor"]
        assert 1 <= len(errors) <= 3
        assert "was closed" in errors[0].getMessage()
        assert not [record for record in errors if record.exc_info]
