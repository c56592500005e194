"""A ledger that is deleted, or replaced by another, under a daemon at work."""

from __future__ import annotations

import os
import shutil
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from boinc_gahp.bridge import Opener
from boinc_gahp.daemon import housekeeping
from boinc_gahp.ledger import Ledger
from boinc_gahp.submit import MadeFiles
from tests.helpers import wait_for
from tests.htcondor.helpers import row_of
from tests.htcondor.process import Gahp, write_settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.htcondor.helpers import Site


@pytest.mark.long
def test_jobs_come_home_though_the_state_directory_was_deleted(site: Site) -> None:
    site.local.pause_volunteers()
    job = site.job()
    state = site.directory / "state"
    with Gahp(write_settings(site)) as gahp:
        job_id = gahp.submit(job.ad)
        wait_for(site.workunits, "the job on the project")
        shutil.rmtree(state)
        wait_for((state / "ledger.sqlite").exists, "the ledger")
        # What a daemon that comes then finds.
        with site.jobs() as jobs:
            assert row_of(jobs, job_id).is_alive
    site.local.resume_volunteers()
    with Gahp(write_settings(site)) as gahp:
        wait_for(lambda: gahp.status(job_id) == 4, "the job's end")
    assert job.is_right()
    assert len(site.workunits()) == 1


@pytest.mark.long
def test_a_daemon_whose_ledger_was_replaced_ends(site: Site) -> None:
    state = site.directory / "state"
    with Gahp(write_settings(site)) as gahp:
        gahp.ping()
        shutil.rmtree(state)
        Ledger(state / "ledger.sqlite").close()
        assert gahp.wait() == 0
    assert "was replaced by another file" in (state / "boinc_gahp.log").read_text()


@pytest.fixture
def opener(site: Site) -> Iterator[Opener]:
    opener = Opener()
    opener.ledger(site.settings)
    yield opener
    opener.close()


@contextmanager
def looked_after(opener: Opener) -> Iterator[threading.Event]:
    """Run the housekeeping; lend what it sets to end the process."""
    closing, ended = threading.Event(), threading.Event()
    thread = threading.Thread(
        target=housekeeping.ledger_housekeeping, args=(opener, lambda: 1e9, closing, ended.set)
    )
    thread.start()
    try:
        yield ended
    finally:
        closing.set()
        thread.join()


def test_files_that_no_container_job_has_needed_for_a_day_are_removed(
    site: Site, opener: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(housekeeping, "INTERVAL", 0.02)
    made = MadeFiles.of(site.directory / "state")
    old, new = (Path(made.write("run.sh", text).path) for text in (b"old", b"new"))
    two_days_ago = time.time() - 2 * 86400
    os.utime(old, (two_days_ago, two_days_ago))
    with looked_after(opener):
        wait_for(lambda: not old.exists(), "the end of the old file")
    assert new.exists()


@pytest.mark.parametrize("how", ["deleted", "replaced"])
def test_it_is_noticed_and_reported(
    site: Site,
    opener: Opener,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    how: str,
) -> None:
    monkeypatch.setattr(housekeeping, "INTERVAL", 0.02)
    path: Path = site.directory / "state" / "ledger.sqlite"
    path.unlink()
    if how == "replaced":
        path.touch(0o600)
    with looked_after(opener) as ended:
        wait_for(lambda: f"{path} was {how} " in caplog.text, "the line in the log")
        if how == "replaced":
            assert ended.wait(60)
            assert path.stat().st_size == 0
        else:
            assert path.stat().st_size > 0
            assert not ended.is_set()
