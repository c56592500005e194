"""Jobs fail in many ways: each ends, DAGMan goes on, and their owner is told in words.

``DAG_JOBS=500`` is the number of jobs of the last test's DAG; without it, it is a smaller one.
"""

from __future__ import annotations

import json
import os
import re
import threading
from contextlib import contextmanager
from typing import NamedTuple

import pytest

from boinc_gahp.rpc.client import WebRpcs as Rpc
from tests.helpers import wait_for
from tests.inside import rows
from tests.real_htcondor.pool import COMPLETED, HELD, ROOT
from tests.real_htcondor.submit import FILES, grid, vanilla

pytestmark = pytest.mark.timeout(600)

STEP = (ROOT / "conf/submit/step.sub").read_text("utf-8")
UPPERCASE = (*FILES, "output = job.out", "error = job.err", "arguments = --fail 11")


# -- single jobs


@pytest.fixture(scope="module")
def sent(node):
    """Jobs whose programs fail with 11, sent in different ways, all at once."""
    texts = {
        "plain": grid("uppercase", *UPPERCASE),
        "hold": grid("uppercase", *UPPERCASE, '+remote_BoincFailedJobs = "hold"'),
        "routed": vanilla("uppercase", *UPPERCASE),
        "partly": grid("crashy", "transfer_output_files = out"),
        "retries": grid("uppercase", *UPPERCASE, "max_retries = 2"),
        "on-exit": grid(
            "uppercase",
            *UPPERCASE,
            "on_exit_hold = ExitCode =!= 0",
            'on_exit_hold_reason = strcat("it failed: ", ExitReason)',
            "on_exit_hold_subcode = ExitCode",
        ),
    }
    return {
        name: node.pool.room("alice", f"failing-{name}", {"in": "x"}).submit(text)
        for name, text in texts.items()
    }


def history(room, *constraint):
    """Return what condor_history has of jobs that have left the queue."""
    text = room.pool.ask("root", "condor_history", *constraint, "-json")
    return list(json.loads(text or "[]"))


@pytest.mark.parametrize("name", ["plain", "routed"])
def test_a_job_whose_program_fails_has_its_exit_code_in_history_and_log(sent, name):
    cluster = sent[name]
    cluster.wait(COMPLETED)
    [job] = history(cluster.room, str(cluster.number))
    assert (job["ExitCode"], job["ExitBySignal"]) == (11, False)
    assert "ExitSignal" not in job
    assert "exit statuses on the volunteers' computers: 11, 11" in job["ExitReason"]
    assert "states of its instances: Error while computing (" in job["ExitReason"]
    log = cluster.room.read("job.log")
    assert "(1) Normal termination (return value 11)" in log
    assert "exit statuses of its instances: 11, 11" in cluster.room.read("job.err")
    assert cluster.room.read("job.out") == ""
    assert "out" not in cluster.room.files()


def test_the_outputs_that_a_failed_program_has_made_come_home(sent):
    [job] = sent["partly"].wait(COMPLETED)
    assert job["ExitCode"] == 11
    assert sent["partly"].room.read("out") == "as far as it came\n"


def test_a_job_that_asks_for_it_is_held(sent):
    [job] = sent["hold"].wait(HELD)
    assert (job["HoldReasonCode"], job["HoldReasonSubCode"]) == (2304, 11)
    assert "exit statuses on the volunteers' computers: 11, 11" in job["HoldReason"]


def test_max_retries_cannot_act(sent):
    # As docs/troubleshooting.rst says: HTCondor holds the job itself, with these words.
    [job] = sent["retries"].wait(HELD)
    assert (job["HoldReason"].strip(), job["HoldReasonCode"]) == ("Attempts to submit failed:", 0)


def test_on_exit_hold_acts_with_the_reason(sent):
    [job] = sent["on-exit"].wait(HELD)
    assert (job["HoldReasonCode"], job["HoldReasonSubCode"]) == (3, 11)
    assert job["HoldReason"].startswith("it failed: job bg-")
    assert "11, 11" in job["HoldReason"]


# -- a DAG of which jobs fail in each way that HTCondor can tell from another


class Way(NamedTuple):
    """How a job fails.

    Attributes:
        arguments: of the job.
        input: the file that it wants transferred.
        exit_code: of the job; None: it is put on hold, and removed for that.
        words: that its owner reads.
    """

    arguments: str
    input: str
    exit_code: int | None
    words: str


WAYS = {
    "exits": Way("--fail 11", "in", 11, "computers: 11, 11"),
    "crash": Way("--fail 193", "in", None, "a signal ended the program: it crashed"),
    # A result that comes after the abort is to change nothing.
    "aborted": Way("--aborted --sleep 3 --fail 1", "in", None, "was aborted on the BOINC project"),
    "absent": Way("", "absent", None, "absent"),
}
_EACH = 3
_ATTEMPTS = 3


@contextmanager
def aborting(project, authenticator):
    """Abort each job with the argument ``--aborted``, as its owner may on the project's site."""
    stop = threading.Event()

    def abort():
        with Rpc(project.url, authenticator) as rpc:
            while not stop.wait(0.2):
                found = rows(
                    project,
                    "SELECT name FROM workunit WHERE error_mask = 0 AND canonical_resultid = 0 "
                    "AND xml_doc LIKE '%<command_line>%aborted%</command_line>%'",
                )
                if names := [row["name"] for row in found]:
                    rpc.abort_jobs(names)

    thread = threading.Thread(target=abort)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _write_dag(room, jobs):
    """Write a DAG whose every node is a job; the ones that fail are spread over it."""
    policy = re.findall(r"^\+?[Pp]eriodic.*$", STEP, re.MULTILINE)
    assert len(policy) == 2
    text = grid(
        "uppercase",
        "arguments = $(arguments)",
        "transfer_input_files = $(input)",
        "transfer_output_files = out",
        'transfer_output_remaps = "out = out.$(JOB)"',
        "error = err.$(JOB)",
        *policy,
    )
    room.write("node.sub", text)
    failing = [f"{way}{number}" for number in range(_EACH) for way in WAYS]
    good = [f"good{number}" for number in range(jobs - len(failing))]
    every = max(1, len(good) // len(failing))
    names = []
    for number, name in enumerate(good):
        if number % every == 0 and failing:
            names.append(failing.pop(0))
        names.append(name)
    lines = []
    for name in [*names, *failing]:
        way = WAYS.get(name.rstrip("0123456789"), Way("", "in", 0, ""))
        lines += [
            f"JOB {name} node.sub",
            f'VARS {name} arguments="{way.arguments}" input="{way.input}"',
        ]
    room.write("many.dag", "\n".join([*lines, "RETRY ALL_NODES 2", ""]))


def test_a_dag_of_which_jobs_fail_in_many_ways_ends_and_each_end_is_reported(node):
    jobs = int(os.environ.get("DAG_JOBS", "90"))
    bad = _EACH * len(WAYS)
    secret = node.project.authenticator_of("alice")
    room = node.pool.room("alice", "many", {"in": "many\n"})
    _write_dag(room, jobs)
    with aborting(node.project, secret):
        assert "EXITING WITH STATUS 1" in room.run_dag("many.dag")
    of_dag = ("-constraint", 'isString(DAGNodeName) && Iwd == "/home/alice/many"')
    # A job may leave the queue a little later than DAGMan has read of its end.
    left = ("condor_q", "-allusers", *of_dag, "-af", "ClusterId")
    wait_for(lambda: not room.pool.ask("root", *left).strip(), "the queue is empty", pause=1.0)
    rescue = room.read("many.dag.rescue001")
    assert f"Nodes premarked DONE: {jobs - bad}" in rescue
    ads = {}
    for ad in history(room, *of_dag):
        ads.setdefault(ad["DAGNodeName"], []).append(ad)
    good = {name: found for name, found in ads.items() if name.startswith("good")}
    assert len(good) == jobs - bad
    for name, found in good.items():
        assert [ad["ExitCode"] for ad in found] == [0]
        assert room.read(f"out.{name}") == "MANY\n"
    for kind, way in WAYS.items():
        for number in range(_EACH):
            name = f"{kind}{number}"
            told = [_told(ad) for ad in ads[name]]
            codes, words = zip(*told, strict=True)
            assert codes == (way.exit_code,) * _ATTEMPTS, (name, ads[name])
            # HTCondor loses the reason of a removal now and then; that of an exit never.
            assert True in words, (name, words)
            assert way.exit_code is None or set(words) == {True}, (name, words)
    ledger = ("/opt/boinc_gahp/bin/boinc_gahp", "ledger", "status", "--json")
    [project] = [
        each
        for each in json.loads(node.pool.run("alice", *ledger).stdout)["projects"]
        if each["project_name"] == ""
    ]
    alive = {"waiting", "sending", "queued", "running", "finished", "fetched"}
    assert not any(each["number"] for each in project["jobs"] if each["state"] in alive)


def _told(ad):
    """Return a job's exit code, and whether it is told in words how it failed."""
    way = WAYS[ad["DAGNodeName"].rstrip("0123456789")]
    if ad["JobStatus"] == COMPLETED:
        words = ad["ExitReason"]
    else:
        # Where HTCondor's gridmanager and its schedd come to remove a job at the same time, the
        # gridmanager ends and begins anew, and the reason of the removal may be another.
        names = ("RemoveReason", "LastHoldReason", "HoldReason")
        words = "; ".join(str(ad[name]) for name in names if ad.get(name))
    return ad.get("ExitCode"), way.words in words or words
