"""Outputs come home: from a local project over HTTP, to where a submit file wants them."""

import errno
import os
from dataclasses import replace

import pytest

from boinc_gahp.fetch.job_directory import fetch_output
from boinc_gahp.fetch.temporary import registry
from boinc_gahp.htcondor import _fetching
from boinc_gahp.htcondor._description import JobDescription
from boinc_gahp.htcondor._fetching import Fetcher, clear_away
from boinc_gahp.htcondor.status_ad import HoldCode
from boinc_gahp.states import HTCondorState
from tests import faultproxy
from tests.daemon.gridmanager import Status
from tests.htcondor.desk import TROUBLES
from tests.htcondor.helpers import ONCE, PATIENT, assert_held
from tests.htcondor.onproject import fetch_all, follow, send

pytestmark = pytest.mark.long


@pytest.fixture
def context(site):
    site.timeouts = PATIENT
    with site.context() as context:
        yield context


def finished(site, context, *arguments, **options):
    sent = send(site, context, *arguments, **options)
    follow(context, sent, *["finished"] * max(1, len(arguments)))
    return sent


def contents(home):
    return {
        str(path.relative_to(home)): path.read_bytes()
        for path in sorted(home.rglob("*"))
        if path.is_file()
    }


def test_outputs_and_streams_are_in_place_before_the_job_is_over(site, context):
    sent = finished(site, context, (), ())
    for job in sent.jobs:
        Fetcher(context).fetch(job)
    assert sent.states == ["done", "fetched"]
    for job, iwd in zip(sent.jobs, sent.iwds, strict=True):
        assert contents(iwd) == {
            "job.err": b"starting uppercase args: \ncalled boinc_finish(0)\n",
            "job.out": b"",
            "out": b"TEXT",
        }
        assert job.exit_code == 0
        assert job.cpu_time > 0
        assert job.elapsed_time is not None
        assert job.bytes_sent == sum(map(len, contents(iwd).values()))
        assert not job.writing
    assert sent.batch.state == "ended"


#: The RPCs of a fetch, and what each asks a project to do.
RPCS = {
    "query_batch": "show a batch",
    "query_job": "show a job",
    "query_completed_job": "show an ended job",
    "get_templates": "show templates",
    "result_file": "hand out an output",
}


def test_trouble_of_the_project_is_waited_for(site, context):
    sent = finished(site, context, *[()] * (len(RPCS) + 1))
    site.timeouts = ONCE
    for rpc, job, iwd in zip(RPCS, sent.jobs, sent.iwds, strict=False):
        # A process of its own, which has learned nothing yet.
        with site.context() as fresh:
            for case, fault in {"500": faultproxy.status(500), **TROUBLES}.items():
                site.proxy.fail(rpc, fault, times=None)
                Fetcher(fresh).fetch(job)
                site.proxy.heal()
                row = context.jobs.job(job.id)
                assert row.state == "finished", (rpc, case, row)
                assert not row.writing
                assert RPCS[rpc] in row.trouble, (case, row.trouble)
                assert contents(iwd).keys() <= {"job.err"}, (rpc, case)
        if rpc != "result_file":
            site.proxy.fail(rpc, faultproxy.php_warnings(), times=None)
        Fetcher(context).fetch(job)
        site.proxy.heal()
        assert contents(iwd)["out"] == b"TEXT", rpc
    assert sent.states == ["done"] * len(RPCS) + ["finished"]


#: A missing directory, a misspelt output, one name for two, and files that should be directories.
MENDABLE = (
    ({"remaps": (("out0", "no/x"),)}, errno.ENOENT, "does not exist"),
    ({"outputs": ("typo",)}, 0, "no output 'typo'; its outputs are"),
    ({"remaps": (("out0", "x"), ("out1", "x"))}, 0, "would both be written"),
    ({"stderr": "file/x"}, errno.ENOTDIR, "file/x' cannot be written"),
    ({"remaps": (("out0", "file/x"),)}, errno.ENOTDIR, "not a directory"),
)


def test_what_a_person_must_mend_is_held_and_reported(site, context):
    sent = finished(site, context, *[()] * len(MENDABLE), app="multi")
    for (options, number, words), before, iwd in zip(MENDABLE, sent.jobs, sent.iwds, strict=True):
        (iwd / "file").write_text("")
        description = JobDescription.from_json(before.description)
        Fetcher(context).fetch(
            before._replace(description=replace(description, **options).to_json())
        )
        job = context.jobs.job(before.id)
        host = site.proxy.url.split("/")[2]
        parts = (words, job.job_name, host, " [BG-OUTPUT]")
        assert_held(job, HoldCode.OUTPUT, *parts, subcode=number)


def test_of_a_fetch_that_succeeds_no_pause_is_remembered(site, context):
    sent = finished(site, context)
    site.timeouts = ONCE
    site.reset(poll_shortest=0.05, poll_longest=0.05)
    site.proxy.fail("result_file", faultproxy.status(503), times=2)
    fetched_by = fetch_all(site, sent)
    assert site.proxy.count("result_file") > 2
    assert fetched_by.pauses.lasted(("fetch", sent.job.id)) == 0


def test_a_full_disk_is_waited_for_and_then_held(site, context, monkeypatch, caplog):
    sent = finished(site, context)
    write = os.write

    def full(descriptor, data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("boinc_gahp.fetch.temporary.os.write", full)
    for _ in range(3):
        Fetcher(context).fetch(sent.job)
        assert sent.states == ["finished"]
    with site.held_back(), site.service() as service:
        told = Status(*service.status(context.jobs.htcondor_id(sent.job)))
    assert told.word == HTCondorState.SUSPENDED
    assert f"'{sent.iwds[0]}/" in told["ExitReason"]
    assert "cannot be written: the disk is full: free some space" in told["ExitReason"]
    warnings = [record for record in caplog.records if record.levelname == "WARNING"]
    assert sum("the disk is full" in record.getMessage() for record in warnings) == 1
    monkeypatch.setattr(_fetching, "STORAGE_WAIT", 0.0)
    Fetcher(context).fetch(sent.job)
    monkeypatch.setattr("boinc_gahp.fetch.temporary.os.write", write)
    assert_held(sent.job, HoldCode.OUTPUT, subcode=errno.ENOSPC)


def test_a_home_that_is_not_mounted_is_waited_for(site, context):
    sent = finished(site, context)
    away = sent.iwds[0].with_name("away")
    sent.iwds[0].rename(away)
    Fetcher(context).fetch(sent.job)
    assert sent.states == ["finished"]
    assert "No such file" in sent.job.trouble
    assert not sent.iwds[0].exists(), "it would be what is beneath the mount"
    away.rename(sent.iwds[0])
    Fetcher(context).fetch(sent.job)
    assert sent.states == ["fetched"]


def test_a_job_that_turned_out_to_have_failed_is_held_or_over_with_that(site, context):
    sent = send(site, context, ("--fail", "197"), ("--fail", "11"))
    sent.await_end()
    context.jobs.statuses(sent.batch_id, {job.job_name: "finished" for job in sent.jobs})
    for job in sent.jobs:
        Fetcher(context).fetch(job)
    held, over = sent.jobs
    assert_held(held, HoldCode.FAILED)
    assert contents(sent.iwds[0]) == {}
    assert (over.state, over.exit_code) == ("fetched", 11)
    assert contents(sent.iwds[1]).keys() == {"job.err", "job.out"}


def test_a_job_that_the_project_has_lost_is_held_for_that(site, context):
    sent = finished(site, context)
    lose = "UPDATE workunit SET name = 'x' || name, name_key = 'x' || name_key WHERE name = ?"
    site.change(lose, sent.job.job_name)
    with site.context() as fresh:
        Fetcher(fresh).fetch(sent.job)
    assert_held(sent.job, HoldCode.LOST)
    assert contents(sent.iwds[0]) == {}


def test_a_description_that_cannot_be_read_does_not_come_again(site, context):
    sent = finished(site, context)
    Fetcher(context).fetch(sent.job._replace(description="[]"))
    assert_held(sent.job, HoldCode.OUTPUT)


def test_a_bug_costs_no_more_than_one_fetch(site, context, monkeypatch, caplog):
    sent = finished(site, context)

    def broken(*_):
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(_fetching, "fetch_output", broken)
        Fetcher(context).fetch(sent.job)
    assert sent.states == ["finished"]
    assert not sent.job.writing
    assert "ZeroDivisionError" in sent.job.trouble
    assert "cannot be fetched" in caplog.text
    Fetcher(context).fetch(sent.job)
    assert sent.states == ["fetched"]


def test_a_job_cancelled_as_its_last_output_arrives_is_left_alone(site, context, monkeypatch):
    sent = finished(site, context, (), ())
    job = sent.jobs[0]

    def then_cancelled(project, request, scope):
        result = fetch_output(project, request, scope)
        context.jobs.cancel(job.id)
        return result

    monkeypatch.setattr(_fetching, "fetch_output", then_cancelled)
    Fetcher(context).fetch(job)
    row = sent.jobs[0]
    assert (row.state, row.exit_code, row.writing) == ("cancelled", None, False)


def test_what_a_killed_daemon_left_goes_with_the_job(site, context):
    sent = finished(site, context, stdout="logs/job.out", remaps=(("out", "res/"),))
    iwd = sent.iwds[0]
    for name in ("", "logs", "res"):
        (iwd / name).mkdir(exist_ok=True)
        (iwd / name / ".boinc_gahp-0123456789abcdef-0.part").write_bytes(b"half")
    room = iwd / ".boinc_gahp-0123456789abcdef-0.part.fedcba9876543210"
    room.mkdir(0o700)
    (room / ".boinc_gahp.room").touch()
    (room / "0").write_bytes(b"half")
    (iwd / ".boinc_gahp-of-mine").write_bytes(b"")
    # Another job of the same directory is being fetched.
    with registry.file(iwd / "other") as other:
        clear_away(sent.job)
        assert set(contents(iwd)) == {".boinc_gahp-of-mine", other.path.name}
    clear_away(sent.job._replace(description=""))
