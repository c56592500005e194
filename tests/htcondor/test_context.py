"""Cancel scopes by job, pauses after failures, and the threads of managers."""

import threading
import time

import pytest

from boinc_gahp.config.settings import HTCondor
from boinc_gahp.htcondor._context import CancelScopes, FailureBackoff, NoLongerWanted
from tests.helpers import wait_for


def test_closing_by_job_waits_until_the_fetch_has_cleared_up_and_knows_no_other_jobs():
    scopes = CancelScopes()
    scopes.close(1)
    opened, cleared = threading.Event(), threading.Event()

    def fetch():
        with pytest.raises(NoLongerWanted), scopes.open(1) as scope:  # noqa: PT012
            opened.set()
            while True:
                with scope:
                    pass
        cleared.set()

    fetcher = threading.Thread(target=fetch)
    fetcher.start()
    assert opened.wait(60)
    assert scopes.jobs() == (1,)
    scopes.close(2)
    scopes.close(1)
    assert scopes.jobs() == ()
    fetcher.join(60)
    assert cleared.is_set()


def test_closing_by_job_does_not_wait_for_ever_for_a_fetch_that_hangs():
    scopes = CancelScopes()
    with scopes.open(1) as scope:
        scopes.close(1, clearing=0.01)
        with pytest.raises(NoLongerWanted):
            scope.check()


def test_a_pause_ends_in_time_though_the_clock_is_set_back():
    backoff, settings = FailureBackoff(), HTCondor(poll_shortest=0.01, poll_longest=0.01)
    tomorrow = time.time() + 86400
    assert backoff.failed(tomorrow, settings) > tomorrow
    wait_for(lambda: backoff.until <= time.time(), "the end of the pause")
    assert backoff.until > 0
