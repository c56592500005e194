"""Batches are aborted until that is certain, those of BOINC_SUBMIT and of HTCondor's jobs alike."""

import time

import pytest

from boinc_gahp.errors import NotFound, ProjectDown
from boinc_gahp.ledger.jobs import JobLedger
from boinc_gahp.states import BatchState
from boinc_gahp.submit import abort
from boinc_gahp.submit.abort import abort_once
from boinc_gahp.submit.engine import submit
from tests import faultproxy
from tests.ledger.jobs import new_job
from tests.submit.scripted import Batch, batch, error, job, long_ago


class Pending:
    """A batch that the ledger has to be aborted.

    Args:
        ledger: where.
        found: what the project has of it.
        whose: BOINC_SUBMIT's, or that of four jobs of HTCondor's.
        is_clear: whether no submit_batch of it can be running.
    """

    def __init__(self, ledger, found, whose, *, is_clear):
        self.context = found.script.context(ledger)
        self.ledger = ledger
        self.whose = whose
        owner = self.context.owner
        self.jobs = JobLedger(ledger.store)
        if whose == "submit":
            ledger.record_abort(*owner, "b", 7, 0.0)
            if is_clear:
                long_ago(ledger)
            self.more = {}
            self.id = ledger.pending_aborts(*owner, 0.0)[0].id
            return
        ids = [
            self.jobs.accept(new_job(each, account=owner[1], url=owner[0])).id for each in "abcd"
        ]
        planned = self.jobs.plan(*owner, "b", "uppercase", "t", ids, 0.0)
        self.id = planned.id
        self.jobs.about_to_send(self.id, 7, ids)
        self.jobs.begin_abort(self.id, 0.0)
        self.more = {"njobs": 4, "is_clear": is_clear}

    @property
    def row(self):
        return self.jobs.batch(self.id)

    def attempt(self):
        """Do what is done when it is due, in a process that remembers nothing."""
        note = self.ledger if self.whose == "submit" else self.jobs
        is_certain = abort.abort_until_certain(self.context, self.row, note, **self.more)
        if not is_certain:
            assert 0 < self.row.not_before - time.time() <= 60
            assert self.row.trouble
        return is_certain


both = pytest.mark.parametrize("whose", ["submit", "jobs"])


#: Whether no submit_batch can be running, the batch's state, and of each attempt: what happened to
#: the batch before, whether its end is certain, and its state then; how many aborts were sent.
HISTORIES = {
    **{f"no submit_batch, {n}": (True, n, [({}, True, 4)], 1) for n in (0, 1, 2, 3)},
    "undone": (True, 1, [({"undone": 1}, False, 1), ({}, True, 4)], 2),
    "undone by one that runs": (
        False,
        1,
        [({"undone": 1}, False, 1), ({}, False, 3), ({}, True, 4)],
        3,
    ),
    "retired, and let be": (True, 4, [({}, True, 4)], 0),
    "jobs come into a retired one, and somebody retires it again": (
        False,
        4,
        [({}, False, 3), ({"jobs": 2, "state": 4}, False, 3), ({}, True, 4)],
        3,
    ),
}


@both
@pytest.mark.parametrize("history", HISTORIES.values(), ids=HISTORIES)
def test_what_is_aborted_how_often_and_when_it_is_over(whose, history, ledger):
    is_clear, state, attempts, aborts = history
    found = Batch(state)
    pending = Pending(ledger, found, whose, is_clear=is_clear)
    for before, is_certain, after in attempts:
        vars(found).update(before)
        assert pending.attempt() == is_certain
        assert found.state == after
    assert found.script.count("abort_batch") == aborts
    assert state != 4 or is_clear == (found.script.count("retire_batch") == 0)


@both
def test_a_batch_is_aborted_until_no_more_jobs_appear(whose, ledger):
    found = Batch(1)
    pending = Pending(ledger, found, whose, is_clear=False)
    for jobs, is_certain in ((1, False), (2, False), (3, False), (3, True)):
        found.jobs = jobs
        assert pending.attempt() == is_certain
        assert pending.row.listed == jobs
        # Not before: a retired batch looks as if no job of it ran.
        assert found.state == (4 if is_certain else 3)
    assert found.script.count("abort_batch") == 4


def test_a_batch_that_has_all_its_jobs_is_aborted_once(ledger):
    found = Batch(1)
    found.jobs = 4
    assert Pending(ledger, found, "jobs", is_clear=False).attempt()


@both
@pytest.mark.parametrize("is_clear", [True, False])
def test_jobs_that_appear_between_two_looks_are_waited_for(whose, is_clear, ledger):
    found = Batch(1)
    found.jobs = 3

    def abort(arguments):
        found.jobs = 4
        return found.abort(arguments)

    found.script.replies["abort_batch"] = abort
    pending = Pending(ledger, found, whose, is_clear=is_clear)
    # Even if these are all that it has: the last one may have come after the abort.
    assert not pending.attempt()
    assert pending.attempt()


@both
def test_after_trouble_it_is_not_known_any_more_how_many_jobs_there_were(whose, ledger):
    found = Batch(1)
    pending = Pending(ledger, found, whose, is_clear=False)
    assert not pending.attempt()
    pending.ledger.postpone(pending.id, time.time(), "the project is down")
    assert not pending.attempt()
    assert pending.attempt()


@both
@pytest.mark.parametrize("is_clear", [True, False])
def test_a_batch_that_the_project_does_not_know_twice_is_over(whose, is_clear, ledger):
    found = Batch(1)
    pending = Pending(ledger, found, whose, is_clear=is_clear)
    there = found.script.replies["query_batch"]
    replies = iter([error("no such batch"), there, error("no such batch"), error("no such batch")])

    def query(arguments):
        reply = next(replies)
        return reply if isinstance(reply, str) else reply(arguments)

    found.script.replies["query_batch"] = query
    assert not pending.attempt()
    assert pending.attempt()
    assert found.script.count("abort_batch") == found.script.count("retire_batch") == 0


@both
def test_a_batch_whose_id_is_anothers_by_now_is_over_and_the_other_left_alone(whose, ledger):
    found = Batch(1)
    pending = Pending(ledger, found, whose, is_clear=False)
    found.script.replies["query_batch"] = batch(7, "another", 1, job(1, "another#1.1"))
    assert pending.attempt()
    assert found.script.count("abort_batch") == found.script.count("retire_batch") == 0


@both
def test_a_retirement_that_fails_is_left_at_that(whose, ledger):
    found = Batch(1)
    found.script.replies["retire_batch"] = error("project down for maintenance", -183)
    assert Pending(ledger, found, whose, is_clear=True).attempt()
    assert found.state == 3


@both
def test_a_project_that_cannot_be_asked_is_an_error(whose, ledger):
    found = Batch(1)
    found.script.replies["abort_batch"] = error("project down for maintenance", -183)
    with pytest.raises(ProjectDown):
        Pending(ledger, found, whose, is_clear=True).attempt()


def test_a_person_can_abort_a_batch_whatever_it_is(site):
    request = site.batch()
    with site.context() as context:
        batch_id = submit(context, request)
        assert abort_once(context, batch_id, request.batch_name)
        assert abort_once(context, batch_id, request.batch_name)
        assert site.proxy.count("abort_batch") == 2
        assert site.state(request) is BatchState.ABORTED
        # An abort that a running submit_batch undoes is none.
        success = faultproxy.body(b"<abort_batch><success>1</success></abort_batch>")
        site.proxy.fail("abort_batch", success)
        more = site.batch()
        other = submit(context, more)
        assert not abort_once(context, other, more.batch_name)
        assert abort_once(context, other, more.batch_name)
        with site.project() as project, pytest.raises(NotFound):
            project.query_batch(batch_id=batch_id + 1000)
        assert abort_once(context, batch_id + 1000, request.batch_name)
