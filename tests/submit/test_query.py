"""BOINC_QUERY_BATCHES against a project that answers from a script."""

import time

import pytest

from boinc_gahp.errors import BadRequest, LedgerError, NotFound, PermissionDenied, ProjectDown
from boinc_gahp.submit.control import reconcile
from boinc_gahp.submit.query import query_batches
from tests.inside import change
from tests.submit.scripted import Script, batch, error, job, statuses

GRIDMANAGER = {"gridmanager": True}
PERSON = {"gridmanager": False}
TIME = "1795261752.9478"
JOBS = [("b#1.0", "DONE"), ("b#1.1", "UNSENT")]


def of_state(state, *jobs):
    """Return a project with the batch "b", id 7, in this state."""
    listed = [job(number, name) for number, (name, _) in enumerate(jobs, 1)]
    return Script(
        {"query_batch": batch(7, "b", state, *listed), "query_batch2": statuses(TIME, list(jobs))}
    )


TIMES = {
    "zero": ("0", "0"),
    "zero, as a gridmanager may write it": ("0.000000", "0"),
    "zero, as a number": (0.0, "0"),
    "a server_time": ("1795261323.469543", "1795261023"),
    "a whole second": ("1795261323", "1795261023"),
    "a number": (1795261323.9, "1795261023"),
    "less than minutes": ("299.5", "1"),
    "negative": ("-5", "0"),
}


@pytest.mark.parametrize(("given", "asked"), TIMES.values(), ids=TIMES)
def test_min_mod_time_goes_back_by_minutes(given, asked):
    script = of_state(1, *JOBS)
    query_batches(script.context(), ["b"], given, **GRIDMANAGER)
    [arguments] = script.arguments("query_batch2")
    assert arguments["min_mod_time"] == [asked]


def test_an_event_that_the_project_stores_late_is_told(site):
    """Its time is that of its beginning; a query may be answered before it is stored."""
    request = site.batch(jobs=2)
    site.submit(request)
    asked = [request.batch_name]
    with site.context() as context:
        told = query_batches(context, asked, "0", **GRIDMANAGER)
        late, old = site.names(request)
        for name, ago in ((late, 200), (old, 4000)):
            at = float(told.server_time) - ago
            change(site.local, "UPDATE workunit SET mod_time = ? WHERE name = ?", at, name)
        (jobs,) = query_batches(context, asked, told.server_time, **GRIDMANAGER).batches
    assert [name for name, _ in jobs] == [late]


@pytest.mark.parametrize("given", ["", "now", "nan", "inf", "1e400"])
def test_a_min_mod_time_that_is_no_number_is_a_bad_request(given):
    script = of_state(1)
    with pytest.raises(BadRequest, match="min_mod_time"):
        query_batches(script.context(), ["b"], given, **GRIDMANAGER)
    assert script.asked == []


@pytest.mark.parametrize("jobs", [[], JOBS], ids=["empty", "half made"])
@pytest.mark.parametrize("client", [GRIDMANAGER, PERSON], ids=["gridmanager", "person"])
def test_a_batch_in_init_has_0_jobs_at_min_mod_time_0(jobs, client):
    script = of_state(0, *jobs)
    assert query_batches(script.context(), ["b"], "0", **client).batches == ((),)
    assert [name for name, _ in script.asked] == ["query_batch", "query_batch2"]


def test_a_batch_in_init_is_looked_at_again_each_time():
    script = of_state(0, *JOBS)
    context = script.context()
    query_batches(context, ["b"], "0", **GRIDMANAGER)
    script.replies.update(of_state(1, *JOBS).replies)
    assert query_batches(context, ["b"], "0", **GRIDMANAGER).batches == (tuple(JOBS),)


def test_a_half_made_batch_shows_what_changed_later():
    script = of_state(0, *JOBS)
    assert query_batches(script.context(), ["b"], TIME, **GRIDMANAGER).batches == (tuple(JOBS),)
    assert script.count("query_batch") == 0


def test_a_batch_that_was_seen_submitted_is_not_looked_at_again():
    script = of_state(1, *JOBS)
    context = script.context()
    for _ in range(3):
        query_batches(context, ["b"], "0", **GRIDMANAGER)
    assert script.count("query_batch") == 1


def test_a_batch_that_this_process_submitted_is_not_looked_at():
    script = of_state(1, *JOBS)
    context = script.context()
    context.cache.submitted.set("b", True)
    query_batches(context, ["b"], "0", **GRIDMANAGER)
    assert script.count("query_batch") == 0


ANSWERS = ((("a#1.1", "DONE"),), (("b#1.1", "UNSENT"),), (("c#1.1", "ERROR"),))
A, B, C = ANSWERS

#: The states of the batches that query_batches lists, those that are asked for, what query_batch
#: has where that is asked as well, how often it is, and the answer.
MANY = {
    "all submitted": ({"a": 1, "b": 2, "c": 3}, "abc", None, 0, (A, B, C)),
    "two in init": ({"a": 1, "b": 0, "c": 0}, "abc", None, 2, (A, (), ())),
    "a retired one is not listed": ({"a": 1, "b": 1}, "abc", None, 0, (A, B, C)),
    "a name means the older one, which is retired": (
        {"a": 1, "b": 1, "c": 0},
        "abc",
        batch(1, "c", 4, job(1, "c#1.1", 5)),
        1,
        (A, B, C),
    ),
    "names without regard to case": (
        {"Café": 0, "b": 1, "c": 1},
        ["CAFÉ ", "b", "c"],
        batch(1, "Café", 0),
        1,
        ((), B, C),
    ),
}


@pytest.mark.parametrize("case", MANY.values(), ids=MANY)
def test_many_batches_are_looked_at_together(case):
    states, asked, alone, times, answer = case
    listed = {name: batch(n, name, state) for n, (name, state) in enumerate(states.items(), 1)}
    script = Script(
        {
            "query_batches": "".join(f"<batch>{text}</batch>" for text in listed.values()),
            "query_batch": alone or (lambda asked: listed[asked["batch_name"][0]]),
            "query_batch2": statuses(TIME, *ANSWERS),
        }
    )
    found = query_batches(script.context(), asked, "0", **GRIDMANAGER)
    assert (found.server_time, found.batches) == (TIME, answer)
    assert script.count("query_batches") == script.count("query_batch2") == 1
    assert script.count("query_batch") == times


def test_a_name_that_comes_twice_is_answered_twice():
    script = of_state(1)
    script.replies["query_batch2"] = statuses(TIME, JOBS, JOBS)
    answer = query_batches(script.context(), ["b", "b"], "0", **GRIDMANAGER)
    assert answer.batches == (tuple(JOBS), tuple(JOBS))
    assert script.count("query_batch") == 1


def test_no_batches_give_the_projects_clock():
    script = Script({"query_batch2": statuses(TIME)})
    answer = query_batches(script.context(), [], "0", **PERSON)
    assert (answer.server_time, answer.batches) == (TIME, ())


UNKNOWN = {
    "one": (["b"], "no batch named b", "b"),
    "one of two": (["a", "nosuch"], "no batch named nosuch", "nosuch"),
    "in another case": (["a", "NoSuch"], "no batch named nosuch", "NoSuch"),
    "with backslashes, as the project writes it": (
        ["a", 'it\'s "quoted"'],
        'no batch named it\\\'s \\"quoted\\"',
        'it\'s "quoted"',
    ),
    "not well-formed": (["a & <b>"], "no batch named a & <b>", "a & <b>"),
    "one, mangled": (["condor#s@h#x#1"], "no batch named mangled", "condor#s@h#x#1"),
}


@pytest.mark.parametrize(("names", "words", "name"), UNKNOWN.values(), ids=UNKNOWN)
@pytest.mark.parametrize("since", ["0", TIME])
def test_an_unknown_batch_is_named_last_as_it_was_asked_for(names, words, name, since):
    script = Script({"query_batch": error("no such batch"), "query_batch2": error(words)})
    with pytest.raises(NotFound) as caught:
        query_batches(script.context(), names, since, **GRIDMANAGER)
    assert str(caught.value).endswith(f"no batch named {name}")
    assert str(caught.value).count("no batch named ") == 1


def test_a_batch_of_another_account_is_an_error_that_says_so():
    script = Script(
        {
            "query_batch": error("not owner of batch"),
            "query_batch2": error("not owner of b"),
            "query_batches": "",
        }
    )
    with pytest.raises(PermissionDenied, match="not owner of b"):
        query_batches(script.context(), ["b"], "0", **PERSON)
    # A gridmanager cannot choose another name, and submits a batch that nobody has.
    with pytest.raises(NotFound, match=r"no batch named b$"):
        query_batches(script.context(), ["b"], "0", **GRIDMANAGER)


def test_aborted_jobs_are_left_out_for_a_gridmanager_only(ledger):
    context = of_state(1, *JOBS).context(ledger)
    ledger.record_aborted(*context.owner, ["b#1.1", "other"])
    assert query_batches(context, ["b"], "0", **GRIDMANAGER).batches == ((JOBS[0],),)
    assert query_batches(context, ["b"], "0", **PERSON).batches == (tuple(JOBS),)


def test_a_query_teaches_the_ledger_which_batch_an_aborted_job_is_in(ledger):
    context = of_state(1, *JOBS).context(ledger)
    ledger.record_aborted(*context.owner, ["b#1.1", "other"])
    query_batches(context, ["b"], TIME, **GRIDMANAGER)
    ledger.forget_aborted(*context.owner, "b")
    assert ledger.aborted_jobs(*context.owner) == {"other"}


@pytest.mark.parametrize("broken", [None, "closed"], ids=["none", "broken"])
def test_without_a_ledger_nothing_is_left_out(broken, ledger, caplog):
    ledger.close()
    with pytest.raises(LedgerError):
        ledger.aborted_jobs("", "")
    context = of_state(1, *JOBS).context(ledger if broken else None)
    assert query_batches(context, ["b"], "0", **GRIDMANAGER).batches == (tuple(JOBS),)
    assert ("The answer to a query may have aborted jobs" in caplog.text) is bool(broken)


ASKED_ABOUT = {
    "in progress, recovery": (1, JOBS, "0", 0),
    "in progress, poll": (1, JOBS, TIME, 0),
    "complete": (2, JOBS, TIME, 0),
    "nothing changed": (1, [], TIME, 1),
    "half made": (0, JOBS, "0", 1),
    "half made, poll": (0, JOBS, TIME, 1),
    "aborted": (3, JOBS, "0", 1),
}


@pytest.mark.parametrize(("state", "jobs", "since", "left"), ASKED_ABOUT.values(), ids=ASKED_ABOUT)
def test_a_submission_that_is_asked_about_and_went_well_is_not_pending_any_more(
    state, jobs, since, left, ledger
):
    context = of_state(state, *jobs).context(ledger)
    ledger.begin_submit(*context.owner, "b", 7, time.time())
    ledger.record_abort(*context.owner, "other", 8, time.time())
    query_batches(context, ["b"], since, **GRIDMANAGER)
    pending_aborts = ledger.pending_aborts(*context.owner, time.time())
    assert [pending.name for pending in pending_aborts].count("b") == left
    assert [pending.name for pending in pending_aborts].count("other") == 1


GIVEN_UP = {
    "recovery: it is to submit, and to get the error": (GRIDMANAGER, "0", []),
    "poll": (GRIDMANAGER, TIME, JOBS),
    "person": (PERSON, "0", JOBS),
}


@pytest.mark.parametrize(("client", "since", "shown"), GIVEN_UP.values(), ids=GIVEN_UP)
def test_a_batch_that_was_given_up_looks_unsubmitted_to_a_gridmanager_that_recovers(
    client, since, shown, ledger
):
    context = of_state(3, *JOBS).context(ledger)
    ledger.record_abort(*context.owner, "b", 7, time.time() + 60)
    assert query_batches(context, ["b"], since, **client).batches == (tuple(shown),)


@pytest.mark.parametrize(("client", "wanted"), [(GRIDMANAGER, True), (PERSON, False)])
def test_a_submission_that_a_gridmanager_asks_about_is_not_given_up_by_other_processes(
    ledger, client, wanted
):
    down = error("project down for maintenance", -183)
    script = Script({"query_batch": down, "query_batch2": down, "abort_batch": "<success/>"})
    context = script.context(ledger)
    ledger.begin_submit(*context.owner, "b", 7, time.time() - 5000)
    with pytest.raises(ProjectDown):
        query_batches(context, ["b"], "0", **client)
    script.replies.update(of_state(1, *JOBS).replies)
    reconcile(script.context(ledger), alone=True)
    assert script.count("abort_batch") == (0 if wanted else 1)
