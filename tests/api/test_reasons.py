"""Why jobs failed: grouped, with a line of stderr, and the logs of single jobs."""

import pytest
from hypothesis import given, strategies as st

from boinc_gahp import Job, client_exits
from boinc_gahp.api._gathering import failed_job
from boinc_gahp.api.reasons import Reason, why
from boinc_gahp.api.watching import Poll
from boinc_gahp.rpc.types import JobInfo
from boinc_gahp.states import JobState
from tests import faultproxy
from tests.inside import tell_of_failed_jobs

QUICK = Poll(0.05, 0.2)


def failed(*statuses, errors=("too_many_error_results",)):
    return JobInfo(1, "j", 0, "error", errors, statuses)


def spoil(site, batch, mask=2, *names):
    """Make jobs fail, or all of them, as the project's database shows it."""
    chosen = names or tuple(job.name for job in batch.jobs())
    with site.local.core.db.write() as connection:
        for name in chosen:
            connection.execute("UPDATE workunit SET error_mask = ? WHERE name = ?", (mask, name))
    batch.refresh()


@pytest.mark.parametrize(
    ("job", "text"),
    [
        (failed(3, 3, 3), "exit status 3"),
        (failed(3, client_exits.EXIT_ABORTED_VIA_GUI), "exit status 3"),
        (
            failed(client_exits.ERR_RESULT_DOWNLOAD),
            "exit status -186: an input file could not be downloaded",
        ),
        (failed(0, 0), "too many instances failed"),
        (failed(errors=("couldnt_send_result",)), "no volunteer could take it"),
        (failed(errors=("a_new_word",)), "a new word"),
        (failed(errors=()), "the project gives no reason"),
        (failed(7, errors=("cancelled",)), "aborted"),
        (failed(7, errors=("too_many_error_results", "cancelled")), "exit status 7"),
    ],
)
def test_a_reason_is_what_says_most(job, text):
    assert why(job) == text


def test_a_lease_that_ended_is_a_reason(site):
    job = failed(errors=("cancelled",))
    assert why(job, lease_is_over=True) == "its batch's lease ended, or it was aborted"


@given(st.lists(st.integers(-(2**31), 2**31 - 1)))
def test_the_telling_status_is_one_of_them_and_of_the_program_if_one_ran_it(statuses):
    told = client_exits.telling(statuses)
    ran = [status for status in statuses if status and status not in client_exits.NOT_RUN]
    if told is None:
        assert not any(statuses)
    else:
        assert told in statuses
        assert told == ran[-1] if ran else told in client_exits.NOT_RUN


def test_jobs_are_grouped_by_their_reasons_the_most_frequent_first(site):
    batch = site.batch(6)
    names = [job.name for job in batch.jobs()]
    batch.abort(names[0])
    spoil(site, batch, 1, *names[1:4])
    queries = site.proxy.count("query_batch")
    found = batch.reasons()
    assert [(each.text, each.count, each.job) for each in found] == [
        ("no volunteer could take it (Unsent)", 3, names[1]),
        ("aborted", 1, names[0]),
    ]
    assert str(found[1]) == f"1 × aborted ({names[0]})"
    # All jobs at once, and a look for a retry.
    assert site.proxy.count("query_batch") == queries + 2
    assert site.proxy.count("query_completed_job") == 1
    assert batch.reasons(jobs=names[4:]) == []


@pytest.mark.parametrize("told", ["", "failing with 3 as asked"], ids=["untold", "told"])
def test_a_reason_has_the_last_line_of_stderr_where_the_project_tells_it(
    working, told, monkeypatch
):
    if told:
        tell_of_failed_jobs(monkeypatch)
    batch = working.batch(2, args="--fail 3").wait(timeout=60, poll=QUICK)
    [reason] = batch.reasons()
    assert (reason.text, reason.count, reason.exit_status) == ("exit status 3", 2, 3)
    assert (reason.errors, reason.stderr) == (("too_many_error_results",), told)
    assert batch.reasons(stderr=False)[0].stderr == ""


def test_an_image_that_cannot_be_pulled_is_told_in_words(working, monkeypatch):
    tell_of_failed_jobs(monkeypatch)
    line = "build command failed: -1"
    last = "build_image() failed: -1"  # what BOINC's wrapper prints after it
    said = f"echo '{line}' >&2; echo '{last}' >&2; exit 1"
    working.local.add_app("unbuilt", ["sh", "-c", said], outputs="out")
    batch = working.project.submit("unbuilt", [Job()]).wait(timeout=60, poll=QUICK)
    [reason] = batch.reasons()
    assert reason.text.startswith("exit status 1")
    assert (reason.stderr, "could not be pulled" in reason.text) == (line, True)
    error = failed_job(batch, "unbuilt_0", "exit status 1", stderr=f"x\n{line}\n{last}\n")
    assert f'"{line}" (the image could not be pulled or built; check its name)' in str(error)


def test_reasons_are_told_also_if_the_project_does_not_tell_of_single_jobs(site):
    batch = site.batch(2)
    spoil(site, batch)
    quick = site.open(retry=0).batch(batch.id)
    site.proxy.fail("query_completed_job", faultproxy.status(500), times=None)
    site.proxy.fail("query_job", faultproxy.status(500), times=None)
    [reason] = quick.reasons()
    assert (reason.text, reason.count) == ("too many instances failed", 2)


def test_control_characters_of_a_stderr_do_not_reach_people():
    reason = Reason("exit status 3", 1, "j\x1b[2J", 3, (), "\x1b]0;x\x07 \u202e")
    assert str(reason).isprintable()


def test_logs_have_stderr_and_instances(working):
    good = working.batch(1).wait(timeout=60, poll=QUICK)
    [log] = good.logs()
    assert (log.state, log.exit_statuses, log.why) == (JobState.DONE, (0,), "")
    assert log.stderr is not None
    assert log.stderr.startswith("starting uppercase args:")
    bad = working.batch(1, args="--fail 3").wait(timeout=60, poll=QUICK)
    [log] = bad.logs()
    assert (log.state, log.why) == (JobState.FAILED, "exit status 3")
    assert log.exit_statuses == (3,) * len(log.instances)
    assert {each.state for each in log.instances} == {"Error while computing"}
    assert log.stderr is None


def test_jobs_that_are_not_over_are_not_asked_about(site):
    batch = site.batch(2)
    assert [(log.state, log.stderr) for log in batch.logs()] == [(JobState.QUEUED, None)] * 2
    assert site.proxy.count("query_completed_job") == 0
