"""What can happen to a project, one thing after the other: on a directory, without threads.

A :class:`World` is a project whose web server is called, not listened to, whose hosts do what they
are told, and whose time is a number. Each of its actions takes names and numbers, and may be
repeated after a crash, as whoever asked for it would repeat it; so a list of actions is a history
that can be replayed.
"""

import hashlib
import os
import re
import shutil
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from unittest import mock

from boinc_gahp.localproject import directory as layout, new_app
from boinc_gahp.localproject.accounts import SUBMITTER
from boinc_gahp.localproject.backend.assimilator import assimilate_pass
from boinc_gahp.localproject.backend.cleaning import (
    delete_job_files,
    delete_pass,
    delete_retired_outputs,
    expire_batches,
)
from boinc_gahp.localproject.backend.transitioner import transition_pass
from boinc_gahp.localproject.backend.validator import validate_pass
from boinc_gahp.localproject.errors import PhpFatal, RpcFailed
from boinc_gahp.localproject.server.application import FILE_RPCS, SUBMIT_RPCS
from boinc_gahp.localproject.server.messages import RpcReply, parse_request
from boinc_gahp.localproject.states import BatchState, ServerState
from boinc_gahp.templates.documents import read_result
from boinc_gahp.templates.types import InputFileInfo, InputTemplate, OutputFileInfo, OutputTemplate
from boinc_gahp.templates.writing import write_input_template
from tests.localproject.bench import Bench
from tests.localproject.client import job as job_element, value
from tests.localproject.crashes import crash
from tests.localproject.facts import APPS, Answer, Facts, Plan, Sent, payload

HOSTS = 4
#: Hosts that come when all is to be finished: they answer, and rightly.
HELPERS = 12
_MEMORY = 1e9
_ROUNDS = 300
_LONG = 3700.0

#: All apps' assimilator: it notes what it was given.
_ASSIMILATOR = """
from pathlib import Path

NOTES = Path(__file__).parent.parent / "notes.txt"

def note(job, canonical, instances):
    with NOTES.open("a") as file:
        file.write(f"{job.name} {canonical.name if canonical else 'failed'}\\n")
"""

#: The back-end programs, in the order in which they run.
PROGRAMS = {
    "transitioner": transition_pass,
    "validator": validate_pass,
    "assimilator": assimilate_pass,
    "file_deleter": lambda core, _now: delete_pass(core),
    "expiry": expire_batches,
    "cleaner": delete_job_files,
    "output_cleaner": delete_retired_outputs,
}


def make_base(directory):
    """Make the project that every history begins with."""
    layout.make(directory)
    (directory / "modules").mkdir(exist_ok=True)
    (directory / "modules" / "notes.py").write_text(_ASSIMILATOR)
    bench = Bench(directory, hosts=HOSTS)
    for name, app in APPS.items():
        keep, most = app.keep, 1e6
        log = {"optional": True, "no_validate": True}
        outputs = (
            OutputFileInfo("out", "<OUTFILE_0/>", max_nbytes=most, no_delete=keep),
            OutputFileInfo("log", "<OUTFILE_1/>", max_nbytes=most, no_delete=keep, **log),
        )
        made = new_app.NewApp(name, validator=app.validator, assimilator="notes:note")
        templates = _input_template(Plan(app=name)), OutputTemplate(outputs)
        new_app.insert(bench.core, made, ["true"], templates)
    bench.close()


def _copy(source, target):
    """Copy what is written to; all else in a project is made, and replaced, as a whole."""
    if Path(source).name in ("project.sqlite", "notes.txt"):
        shutil.copyfile(source, target)
    else:
        os.link(source, target)


def _input_template(plan):
    return InputTemplate(
        files=(InputFileInfo(open_name="in", no_delete=APPS[plan.app].keep),),
        rsc_fpops_est=1e9,
        rsc_fpops_bound=1e12,
        rsc_memory_bound=_MEMORY * 10 if plan.large else 1e6,
        rsc_disk_bound=1e6,
        delay_bound=100.0,
        min_quorum=plan.quorum,
        target_nresults=plan.target,
        max_error_results=plan.errors,
        max_total_results=plan.total,
        max_success_results=plan.successes,
    )


class World(Bench):
    """A project, its users and its hosts. Not a server: everything happens when it is called."""

    def __init__(self, base, directory):
        shutil.copytree(base, directory, copy_function=_copy)
        self.facts = Facts()
        self.crashes = []
        #: Called after each pass that has done something.
        self.look = lambda: None
        self.tasks = {}
        self.reports = {}
        super().__init__(directory, hosts=0)

    def reopen(self):
        """Stop and start: what was only in memory is lost."""
        self.close()
        self.open()

    @contextmanager
    def clock(self):
        """Let everything take the world's time for the time."""
        with mock.patch.object(time, "time", self._time):
            yield

    def _time(self):
        return self.now

    def act(self, action, *arguments):
        """Do one of the actions below."""
        with self.clock():
            return getattr(self, action)(*arguments)

    def crash(self, point, action, *arguments):
        """Begin an action and be killed at its ``point``-th step; then open the project again.

        Returns what would have come next, or None if the action ended before.
        """
        self.close()

        def work(points):
            self.open()
            points.watch(self.core.db.connection())
            self.act(action, *arguments)

        died_before = crash(point, work)
        self.open()
        if died_before is not None:
            self.crashes.append(died_before)
        return died_before

    # Submitters.

    def rpc(self, name, inner="", **fields):
        """Do an RPC of the submitter's and return the inner part of its reply.

        Raises:
            RpcFailed: it is an error.
        """
        (user,) = self.rows("SELECT authenticator FROM user WHERE name = ?", SUBMITTER)
        elements = "".join(f"<{tag}>{text}</{tag}>" for tag, text in fields.items())
        secret = f"<authenticator>{user['authenticator']}</authenticator>"
        request = parse_request(f"<{name}>{secret}{elements}{inner}</{name}>".encode())
        reply = RpcReply(display_errors=False)
        {**SUBMIT_RPCS, **FILE_RPCS}[name](self.core, request, reply)
        return str(reply)

    def submit(self, batch, plan, jobs):
        """Make a batch of jobs with one input file, as a submitter who may have to begin again."""
        known = self.rows("SELECT id, state FROM batch WHERE name = ?", batch)
        if known:
            batch_id, state = known[0]["id"], known[0]["state"]
        else:
            reply = self.rpc("create_batch", batch_name=batch, app_name=plan.app)
            batch_id, state = int(value(reply, "batch_id")), BatchState.INIT
        contents = batch.encode() if plan.own_input else plan.app.encode()
        name = f"{hashlib.md5(contents).hexdigest()}.dat"
        names = [f"{batch}_j{number}" for number in range(jobs)]
        if state == BatchState.INIT:
            self.core.download.add_bytes(name, contents)
            until = self.now + plan.delete_time if plan.delete_time else 0
            for _ in range(2):
                # The first says that a later delete_time has failed, and it has not; a repetition,
                # also of one before a crash, dies of the association.
                with suppress(RpcFailed, PhpFatal):
                    self.rpc("query_files", batch_id=batch_id, delete_time=until, phys_name=name)
            made = {row["name"] for row in self.rows("SELECT name FROM workunit")}
            lacking = [job for job in names if job not in made]
            template = write_input_template(_input_template(plan))
            self.rpc(
                "submit_batch",
                f"<batch><batch_id>{batch_id}</batch_id><app_name>{plan.app}</app_name>"
                f"{''.join(job_element(job, name, more=template) for job in lacking)}</batch>",
            )
        # njobs is what was sent last, until somebody asks.
        self.rpc("query_batch", batch_id=batch_id)
        self.facts.plans[batch] = plan
        for job in names:
            self.facts.jobs[job] = batch
            self.facts.inputs[job] = name

    def abort_batch(self, batch):
        """Abort a batch."""
        self.rpc("abort_batch", batch_name=batch)
        self.facts.ended.add(batch)

    def retire_batch(self, batch):
        """Retire a batch."""
        self.rpc("retire_batch", batch_name=batch)
        self.facts.ended.add(batch)
        self.facts.retired.add(batch)

    def abort_job(self, job):
        """Abort a job."""
        self.rpc("abort_jobs", job_name=job)
        self.facts.cancelled.add(job)

    def set_expire_time(self, batch, after):
        """Let a batch end ``after`` s from now."""
        self.rpc("set_expire_time", batch_name=batch, expire_time=self.now + after)
        self.facts.expire[batch] = self.now + after

    def statuses(self):
        """Return what query_batch2 says about all jobs."""
        batches = "".join(f"<batch_name>{batch}</batch_name>" for batch in self.facts.plans)
        reply = self.rpc("query_batch2", batches)
        return dict(re.findall(r"<job_name>(.*)</job_name>\s*<status>(.*)</status>", reply))

    def batches(self):
        """Return the numbers of each batch, as query_batch works them out and notes them."""
        found = {}
        for batch in self.facts.plans:
            reply = self.rpc("query_batch", batch_name=batch)
            names = ("njobs", "nerror_jobs", "fraction_done", "state")
            found[batch] = {name: float(value(reply, name)) for name in names}
        return found

    # Hosts.

    def send(self, host):
        """Let a host ask for work; return the name of the result that it gets."""
        idle = all(holder != host for holder, _ in self.tasks.values())
        # What a host has that does not know of it was sent when the server died.
        had = self.scheduler.all_unfinished(host) if idle else []
        task = had[0] if had else super().send(host)
        if task is None:
            return None
        row = self.rows("SELECT report_deadline FROM result WHERE id = ?", task.result_id)[0]
        self.tasks[task.result_name] = (host, task)
        self.facts.sent[task.result_name] = Sent(host, row["report_deadline"])
        return task.result_name

    def answer(self, result, kind):
        """Let the host that has a result report it, with outputs or an error; in time or not."""
        host, task = self.tasks[result]
        answer = Answer(kind, payload(result, kind))
        status, says = (11, {}) if kind == "error" else (0, {"out": answer.payload})
        if says:
            says["log"] = task.result_name.encode()
            self.facts.outputs |= {file.name: result for file in read_result(task.xml_doc_in)}
        sent = {name: each[: len(each) // 2] for name, each in says.items()}
        files = sent if kind == "cut" else says
        report = super().answer(task, host, status=status, files=files, says=says)
        self.facts.answers[result] = answer
        self.reports[result] = (host, task, report)
        del self.tasks[result]

    def report_again(self, result):
        """Let a host report once more, as if it had not heard that its report has arrived."""
        host, task, report = self.reports[result]
        self.scheduler.report(host, task, report, self.now)

    # The back end.

    def run(self, program):
        """Run a program's pass; return how much it had to do."""
        return PROGRAMS[program](self.core, self.now)

    def settle(self):
        """Run the programs until there is nothing to do."""
        for _ in range(50):
            if not sum(self._pass(program) for program in PROGRAMS):
                return
        raise AssertionError("the back end does not come to rest")

    def _pass(self, program):
        done = self.run(program)
        if done:
            self.look()
        return done

    def move(self, seconds):
        """Let time pass."""
        self.now += seconds

    def notes(self):
        """Return what was given to the assimilator's handler: a job, its canonical result."""
        path = self.directory / "notes.txt"
        return [line.split() for line in path.read_text().splitlines()] if path.exists() else []

    # The end.

    def finish(self):
        """Let new hosts do all that is left; those that are silent stay so.

        Raises:
            AssertionError: something is never done.
        """
        self.add_hosts(range(HOSTS + 1, HOSTS + 1 + HELPERS))
        for _ in range(_ROUNDS):
            self.act("settle")
            if not any(map(self._serve, range(HOSTS + 1, HOSTS + 1 + HELPERS))):
                waiting = self.rows(
                    "SELECT min(report_deadline) AS time FROM result WHERE server_state = ?",
                    ServerState.IN_PROGRESS,
                )[0]["time"]
                if waiting is None and not self.unfinished():
                    return
                self.now = max(waiting, self.now) + 1 if waiting else self.now + _LONG
        raise AssertionError(f"stuck: {self.unfinished()}")

    def come_back(self):
        """Let all hosts that were silent report at last, and finish again."""
        for result in sorted(self.tasks):
            self.act("answer", result, "right")
        self.finish()

    def rest_for_long(self):
        """Let time pass until nothing more is due after the end."""
        for _ in range(2):
            # First batches expire, then what is kept of them for a while goes.
            self.now += 10 * _LONG
            self.act("settle")

    def _serve(self, host):
        result = self.act("send", host)
        if result is not None:
            self.act("answer", result, "right")
        return result is not None

    def unfinished(self):
        """Return the workunits that are not at their end."""
        return self.rows(
            "SELECT * FROM workunit WHERE (canonical_resultid = 0 AND error_mask = 0) "
            "OR need_validate OR assimilate_state != 2 OR file_delete_state NOT IN (2, 3)"
        )
