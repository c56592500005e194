"""Pending requests are sent without a daemon, as ``boinc_gahp ledger reconcile`` does."""

import time

from boinc_gahp.fetch.context import Opener
from boinc_gahp.htcondor.reconciling import reconcile
from tests import faultproxy
from tests.helpers import wait_for
from tests.htcondor.helpers import await_state, row_of
from tests.ledger.jobs import new_job


def reconciled(site, seconds=20.0):
    opener = Opener()
    try:
        (reconciliation,) = reconcile(site.settings, opener, time.monotonic() + seconds)
    finally:
        opener.close()
    assert reconciliation.problem is None
    return reconciliation.pending


def test_reconciling_sends_what_is_pending_and_leaves_jobs_that_are_wanted_alone(site, jobs):
    site.local.pause_volunteers()
    with site.service() as service:
        with site.held_back():  # in one batch, which has jobs that are wanted
            ids = [service.submit(site.job().ad) for _ in range(3)]
        for job_id in ids:
            await_state(jobs, job_id, "queued")
    site.reset(send_after=30.0, longest_wait=30.0)
    with site.held_back():
        with site.service() as service:
            service.cancel(ids[0])
            waiting = service.submit(site.job().ad)
        assert reconciled(site) is None, "a daemon manages the account"
    aborts, retirements, unclear = reconciled(site)
    # A batch of its own, which a slow machine may have made for the job, is retired.
    assert (aborts, retirements[1], unclear) == ((1, 0), 0, (0, 0))
    assert len(site.failed()) == 1
    assert row_of(jobs, waiting).state == "waiting"
    assert row_of(jobs, ids[1]).state == "queued"


def test_reconciling_ends_batches_of_which_nothing_is_wanted(site, jobs):
    site.local.pause_volunteers()
    site.proxy.fail("submit_batch", faultproxy.status(503), times=None)
    with site.service() as service:
        first, second = (service.submit(site.job().ad) for _ in range(2))
        wait_for(lambda: site.proxy.count("submit_batch"), "the submission")
        service.close()
        service.cancel(first)
        service.cancel(second)
    # On a busy machine the second job is in a batch of its own, which was never sent.
    batches = [batch for batch in jobs.batches(*site.owner) if batch.state != "ended"]
    assert {batch.state for batch in batches} == {"giving_up"}
    *_, (before, after) = reconciled(site, 0.5)
    assert before == len(batches)
    assert after
    site.proxy.heal()
    wait_for(lambda: not any(left for _, left in a_minute_later(site, jobs)), "nothing is pending")
    assert site.workunits() == []


def test_reconciling_drops_what_ended_long_ago(site, jobs):
    ids = [jobs.accept(new_job(name)).id for name in "ab"]
    for job_id in ids:
        jobs.cancel(job_id)
    jobs.store.execute("UPDATE job SET changed = 1 WHERE id = ?", (ids[0],))
    opener = Opener()
    assert reconcile(site.settings, opener, time.monotonic() + 20) == ()
    opener.close()
    assert [jobs.job(job_id) is None for job_id in ids] == [True, False]


def a_minute_later(site, jobs):
    """Settle when no submit_batch can be running any more, as the next `ledger reconcile` does."""
    jobs.store.execute("UPDATE batch SET not_before = 1 WHERE state = 'giving_up'", ())
    return reconciled(site)
