"""A ledger that is deleted, or replaced by another, under a daemon at work."""

import os
import shutil
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from boinc_gahp.config.settings import HTCondor
from boinc_gahp.daemon import _housekeeping
from boinc_gahp.fetch.context import Opener
from boinc_gahp.ledger import upkeep
from boinc_gahp.ledger.ledger import Ledger
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
    monkeypatch.setattr(_housekeeping, "HTCONDOR_HAS_ASKED", 0.2)
    goes = []
    monkeypatch.setattr(upkeep, "drop_unneeded", lambda *_, untold: goes.append(untold))
    with looked_after(opener):
        wait_for(lambda: True in goes, "the time to ask")
    assert goes[0] is False
    assert goes == sorted(goes)
