"""How a job ended, in one sentence, and what to do about it."""

import pytest
from hypothesis import given, strategies as st

from boinc_gahp import client_exits
from boinc_gahp.fetch.job_end import JobEnd
from boinc_gahp.fetch.types import FetchResult
from boinc_gahp.rpc.types import JobInfo, ResultInfo

IMAGE = "python:3.99"
ERROR = "Error while computing"
CANCELLED = ("cancelled",)


def failed(*statuses, errors=("too_many_error_results",), states=(), **known):
    instances = tuple(ResultInfo(n, f"j_{n}", state) for n, state in enumerate(states))
    return JobEnd(JobInfo(1, "j", 0, "error", errors, statuses), instances=instances, **known)


def over(*states, **known):
    return failed(states=states, **known)


UPLOAD, LATE, LOST = "Upload failed", "Timed out - no response", "Abandoned"
UPLOAD_TOLD = f"{UPLOAD}: its outputs could not be uploaded"
LATE_TOLD = f"{LATE}: no result came before the deadline"
LOST_TOLD = f"{LOST}: the computer left the project"
INVALID_TOLD = "Validate error: the project's validator could not check its outputs"
DOWNLOAD_TOLD = "exit status -186: an input file could not be downloaded"
NO_IMAGE = (
    f'not of the program: its image "{IMAGE}" could not be pulled or built, or not be started'
)


@pytest.mark.parametrize(
    ("end", "text"),
    [
        (failed(3, 3, 3), "exit status 3"),
        (failed(3, client_exits.EXIT_ABORTED_VIA_GUI), "exit status 3"),
        (failed(client_exits.ERR_RESULT_DOWNLOAD), DOWNLOAD_TOLD),
        (failed(0, 0), "too many instances failed"),
        (failed(0, 0, states=(UPLOAD, UPLOAD)), UPLOAD_TOLD),
        (over("Validate error", "Completed, can't validate"), INVALID_TOLD),
        (over(LATE, LOST, "Unsent"), f"{LATE_TOLD}, {LOST_TOLD}"),
        (over("A new state"), "A new state"),
        (over("Unsent", errors=("couldnt_send_result",)), "no volunteer could take it"),
        (failed(5, errors=("no_canonical_result",), states=("Completed",)), "no instances agreed"),
        (failed(errors=("a_new_word",)), "a new word"),
        (failed(errors=()), "the project gives no reason"),
        (failed(7, errors=CANCELLED), "aborted"),
        (
            over(errors=CANCELLED, lease_is_over=True),
            "its batch was kept no longer, or aborted",
        ),
        (failed(7, errors=("too_many_error_results", "cancelled")), "exit status 7"),
        (failed(1, 1, image=IMAGE), f"exit status 1, {NO_IMAGE}"),
        (failed(9, image=""), "exit status 9, not of the program: its container was ended"),
        (JobEnd(JobInfo(1, "j", 7, "done"), failure="signal 9 (SIGKILL)"), "signal 9 (SIGKILL)"),
        (JobEnd(JobInfo(1, "j", 7, "error", CANCELLED)), ""),
        (JobEnd(JobInfo(1, "j", 0, "in_progress")), ""),
    ],
)
def test_a_failure_is_told_by_what_says_most(end, text):
    assert end.why == text


@pytest.mark.parametrize(
    ("end", "states"),
    [
        (failed(3), ""),
        (failed(3, 3, states=(ERROR, LATE, ERROR)), f"{ERROR} (2), {LATE} (1)"),
        # These are why it failed.
        (over("Validate error", "Validate error", "Unsent"), "Unsent (1)"),
    ],
)
def test_states_of_instances_that_the_reason_does_not_tell_are_counted(end, states):
    assert end.other_states == states


@pytest.mark.parametrize(
    ("image", "told"),
    [
        (None, ERROR),
        (IMAGE, f'{ERROR}: most likely its image "{IMAGE}" could not be pulled or built'),
    ],
)
def test_of_a_job_that_is_not_over_the_failed_attempts_are_told(image, told):
    states = (ERROR, LATE, "In progress", "Unsent")
    instances = tuple(ResultInfo(n, f"j_{n}", state) for n, state in enumerate(states))
    end = JobEnd(JobInfo(1, "j", 0, "in_progress"), image, instances=instances)
    assert end.why == ""
    assert end.failed_attempts == [told, LATE_TOLD]


@pytest.mark.parametrize(
    "end",
    [
        failed(1, image=IMAGE),
        failed(127),
        failed(1, stderr="  File x, line 1\nSyntaxError: invalid syntax\n"),
        failed(2, stderr="./run.sh: 3: Syntax error: end of file unexpected"),
        failed(client_exits.ERR_NOT_FOUND),
        failed(client_exits.EXIT_MEM_LIMIT_EXCEEDED, image=IMAGE),
        failed(errors=("couldnt_send_result",), image=IMAGE),
        JobEnd(JobInfo(1, "j", 7, "done"), IMAGE, failure="the image has no 'perl', which …"),
    ],
)
def test_a_failure_that_would_recur_has_advice(end):
    assert end.advice


@pytest.mark.parametrize(
    "end",
    [
        failed(3),
        failed(1, stderr="ValueError: 3\n"),
        failed(states=("Timed out - no response",)),
        failed(states=("Upload failed",), image=IMAGE),
        failed(client_exits.EXIT_ABORTED_VIA_GUI),
        failed(errors=CANCELLED),
        failed(1, image=IMAGE, errors=CANCELLED),
        JobEnd(
            JobInfo(1, "j", 7, "done"), IMAGE, failure="exit status 3", result=FetchResult(3, 0, 0)
        ),
    ],
)
def test_a_failure_that_may_pass_has_none(end):
    assert end.advice == ""


@given(st.lists(st.integers(-(2**31), 2**31 - 1)))
def test_the_telling_status_is_one_of_them_and_of_the_program_if_one_ran_it(statuses):
    told = failed(*statuses).exit_status
    ran = [status for status in statuses if status and status not in client_exits.NOT_RUN]
    if told is None:
        assert not any(statuses)
    else:
        assert told in statuses
        assert told == ran[-1] if ran else told in client_exits.NOT_RUN


@given(st.integers(-(2**31), 2**31 - 1).filter(bool))
def test_a_status_is_the_programs_or_the_clients(status):
    is_clients = status < 0 or (193 <= status <= 205 and status != 195)
    assert failed(status).exit_code == (None if is_clients else status)


@pytest.mark.parametrize("never_ran", [-186, -185, 200, 203])
def test_instances_that_never_ran_the_program_do_not_count(never_ran):
    assert failed(11, never_ran).exit_code == failed(never_ran, 11).exit_code == 11
    assert failed(never_ran, never_ran).exit_code is None


def test_where_no_instance_is_known_the_projects_words_tell_whether_they_ended_well():
    assert failed(5).exit_code == 5
    assert failed(5, errors=("no_canonical_result",)).exit_code is None
    states = ("Completed, validation inconclusive", "Error while computing")
    assert failed(5, states=states, errors=("no_canonical_result",)).exit_code == 5
    assert failed(5, states=(*states, "Abandoned")).exit_code == 5
    assert failed(5, states=states[::-1]).exit_code is None
    assert failed(0, 0).exit_code is None


def test_the_status_of_a_container_is_not_its_programs():
    assert failed(3, image=IMAGE).exit_code is None
