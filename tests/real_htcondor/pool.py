"""HTCondor in the chroot, used as its users do: by its commands."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.helpers import ran, wait_for

ROOT = Path(__file__).parent.parent.parent
PROGRAM = ROOT / "scripts" / "condor-chroot"

IDLE, RUNNING, REMOVED, COMPLETED, HELD = range(1, 6)
#: HTCondor's own HoldReasonCode while input files are copied into the spool.
SPOOLING = 16

# Attributes that tests look at; all of an ad, for hundreds of jobs, takes long to print and read.
_ATTRIBUTES = (
    "ClusterId,ProcId,JobStatus,JobUniverse,ExitCode,ExitBySignal,ExitSignal,HoldReason,HoldReasonCode,"
    "HoldReasonSubCode,RemoteUserCpu,RemoteWallClockTime,BytesSent,BytesRecvd,RoutedToJobId,"
    "NumHolds,StageInFinish"
)


@dataclass(frozen=True)
class Pool:
    """A pool of one machine.

    Attributes:
        root: the chroot's directory.
    """

    root: Path

    # -- the machine

    def control(self, action):
        """Do what ``scripts/condor-chroot ACTION`` does."""
        done = ran(PROGRAM, action, self.root, timeout=100)
        assert done.returncode == 0, done.stdout + done.stderr

    def clean(self):
        """Delete what earlier runs have left; HTCondor must not run."""
        for path in (self.root / "var/spool/condor", self.root / "var/log/condor"):
            for entry in path.iterdir():
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        for user in ("alice", "bob"):
            for name in (".local", ".cache", ".config"):
                shutil.rmtree(self.root / "home" / user / name, ignore_errors=True)

    def run(self, user, *command, cwd="", timeout=60):
        """Run a command as a user does who has logged in, in a directory as the chroot names it."""
        home = "/root" if user == "root" else f"/home/{user}"
        # The user's name is looked up in the chroot.
        enter = ["chroot", f"--userspec={user}:{user}", self.root]
        shell = ["/bin/sh", "-c", 'cd "$1" && shift && exec "$@"', "sh", cwd or home]
        env = {"PATH": "/usr/bin:/bin:/usr/sbin", "HOME": home, "USER": user, "LANG": "C.UTF-8"}
        return ran(*enter, *shell, *command, env=env, timeout=timeout)

    def ask(self, user, *command, cwd="", timeout=60):
        """Run a command that has to succeed; return what it prints."""
        done = self.run(user, *command, cwd=cwd, timeout=timeout)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def room(self, user, name, files=None):
        """Make an empty directory in the user's home directory, with files in it."""
        directory = self.root / "home" / user / name
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        room = Room(self, user, directory)
        for path, text in (files or {}).items():
            room.write(path, text)
        room.give()
        return room

    def processes(self, pattern):
        """Return the ids of processes in the chroot whose command line has the pattern in it."""
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdecimal():
                continue
            with suppress(OSError):  # it has ended meanwhile
                if (entry / "root").readlink() != self.root:
                    continue
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                if re.search(pattern, command):
                    found.append(int(entry.name))
        return found

    def kill(self, pattern):
        """End processes by SIGKILL; return how many there were."""
        found = self.processes(pattern)
        for process in found:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        return len(found)

    def log(self, name, lines=40):
        """Return the end of one of HTCondor's logs."""
        path = self.root / "var/log/condor" / name
        with suppress(OSError):
            return "".join(path.read_text("utf-8", "replace").splitlines(keepends=True)[-lines:])
        return f"(no {path})"

    @contextmanager
    def configured(self, *lines):
        """Have HTCondor use more settings in the block, also the users' gridmanagers."""
        own = self.root / "etc/condor/config.d/95-own.conf"
        own.write_text("\n".join([*lines, ""]), "ascii")
        try:
            self._take_settings()
            yield
        finally:
            own.unlink()
            self._take_settings()

    def _take_settings(self):
        self.ask("root", "condor_reconfig")
        # Those of the users read them when they begin.
        self.kill(r"^condor_gridmanager")

    # -- jobs

    def jobs(self, constraint):
        """Return the ads of jobs in the queue and of those that have left it, by job id.

        Each has ``Left``: whether it has.
        """
        jobs = {}
        # In this order no job slips through that leaves the queue between the two.
        for command in ("condor_q", "condor_history"):
            everybody = ["-allusers"] if command == "condor_q" else []
            asked = ("-constraint", constraint, "-json", "-attributes", _ATTRIBUTES)
            text = self.ask("root", command, *everybody, *asked)
            for ad in json.loads(text or "[]"):
                ad["Left"] = command == "condor_history"
                jobs[ad["ClusterId"], ad["ProcId"]] = ad
        return [jobs[key] for key in sorted(jobs)]

    def queue(self, user):
        """Return what condor_q shows to a user, job ids and the letters of their states."""
        text = self.ask(user, "condor_q", "-nobatch")
        return [
            f"{words[0]} {words[5]}"
            for words in map(str.split, text.splitlines())
            if len(words) > 6 and re.fullmatch(r"\d+\.\d+", words[0])
        ]


@dataclass(frozen=True)
class Room:
    """A directory of a user, from which jobs are submitted.

    Attributes:
        directory: its path outside of the chroot.
    """

    pool: Pool
    user: str
    directory: Path

    @property
    def inside(self):
        """Its path in the chroot."""
        return f"/{self.directory.relative_to(self.pool.root)}"

    def give(self):
        """Let the user own all of it."""
        owner = self.directory.parent.stat()
        for path in [self.directory, *self.directory.rglob("*")]:
            os.chown(path, owner.st_uid, owner.st_gid)

    def write(self, path, text):
        """Write a file; directories are made."""
        file = self.directory / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
        self.give()

    def read(self, path):
        """Return a file's text."""
        return (self.directory / path).read_text("utf-8")

    def files(self):
        """Return the paths of all files."""
        return {
            str(path.relative_to(self.directory))
            for path in self.directory.rglob("*")
            if path.is_file()
        }

    def ask(self, *command, timeout=60):
        """Run a command here that has to succeed; return what it prints."""
        return self.pool.ask(self.user, *command, cwd=self.inside, timeout=timeout)

    def submit(self, description, *options):
        """Submit jobs; the description is a submit file's text."""
        self.write("job.sub", description)
        return self.submit_file("job.sub", *options)

    def submit_file(self, name, *options):
        """Submit jobs as a submit file that is here says."""
        printed = self.ask("condor_submit", "-terse", *options, name)
        first, last = re.findall(r"(\d+\.\d+)", printed)
        cluster, number = last.split(".")
        assert first == f"{cluster}.0"
        return Cluster(self, int(cluster), int(number) + 1)

    def run_dag(self, name, timeout=300):
        """Submit a DAG that is here and wait until it has ended; return DAGMan's log."""
        self.ask("condor_submit_dag", name)
        log = self.directory / f"{name}.dagman.out"

        def ended():
            text = log.read_text("utf-8", "replace") if log.exists() else ""
            return text if "EXITING WITH STATUS" in text else ""

        return wait_for(ended, "the DAG has ended", timeout, pause=1.0)


@dataclass(frozen=True)
class Cluster:
    """Jobs that were submitted together."""

    room: Room
    number: int
    count: int

    def jobs(self):
        """Return the ads of all jobs, wherever they are."""
        return self.room.pool.jobs(f"ClusterId == {self.number}")

    @property
    def job(self):
        """The ad of the first job."""
        return self.jobs()[0]

    def wait(self, status=COMPLETED, timeout=90, count=None):
        """Return the ads once so many jobs (None: all) have come to a state.

        Completed are those that have left the queue: then all is written that there is to be.
        A job on hold ends the waiting for another state: its reason is the failure's. One that is
        being spooled is on hold, too.
        """
        seen = []

        def there():
            seen[:] = self.jobs()
            held = [job for job in seen if job["JobStatus"] == HELD]
            held = [job for job in held if job["HoldReasonCode"] != SPOOLING]
            if status != HELD and held:
                raise AssertionError(f"on hold: {held[0].get('HoldReason')}")
            come = [job for job in seen if job["JobStatus"] == status]
            if status == COMPLETED:
                come = [job for job in come if job["Left"] or "StageInFinish" in job]
            return len(come) >= (count or self.count)

        self._wait_for(there, f"{self.count} jobs in state {status}", timeout, seen)
        return seen

    def wait_until(self, condition, what, timeout=60):
        """Return the first job's ad once the condition holds for it."""
        seen = []

        def there():
            seen[:] = self.jobs()
            return bool(seen and condition(seen[0]))

        self._wait_for(there, what, timeout, seen)
        return seen[0]

    def _wait_for(self, there, what, timeout, seen):
        try:
            wait_for(there, what, timeout, pause=0.5)
        except AssertionError as error:
            pool, user = self.room.pool, self.room.user
            raise AssertionError(
                f"{error}\nseen last: {seen[:3]}\n{pool.log(f'GridmanagerLog.{user}', 60)}"
                f"\n{self._own_log()}"
            ) from None

    def _own_log(self):
        path = self.room.pool.root / "home" / self.room.user
        with suppress(OSError):
            text = (path / ".local/state/boinc_gahp/boinc_gahp.log").read_text("utf-8", "replace")
            return "".join(text.splitlines(keepends=True)[-40:])
        return "(no log of boinc_gahp's)"

    def events(self, log):
        """Return the numbers of the first job's events in a user log, in their order."""
        return re.findall(rf"^(\d{{3}}) \({self.number:03d}\.000\.", self.room.read(log), re.M)
