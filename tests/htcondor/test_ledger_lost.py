"""A ledger that is deleted, replaced by another, cannot be written, or is yesterday's."""

import os
import resource
import shutil
import sqlite3
import threading
import time
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from boinc_gahp.config.settings import HTCondor
from boinc_gahp.daemon import _housekeeping
from boinc_gahp.fetch.context import Opener
from boinc_gahp.ledger import rows, upkeep
from boinc_gahp.ledger.ledger import Ledger
from boinc_gahp.states import HTCondorState
from boinc_gahp.submit.generated_files import GeneratedFiles
from tests.helpers import wait_for
from tests.htcondor.process import Gahp, write_settings


@pytest.mark.long
@pytest.mark.parametrize("replaced", [False, True])
def test_a_daemon_whose_ledger_was_deleted_sends_nothing_more_and_ends(site, replaced):
    site.local.pause_volunteers()
    state = site.directory / "state"
    with Gahp(write_settings(site)) as gahp:
        job_id = gahp.submit(site.job().ad)
        wait_for(site.workunits, "the job on the project")
        shutil.rmtree(state)
        if replaced:
            Ledger(state / "ledger.sqlite").close()
        assert gahp.process.wait(60) == 0
    assert "was deleted or replaced while" in (state / "boinc_gahp.log").read_text()
    # The next one does not know the job: with this answer HTCondor holds it.
    not_known = pytest.raises(AssertionError, match="is not in the ledger")
    with Gahp(write_settings(site)) as gahp, not_known:
        gahp.status(job_id)
    assert len(site.workunits()) == 1


@pytest.mark.long
def test_of_yesterdays_ledger_only_jobs_that_htcondor_asks_about_are_fetched(site, tmp_path):
    site.local.pause_volunteers()
    ledger, copy = site.directory / "state" / "ledger.sqlite", tmp_path / "copy"
    # While one of its jobs is alive, a batch is not retired: the project keeps all outputs.
    ended, kept, alive = site.job(), site.job("--sleep 2"), site.job("--sleep 1000")
    with Gahp(write_settings(site)) as gahp:
        ids = gahp.submit_all([job.ad for job in (ended, kept, alive)])
        wait_for(lambda: len(site.workunits()) == 3, "the jobs on the project")
        with closing(sqlite3.connect(ledger)) as now, closing(sqlite3.connect(copy)) as yesterday:
            now.backup(yesterday)
            yesterday.execute("UPDATE job SET last_polled = last_polled - 86400")
            yesterday.commit()
        site.local.resume_volunteers()
        assert gahp.end_of(ids[0]).word == HTCondorState.COMPLETED
        gahp.kill()
    ended.output.write_text("mine")
    for old in ledger.parent.glob("ledger.sqlite-*"):
        old.unlink()
    copy.replace(ledger)
    with Gahp(write_settings(site)) as gahp:
        gahp.statuses(ids[1:])
        gahp.process.terminate()  # what HTCondor has asked about is written down at the end
        assert gahp.process.wait(60) == 0
    with Gahp(write_settings(site)) as gahp:
        assert gahp.end_of(ids[1]).word == HTCondorState.COMPLETED
        assert kept.is_right()
        assert ended.output.read_text() == "mine"
        gahp.cancel(*ids)


def limit_writes(gahp, nbytes):
    """With 0, no file can be written to, as on a full disk."""
    resource.prlimit(gahp.process.pid, resource.RLIMIT_FSIZE, (nbytes, resource.RLIM_INFINITY))


@pytest.mark.long
def test_a_job_that_is_removed_while_the_ledger_cannot_be_written_is_aborted_when_it_can(site):
    site.local.pause_volunteers()
    with Gahp(write_settings(site)) as gahp:
        kept, removed, released = site.job(), site.job(), site.job()
        kept_id, *ids = [gahp.submit(job.ad) for job in (kept, removed, released)]
        wait_for(lambda: len(site.workunits()) == 3, "the jobs on the project")
        limit_writes(gahp, 0)
        gahp.cancel(*ids)
        told = gahp.status(kept_id)
        assert told.word == HTCondorState.SUSPENDED
        ledger = f"the ledger {site.directory}/state/ledger.sqlite"
        assert f"{ledger} cannot be written" in told["ExitReason"]
        assert "check the disk's free space" in told["ExitReason"]
        limit_writes(gahp, resource.RLIM_INFINITY)
        # HTCondor sends a job anew that it has released: that is no repetition of the first.
        assert gahp.submit(released.ad) not in ids
        wait_for(lambda: len(site.failed()) == 2, "the aborts on the project")
        assert gahp.status(kept_id).word == HTCondorState.IDLE


@pytest.fixture
def opener(site):
    opener = Opener()
    opener.ledger(site.settings)
    yield opener
    opener.close()


@contextmanager
def looked_after(opener):
    """Run the housekeeping; lend what it sets to end the process."""
    closing, ended = threading.Event(), threading.Event()
    thread = threading.Thread(
        target=_housekeeping.ledger_housekeeping, args=(opener, HTCondor, closing)
    )
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(_housekeeping, "end_process", ended.set)
        thread.start()
        try:
            yield ended
        finally:
            closing.set()
            thread.join()


def test_files_that_no_container_job_has_needed_for_a_day_are_removed(site, opener, monkeypatch):
    monkeypatch.setattr(_housekeeping, "INTERVAL", 0.02)
    made = GeneratedFiles.of(site.directory / "state")
    old, new = (Path(made.write("run.sh", text).path) for text in (b"old", b"new"))
    two_days_ago = time.time() - 2 * 86400
    os.utime(old, (two_days_ago, two_days_ago))
    with looked_after(opener):
        wait_for(lambda: not old.exists(), "the end of the old file")
    assert new.exists()


def test_jobs_whose_end_htcondor_was_not_told_stay_until_it_had_time_to_ask(opener, monkeypatch):
    monkeypatch.setattr(_housekeeping, "INTERVAL", 0.02)
    monkeypatch.setattr(rows, "HTCONDOR_HAS_ASKED", 0.2)
    goes = []
    monkeypatch.setattr(upkeep, "drop_unneeded", lambda *_, untold: goes.append(untold))
    with looked_after(opener):
        wait_for(lambda: True in goes, "the time to ask")
    assert goes[0] is False
    assert goes == sorted(goes)
