"""A submit makes each job once, whatever goes wrong and whoever repeats it."""

import dataclasses
import hashlib
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from boinc_gahp.errors import BatchConflict, GahpError, JobRefused
from boinc_gahp.states import BatchState
from boinc_gahp.submit.boinc_submit import boinc_submit
from boinc_gahp.submit.control import reconcile
from boinc_gahp.submit.engine import submit
from boinc_gahp.submit.journal import UNDO_TIME
from boinc_gahp.submit.types import Job, LocalFile, SubmitRequest
from tests import faultproxy
from tests.inside import staged_files


def test_a_repeated_submit_changes_nothing_and_needs_no_files(site):
    request = site.batch(jobs=5, files=2)
    site.submit(request)
    assert site.workunits(request) == site.names(request)
    assert site.state(request) is BatchState.IN_PROGRESS
    assert site.proxy.count("upload_files") == 1
    for path in site.paths(request):
        path.unlink(missing_ok=True)
    site.submit(request)
    assert site.workunits(request) == site.names(request)
    assert site.proxy.count("submit_batch") == 1


def test_equal_contents_under_two_names_travel_once_and_under_two_extensions_twice(site):
    same = [site.file(b"same contents") for _ in range(3)]
    other = site.directory / "same.dat"
    other.write_bytes(b"same contents")
    files = [*same, LocalFile(other)]
    request = SubmitRequest(
        "equal", "uppercase", [(f"equal#{n}", Job(inputs={"in": f})) for n, f in enumerate(files)]
    )
    site.submit(request)
    assert site.workunits(request) == ["equal#0", "equal#1", "equal#2", "equal#3"]
    md5 = hashlib.md5(b"same contents").hexdigest()
    assert sorted(name for name in staged_files(site.local) if md5 in name) == [
        f"{md5}.dat",
        f"{md5}.txt",
    ]
    assert site.proxy.count("upload_files") == 1
    again = [(f"again#{name}", job) for name, job in request.jobs]
    site.submit(dataclasses.replace(request, batch_name="again", jobs=again))
    assert site.proxy.count("upload_files") == 1


def test_a_submit_does_not_fail_because_another_has_no_more_time(site):
    request = site.batch()
    hung = faultproxy.hang()
    site.proxy.fail("get_templates", hung)
    with site.context() as context, ThreadPoolExecutor() as threads:
        # The second waits for the app's templates, which the first has asked for.
        now = time.monotonic()
        first = threads.submit(boinc_submit, context, site.batch(), now + 11.5)
        assert hung.reached.wait(30)
        boinc_submit(context, request, now + 270)
        assert isinstance(first.exception(), GahpError)
    assert site.workunits(request) == site.names(request)


LOST_ANSWERS = {
    "lost reply": faultproxy.lose_reply(),
    "500, done": faultproxy.status(500, carried_out=True),
    "HTML page, done": faultproxy.html(carried_out=True),
    "cut reply": faultproxy.cut(),
    "empty body, done": faultproxy.body(b"", carried_out=True),
}


@pytest.mark.parametrize("fault", LOST_ANSWERS.values(), ids=LOST_ANSWERS)
def test_a_submit_batch_whose_answer_is_lost_is_looked_up_and_not_sent_again(site, fault):
    request = site.batch()
    site.proxy.fail("submit_batch", fault)
    site.submit(request)
    assert site.proxy.count("submit_batch") == 1
    assert site.workunits(request) == site.names(request)


def test_submits_of_the_same_batch_at_the_same_time_make_each_job_once(site):
    request = site.batch(jobs=50, files=10)

    def send(_):
        site.submit(request)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(send, range(4)))
    assert site.workunits(request) == site.names(request)


@pytest.mark.parametrize("state", [BatchState.ABORTED, BatchState.RETIRED], ids=str)
def test_a_batch_that_was_ended_is_not_filled_again(site, state):
    request = site.batch()
    with site.context() as context:
        submit(context, request)
        site.set_state(request, state)
        with pytest.raises(BatchConflict, match=state.name):
            submit(context, request)
        with pytest.raises(BatchConflict, match=state.name):
            boinc_submit(context, request, time.monotonic() + 270)
    assert site.state(request) is state


def test_a_batch_that_holds_other_jobs_is_an_error_that_names_one(site):
    request = site.batch()
    other = dataclasses.replace(site.batch(), batch_name=request.batch_name)
    with site.context() as context:
        submit(context, request)
        with pytest.raises(BatchConflict) as caught:
            submit(context, other)
        with pytest.raises(BatchConflict):
            boinc_submit(context, other, time.monotonic() + 270)
    # Nor does it matter that the project was not looked at.
    with pytest.raises(JobRefused):
        site.boinc_submit(other, max_post_bytes=100)
    assert any(name in str(caught.value) for name in site.names(request))
    assert site.state(request) is BatchState.IN_PROGRESS


def test_a_request_over_the_projects_post_limit_is_refused_before_anything_is_created(site):
    with pytest.raises(JobRefused) as caught:
        site.submit(site.batch(jobs=100), max_post_bytes=2000)
    assert "post_max_size" in str(caught.value)
    assert "split" in str(caught.value)
    assert "create_batch" not in site.proxy.seen


def test_a_file_that_the_project_deleted_meanwhile_is_staged_again(site):
    request = site.batch()
    physical_gone = faultproxy.body(
        b"<submit_batch>\n<error><error_num>-1</error_num><error_msg>create_work failed: md5_file:"
        b" can't open /x: No such file</error_msg></error>\n</submit_batch>"
    )
    site.proxy.fail("submit_batch", physical_gone)
    site.submit(request)
    assert site.proxy.count("submit_batch") == 2
    assert site.workunits(request) == site.names(request)


# Under a gridmanager: an error is a promise.

#: A gridmanager that waits for half a minute and no longer.
SOON = {"seconds": UNDO_TIME + 30.0, "submit_margin": UNDO_TIME + 2.0}


@pytest.mark.long
def test_an_error_after_a_submit_that_may_run_leaves_an_aborted_batch_and_a_pending_abort(site):
    before = time.time()
    request = site.batch()
    site.proxy.fail("submit_batch", faultproxy.lose_reply())
    site.proxy.fail("query_batch", faultproxy.status(503), times=None, skip=2)
    with pytest.raises(GahpError):
        site.boinc_submit(request, **SOON)
    site.proxy.heal()
    assert site.state(request) is BatchState.ABORTED
    (pending,) = site.pending
    assert (pending.name, pending.state) == (request.batch_name, "giving_up")
    assert pending.not_before > before + 30


@pytest.mark.long
def test_the_next_process_sends_an_abort_that_this_one_could_not(site):
    request = site.batch()
    site.proxy.fail("submit_batch", faultproxy.lose_reply())
    site.proxy.fail("query_batch", faultproxy.status(503), times=None, skip=2)
    site.proxy.fail("abort_batch", faultproxy.status(503), times=None)
    with pytest.raises(GahpError):
        site.boinc_submit(request, **SOON)
    site.proxy.heal()
    assert site.state(request) is BatchState.IN_PROGRESS
    states = []
    with site.context() as context:
        for _ in range(2):
            # A submit_batch that was just sent may go on: the abort is seen to last.
            (pending,) = site.pending
            site.ledger.postpone(pending.id, time.time() - 1, None, listed=pending.listed)
            reconcile(context)
            states.append(site.state(request))
    assert states == [BatchState.ABORTED, BatchState.RETIRED]
    assert site.pending == ()


def test_that_a_submit_may_be_running_is_in_the_ledger_before_it_is_sent(site):
    request = site.batch()
    hang = faultproxy.hang()
    site.proxy.fail("submit_batch", hang)
    site.options = dataclasses.replace(site.options, read_timeout=30)

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(site.boinc_submit, request)
        assert hang.reached.wait(60)
        (pending,) = site.pending
        assert (pending.name, pending.state) == (request.batch_name, "sent")
        # When its answer has to be there, and a little later.
        assert 240 < pending.not_before - time.time() < 330
        hang.release()
        done.result(60)
    assert site.pending == ()


def test_a_batch_that_was_given_up_is_not_submitted_again_under_its_name(site):
    request = site.batch()
    site.ledger.record_abort(*site.owner, request.batch_name, 4711, time.time() + 60)
    with pytest.raises(BatchConflict, match="given up"):
        site.boinc_submit(request)
    assert "submit_batch" not in site.proxy.seen
