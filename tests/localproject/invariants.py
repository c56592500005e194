"""What must hold of a project after whatever has happened to it.

Worked out from the facts of a history (what was asked, sent and answered) and from two states of
the database, before and after something happened. The rules are those of ``back-end.rst``; no
function of the back end is asked.
"""

import pytest

from boinc_gahp.localproject.states import (
    NEVER,
    AssimilateState,
    BatchState,
    ErrorMask,
    FileDeleteState,
    Outcome,
    ServerState,
    ValidateState,
)
from tests.localproject.facts import APPS, agree
from tests.localproject.observed import state_of

_UNCHECKED = (ValidateState.INIT, ValidateState.INCONCLUSIVE)
_RELEASED = (FileDeleteState.READY, FileDeleteState.DONE)


def _is_good(row):
    """Whether a result is a success that has not turned out to be wrong."""
    wrong = row["validate_state"] == ValidateState.INVALID
    return bool(row["outcome"] == Outcome.SUCCESS and not wrong)


def _is_checked(row):
    """Whether there is nothing left for a validator to decide about a result."""
    return row["outcome"] != Outcome.SUCCESS or row["validate_state"] not in _UNCHECKED


class Watch:
    """Compares what a world is with what it was and with what happened.

    Every method raises AssertionError when a rule is broken.
    """

    def __init__(self, world):
        self.world = world
        self.facts = world.facts
        self.before = self.now = state_of(world)
        #: Results that came when what they were to be compared with was about to be deleted.
        self.raced = set()
        #: Batches whose expire_time has come at some time; it may have been put off since.
        self.expired = set()
        world.look = self.look

    def look(self):
        """Check everything that must hold at any time."""
        self.before, self.now = self.now, state_of(self.world)
        expire = self.facts.expire.items()
        self.expired |= {batch for batch, time in expire if 0 < time < self.world.now}
        assert self.before.results.keys() <= self.now.results.keys()
        assert self.now.jobs.keys() == self.facts.jobs.keys()
        for result in self.now.results.values():
            self._state(result)
            self._note_race(result)
            self._validity(result)
        self._credit()
        for job in self.now.jobs:
            self._results(job)
            self._canonical(job)
            self._errors(job)
            self._assimilated(job)
            self._released(job)
        for name in self.before.files - self.now.files:
            self._deleted(name)

    def plan(self, job):
        """Return what a job was made with."""
        return self.facts.plans[self.facts.jobs[job]]

    def _job_of(self, result):
        return str(result["name"]).rpartition("_")[0]

    # Results.

    def _state(self, new):
        """Where a result is follows from what was sent and answered, and it never goes back."""
        name, state, outcome = new["name"], new["server_state"], new["outcome"]
        old = self.before.results.get(name)
        sent, answer = self.facts.sent.get(name), self.facts.answers.get(name)
        assert old is None or old["server_state"] <= state, f"{name} went back: {old} to {new}"
        assert old is None or old["hostid"] in (0, new["hostid"]), f"{name} changed hosts"
        assert new["hostid"] == (sent.host if sent else 0), f"{name} has another host: {new}"
        if state != ServerState.OVER:
            assert outcome == Outcome.INIT, f"{name} is not over and has an outcome"
            assert answer is None, f"the answer of {name} is lost"
            assert (state == ServerState.IN_PROGRESS) == (sent is not None), f"{name}: {new}"
        elif answer is not None:
            wanted = {Outcome.SUCCESS} if answer.good else {Outcome.CLIENT_ERROR}
            if answer.kind == "cut":
                # Noticed when it is reported, or when the validator reads the files.
                wanted = {Outcome.SUCCESS, Outcome.CLIENT_ERROR, Outcome.VALIDATE_ERROR}
            assert outcome in wanted, f"{name}, answered {answer.kind}: {Outcome(outcome)!r}"
        elif sent is not None:
            assert outcome == Outcome.NO_REPLY, f"{name}, never answered: {Outcome(outcome)!r}"
            assert self.world.now > sent.deadline, f"{name} was given up too early"
        elif outcome == Outcome.COULDNT_SEND:
            assert self.plan(self._job_of(new)).large, f"{name} could have been sent"
        else:
            assert outcome == Outcome.DIDNT_NEED, f"{name}, never sent: {Outcome(outcome)!r}"
            job = self.now.jobs[self._job_of(new)]
            assert job["canonical_resultid"] or job["error_mask"], f"{name} was needed"

    def _note_race(self, new):
        old, canonical = self.before.results.get(new["name"]), None
        if old is not None and old["outcome"] != new["outcome"] == Outcome.SUCCESS:
            canonical = self.before.canonical(self._job_of(new))
        if canonical is not None and canonical["file_delete_state"] == FileDeleteState.READY:
            self.raced.add(new["name"])

    def _validity(self, new):
        """A result is VALID or not as it agrees with the canonical one."""
        name, state = new["name"], new["validate_state"]
        answer = self.facts.answers.get(name)
        job = self._job_of(new)
        canonical = self.now.canonical(job)
        old = self.before.results.get(name)
        if old is not None and old["validate_state"] in (
            ValidateState.VALID,
            ValidateState.INVALID,
        ):
            assert state == old["validate_state"], f"{name} was decided on twice: {old} to {new}"
        if new["outcome"] != Outcome.SUCCESS:
            assert state in (ValidateState.INIT, ValidateState.INVALID), f"no success: {new}"
            return
        if state in (ValidateState.VALID, ValidateState.INVALID):
            assert canonical is not None, f"{name} was decided on alone"
            reference = self.facts.answers[canonical["name"]]
            same = agree(self.plan(job).app, answer, reference) and answer.kind != "cut"
            right = same if state == ValidateState.VALID else not same or name in self.raced
            assert right, f"{name} ({answer}) is {ValidateState(state)!r} beside {reference}"
        elif state == ValidateState.INCONCLUSIVE:
            assert canonical is None, f"{name} can be compared"
        elif state == ValidateState.NO_CHECK:
            assert self.now.jobs[job]["error_mask"], f"{name} is not checked"
        elif state == ValidateState.TOO_LATE:
            released = canonical is not None and canonical["file_delete_state"]
            assert released, f"{name} is not too late"

    def _credit(self):
        """Each valid result is granted credit once; it is its host's, and its user's."""
        hosts, users = dict.fromkeys(self.now.hosts, 0.0), dict.fromkeys(self.now.users, 0.0)
        for name, new in self.now.results.items():
            old = self.before.results.get(name)
            granted = new["granted_credit"]
            valid = new["validate_state"] == ValidateState.VALID
            assert (granted > 0) == valid, f"credit of {name}: {new}"
            assert old is None or old["granted_credit"] in (0, granted), f"{name}: other credit"
            if granted:
                hosts[new["hostid"]] += granted
                users[new["userid"]] += granted
        assert self.now.hosts == pytest.approx(hosts), "the hosts' credit"
        assert self.now.users == pytest.approx(users), "the users' credit"

    # Workunits.

    def _results(self, job):
        """There are never too many results, and none that is not needed."""
        row, results, plan = self.now.jobs[job], self.now.of(job), self.plan(job)
        assert len(results) <= plan.total, f"{job} has {len(results)} results"
        assert [r["name"] for r in results] == [f"{job}_{n}" for n in range(len(results))]
        if len(results) > len(self.before.of(job) if job in self.before.jobs else []):
            wanted = [r for r in results if r["server_state"] != ServerState.OVER or _is_good(r)]
            assert len(wanted) <= row["target_nresults"], f"{job} got more results than it needs"
        for result in results:
            old = self.before.results.get(result["name"])
            if result["hostid"] and (old is None or not old["hostid"]):
                self._sent(job, result)

    def _sent(self, job, result):
        """A result goes only to a host that has had none, or has failed."""
        host = result["hostid"]
        for other in self.before.of(job) if job in self.before.jobs else []:
            if other["hostid"] == host:
                failed = other["outcome"] not in (Outcome.INIT, Outcome.SUCCESS)
                assert failed, f"host {host} has {other} and gets {result['name']}"

    def _canonical(self, job):
        """There is one canonical result at most, for good, which a strict majority agrees with."""
        new = self.now.jobs[job]
        old = self.before.jobs.get(job)
        before = old["canonical_resultid"] if old else 0
        assert before in (0, new["canonical_resultid"]), f"{job}: the canonical result changed"
        if not new["canonical_resultid"]:
            return
        canonical = self.now.canonical(job)
        assert canonical is not None, f"{job}: the canonical result is another workunit's"
        assert canonical["outcome"] == Outcome.SUCCESS, f"{job}: canonical {canonical}"
        assert canonical["validate_state"] == ValidateState.VALID, f"{job}: canonical {canonical}"
        assert new["canonical_credit"] == pytest.approx(canonical["granted_credit"])
        if not before:
            states = [r["validate_state"] for r in self.now.of(job)]
            valid = states.count(ValidateState.VALID)
            invalid = sum(
                r["validate_state"] == ValidateState.INVALID and r["outcome"] == Outcome.SUCCESS
                for r in self.now.of(job)
            )
            assert valid >= self.plan(job).quorum, f"{job}: {valid} agree"
            assert valid > invalid, f"{job}: {valid} agree, {invalid} do not"

    def _errors(self, job):
        """A bit of error_mask has its cause, and stays."""
        plan, results = self.plan(job), self.now.of(job)
        mask = ErrorMask(self.now.jobs[job]["error_mask"])
        old = self.before.jobs.get(job)
        assert old is None or not old["error_mask"] & ~mask, f"{job}: an error was forgotten"
        answers = [self.facts.answers.get(r["name"]) for r in results]
        failed = sum(answer is not None and not answer.good for answer in answers)
        batch = self.facts.jobs[job]
        causes = {
            ErrorMask.COULDNT_SEND_RESULT: any(
                r["outcome"] == Outcome.COULDNT_SEND for r in results
            ),
            ErrorMask.TOO_MANY_ERROR_RESULTS: failed > plan.errors,
            ErrorMask.TOO_MANY_SUCCESS_RESULTS: len(results) - failed > plan.successes,
            ErrorMask.TOO_MANY_TOTAL_RESULTS: len(results) >= plan.total,
            ErrorMask.CANCELLED: job in self.facts.cancelled
            or batch in self.facts.ended | self.expired,
            ErrorMask.NO_CANONICAL_RESULT: False,
        }
        for bit in ErrorMask:
            assert not mask & bit or causes[bit], f"{job} has {bit!r} without a cause"
        if self.facts.cancelled & {job} or batch in self.facts.ended:
            done = self.now.jobs[job]["canonical_resultid"]
            assert mask or done, f"{job} was cancelled and goes on"

    def _assimilated(self, job):
        """A workunit is assimilated at its end, and again only for a canonical result."""
        new, old = self.now.jobs[job], self.before.jobs.get(job)
        state = new["assimilate_state"]
        if state != AssimilateState.INIT:
            assert new["canonical_resultid"] or new["error_mask"], f"{job} is not at its end"
        if old is not None and state < old["assimilate_state"]:
            assert not old["canonical_resultid"], f"{job} is assimilated twice"
            assert new["canonical_resultid"], f"{job} is assimilated twice"

    # Files.

    def _released(self, job):
        """Files become deletable after assimilation, when nobody needs them any more."""
        new, old, results = self.now.jobs[job], self.before.jobs.get(job), self.now.of(job)
        done = new["assimilate_state"] == AssimilateState.DONE
        checked = all(map(_is_checked, results))
        over = all(r["server_state"] == ServerState.OVER for r in results)
        if new["file_delete_state"] and not (old and old["file_delete_state"]):
            unneeded = done and over and checked
            assert unneeded, f"the inputs of {job} are needed: {results}"
        for result in results:
            before = self.before.results.get(result["name"])
            if not result["file_delete_state"] or (before and before["file_delete_state"]):
                continue
            if self._batch_ended(job, retired=True):
                continue
            canonical = result["id"] == new["canonical_resultid"]
            # Today's BOINC keeps the canonical outputs also for results that are still out.
            ready = checked and over if canonical else _is_checked(result)
            ready = done and ready and result["server_state"] == ServerState.OVER
            assert ready, f"the outputs of {result} are needed: {results}"

    def _deleted(self, name):
        """What is deleted was deletable; with no_delete it goes with its batch only."""
        result = self.facts.outputs.get(name)
        if result is not None:
            job = self._job_of(self.now.results[result])
            released = self.now.results[result]["file_delete_state"] in _RELEASED
            allowed = self._batch_ended(job, retired=True) or (released and not self._kept(job))
        else:
            users = [job for job, file in self.facts.inputs.items() if file == name]
            allowed = all(self._batch_ended(job) or self._complete(job) for job in users) or any(
                self.now.jobs[job]["file_delete_state"] in _RELEASED and not self._kept(job)
                for job in users
            )
        assert allowed, f"{name} was deleted, of {result or users}"

    def _kept(self, job):
        return APPS[self.plan(job).app].keep

    def _batch_ended(self, job, *, retired=False):
        batch = self.facts.jobs[job]
        ended = self.facts.retired if retired else self.facts.ended
        return batch in ended | self.expired

    def _complete(self, job):
        """Whether all jobs of the same batch are done or failed."""
        batch = self.facts.jobs[job]
        others = (row for name, row in self.now.jobs.items() if self.facts.jobs[name] == batch)
        return all(row["canonical_resultid"] or row["error_mask"] for row in others)

    # When nothing happens any more.

    def rest(self):
        """Check that every workunit waits for something that will come, or is at its end."""
        for job, row in self.now.jobs.items():
            results = self.now.of(job)
            out = [r for r in results if r["server_state"] == ServerState.IN_PROGRESS]
            waiting = [r for r in results if r["server_state"] == ServerState.UNSENT]
            good = [r for r in results if r["server_state"] == ServerState.OVER and _is_good(r)]
            assert not row["need_validate"], f"{job} is not validated"
            assert row["assimilate_state"] != AssimilateState.READY, f"{job} is not assimilated"
            for result in out:
                assert row["transition_time"] <= result["report_deadline"], f"{job} sleeps"
                assert result["report_deadline"] >= self.world.now, f"{job}: {result} is overdue"
            self._noticed(job, good)
            if row["canonical_resultid"] or row["error_mask"]:
                assert not waiting, f"{job} has its end, and {waiting}"
                assert row["assimilate_state"] == AssimilateState.DONE, f"{job}: {row}"
                assert row["transition_time"] == NEVER or out, f"{job} is looked at again: {row}"
            else:
                assert waiting or out, f"{job} waits for nothing: {row}"
                enough = len(waiting + out + good) >= row["target_nresults"]
                assert enough or len(results) >= self.plan(job).total, f"{job} lacks results"
                assert not self._majority(job, good), f"{job} could be decided on: {good}"

    def _majority(self, job, good):
        """Whether enough of the successes agree, and more than do not."""
        plan = self.plan(job)
        answers = [a for a in (self.facts.answers[r["name"]] for r in good) if a.good]
        votes = [sum(agree(plan.app, one, other) for other in answers) for one in answers]
        most = max(votes, default=0)
        return most >= plan.quorum and most * 2 > len(answers)

    def _noticed(self, job, good):
        """No limit is passed without an error."""
        mask = ErrorMask(self.now.jobs[job]["error_mask"])
        outcomes = [r["outcome"] for r in self.now.of(job)]
        failed = sum(o in (Outcome.CLIENT_ERROR, Outcome.VALIDATE_ERROR) for o in outcomes)
        if Outcome.COULDNT_SEND in outcomes:
            assert mask & ErrorMask.COULDNT_SEND_RESULT, f"{job} cannot be sent"
        if failed > self.plan(job).errors:
            assert mask & ErrorMask.TOO_MANY_ERROR_RESULTS, f"{job} has failed {failed} times"
        if len(good) > self.plan(job).successes:
            assert mask or self.now.canonical(job), f"{job} has {len(good)} successes"

    def statuses(self):
        """Check what query_batch2 says."""
        said = self.world.statuses()
        assert said.keys() == self.now.jobs.keys()
        for job, row in self.now.jobs.items():
            begun = any(r["server_state"] > ServerState.UNSENT for r in self.now.of(job))
            words = "IN_PROGRESS" if begun else "UNSENT"
            if row["error_mask"]:
                words = "ERROR"
            if row["canonical_resultid"]:
                words = "DONE"
            assert said[job] == words, f"query_batch2 says {said[job]} of {row}"

    def end(self):
        """Check the state in which nothing is left to do."""
        self.look()
        self.rest()
        self.statuses()
        for job, row in self.now.jobs.items():
            results = self.now.of(job)
            assert all(r["server_state"] == ServerState.OVER for r in results), f"{job}: {results}"
            assert all(map(_is_checked, results)), f"{job}: a success is not decided on: {results}"
            assert row["canonical_resultid"] or row["error_mask"]
            if not self._kept(job):
                left = [
                    name
                    for name, result in self.facts.outputs.items()
                    if self._job_of(self.now.results[result]) == job and name in self.now.files
                ]
                assert not left, f"{job}: {left} are not deleted"
        self._notes()
        for batch, numbers in self.world.batches().items():
            jobs = [self.now.jobs[job] for job, of in self.facts.jobs.items() if of == batch]
            failed = sum(not row["canonical_resultid"] for row in jobs)
            assert numbers["state"] in (
                BatchState.COMPLETE,
                BatchState.ABORTED,
                BatchState.RETIRED,
            ), f"{batch} has no end"
            assert (numbers["njobs"], numbers["nerror_jobs"]) == (len(jobs), failed), batch
            assert numbers["fraction_done"] == 1, batch

    def _notes(self):
        """The assimilator got each workunit's end; twice only if it was killed in between."""
        notes = self.world.notes()
        last = dict(notes)
        for job in self.now.jobs:
            canonical = self.now.canonical(job)
            end = canonical["name"] if canonical else "failed"
            assert last.get(job) == end, f"{job}: the assimilator was told {last.get(job)}"
        if not self.world.crashes:
            assert len(set(map(tuple, notes))) == len(notes), f"assimilated twice: {notes}"

    def cleaned(self):
        """Check what is left a long time after the end."""
        self.look()
        states = {row["name"]: row["state"] for row in self.world.rows("SELECT * FROM batch")}
        active = {batch for batch, state in states.items() if state < BatchState.ABORTED}
        for batch, time in self.facts.expire.items():
            assert not 0 < time < self.world.now or batch not in active, f"{batch} has expired"
        for name, result in self.facts.outputs.items():
            batch = self.facts.jobs[self._job_of(self.now.results[result])]
            gone = name not in self.now.files
            assert gone or states[batch] != BatchState.RETIRED, f"the output {name} is left"
        for name in {*self.facts.inputs.values()} & self.now.files:
            users = {
                self.facts.jobs[job] for job, file in self.facts.inputs.items() if file == name
            }
            running = {batch for batch in active if states[batch] != BatchState.COMPLETE}
            assert users & running, f"the input {name} is left, which {users} used"
