"""Under a gridmanager an error is a promise: none of the batch's jobs exists, or will appear."""

import dataclasses
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from boinc_gahp.errors import BatchConflict, JobRefused, LedgerError, RpcError, StagingError
from boinc_gahp.states import BatchState
from boinc_gahp.submit.staging import Staging
from tests import faultproxy


def half_made(site, jobs=6):
    """Return a request half of whose jobs an earlier process has made, which then died."""
    request = site.batch(jobs=jobs, files=jobs)
    site.submit(dataclasses.replace(request, jobs=request.jobs[: jobs // 2]))
    site.set_state(request, BatchState.INIT)
    return request


def batch_id(site, request):
    with site.project() as project:
        return project.query_batch(batch_name=request.batch_name).batch.id


def remove(site, files):
    for path in site.paths(files):
        path.unlink(missing_ok=True)


# What is there already when the submit fails.


def gone(site, request, _):
    remove(site, request)


def ledger_closed(site, *_):
    site.ledger.close()


def bug(_site, _request, monkeypatch):
    monkeypatch.setattr(Staging, "run", lambda _: 1 // 0)


def nothing(*_):
    pass


#: What goes wrong, the error that it is, and what else BOINC_SUBMIT is given.
FAILS = {
    "input files are gone": (gone, StagingError, {}),
    "too large, before a look at the project": (nothing, JobRefused, {"max_post_bytes": 1000}),
    "other requests came first": (nothing, StagingError, {"seconds": 5.0}),
    "no ledger": (ledger_closed, LedgerError, {}),
    "a bug": (bug, ZeroDivisionError, {}),
}


@pytest.mark.parametrize(("spoil", "kind", "more"), FAILS.values(), ids=FAILS)
def test_whatever_fails_ends_a_half_made_batch(site, monkeypatch, spoil, kind, more):
    request = half_made(site)
    pending = site.pending
    spoil(site, request, monkeypatch)
    seen = len(site.proxy.seen)
    with pytest.raises(kind):
        site.boinc_submit(request, **more)
    assert site.state(request) is BatchState.ABORTED
    assert spoil is ledger_closed or site.pending == pending == ()
    assert "submit_batch" not in site.proxy.seen[seen:]


def test_a_bug_ends_an_empty_batch(site, monkeypatch):
    request = site.batch()
    bug(site, request, monkeypatch)
    with pytest.raises(ZeroDivisionError):
        site.boinc_submit(request)
    assert site.state(request) is BatchState.RETIRED


def test_where_an_earlier_process_may_still_submit_the_abort_stays_pending(site):
    request = half_made(site)
    remove(site, request)
    number = batch_id(site, request)
    before = time.time()
    site.ledger.begin_submit(*site.owner, request.batch_name, number, before + 100)
    with pytest.raises(StagingError):
        site.boinc_submit(request)
    assert site.state(request) is BatchState.ABORTED
    (pending,) = site.pending
    assert (pending.project_batch_id, pending.state) == (number, "giving_up")
    assert pending.not_before > before + 30


def test_files_of_jobs_that_are_there_are_not_missed(site):
    request = half_made(site)
    remove(site, dataclasses.replace(request, jobs=request.jobs[:3]))
    site.boinc_submit(request)
    assert site.workunits(request) == site.names(request)


def test_a_person_may_try_a_half_made_batch_again(site):
    request = half_made(site)
    with pytest.raises(JobRefused):
        site.submit(request, max_post_bytes=1000)
    assert site.state(request) is BatchState.INIT


# What is not to be touched.


@pytest.mark.parametrize("jobs", [3, 0], ids=["with jobs", "empty"])
def test_a_batch_whose_name_differs_in_case_is_left_alone(site, jobs):
    theirs = site.batch(name=f"CaseBatch{jobs}")
    if jobs:
        site.submit(theirs)
    else:
        with site.project() as project:
            project.create_batch(theirs.batch_name, "uppercase")
    state = site.state(theirs)
    ours = dataclasses.replace(site.batch(), batch_name=theirs.batch_name.lower())
    with pytest.raises(BatchConflict, match="CaseBatch"):
        site.boinc_submit(ours)
    assert site.state(theirs) is state
    assert site.pending == ()


# Two processes.


def test_a_batch_that_another_process_gives_up_meanwhile_is_not_submitted(site):
    request = site.batch()
    hang = faultproxy.hang(carried_out=True)
    site.proxy.fail("upload_files", hang)
    site.options = dataclasses.replace(site.options, read_timeout=30)

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(site.boinc_submit, request)
        assert hang.reached.wait(60)
        number = batch_id(site, request)
        site.ledger.record_abort(*site.owner, request.batch_name, number, time.time() + 60)
        hang.release()
        with pytest.raises(BatchConflict, match="given up"):
            done.result(60)
    assert "submit_batch" not in site.proxy.seen
    assert site.workunits(request) == []


# Time.


def test_a_project_that_is_silent_about_templates_does_not_outlast_the_answers_time(site):
    hang = faultproxy.hang()
    site.proxy.fail("get_templates", hang)
    site.options = dataclasses.replace(site.options, read_timeout=1000, retry_total=1000)
    with pytest.raises(RpcError, match="asked to show templates"):
        site.boinc_submit(site.batch(), 11.0)
    hang.release()


def test_with_time_for_files_only_the_jobs_stay_where_they_are(site):
    request = site.batch()
    slow = faultproxy.delay(1.5)
    site.proxy.fail("query_files", slow)
    with pytest.raises(StagingError, match="release the jobs"):
        site.boinc_submit(request, 61.0)
    assert "submit_batch" not in site.proxy.seen
    assert site.state(request) is BatchState.RETIRED


@pytest.mark.long
def test_what_went_wrong_first_is_reported_when_the_project_cannot_be_asked_about_it(site):
    site.proxy.fail("submit_batch", faultproxy.lose_reply())
    site.proxy.fail("query_batch", faultproxy.status(503), times=None, skip=2)
    with pytest.raises(RpcError) as caught:
        site.submit(site.batch())
    assert caught.value.rpc == "submit_batch"


def test_jobs_that_the_project_takes_and_does_not_make_are_an_error_for_its_admin(site):
    request = site.batch()
    success = faultproxy.body(b"<submit_batch><batch_id>1</batch_id></submit_batch>")

    def without_output_template(exchange):
        site.set_state(request, BatchState.IN_PROGRESS)
        return success(exchange)

    site.proxy.fail("submit_batch", without_output_template)
    with pytest.raises(BatchConflict, match="templates of app uppercase"):
        site.boinc_submit(request)
    assert site.state(request) is BatchState.ABORTED


# The request as a whole.


def test_the_apps_version_and_the_first_lease_arrive(site):
    request = dataclasses.replace(site.batch(jobs=1), app_version_num=102)
    number = site.boinc_submit(request)
    row = site.row("workunit", request.jobs[0][0])
    expire = site.row("batch", number)["expire_time"]
    assert row["app_version_num"] == 102
    assert 86000 < expire - time.time() < 86401
