"""What a failed submission means for its jobs."""

from __future__ import annotations

import errno

import pytest

from boinc_gahp.blah.codes import HoldCode
from boinc_gahp.blah.sending_verdict import (
    Verdict,
    ended_clearly,
    hold_for,
    is_about_project,
    verdict_on,
)
from boinc_gahp.bridge import TemplateError
from boinc_gahp.errors import (
    BadRequest,
    BatchConflict,
    BatchTooLarge,
    GahpError,
    JobRefused,
    JobsNotListed,
    ProtocolError,
    StagingError,
    TransportError,
)
from boinc_gahp.ledger.jobs import BatchRow
from tests.helpers import refusal

BATCH = BatchRow(1, "bg-1", "https://p/", "a", "app", "t", "planned", None, 0, 0, 0, None)


def transport(status: int | None, rpc: str = "submit_batch") -> TransportError:
    permanent = status is not None and status < 500
    return TransportError(
        "x", rpc=rpc, host="p", status=status, permanent=permanent, may_have_happened=not permanent
    )


CASES: dict[str, tuple[GahpError, Verdict]] = {
    "a file server is away": (StagingError("x", path="/f", errno=errno.ESTALE), Verdict.LATER),
    "too many open files": (StagingError("x", path="/f", errno=errno.EMFILE), Verdict.LATER),
    "project stopped": (refusal("project down for maintenance", number=-183), Verdict.LATER),
    "no connection": (transport(None), Verdict.LATER),
    "502": (transport(502), Verdict.LATER),
    "not found": (transport(404), Verdict.LATER),
    "web page": (ProtocolError("x", rpc="submit_batch", host="p"), Verdict.LATER),
    "cut reply": (ProtocolError("x", rpc="submit_batch", host="p", cut=True), Verdict.LATER),
    "PHP died": (ProtocolError("x", rpc="submit_batch", host="p", php_fatal=True), Verdict.DIED),
    "PHP died elsewhere": (
        ProtocolError("x", rpc="query_files", host="p", php_fatal=True),
        Verdict.LATER,
    ),
    "413": (transport(413), Verdict.SMALLER),
    "413 of a file": (transport(413, "upload_files"), Verdict.LATER),
    "too large": (BatchTooLarge("x", nbytes=9), Verdict.SMALLER),
    "bad authenticator": (refusal("bad authenticator"), Verdict.ALL),
    "no submit access": (refusal("no submit access"), Verdict.ALL),
    "another's batch": (refusal("not owner of batch"), Verdict.ANEW),
    "no app": (refusal("app not found: x", "get_templates"), Verdict.ALL),
    "no batch": (refusal("no batch 12"), Verdict.ANEW),
    "no file": (refusal("no such file"), Verdict.LATER),
    "quota": (refusal("limit on jobs in progress exceeded"), Verdict.QUOTA),
    "deadlock": (refusal("wu.insert_batch() failed: Deadlock found when trying"), Verdict.LATER),
    "disk full": (refusal("create_work failed: No space left on device"), Verdict.LATER),
    "file deleted": (refusal("create_work failed: md5_file: can't open x"), Verdict.LATER),
    "elsewhere": (refusal("BoincBatch::insert failed", rpc="create_batch"), Verdict.LATER),
    "refused": (refusal("create_work failed: Too few var input files"), Verdict.SUSPECT),
    "not listed": (JobsNotListed("x"), Verdict.SUSPECT),
    "conflict": (BatchConflict("x"), Verdict.ANEW),
    "job": (JobRefused("x", job_name="j"), Verdict.JOBS),
    "text": (BadRequest("x"), Verdict.JOBS),
    "file": (StagingError("x", path="/a", errno=2), Verdict.JOBS),
    "no file in particular": (StagingError("x"), Verdict.LATER),
    "templates": (TemplateError("input template", []), Verdict.ALL),
    "anything else": (GahpError("x"), Verdict.LATER),
}


@pytest.mark.parametrize(("error", "verdict"), CASES.values(), ids=CASES)
def test_an_error_has_a_verdict(error: GahpError, verdict: Verdict) -> None:
    assert verdict_on(error) is verdict


def test_a_hold_says_whose_turn_it_is() -> None:
    hold = hold_for(refusal("bad authenticator"), BATCH)
    assert hold.code == HoldCode.ACCOUNT
    assert hold.reason.endswith("Release the job when that is mended [BG-BAD-AUTHENTICATOR]")
    hold = hold_for(StagingError("input file '/a' is gone", path="/a", errno=2), BATCH)
    assert (hold.code, hold.subcode) == (HoldCode.INPUT, 2)
    assert "9 bytes" in hold_for(BatchTooLarge("x", nbytes=9), BATCH).reason
    hold = hold_for(refusal("app not found: app"), BATCH)
    assert hold.reason.startswith("project https://p/ has no app 'app'")
    hold = hold_for(TemplateError("input template", []), BATCH)
    assert "app 'app' of https://p/ cannot be used" in hold.reason
    refused = refusal("whatever")
    assert hold_for(refused, BATCH).reason == "p refuses submit_batch: whatever [BG-PROJECT]"
    alone = hold_for(refused, BATCH, alone=True)
    assert "whatever (said of this job alone: " in alone.reason
    assert alone.reason.endswith(") [BG-PROJECT]")


def test_what_other_requests_would_meet_too_is_the_project_s_trouble() -> None:
    assert is_about_project(refusal("down", number=-183))
    assert is_about_project(transport(None))
    assert not is_about_project(refusal("whatever"))
    assert not is_about_project(StagingError("x"))


def test_only_an_answer_tells_that_no_submit_batch_is_running() -> None:
    too_large = BatchTooLarge("x", nbytes=1)
    too_large.__cause__ = transport(413)
    assert ended_clearly(refusal("whatever"))
    assert ended_clearly(too_large)
    assert ended_clearly(JobsNotListed("x"))
    assert not ended_clearly(refusal("down", number=-183))
    assert not ended_clearly(refusal("whatever", rpc="query_batch"))
    assert not ended_clearly(transport(500))
    assert not ended_clearly(StagingError("x"))
