"""``boinc_gahp batch abort``, ``retire`` and ``extend``."""

import io
import json
import time
from dataclasses import replace

import pytest

from boinc_gahp.api.batch import Batch
from boinc_gahp.states import BatchState
from tests.cli.conftest import ended


def state(site, number):
    return site.rpc.batch(number).state


def lease(site, number):
    return site.rpc.batch(number).expire_time


def test_several_batches_are_aborted_and_each_error_is_reported(site, batch):
    one, one_name = site.batch("", "")
    two, two_name = site.batch("")
    status, out, err = batch("abort", one, "no-such-batch", two_name, two)
    assert out == f"Batch {one} {one_name} is aborted.\nBatch {two} {two_name} is aborted.\n"
    assert (status, err.count("\n"), "no batch 'no-such-batch'" in err) == (1, 1, True)
    assert state(site, one) is state(site, two) is BatchState.ABORTED
    assert "aborted already: there is nothing to abort" in batch("abort", one)[1]


def test_a_batch_that_ends_before_its_abort_is_said_to_be_over(site, batch, monkeypatch):
    number, _ = site.batch("")

    def end(handle):
        handle.see(replace(handle.info, state=BatchState.COMPLETE))

    monkeypatch.setattr(Batch, "abort", end)
    told = "was over before it could be aborted: it is complete"
    assert told in batch.prints("abort", number)
    site.rpc.abort_batch(batch_id=number)


def test_single_jobs_are_aborted_by_name_and_id_and_the_others_go_on(site, batch):
    number, name = site.batch("", "", "")
    jobs = [job.id for job in site.rpc.iter_jobs(number)]
    out = batch.prints("abort", name, "--job", f"{name}_0", "--job", jobs[2])
    assert f"Batch {number} {name} continues without 2 jobs" in out
    statuses = [job.status for job in site.rpc.iter_jobs(number)]
    assert statuses == ["error", "queued", "error"]
    assert f"Job {name}_0 is failed already." in batch.prints("abort", name, "--job", f"{name}_0")
    batch.refuses("abort", name, "--job", "nothing")
    batch.refuses("abort", name, number, "--job", f"{name}_1", status=2)


class _Terminal(io.StringIO):
    """What somebody types."""

    def isatty(self):
        return True


@pytest.mark.processes
def test_abort_asks_on_a_terminal_and_no_is_no(site, batch, monkeypatch):
    number, name = site.batch("", "")
    child = batch.on_terminal("abort", name)
    child.expect_exact(f"batch {number}  {name}: running, 0 of 2 jobs over")
    child.expect_exact("Abort 1 batch with 2 unfinished jobs? [y/N] ")
    child.sendline("n")
    child.expect_exact("Nothing was done.")
    assert ended(child) == 1
    assert state(site, number) is BatchState.IN_PROGRESS
    monkeypatch.setattr("sys.stdin", _Terminal("y\n"))
    assert "is aborted." in batch.screen("abort", name)
    assert state(site, number) is BatchState.ABORTED


class _Interrupted(_Terminal):
    def readline(self, _size=-1):
        raise KeyboardInterrupt


class _Binary(_Terminal):
    def readline(self, _size=-1):
        return b"y\xff".decode()


def test_ctrl_c_and_bytes_that_are_no_text_answer_nothing(site, batch, monkeypatch, capsys):
    number, name = site.batch("")
    monkeypatch.setattr("sys.stdin", _Interrupted())
    assert "Abort 1 batch with 1 unfinished job? [y/N] \n" in batch.screen("abort", name)
    assert capsys.readouterr().err == "boinc_gahp: interrupted; it can be run again\n"
    monkeypatch.setattr("sys.stdin", _Binary())
    assert batch.screen("abort", name).endswith("[y/N] Nothing was done.\n")
    assert state(site, number) is BatchState.IN_PROGRESS


def test_retire_tells_on_a_terminal_what_would_be_lost(site, batch, monkeypatch):
    number, name = site.finished("")
    monkeypatch.setattr("sys.stdin", _Terminal())
    question = "Retiring 1 batch loses the outputs of 1 job, which were not fetched on this machine"
    asked = f"{question}. Retire? [y/N] \nNothing was done.\n"
    assert asked in batch.screen("retire", name)
    assert state(site, number) is BatchState.COMPLETE
    monkeypatch.setattr("sys.stdin", _Terminal("y\n"))
    assert "is retired." in batch.screen("retire", name)


@pytest.mark.parametrize("given", [(), ("--yes",)])
def test_retire_loses_no_outputs_unless_it_is_told_to(site, batch, given):
    number, name = site.finished("")
    err = batch.refuses("retire", number, *given)
    assert f"batch {number} {name} is not retired: the outputs of {name}_0 were not" in err
    assert f"To fetch them: boinc_gahp batch fetch {number};" in err
    assert state(site, number) is BatchState.COMPLETE
    batch.prints("retire", number, "--unfetched")
    assert state(site, number) is BatchState.RETIRED


@pytest.mark.parametrize("options", [(), ("--zip", "all.zip")])
def test_retire_does_not_ask_after_a_fetch_and_may_be_repeated(site, batch, here, options):
    number, name = site.finished("")
    batch.prints("fetch", number, *options)
    assert batch.prints("retire", number) == f"Batch {number} {name} is retired.\n"
    assert state(site, number) is BatchState.RETIRED
    assert batch.prints("retire", number) == f"Batch {number} {name} is retired already.\n"


def test_extend_sets_the_end_and_says_it(site, batch):
    number, name = site.batch("", lease=time.time() + 86400)
    out = batch.prints("extend", name, "--for", "7d")
    assert abs(lease(site, number) - time.time() - 7 * 86400) < 60
    assert out.startswith(f"Batch {number} {name} is kept until 2")
    assert "did you mean 30h or 30d?" in batch.refuses("extend", name, "--for", "30", status=2)


@pytest.mark.parametrize("end", [2145290400.0, 0.0])
def test_extend_for_a_span_does_not_shorten_a_lease(site, batch, end):
    number, _ = site.batch("", lease=end)
    assert "is unchanged: it is kept until" in batch.prints("extend", number, "--for", "7d")
    assert lease(site, number) == end


def test_a_retired_batch_cannot_be_kept(site, batch):
    number, _ = site.batch("")
    site.rpc.retire_batch(batch_id=number)
    assert "there is nothing left to keep" in batch.refuses("extend", number, "--for", "7d")


@pytest.mark.parametrize("words", [["abort"], ["retire"], ["extend", "--for", "1h"]])
def test_json_tells_what_became_of_each_batch(site, batch, words):
    number, name = site.batch("")
    status, out, err = batch(*words, number, "no-such-batch", "--json")
    assert status == 1
    first, second = json.loads(out)
    assert (first["asked"], first["error"]) == (str(number), None)
    assert first["batch"]["name"] == name
    assert second["batch"] is None
    assert second["error"] in err
    assert (first["code"], second["code"]) == (None, "BG-NO-SUCH-BATCH")
    assert err.endswith(" [BG-NO-SUCH-BATCH]\n")
