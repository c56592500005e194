"""A full disk is told where HTCondor's users look, and what waits for room goes on by itself."""

import errno
import os
import resource
from pathlib import Path

import pytest

from boinc_gahp.states import HTCondorState
from tests.daemon.gridmanager import Status
from tests.helpers import wait_for
from tests.htcondor.helpers import await_status
from tests.htcondor.process import Gahp, write_settings


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
        said = Status(*service.status(job_id))["ExitReason"]
        assert f"'{job.iwd}/" in said
        assert "cannot be written: the disk is full: free some space" in said
        # A daemon that does not fetch, as most of a user's, says the same.
        with site.service() as other:
            assert Status(*other.status(job_id))["ExitReason"] == said
        monkeypatch.setattr("boinc_gahp.fetch.temporary.os.write", write)
        await_status(service, [job_id], HTCondorState.COMPLETED)
        ad = service.status(job_id)[1]
        assert "ExitReason = undefined" in ad
        assert "ExitCode = 0" in ad
    assert job.is_right()


def limit_writes(gahp, nbytes):
    """With 0, no file can be written to, as on a full disk."""
    resource.prlimit(gahp.process.pid, resource.RLIMIT_FSIZE, (nbytes, resource.RLIM_INFINITY))


@pytest.mark.long
def test_a_job_that_is_removed_while_the_ledger_cannot_be_written_is_aborted_when_it_can(site):
    site.local.pause_volunteers()
    with Gahp(write_settings(site)) as gahp:
        removed, released = site.job(), site.job()
        ids = [gahp.submit(job.ad) for job in (removed, released)]
        wait_for(lambda: len(site.workunits()) == 2, "the jobs on the project")
        limit_writes(gahp, 0)
        for job_id in ids:
            gahp.cancel(job_id)
        limit_writes(gahp, resource.RLIM_INFINITY)
        # HTCondor sends a job anew that it has released: that is no repetition of the first.
        assert gahp.submit(released.ad) not in ids
        wait_for(lambda: len(site.failed()) == 2, "the aborts on the project")


@pytest.mark.long
def test_jobs_show_that_the_ledger_cannot_be_written_until_it_can(site):
    site.local.pause_volunteers()
    job = site.job()
    with Gahp(write_settings(site)) as gahp:
        job_id = gahp.submit(job.ad)
        wait_for(site.workunits, "the job on the project")
        limit_writes(gahp, 0)
        site.local.resume_volunteers()
        wait_for(
            lambda: gahp.status(job_id).word == HTCondorState.SUSPENDED,
            "the job suspended",
            pause=0.1,
        )
        said = gahp.status(job_id)["ExitReason"]
        assert f"the ledger {site.directory}/state/ledger.sqlite cannot be written" in said
        assert "check the disk's free space" in said
        limit_writes(gahp, resource.RLIM_INFINITY)
        assert gahp.end_of(job_id).word == HTCondorState.COMPLETED
    assert job.is_right()
