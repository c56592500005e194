"""What is done about a batch that could not be submitted."""

import errno
from dataclasses import replace

import pytest

from boinc_gahp import errors
from boinc_gahp.htcondor._sending_action import (
    REFUSAL_FINAL,
    Action,
    Attempt,
    action_after,
    hold_for,
)
from boinc_gahp.htcondor.status_ad import HoldCode
from boinc_gahp.ledger.rows import BatchRow
from boinc_gahp.submit.journal import SubmitState
from boinc_gahp.templates.types import TemplateError
from tests.helpers import refusal

BATCH = BatchRow(1, "bg-1", "https://p/", "a", "app", "t", "planned", None, 0, 0, 0, None)


def transport(status, rpc="submit_batch"):
    passes = status is None or status >= 500
    return errors.TransportError(
        "x", rpc=rpc, host="p", status=status, passes=passes, may_be_running=passes
    )


PLANNED = Attempt(SubmitState(7), 10)
CLEAR = Attempt(SubmitState(7, sent=True), 10)
UNCLEAR = Attempt(SubmitState(7, sent=True, unclear=True), 10)
STATES = {"planned": PLANNED, "sent, answered": CLEAR, "sent, unclear": UNCLEAR}

DIED = errors.ProtocolError("x", rpc="submit_batch", host="p", php_fatal=True)
QUOTA = refusal("limit on jobs in progress exceeded")
REFUSED = refusal("create_work failed: Too few var input files")
TOO_LARGE = errors.BatchTooLarge("x", nbytes=9)
NO_ACCESS = refusal("no submit access")

ELSEWHERE = errors.ProtocolError("x", rpc="query_files", host="p", php_fatal=True)

#: The jobs are not held while a submit_batch may be running.
UNLESS_UNCLEAR = (Action.HOLD, Action.HOLD, Action.LATER)

#: What an error calls for where the jobs are not on the project, where they may be and no
#: submit_batch is running, and where one may be.
ERRORS = {
    what: (error, actions if isinstance(actions, tuple) else (actions,) * 3)
    for what, (error, actions) in {
        "a file server is away": (
            errors.StagingError("x", path="/f", errno=errno.ESTALE),
            Action.LATER,
        ),
        "project stopped": (refusal("project down for maintenance", number=-183), Action.LATER),
        "no connection": (transport(None), Action.LATER),
        "502": (transport(502), Action.LATER),
        "not found": (transport(404), Action.LATER),
        "413 of a file": (transport(413, "upload_files"), Action.LATER),
        "web page": (errors.ProtocolError("x", rpc="submit_batch", host="p"), Action.LATER),
        "cut reply": (
            errors.ProtocolError("x", rpc="submit_batch", host="p", cut=True),
            Action.LATER,
        ),
        "PHP died": (DIED, Action.LATER),
        "PHP died elsewhere": (ELSEWHERE, Action.LATER),
        "too large": (TOO_LARGE, Action.HALVE),
        "bad authenticator": (refusal("bad authenticator"), UNLESS_UNCLEAR),
        "no submit access": (NO_ACCESS, UNLESS_UNCLEAR),
        "another's batch": (refusal("not owner of batch"), Action.RENAME),
        "no app": (refusal("app not found: x", "get_templates"), UNLESS_UNCLEAR),
        "templates": (TemplateError("input template", []), UNLESS_UNCLEAR),
        "no batch": (refusal("no batch 12"), Action.RENAME),
        "no file": (refusal("no such file"), Action.LATER),
        "quota": (QUOTA, Action.LATER),
        "deadlock": (refusal("wu.insert_batch() failed: Deadlock found when trying"), Action.LATER),
        "disk full": (refusal("create_work failed: No space left on device"), Action.LATER),
        "file deleted": (refusal("create_work failed: md5_file: can't open x"), Action.LATER),
        "elsewhere": (refusal("BoincBatch::insert failed", rpc="create_batch"), Action.LATER),
        "refused": (REFUSED, Action.BISECT),
        "not listed": (errors.JobsNotListed("x"), Action.BISECT),
        "conflict": (errors.BatchConflict("x"), Action.RENAME),
        "job": (errors.JobRefused("x", job_name="j"), Action.HOLD_SOME),
        "text": (errors.BadRequest("x"), Action.HOLD_SOME),
        "file": (errors.StagingError("x", path="/a", errno=2), Action.HOLD_SOME),
        "no file in particular": (errors.StagingError("x"), Action.LATER),
        "anything else": (errors.GahpError("x"), Action.LATER),
    }.items()
}


@pytest.mark.parametrize(("error", "actions"), ERRORS.values(), ids=ERRORS)
def test_an_error_calls_for_an_action_in_each_state(error, actions):
    assert tuple(action_after(state, error) for state in STATES.values()) == actions


LONG = REFUSAL_FINAL + 1
SPECIAL = {
    "one job is not divided: too large": (replace(CLEAR, jobs=1), TOO_LARGE, Action.HOLD),
    "one job is not divided: refused": (replace(UNCLEAR, jobs=1), REFUSED, Action.HOLD),
    "one job is not divided: not listed": (
        replace(CLEAR, jobs=1),
        errors.JobsNotListed("x"),
        Action.HOLD,
    ),
    "PHP dies the second time": (replace(UNCLEAR, deaths=2), DIED, Action.LATER),
    "PHP dies the third time": (replace(UNCLEAR, deaths=3), DIED, Action.BISECT),
    "PHP dies of a part": (replace(UNCLEAR, deaths=1, is_part=True), DIED, Action.BISECT),
    "PHP dies of one job": (replace(UNCLEAR, deaths=3, jobs=1), DIED, Action.HOLD),
    "more than the limit": (replace(CLEAR, is_beyond_limit=True), QUOTA, Action.HALVE),
    "one job over the limit": (replace(CLEAR, is_beyond_limit=True, jobs=1), QUOTA, Action.LATER),
    "a day without a project": (replace(PLANNED, lasted=LONG), transport(404), Action.HOLD),
    "not yet a day": (replace(PLANNED, lasted=REFUSAL_FINAL), transport(404), Action.LATER),
    "a day, but jobs may exist": (replace(CLEAR, lasted=LONG), transport(404), Action.LATER),
}


@pytest.mark.parametrize(("attempt", "error", "action"), SPECIAL.values(), ids=SPECIAL)
def test_the_state_decides_where_the_error_alone_does_not(attempt, error, action):
    assert action_after(attempt, error) is action


def test_a_hold_says_whose_turn_it_is():
    hold = hold_for(refusal("bad authenticator"), BATCH)
    assert hold.code == HoldCode.ACCOUNT
    assert hold.reason.endswith("Release the job when this is fixed [BG-BAD-AUTHENTICATOR]")
    hold = hold_for(errors.StagingError("input file '/a' is gone", path="/a", errno=2), BATCH)
    assert (hold.code, hold.subcode) == (HoldCode.INPUT, 2)
    assert "9 bytes" in hold_for(errors.BatchTooLarge("x", nbytes=9), BATCH).reason
    hold = hold_for(refusal("app not found: app"), BATCH)
    assert hold.reason.startswith("project https://p/ has no app 'app'")
    hold = hold_for(TemplateError("input template", []), BATCH)
    assert "app 'app' of https://p/ cannot be used" in hold.reason
    refused = refusal("whatever")
    assert hold_for(refused, BATCH).reason == "p refuses submit_batch: whatever [BG-PROJECT]"
    alone = hold_for(refused, BATCH, alone=True)
    assert "whatever (this job was sent alone: " in alone.reason
    assert alone.reason.endswith(") [BG-PROJECT]")
