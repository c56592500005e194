"""A full disk is told where HTCondor's users look, and what waits for room goes on by itself."""

import errno
import os
import resource
from pathlib import Path

import classad2
import pytest

from boinc_gahp.states import HTCondorState
from tests.helpers import wait_for
from tests.htcondor.helpers import await_status, failed
from tests.htcondor.process import Gahp, write_settings


def reason(ad):
    """Return the ExitReason of a status ad; None if it has none, or takes it back."""
    value = classad2.ClassAd(ad).get("ExitReason")
    return None if value is classad2.Value.Undefined else value


def test_a_job_whose_outputs_find_no_room_is_suspended_with_the_reason_until_they_do(
    site, monkeypatch
):
    job = site.job()
    write = os.write

    def full(descriptor, data):
        if Path(f"/proc/self/fd/{descriptor}").readlink().is_relative_to(job.iwd):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(descriptor, data)

    monkeypatch.setattr("boinc_gahp.fetch.temporary.os.write", full)
    with site.service() as service:
        job_id = service.submit(job.ad)
        await_status(service, [job_id], HTCondorState.SUSPENDED)
        said = str(reason(service.status(job_id)[1]))
        assert f"'{job.iwd}/" in said
        assert "cannot be written: the disk is full: free some space" in said
        # A daemon that does not fetch, as most of a user's, says the same.
        with site.service() as other:
            assert reason(other.status(job_id)[1]) == said
        monkeypatch.setattr("boinc_gahp.fetch.temporary.os.write", write)
        await_status(service, [job_id], HTCondorState.COMPLETED)
        ad = service.status(job_id)[1]
        assert "ExitReason = undefined" in ad
        assert "ExitCode = 0" in ad
    assert job.is_right()


@pytest.mark.long
def test_a_job_that_is_removed_while_the_ledger_cannot_be_written_is_aborted_when_it_can(site):
    site.local.pause_volunteers()
    with Gahp(write_settings(site)) as gahp:
        removed, released = site.job(), site.job()
        ids = [gahp.submit(job.ad) for job in (removed, released)]
        wait_for(lambda: len(site.workunits()) == 2, "the jobs on the project")
        limits = resource.prlimit(gahp.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(gahp.pid, resource.RLIMIT_FSIZE, (0, limits[1]))
        for job_id in ids:
            gahp.cancel(job_id)
        resource.prlimit(gahp.pid, resource.RLIMIT_FSIZE, limits)
        # HTCondor sends a job anew that it has released: that is no repetition of the first.
        assert gahp.submit(released.ad) not in ids
        wait_for(lambda: failed(site) == 2, "the aborts on the project")


@pytest.mark.long
def test_jobs_show_that_the_ledger_cannot_be_written_until_it_can(site):
    site.local.pause_volunteers()
    job = site.job()
    with Gahp(write_settings(site)) as gahp:
        job_id = gahp.submit(job.ad)
        wait_for(site.workunits, "the job on the project")
        limits = resource.prlimit(gahp.pid, resource.RLIMIT_FSIZE)
        # No file can be written to, as on a full disk.
        resource.prlimit(gahp.pid, resource.RLIMIT_FSIZE, (0, limits[1]))
        site.local.resume_volunteers()
        wait_for(
            lambda: gahp.told(job_id)[0] == HTCondorState.SUSPENDED, "the job suspended", pause=0.1
        )
        said = str(reason(gahp.told(job_id)[1]))
        assert f"the ledger {site.directory}/state/ledger.sqlite cannot be written" in said
        assert "check the disk's free space" in said
        resource.prlimit(gahp.pid, resource.RLIMIT_FSIZE, limits)
        wait_for(
            lambda: gahp.told(job_id)[0] == HTCondorState.COMPLETED, "the job completed", pause=0.1
        )
    assert job.is_right()
