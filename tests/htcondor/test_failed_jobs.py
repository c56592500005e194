"""Jobs whose programs fail at volunteers end; what was no fault of the program's is held."""

from contextlib import contextmanager

import pytest

from boinc_gahp.cli.main import main
from boinc_gahp.htcondor import _failures
from boinc_gahp.htcondor._fetching import Fetcher
from boinc_gahp.htcondor.status_ad import HoldCode
from boinc_gahp.states import BatchState
from tests import faultproxy
from tests.helpers import wait_for
from tests.htcondor.helpers import assert_held, change
from tests.htcondor.onproject import follow, send
from tests.htcondor.process import Gahp, write_settings
from tests.inside import tell_of_failed_jobs

COMPLETED, HELD = 4, 5


def hold_codes(end):
    return end["HoldReasonCode"], end["HoldReasonSubCode"]


@contextmanager
def daemon(site, failed_jobs=""):
    path = write_settings(site)
    if failed_jobs:
        text = path.read_text()
        path.write_text(text.replace("[htcondor]", f'[htcondor]\nfailed_jobs = "{failed_jobs}"'))
    with Gahp(path) as gahp:
        yield gahp


@pytest.mark.processes
def test_a_job_whose_program_fails_is_completed_with_its_exit_code(site):
    job = site.job("--fail 11")
    with daemon(site) as gahp:
        end = gahp.end_of(gahp.submit(job.ad))
    assert end.word == COMPLETED, end
    assert (end["ExitCode"], end["ExitBySignal"]) == (11, False)
    assert end["ExitSignal"] is None
    reason = str(end["ExitReason"])
    assert ": exit status 11; exit statuses on the volunteers' computers: 11, 11" in reason
    assert "; states of its instances: Error while computing (" in reason
    assert site.authenticator not in reason
    told = (job.iwd / "job.err").read_text()
    assert "exit statuses of its instances: 11, 11" in told
    assert "Error while computing" in told
    assert (job.iwd / "job.out").read_bytes() == b""
    assert not job.output.exists()
    assert site.batch_states() == [BatchState.RETIRED]


@pytest.mark.processes
def test_what_becomes_of_a_failed_job_is_for_the_settings_and_before_them_for_the_job_to_say(site):
    plain = site.job("--fail 7")
    held = site.job("--fail 7", BoincFailedJobs='"Hold"')
    also = site.job("--fail 7", BatchExtraSubmitArgs='"--failed-jobs hold"')
    with daemon(site) as gahp:
        ids = [gahp.submit(job.ad) for job in (plain, held, also)]
        ends = [*gahp.follow(ids).values()]
    assert [end.word for end in ends] == [COMPLETED, HELD, HELD]
    assert hold_codes(ends[1]) == hold_codes(ends[2]) == (HoldCode.FAILED, 7)
    assert "condor_release" not in ends[0].ad
    plain, completed = site.job("--fail 7"), site.job("--fail 7", BoincFailedJobs='"complete"')
    with daemon(site, failed_jobs="hold") as gahp:
        ids = [gahp.submit(job.ad) for job in (plain, completed)]
        assert [end.word for end in gahp.follow(ids).values()] == [HELD, COMPLETED]


@pytest.fixture
def context(site):
    site.reset(poll_shortest=1.0, poll_longest=4.0, poll_all=600.0)
    with site.context() as context:
        yield context


# -- one end, whatever happens between


def test_a_failure_that_is_known_is_gone_on_with_by_the_next_daemon(site, context):
    sent = send(site, context, ("--fail", "5"))
    follow(context, sent, "finished")
    # The project is not believed if it says something else now.
    change(site, "UPDATE workunit SET error_mask = 0 WHERE name = ?", sent.job.job_name)
    with site.context() as fresh:
        Fetcher(fresh).fetch(sent.job)
        assert sent.states == ["fetched"]
        fresh.jobs.close_batch(sent.batch_id, retired=False)
    assert (sent.job.state, sent.job.exit_code) == ("done", 5)
    assert "exit statuses of its instances: 5, 5" in (sent.iwds[0] / "job.err").read_text()
    assert context.jobs.program_failure(sent.job.id) is None, "what is in place is not kept"


def test_of_an_endless_stderr_the_ledger_keeps_both_ends(site, context, monkeypatch):
    tell_of_failed_jobs(monkeypatch)
    sent = send(site, context, ("--fail", "5"))
    sent.await_end()
    change(site, "UPDATE result SET stderr_out = ?", "begin" + "x" * 400_000 + "end")
    follow(context, sent, "finished")
    failure = context.jobs.program_failure(sent.job.id)
    assert 100_000 < len(failure.stderr) < 150_000
    assert "characters are left out]" in failure.stderr
    assert failure.stderr.rstrip().endswith("end")


def test_a_failure_that_cannot_be_written_is_held_for_that(site, context):
    sent = send(site, context, ("--fail", "5"))
    (sent.iwds[0] / "job.err").mkdir()
    follow(context, sent, "finished")
    Fetcher(context).fetch(sent.job)
    assert_held(sent.job, HoldCode.OUTPUT, "job.err")


def test_a_job_that_is_cancelled_meanwhile_gets_nothing(site, context):
    sent = send(site, context, ("--fail", "5"))
    sent.await_end()
    row = sent.job
    context.jobs.cancel(row.id)
    assert _failures.fail(context, row)
    Fetcher(context).fetch(row)
    assert sent.states == ["cancelled"]
    assert list(sent.iwds[0].iterdir()) == []


@pytest.mark.long
@pytest.mark.parametrize(
    "rpc", ["query_batch", "query_job", "query_completed_job", "query_batch2", "retire_batch"]
)
def test_a_daemon_that_is_killed_on_the_way_leaves_one_end(site, rpc):
    ran, crashed = site.job("--fail 9"), site.job("--fail 193")
    settings = write_settings(site)
    ids = {}
    hang = faultproxy.hang(carried_out=True)
    with Gahp(settings) as gahp:
        # Only what is asked about the failures: sending asks for batches, too.
        with site.held_back():
            ids = {job.key: gahp.submit(job.ad) for job in (ran, crashed)}
        wait_for(lambda: len(site.workunits()) == 2, "the jobs are sent")
        site.proxy.fail(rpc, hang)
        wait_for(hang.reached.is_set, rpc)
        gahp.kill()
    hang.release()
    site.proxy.heal()
    with Gahp(settings) as gahp:
        ends = [gahp.end_of(ids[job.key]) for job in (ran, crashed)]
        assert [end.word for end in ends] == [COMPLETED, HELD]
        assert ends[0]["ExitCode"] == 9
        assert [gahp.end_of(ids[job.key]) for job in (ran, crashed)] == ends
    assert len(site.workunits()) == 2
    assert_told(ran, "9, 9")
    assert not (crashed.iwd / "job.err").exists()


def assert_told(job, statuses):
    assert f"exit statuses of its instances: {statuses}" in (job.iwd / "job.err").read_text()
    assert list(job.iwd.glob(".boinc_gahp*")) == []


def test_the_ledger_shows_how_a_program_failed(site, context, capsys):
    config = ["--config", str(write_settings(site))]
    sent = send(site, context, ("--fail", "11"))
    follow(context, sent, "finished")
    assert main(["ledger", "status", "--jobs", *config]) == 0
    listed = capsys.readouterr().out
    assert "failed, stderr to be written" in listed
    assert "volunteers' computers: 11, 11" in listed
