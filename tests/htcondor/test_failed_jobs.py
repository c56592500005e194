"""Jobs whose programs fail at volunteers end; what was no fault of the program's is held."""

import pytest

from boinc_gahp.cli.main import main
from boinc_gahp.htcondor import _failures
from boinc_gahp.htcondor._fetching import Fetcher
from boinc_gahp.htcondor.status_ad import HoldCode
from tests.htcondor.helpers import assert_held
from tests.htcondor.onproject import follow, send
from tests.htcondor.process import Gahp, write_settings
from tests.inside import tell_of_failed_jobs

COMPLETED, HELD = 4, 5


def hold_codes(end):
    return end["HoldReasonCode"], end["HoldReasonSubCode"]


@pytest.mark.processes
def test_what_becomes_of_a_failed_job_is_for_the_settings_and_before_them_for_the_job_to_say(site):
    plain = site.job("--fail 7")
    held = site.job("--fail 7", BoincFailedJobs='"Hold"')
    also = site.job("--fail 7", BatchExtraSubmitArgs='"--failed-jobs hold"')
    settings = write_settings(site)
    with Gahp(settings) as gahp:
        ids = [gahp.submit(job.ad) for job in (plain, held, also)]
        ends = [*gahp.follow(ids).values()]
    assert [end.word for end in ends] == [COMPLETED, HELD, HELD]
    assert hold_codes(ends[1]) == hold_codes(ends[2]) == (HoldCode.FAILED, 7)
    assert ends[0]["ExitCode"] == 7
    reason = str(ends[0]["ExitReason"])
    assert ": exit status 7; exit statuses on the volunteers' computers: 7, 7" in reason
    assert "; states of its instances: Error while computing (" in reason
    assert "condor_release" not in reason
    assert site.authenticator not in reason
    plain, completed = site.job("--fail 7"), site.job("--fail 7", BoincFailedJobs='"complete"')
    text = settings.read_text()
    settings.write_text(text.replace("[htcondor]", '[htcondor]\nfailed_jobs = "hold"'))
    with Gahp(settings) as gahp:
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
    site.change("UPDATE workunit SET error_mask = 0 WHERE name = ?", sent.job.job_name)
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
    site.change("UPDATE result SET stderr_out = ?", "begin" + "x" * 400_000 + "end")
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


def test_the_ledger_shows_how_a_program_failed(site, context, capsys):
    config = ["--config", str(write_settings(site))]
    sent = send(site, context, ("--fail", "11"))
    follow(context, sent, "finished")
    assert main(["ledger", "status", "--jobs", *config]) == 0
    listed = capsys.readouterr().out
    assert "failed, stderr to be written" in listed
    assert "volunteers' computers: 11, 11" in listed
