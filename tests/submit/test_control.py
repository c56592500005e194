"""Abort, retire, lease and pending aborts, against a project that answers from a script."""

import re
import time

import pytest
from hypothesis import given, strategies as st

from boinc_gahp.config.settings import Settings
from boinc_gahp.errors import NotFound, PermissionDenied, ProjectDown, ProjectError, RpcError
from boinc_gahp.fetch.context import FetchContext
from boinc_gahp.ledger.monitoring import overviews
from boinc_gahp.submit import control
from boinc_gahp.submit.query import query_batches
from tests.submit.scripted import Batch, Script, error, long_ago


class Jobs:
    """abort_jobs of the real server: in turn, up to the first that it refuses."""

    def __init__(self, *names, foreign=()):
        self.names = names
        self.foreign = foreign
        self.aborted = set()

    def __call__(self, arguments):
        reply = ""
        for name in arguments["job_name"]:
            if name in self.foreign:
                return reply + error("not owner of batch")
            if name not in self.names:
                return reply + error(f"no job {name}")
            self.aborted.add(name)
            reply += f"<aborted {name}>"
        return reply + "<success/>"


@given(st.lists(st.sampled_from(["ours", "ours", "unknown", "foreign"]), min_size=1, max_size=40))
def test_all_jobs_are_aborted_but_those_that_the_project_refuses_which_are_named(kinds):
    of = {f"{kind}{number}": kind for number, kind in enumerate(kinds)}
    ours = {name for name, kind in of.items() if kind == "ours"}
    jobs = Jobs(*ours, foreign={name for name, kind in of.items() if kind == "foreign"})
    script = Script({"abort_jobs": jobs})
    said = ""
    try:
        control.abort_jobs(script.context(), [*of, *of])
    except ProjectError as error:
        said = str(error)
    assert jobs.aborted == ours
    if "foreign" not in kinds:
        assert script.count("abort_jobs") <= 1 + len(of) - len(ours)
    assert (len(ours) == len(of)) == (not said)
    if not said:
        assert [asked["job_name"] for asked in script.arguments("abort_jobs")] == [[*of]]
        return
    assert f"{len(of) - len(ours)} of {len(of)} jobs were not aborted" in said
    # The first ten are named, and there may be more.
    named = set(re.findall(r"((?:unknown|foreign)\d+) \((?:no job |not owner)", said))
    assert len(named) == min(10, len(of) - len(ours))
    assert not named & ours
    assert len(said) < 1000


def test_no_jobs_are_no_request():
    script = Script()
    control.abort_jobs(script.context(), [])
    assert script.asked == []


def test_a_name_that_comes_back_mangled_is_found_all_the_same():
    def reply(arguments):
        if "it's" in arguments["job_name"]:
            return error("no job it\\'s")
        return "<success/>"

    script = Script({"abort_jobs": reply})
    with pytest.raises(NotFound, match="1 of 5 jobs were not aborted"):
        control.abort_jobs(script.context(), ["a", "b", "it's", "c", "d"])
    aborted = [name for asked in script.arguments("abort_jobs") for name in asked["job_name"]]
    assert {"a", "b", "c", "d"} <= set(aborted)


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (error("bad authenticator"), PermissionDenied),
        (error("no file access"), PermissionDenied),
        (error("project down for maintenance", -183), ProjectDown),
    ],
    ids=["account", "right", "project"],
)
def test_what_is_not_about_a_job_is_reported_at_once(reply, kind):
    script = Script({"abort_jobs": reply})
    with pytest.raises(kind):
        control.abort_jobs(script.context(), ["a", "b", "c", "d"])
    assert script.count("abort_jobs") == 1


def test_more_jobs_than_one_request_takes_go_in_several():
    names = [f"job{number}" for number in range(1200)]
    jobs = Jobs(*names)
    script = Script({"abort_jobs": jobs})
    control.abort_jobs(script.context(), names)
    assert jobs.aborted == set(names)
    assert script.count("abort_jobs") == 3


def test_what_is_to_be_aborted_is_in_the_ledger_before_anything_is_asked(ledger):
    seen = []

    def reply(arguments):
        seen.append(ledger.aborted_jobs(*context.owner))
        return "<success/>"

    context = Script({"abort_jobs": reply}).context(ledger)
    control.abort_jobs(context, ["b#1.0", "foreign"])
    assert seen == [{"b#1.0", "foreign"}]


def test_a_retired_batch_is_forgotten(ledger):
    script = Script({"abort_jobs": "<success/>", "retire_batch": "<success/>"})
    context = script.context(ledger)
    control.abort_jobs(context, ["b#1.0", "c#1.0"])
    ledger.begin_submit(*context.owner, "b", 7, time.time())
    control.retire_batch(context, "b")
    assert ledger.aborted_jobs(*context.owner) == {"c#1.0"}
    assert ledger.pending_aborts(*context.owner, time.time()) == ()


def test_a_batch_that_could_not_be_retired_is_not_forgotten(ledger):
    script = Script({"abort_jobs": "<success/>", "retire_batch": error("no such batch")})
    context = script.context(ledger)
    control.abort_jobs(context, ["b#1.0"])
    with pytest.raises(NotFound):
        control.retire_batch(context, "b")
    assert ledger.aborted_jobs(*context.owner) == {"b#1.0"}


def test_without_a_ledger_the_work_goes_on_with_a_warning(ledger, caplog):
    script = Script({"abort_jobs": "<success/>", "retire_batch": "<success/>"})
    ledger.close()
    for context in (script.context(ledger), script.context(None)):
        control.abort_jobs(context, ["b#1.0"])
        control.retire_batch(context, "b")
    assert "later queries may show the aborted jobs" in caplog.text
    assert script.count("abort_jobs") == script.count("retire_batch") == 2


def test_a_batch_is_named():
    script = Script({"retire_batch": "<success/>", "set_expire_time": "<success/>"})
    context = script.context()
    control.set_lease(context, "b", 1795282923)
    control.retire_batch(context, "b")
    for rpc in ("set_expire_time", "retire_batch"):
        [asked] = script.arguments(rpc)
        assert (asked["batch_id"], asked["batch_name"]) == ([], ["b"])
    assert float(script.arguments("set_expire_time")[0]["expire_time"][0]) == 1795282923


def owing(ledger, found, due=-1.0):
    context = found.script.context(ledger)
    ledger.record_abort(*context.owner, "b", 7, time.time() + due)
    long_ago(ledger)
    return context


def test_an_abort_that_is_not_due_waits(ledger):
    found = Batch(1)
    context = owing(ledger, found, due=30.0)
    control.reconcile(context)
    assert found.script.asked == []
    assert len(ledger.pending_aborts(*context.owner, time.time())) == 1
    [owner] = overviews(ledger.store, time.time(), 0.0)
    assert owner.owed.old_aborts == 1


def test_a_project_that_is_down_is_asked_later(ledger):
    found = Batch(1)
    found.script.replies["abort_batch"] = error("project down for maintenance", -183)
    context = owing(ledger, found)
    control.reconcile(context)
    [pending] = ledger.pending_aborts(*context.owner, time.time())
    assert pending.not_before > time.time()


def test_other_accounts_pending_aborts_are_left_alone(ledger):
    found = Batch(1)
    context = found.script.context(ledger)
    ledger.record_abort(context.project.url, "fedcba9876543210", "b", 7, 0.0)
    control.reconcile(context)
    assert found.script.asked == []


def submitting(ledger, found, ago, age):
    context = found.script.context(ledger)
    context.cache._born -= age
    ledger.begin_submit(*context.owner, "b", 7, time.time() - ago)
    long_ago(ledger)
    return context


#: Seconds since its time and since this process began, whether a gridmanager has asked about it,
#: whether none can, and whether it is given up.
SUBMISSIONS = {
    "nobody asks": ((121, 121), False, False, True),
    "its submitter may still be there": ((100, 500), False, False, False),
    "a gridmanager may still ask": ((500, 100), False, False, False),
    "a gridmanager has asked": ((500, 500), True, False, False),
    "nobody can ask, and it is old": ((5000, 0), False, True, True),
    "nobody can ask, and it is not old": ((3500, 0), False, True, False),
}


@pytest.mark.parametrize(
    ("seconds", "mentioned", "alone", "given_up"), SUBMISSIONS.values(), ids=SUBMISSIONS
)
def test_a_submission_is_given_up_when_nobody_can_wait_for_it(
    seconds, mentioned, alone, given_up, ledger
):
    found = Batch(1)
    context = submitting(ledger, found, *seconds)
    if mentioned:
        context.cache.mentioned.set("b", True)
    control.reconcile(context, alone=alone)
    assert found.state == (4 if given_up else 1)
    assert bool(found.script.asked) == given_up
    left = [pending.state for pending in ledger.pending_aborts(*context.owner, time.time())]
    assert left == ([] if given_up else ["sent"])


def test_a_query_notes_which_batches_are_asked_about(ledger, tmp_path):
    script = Script({"query_batch2": "<server_time>1</server_time><batch_size>0</batch_size>"})
    context = FetchContext.of(script.project(), Settings(), ledger, tmp_path / "cache")
    query_batches(context, ["b"], "5")
    assert context.cache.mentioned.get("b")
    assert not context.cache.mentioned.get("c")
    context.close()


def test_reconciling_without_a_ledger_or_with_a_broken_one_is_no_error(ledger, caplog):
    ledger.close()
    control.reconcile(Script().context(None))
    control.reconcile(Script().context(ledger))
    assert "Cannot check now what is still to be sent" in caplog.text


DOWN = error("project down for maintenance", -183)


def test_what_a_project_that_is_down_does_not_hear_is_told_it_later(ledger):
    """HTCondor does not repeat these, and its jobs leave the queue."""
    script = Script({"abort_jobs": DOWN, "retire_batch": DOWN})
    context = script.context(ledger)
    with pytest.raises(ProjectDown):
        control.abort_jobs(context, ["b#1.0", "b#1.1"])
    with pytest.raises(ProjectDown):
        control.retire_batch(context, "c")
    control.reconcile(context)
    [owner] = overviews(ledger.store, time.time(), 0.0)
    assert (owner.owed.aborts, owner.owed.retirements) == (2, 1)
    jobs = Jobs("b#1.0")
    script.replies = {"abort_jobs": jobs, "retire_batch": "<success/>"}
    script.asked.clear()
    control.reconcile(context)
    assert jobs.aborted == {"b#1.0"}
    assert [asked["batch_name"] for asked in script.arguments("retire_batch")] == [["c"]]
    assert overviews(ledger.store, time.time(), 0.0) == []
    script.asked.clear()
    control.reconcile(context)
    assert script.asked == []


def test_what_the_project_refuses_is_not_owed(ledger):
    script = Script({"abort_jobs": Jobs(), "retire_batch": error("no batch c")})
    context = script.context(ledger)
    with pytest.raises(NotFound):
        control.abort_jobs(context, ["b#1.0"])
    with pytest.raises(RpcError):
        control.retire_batch(context, "c")
    assert overviews(ledger.store, time.time(), 0.0) == []


def test_an_owed_retirement_that_is_refused_later_is_owed_no_more_and_the_next_is_sent(ledger):
    script = Script({"abort_jobs": "<success/>", "retire_batch": DOWN})
    context = script.context(ledger)
    for name in "bc":
        with pytest.raises(ProjectDown):
            control.retire_batch(context, name)
    script.replies["retire_batch"] = error("no such batch")
    script.asked.clear()
    control.reconcile(context)
    assert script.count("retire_batch") == 2
    assert overviews(ledger.store, time.time(), 0.0) == []


def test_an_abort_that_a_person_asks_for_is_owed_by_nobody(ledger):
    context = Script({"abort_jobs": DOWN}).context(ledger)
    with pytest.raises(ProjectDown):
        control.abort_jobs(context, ["b#1.0"], remember=False)
    assert overviews(ledger.store, time.time(), 0.0) == []
