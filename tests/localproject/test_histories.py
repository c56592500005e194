"""Random histories of a project: whatever happens in whatever order, its rules hold.

``HISTORIES=2000`` runs as many histories with random choices; without it a few are run, the same
each time.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, seed, settings, strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from boinc_gahp.localproject.states import ErrorMask, Outcome
from tests.localproject.facts import APPS, Plan
from tests.localproject.histories import HOSTS, PROGRAMS, World, make_base
from tests.localproject.invariants import Watch
from tests.localproject.observed import summary

pytestmark = pytest.mark.long

_LONG = int(os.environ.get("HISTORIES", "0"))
_SETTINGS = settings(
    max_examples=_LONG or 10,
    stateful_step_count=40 if _LONG else 20,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    print_blob=False,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
)
_MAX_BATCHES = 3
_SHARED_MEMORY = Path("/dev/shm")


@pytest.fixture(scope="module")
def room():
    """Return a directory in memory, if there is such a thing: histories write a lot."""
    place = _SHARED_MEMORY if os.access(_SHARED_MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=place) as name:
        make_base(Path(name) / "base")
        yield Path(name)


def _plan(app, quorum, more, errors, **others):
    target = quorum + more[0]
    successes = target + more[2]
    # create_work refuses less.
    total = max(target + more[1], successes, errors)
    return Plan(app, quorum, target, errors=errors, total=total, successes=successes, **others)


plans = st.builds(
    _plan,
    app=st.sampled_from([*APPS]),
    quorum=st.integers(1, 3),
    more=st.tuples(st.integers(0, 2), st.integers(0, 4), st.integers(0, 2)),
    errors=st.integers(1, 3),
    large=st.sampled_from([False] * 7 + [True]),
    own_input=st.booleans(),
    delete_time=st.sampled_from([0.0, 50.0, 5000.0]),
)
hosts = st.integers(1, HOSTS)
kinds = st.sampled_from(["right", "right", "wrong", "odd", "close", "error", "cut"])
points = st.integers(1, 15)
picks = st.integers(0, 11)
endings = st.sampled_from(["abort_job", "abort_batch", "retire_batch", "set_expire_time"])
programs = st.sampled_from([*PROGRAMS])


class Histories(RuleBasedStateMachine):
    """What submitters, hosts, time and crashes can do, in any order."""

    room: Path

    @initialize(plan=plans, jobs=st.integers(1, 3))
    def begin(self, plan, jobs):
        self.place = Path(tempfile.mkdtemp(dir=self.room))
        self.world = World(self.room / "base", self.place / "p")
        self.watch = Watch(self.world)
        self.history = []
        self.same_end = True
        self.batches = 0
        self.submit(plan, jobs)
        self.settle()
        for host in range(1, HOSTS):
            self.do("send", host)

    def do(self, action, *arguments):
        self.history.append((action, *arguments))
        done = self.world.act(action, *arguments)
        self.watch.look()
        return done

    def pick(self, number, choices):
        names = sorted(choices)
        return names[number % len(names)]

    # What happens without crashes.

    @precondition(lambda self: self.batches < _MAX_BATCHES)
    @rule(plan=plans, jobs=st.integers(1, 3))
    def submit(self, plan, jobs):
        self.batches += 1
        self.do("submit", f"b{self.batches}", plan, jobs)

    @rule(program=programs)
    def run(self, program):
        self.do("run", program)

    @rule()
    def settle(self):
        self.do("settle")
        self.watch.rest()

    @rule(host=hosts)
    def send(self, host):
        self.do("send", host)

    @rule(work=st.lists(st.tuples(hosts, kinds), min_size=1, max_size=6))
    def serve(self, work):
        for host, kind in work:
            self.settle()
            result = self.do("send", host)
            if result is not None:
                self.do("answer", result, kind)

    @precondition(lambda self: self.world.tasks)
    @rule(answers=st.lists(st.tuples(picks, kinds), min_size=1, max_size=4), settle=st.booleans())
    def answer(self, answers, settle):
        for pick, kind in answers:
            if self.world.tasks:
                self.do("answer", self.pick(pick, self.world.tasks), kind)
            if settle:
                self.settle()

    @precondition(lambda self: self.world.reports)
    @rule(pick=picks)
    def report_again(self, pick):
        self.do("report_again", self.pick(pick, self.world.reports))

    @rule(seconds=st.sampled_from([101.0, 1.0, 60.0, 4000.0]))
    def move(self, seconds):
        self.do("move", seconds)

    @rule(pick=picks, action=endings, after=st.sampled_from([10.0, 1000.0, -1.0]))
    def give_up(self, pick, action, after):
        facts = self.world.facts
        name = self.pick(pick, facts.jobs if action == "abort_job" else facts.plans)
        self.do(action, name, *([after] if action == "set_expire_time" else []))

    @rule()
    def ask(self):
        self.watch.statuses()
        self.do("batches")

    # Crashes. Whoever has begun something begins it again.

    def crash(self, point, action, *arguments):
        self.world.crash(point, action, *arguments)
        self.do(action, *arguments)

    def run_before(self, program):
        """Run what comes before a program, so that it has something to do."""
        for earlier in PROGRAMS:
            if earlier == program:
                return
            self.do("run", earlier)

    @rule(point=points, program=programs, again=st.booleans())
    def crash_program(self, point, program, again):
        """``again`` False: what was begun is left as it is until something comes to it."""
        self.run_before(program)
        if again:
            self.crash(point, "run", program)
        else:
            self.same_end = False
            self.world.crash(point, "run", program)
            self.watch.look()

    @rule(point=points, host=hosts, pick=picks, kind=kinds)
    def crash_work(self, point, host, pick, kind):
        """The server dies while a host asks for work, or reports."""
        if all(holder != host for holder, _ in self.world.tasks.values()):
            self.crash(point, "send", host)
        else:
            self.crash(point, "answer", self.pick(pick, self.world.tasks), kind)

    @rule(
        point=points,
        pick=picks,
        action=st.sampled_from(["submit", "submit", "abort_batch", "retire_batch"]),
    )
    def crash_request(self, point, pick, action):
        """The server dies while a submitter asks for something."""
        if action != "submit":
            self.crash(point, action, self.pick(pick, self.world.facts.plans))
        elif self.batches < _MAX_BATCHES:
            self.batches += 1
            self.crash(point, "submit", f"b{self.batches}", Plan("equal", 2, 2), 2)

    @rule()
    def restart(self):
        self.world.reopen()

    # The end.

    def teardown(self):
        if not hasattr(self, "world"):
            return
        try:
            self.world.finish()
            self.watch.end()
            self.world.come_back()
            self.watch.end()
            self.world.rest_for_long()
            self.watch.cleaned()
            if self.world.crashes and self.same_end:
                assert summary(self.world) == self.without_crashes()
        finally:
            self.world.close()
            shutil.rmtree(self.place)

    def without_crashes(self):
        """Return the end of the same history in which nothing crashed."""
        world = World(self.room / "base", self.place / "again")
        try:
            for action, *arguments in self.history:
                world.act(action, *arguments)
            world.finish()
            world.act("batches")
            world.come_back()
            world.act("batches")
            world.rest_for_long()
            return summary(world)
        finally:
            world.close()


# To find the shortest history that fails takes minutes.
@pytest.mark.timeout(0 if _LONG else 600)
def test_rules_hold_in_every_history(room):
    Histories.room = room
    if not _LONG:
        seed(3)(Histories)
    run_state_machine_as_test(Histories, settings=_SETTINGS)


_Q1 = Plan("equal", 1, 2, errors=1)
_Q2 = Plan("equal", 2, 2, successes=2)
#: What few random histories come to: how hosts 1, 2, … answer, each until nothing is left to do;
#: a number is a time that passes, an ending happens.
_CHOSEN = {
    "a second success": (Plan("any", 1, 2), ["right", "right"]),
    "a second one that is wrong": (_Q1, ["right", "wrong"]),
    "one that is too late": (_Q1, ["right", 101.0, "right"]),
    "two that agree and one that does not": (_Q2, ["right", "wrong", "right"]),
    "three that do not agree": (_Q2, ["right", "wrong", "odd"]),
    "a majority that is no quorum": (Plan("near", 3, 3), ["right", "close", "wrong", "right"]),
    "as many errors as are allowed": (Plan("any", 2, 2, errors=1), ["error", "right", "right"]),
    "one error too many": (_Q1, ["error", "error"]),
    "errors after an abort": (_Q1, ["abort_job", "error", "error"]),
    "a success after an abort": (_Q1, ["abort_job", "right", "right"]),
    "an answer near the deadline": (Plan("any", 2, 2), [50.0, "right", 49.0, "right"]),
    "a cut one": (Plan("equal", 1, 1), ["cut", "right"]),
}


@pytest.mark.parametrize("what", _CHOSEN)
def test_rules_hold_in_chosen_histories(room, what):
    plan, events = _CHOSEN[what]
    with tempfile.TemporaryDirectory(dir=room) as name:
        world = World(room / "base", Path(name) / "p")
        watch = Watch(world)

        def do(action, *arguments):
            for step in ((action, *arguments), ("settle",)):
                world.act(*step)
                watch.look()
            watch.rest()

        do("submit", "b", plan, 1)
        for host in range(1, plan.target + 1):
            do("send", host)
        for event in events:
            if isinstance(event, float):
                do("move", event)
            elif event == "abort_job":
                do(event, "b_j0")
            else:
                if not world.tasks:
                    do("send", len(world.facts.sent) + 1)
                do("answer", min(world.tasks), event)
        world.finish()
        watch.end()
        world.come_back()
        watch.end()
        world.close()


@pytest.mark.parametrize("killed", [False, True], ids=["deleted", "killed while deleting"])
def test_a_success_whose_outputs_were_deleted_is_no_error_when_another_comes(room, killed):
    with tempfile.TemporaryDirectory(dir=room) as name:
        world = World(room / "base", Path(name) / "p")
        world.act("submit", "b", Plan("equal", 2, 3, errors=1), 1)
        world.act("settle")
        results = [world.act("send", host) for host in (1, 2, 3)]
        world.act("abort_job", "b_j0")
        world.act("settle")
        for result, kind in zip(results, ("right", "wrong", "right"), strict=True):
            world.act("answer", result, kind)
            if killed:
                world.act("run", "transitioner")
                assert world.crash(2, "run", "file_deleter") in {"os.remove", "BEGIN"}
                world.act("run", "validator")
            else:
                world.act("settle")
        world.act("settle")
        outcomes = [row["outcome"] for row in world.rows("SELECT outcome FROM result ORDER BY id")]
        (job,) = world.rows("SELECT error_mask FROM workunit")
        world.close()
    assert outcomes == [Outcome.SUCCESS] * 3
    assert job["error_mask"] == ErrorMask.CANCELLED
