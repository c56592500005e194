"""What the users of a soak share: jobs, homes, and daemons that die and are measured."""

from __future__ import annotations

import os
import random
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests.daemon.process import Daemon, HasEnded
from tests.soak import work as jobs

ROOT = Path(__file__).parent.parent.parent
#: That HTCondor has asked about a job is written down once a minute, which is half a day here; a
#: daemon that is killed before would leave the job's lease to run out. Attempts are looked at once
#: a minute, too, which must not be all the time here.
_MAIN = (
    "import sys; from boinc_gahp.htcondor import _following, service; service.INTERVAL = 1.0; "
    "_following._LOOK = 43200.0; "
    "from boinc_gahp.cli.main import main; sys.exit(main([]))"
)
#: Input files that jobs take turns with.
INPUTS = 50
#: Seconds between looks at a daemon's memory, threads and descriptors.
_SAMPLE_EVERY = 0.5

_SETTINGS = """
[project]
url = "{url}"
authenticator = "{authenticator}"
{proxy}

[timeouts]
connect = {read}
read = {read}
retry = {read}
submit = 60
submit_margin = 15

[htcondor]
send_after = 0.3
longest_wait = 1.0
poll_shortest = {shortest}
poll_longest = {longest}
poll_all = 1800
lease = {lease}
history = {lease}

[jobs]
lease = {lease}

[logging]
max_bytes = 1_000_000_000
"""


@dataclass
class Job:
    """A job, and what its user knows of it.

    Attributes:
        due: simulated seconds after the beginning at which it is submitted.
        id: what the daemon calls it; empty before it has said so.
        fate: how it ended: "home", "wrong" (its files are), "failed", "cancelled"; empty
            before.
        late: simulated seconds that it came home after the earliest time at which it could.
    """

    work: object
    directory: Path
    due: float
    id: str = ""
    fate: str = ""
    late: float = 0.0

    @property
    def input(self):
        """Which of the input files it has."""
        return self.work.number % INPUTS

    def wrong(self):
        """Return what is wrong with its files; nothing, if all is right."""
        out, stderr = self.directory / "out", self.directory / "job.err"
        if not out.is_file():
            return "no output"
        if out.read_bytes() != self.work.output(jobs.text_of(self.input)):
            return f"output {out.read_bytes()[:100]!r}"
        if not stderr.is_file() or stderr.read_text().count(f"job {self.work.number}\n") != 1:
            return "stderr"
        others = {path.name for path in self.directory.iterdir()}
        others -= {"out", "job.err", "job.out"}
        return f"left there: {sorted(others)}" if others else ""


@dataclass(frozen=True)
class Sample:
    """A daemon's memory (bytes), threads and descriptors at a time (seconds, real)."""

    at: float
    pid: int
    memory: int
    threads: int
    descriptors: int


@dataclass
class Plan:
    """What a soak does.

    Attributes:
        hours: simulated.
        seconds: real ones that this takes.
        read: seconds that a daemon waits for an answer.
        deaths: of each daemon.
    """

    hours: float
    seconds: float
    jobs: int
    seed: str
    clock: object
    read: float = 3.0
    deaths: int = 12
    #: The part of the time in which daemons die; the last of each lives long, and is measured.
    dying: float = 0.6
    #: The part of the time in which jobs are submitted.
    submitting: float = 0.85

    @property
    def lease(self):
        """How long batches without a renewal, and ended jobs, are kept, in simulated seconds."""
        return max(6 * jobs.HOUR, 90 * self.clock.speed)


@dataclass
class User:
    """One who submits jobs: a home with settings, a daemon at a time, and what is noted of both."""

    name: str
    home: Path
    plan: Plan
    jobs: list[Job]
    problems: list[str] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    #: What was said when a job was put on hold that could be released.
    held: list[str] = field(default_factory=list)
    #: Batches that the project would not retire: HTCondor 9 does not ask again.
    excused: set[str] = field(default_factory=set)
    #: Batches of which HTCondor 9 was told an error at submission, so that they have to be aborted.
    given_up: set[str] = field(default_factory=set)
    deaths: int = 0
    #: Whether requests go through what misbehaves as through an HTTP proxy.
    behind_proxy: bool = False
    url: str = ""
    authenticator: str = ""

    def prepare(self, project):
        """Write what the user has before the first job."""
        self.url = project.direct if self.behind_proxy else project.url
        self.authenticator = project.authenticators[self.name]
        for directory in ("config", "state", "cache"):
            (self.home / directory).mkdir(parents=True)
        for number in range(INPUTS):
            path = self.input_path(number)
            path.parent.mkdir(parents=True)
            path.write_bytes(jobs.text_of(number))
        settings = self.home / "config" / "boinc_gahp.toml"
        settings.touch(0o600)
        settings.write_text(
            _SETTINGS.format(
                url=self.url,
                authenticator=self.authenticator,
                proxy=f'proxy = "{project.url}"' if self.behind_proxy else "",
                read=self.plan.read,
                lease=self.plan.lease,
                # Pauses end by the clock of the day.
                shortest=0.3 * self.plan.clock.speed,
                longest=1.5 * self.plan.clock.speed,
            )
        )

    def input_path(self, number):
        """Return the path of an input file."""
        return self.home / "inputs" / str(number) / "in"

    @property
    def log(self):
        """The log of the user's daemons."""
        return self.home / "state" / "boinc_gahp" / "boinc_gahp.log"

    @property
    def now(self):
        """Simulated seconds since the beginning."""
        return (time.time() - self.plan.clock.origin) * self.plan.clock.speed

    def is_unwanted(self, job):
        """Tell whether the user has lost interest in a job."""
        after = job.work.cancelled_after
        return after is not None and self.now > job.due + after

    @property
    def left(self):
        """The jobs that have not ended."""
        return [job for job in self.jobs if not job.fate]

    def problem(self, job, what):
        """Note what must not be."""
        self.problems.append(f"{self.name}'s job {job.work.number}: {what}")

    def live(self, until, is_quiet):
        """Submit all jobs and wait for them, through one daemon after the other.

        Then the daemon has time to end what it owes to the project.

        Args:
            until: ``time.monotonic()`` after which nothing is waited for.
            is_quiet: whether the project has nothing left to end.
        """
        while time.monotonic() < until and (self.left or not is_quiet()):
            with self.daemon() as daemon:
                # A gridmanager until no job is left, or the time is over.
                self.talk(daemon, until)
                while time.monotonic() < until and not is_quiet():
                    time.sleep(0.1)

    def is_home(self, job):
        """Take note that the daemon says so of a job: its files have to be there by now."""
        job.fate = "home"
        job.late = self.now - job.due - job.work.seconds
        if wrong := job.wrong():
            job.fate = "wrong"
            self.problem(job, f"is said to be home, but {wrong}")

    @contextmanager
    def daemon(self):
        """Run a daemon; if it is one that dies, the block ends then, quietly."""
        environ = {key: os.environ[key] for key in ("PATH", "LANG") if key in os.environ}
        environ |= {
            "HOME": str(self.home),
            "PYTHONPATH": str(ROOT),
            "BOINC_GAHP_CONFIG": str(self.home / "config" / "boinc_gahp.toml"),
            "XDG_STATE_HOME": str(self.home / "state"),
            "XDG_CACHE_HOME": str(self.home / "cache"),
        }
        command = [sys.executable, "-c", f"{self.plan.clock.statements}; {_MAIN}"]
        chance = random.Random(f"{self.plan.seed} {self.name} life {self.deaths}")
        begun = time.time() - self.plan.clock.origin
        is_to_die = begun < self.plan.dying * self.plan.seconds
        mean = self.plan.dying * self.plan.seconds / self.plan.deaths
        # More than a BOINC_SUBMIT may take.
        with Daemon(command, environ=environ, cwd=self.home, timeout=150.0) as daemon:
            over = threading.Event()

            def watch():
                """Measure it, and kill it when its time has come."""
                process = psutil.Process(daemon.process.pid)
                dies = time.monotonic() + chance.expovariate(1 / mean)
                while not over.wait(_SAMPLE_EVERY * chance.uniform(0.1, 1)):
                    if is_to_die and time.monotonic() > dies:
                        # HTCondor ends daemons by either.
                        (daemon.process.kill if chance.random() < 0.8 else process.terminate)()
                        return
                    try:
                        self.samples.append(_sample(process))
                    except psutil.Error:
                        return

            watcher = threading.Thread(target=watch)
            watcher.start()
            try:
                yield daemon
            except HasEnded as error:
                if not is_to_die:
                    self.problems.append(f"{self.name}'s daemon has ended by itself: {error}")
            except AssertionError as error:
                # A gridmanager would end for this, and another be started with another daemon.
                self.problems.append(f"{self.name}'s gridmanager: {error}")
            finally:
                self.deaths += 1
                over.set()
                watcher.join()


def _sample(process):
    with process.oneshot():
        return Sample(
            time.monotonic(),
            process.pid,
            process.memory_info().rss,
            process.num_threads(),
            process.num_fds(),
        )
