"""One cluster of many jobs, from condor_submit until HTCondor has seen all of them end."""

from __future__ import annotations

import argparse
import math
import os
import re
import signal
import statistics
import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from scripts.benchmarks.bench import Bench, standin
from scripts.benchmarks.measure import MB
from scripts.benchmarks.project import ENDLESS
from tests.real_htcondor import recorder
from tests.real_htcondor.node import write_private
from tests.real_htcondor.pool import Pool
from tests.real_htcondor.submit import grid

USER = "alice"
APP = "uppercase"
#: Seconds between looks.
PAUSE = 0.5
#: Seconds without any change after which it has failed.
STUCK = 300
#: Looks from one search for processes to the next.
FIND_EVERY = 10

#: Processes whose processor time is told, by what their command lines have in them.
PROCESSES = {
    "schedd": r"^condor_schedd",
    "gridmanager": r"^condor_gridmanager",
    "daemon": rf"^\S*python\S* {recorder.PROGRAM}\s*$",
}
_RECORDER = "/opt/boinc_gahp/recorder"
#: Events of a user log (HTCondor's manual, "Job Event Log Codes").
_ACCEPTED, _RUNNING, _DONE, _HELD = "027", "001", "005", "012"

_SETTINGS = """
[project]
url = "{url}"
authenticator_file = "~/.config/boinc_gahp/authenticator"
"""


@dataclass
class Look:
    """What there was at a moment.

    Attributes:
        after: seconds since condor_submit began.
        counts: how many jobs have come how far.
        processor: seconds of processor time so far, by program.
        memory: the daemon's (VmRSS), in bytes; if there are several, the largest one's.
        peak: the same of the peak (VmHWM).
    """

    after: float
    counts: dict[str, int]
    processor: dict[str, float]
    memory: int = 0
    peak: int = 0


@dataclass
class Cluster:
    """The jobs, as one who looks on from outside sees them."""

    pool: Pool
    project: Bench
    room: object
    began: float
    _log: bytes = b""
    _read: int = 0
    _events: dict[str, int] = field(default_factory=dict)
    _looks: int = 0
    _idle: dict[str, float] = field(default_factory=dict)
    _processes: dict[str, dict[int, psutil.Process]] = field(default_factory=dict)
    _used: dict[int, float] = field(default_factory=dict)

    def look(self):
        """Look how far the jobs are."""
        self._read_log()
        if self._events.get(_HELD):
            raise RuntimeError(f"jobs are held: {self.pool.log(f'GridmanagerLog.{USER}')}")
        on_project = self.project.control("jobs", app=APP)
        assert isinstance(on_project, int)
        counts = {
            "accepted by boinc_gahp": self._events.get(_ACCEPTED, 0),
            "on the project": on_project,
            "outputs home": sum(
                1
                for each in os.scandir(self.room.directory / "out")
                if not each.name.startswith(".")
            ),
            "seen to run by HTCondor": self._events.get(_RUNNING, 0),
            "done for HTCondor": self._events.get(_DONE, 0),
        }
        look = Look(time.time() - self.began, counts, self._processor())
        for process in self._processes.get("daemon", {}):
            memory, peak = _memory(process)
            look.memory, look.peak = max(look.memory, memory), max(look.peak, peak)
        return look

    def start(self):
        """Note what the processes that run already have used."""
        self._idle = self._processor()

    def _processor(self):
        if self._looks % FIND_EVERY == 0 or len(self._processes) < len(PROCESSES):
            for name, pattern in PROCESSES.items():
                for each in self.pool.processes(pattern):
                    self._processes.setdefault(name, {}).setdefault(each, psutil.Process(each))
        self._looks += 1
        used = {}
        for name, processes in self._processes.items():
            for number, process in processes.items():
                with suppress(psutil.NoSuchProcess):  # what it had used is still known
                    times = process.cpu_times()
                    self._used[number] = times.user + times.system
            total = sum(self._used.get(number, 0.0) for number in processes)
            used[name] = total - self._idle.get(name, 0.0)
        return used

    def _read_log(self):
        path = self.room.directory / "job.log"
        if not path.exists():
            return
        with path.open("rb") as log:
            log.seek(self._read)
            data = self._log + log.read()
            self._read = log.tell()
        whole, _, self._log = data.rpartition(b"\n")
        for event in re.findall(rb"^(\d{3}) \(", whole, re.M):
            self._events[event.decode()] = self._events.get(event.decode(), 0) + 1


def _memory(process):
    """Return a process's memory and its peak, in bytes; 0 if it has ended."""
    with suppress(OSError):
        status = Path(f"/proc/{process}/status").read_text("ascii")
        found = [re.search(rf"{name}:\s+(\d+) kB", status) for name in ("VmRSS", "VmHWM")]
        memory, peak = (int(match[1]) * 1024 if match else 0 for match in found)
        return memory, peak
    return 0, 0


def main():
    """Measure, and print tables."""
    arguments = _parser().parse_args()
    directory = os.environ.get("HTCONDOR_CHROOT")
    if not directory:
        sys.exit("HTCONDOR_CHROOT does not name a chroot; run scripts/scale-htcondor")
    pool = Pool(Path(directory).resolve())
    with standin() as url, _at_work(pool, url, arguments):
        project = Bench((), url, pool.root, 1.0, "")
        _say(f"{arguments.jobs:,} jobs; load average: {_load()}")
        cluster = _submit(pool, project, arguments.jobs, arguments.materialize)
        looks = list(_follow(cluster, arguments.jobs, arguments.kill))
        _say(_table(looks, arguments.jobs))
        _say(f"load average: {_load()}; RPCs: {project.control('stats')}")
        if arguments.latency:
            _print_times(pool, cluster.began, looks, arguments.jobs)
        _watch(cluster, arguments.watch)
        cluster.room.ask("condor_rm", "-all")


def _parser():
    parser = argparse.ArgumentParser(
        prog="scripts/scale-htcondor",
        description="Submits one cluster of jobs to a real HTCondor with the settings of conf/; "
        "prints when all jobs had reached each stage, and how much processor time had been used by "
        "then. The project is a stand-in that answers from memory, and whose jobs are done as soon "
        "as they are there. Each job has one input file, the same for all, and one output.",
    )
    parser.add_argument("--jobs", type=int, default=10_000, metavar="N", help="default: 10,000")
    parser.add_argument(
        "--materialize",
        type=int,
        metavar="N",
        help="let the schedd make at most N of them at a time (max_materialize; default: all)",
    )
    parser.add_argument(
        "--kill",
        type=float,
        default=math.inf,
        metavar="SECONDS",
        help="end one of the daemons by SIGKILL so long after condor_submit",
    )
    parser.add_argument(
        "--latency",
        action="store_true",
        help="record how soon boinc_gahp answers each request (this takes processor time, too)",
    )
    parser.add_argument(
        "--watch",
        type=float,
        default=1.0,
        metavar="MINUTES",
        help="look at the daemon's memory for so long afterwards (default: 1)",
    )
    parser.add_argument(
        "--condor",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of HTCondor, instead of the one in conf/",
    )
    parser.add_argument(
        "--ours",
        action="append",
        default=[],
        metavar="SECTION.NAME=VALUE",
        help="a setting of boinc_gahp, instead of its default",
    )
    return parser


@contextmanager
def _at_work(pool, url, arguments):
    """Start HTCondor with an empty queue and the settings of conf/; stop it at the end."""
    pool.control("stop")
    pool.clean()
    config_d = pool.root / "etc/condor/config.d"
    # The intervals are to be those of conf/. condor-chroot writes this file again.
    (config_d / "90-short.conf").unlink(missing_ok=True)
    lines = [each.replace("=", " = ", 1) for each in arguments.condor]
    if arguments.latency:
        for old in (pool.root / "home" / USER).glob(f"{recorder.RECORD}.*"):
            old.unlink()
        lines.append(f"BOINC_GAHP = {_RECORDER}")
        file = pool.root / _RECORDER.lstrip("/")
        file.write_text(
            f"#!/usr/bin/python3\n{Path(recorder.__file__).read_text('utf-8')}", "utf-8"
        )
        file.chmod(0o755)
    own = config_d / "95-scale.conf"
    own.write_text("\n".join([*lines, ""]), "utf-8")
    settings = _SETTINGS.format(url=url)
    for each in arguments.ours:
        section, _, setting = each.partition(".")
        settings += f"[{section}]\n{setting}\n"
    (pool.root / "etc/boinc_gahp/boinc_gahp.toml").write_text(settings, "utf-8")
    write_private(pool, USER, "authenticator", f"{'0' * 32}\n")
    pool.control("start")
    try:
        yield
    finally:
        pool.control("stop")
        own.unlink(missing_ok=True)


def _submit(pool, project, jobs, materialize):
    """Submit the cluster, and one job that never ends: HTCondor ends a daemon with the last job."""
    room = pool.room(USER, "scale", {"in": "the same for all\n", "out/.keep": ""})
    room.write(
        "keeper.sub", grid(ENDLESS, "transfer_input_files = in").replace("job.log", "keeper.log")
    )
    room.write(
        "job.sub",
        grid(
            APP,
            "arguments = --number $(Process)",
            "transfer_input_files = in",
            "transfer_output_files = out0",
            'transfer_output_remaps = "out0 = out/$(Process)"',
            *(() if materialize is None else (f"max_materialize = {materialize}",)),
            queue=f"queue {jobs}",
        ),
    )
    cluster = Cluster(pool, project, room, time.time())
    cluster.start()
    room.ask("condor_submit", "-terse", "job.sub", timeout=300)
    _say(f"condor_submit took {time.time() - cluster.began:.1f} s")
    room.ask("condor_submit", "-terse", "keeper.sub")
    return cluster


def _follow(cluster, jobs, kill):
    """Look until all jobs are done; end a daemon after ``kill`` seconds."""
    seen = {}
    changed = time.monotonic()
    while True:
        look = cluster.look()
        yield look
        if look.after >= kill and (daemons := cluster.pool.processes(PROCESSES["daemon"])):
            os.kill(daemons[0], signal.SIGKILL)
            _say(f"{look.after:7.0f} s: a daemon is ended by SIGKILL")
            kill = math.inf
        if look.counts != seen:
            seen, changed = look.counts, time.monotonic()
        if all(count >= jobs for count in seen.values()):
            return
        if time.monotonic() - changed > STUCK:
            raise RuntimeError(f"nothing has happened for {STUCK} s: {seen}")
        time.sleep(PAUSE)


def _table(looks, jobs):
    rows = [
        f"{'':26}{'seconds':>9}"
        + "".join(f"{name:>13}" for name in PROCESSES)
        + f"{'memory':>10}{'peak':>10}"
    ]
    for name in looks[-1].counts:
        look = next(each for each in looks if each.counts[name] >= jobs)
        used = "".join(f"{look.processor.get(each, 0.0):>11.1f} s" for each in PROCESSES)
        rows.append(
            f"{name:26}{look.after:>7.1f} s{used}"
            f"{look.memory / MB:>7.0f} MB{look.peak / MB:>7.0f} MB"
        )
    return "\n".join(rows)


def _print_times(pool, began, looks, jobs):
    """Print how soon requests were answered, in two of the stages."""
    times = []
    for record in (pool.root / "home" / USER).glob(f"{recorder.RECORD}.*"):
        # The last line of one that was killed is not whole.
        times += [line.split() for line in record.read_text("ascii").split("\n")[:-1]]
    for name, stage in (("accepted", "accepted by boinc_gahp"), ("fetched", "outputs home")):
        first = next(look.after for look in looks if look.counts[stage]) - PAUSE
        last = next(look.after for look in looks if look.counts[stage] >= jobs)
        _say(f"\nwhile they were {name}, from {first:.0f} s to {last:.0f} s:")
        heads = f"{'median':>10}{'95 of 100':>11}{'99 of 100':>11}{'longest':>10}"
        _say(f"{'':32}{'number':>9}{heads}")
        took = {}
        for what, command, sent, seconds in times:
            if first <= float(sent) - began <= last:
                took.setdefault(f"{command}: {what}", []).append(float(seconds) * 1000)
        took["each return"] = [
            each for what, values in took.items() if what.endswith("return") for each in values
        ]
        for what, values in sorted(took.items()):
            _say(f"{what:32}{len(values):>9,}{_percentiles(values)}")


def _percentiles(values):
    if len(values) < 2:
        return "".join(f"{value:>7.1f} ms" for value in values)
    cuts = statistics.quantiles(values, n=100, method="inclusive")
    return f"{cuts[49]:>7.1f} ms{cuts[94]:>8.1f} ms{cuts[98]:>8.1f} ms{max(values):>7.1f} ms"


def _watch(cluster, minutes):
    """Print the daemon's memory each minute."""
    if not minutes:
        return
    _say("\nthe daemon afterwards: memory, peak, processor time")
    ends = time.monotonic() + 60 * minutes
    while True:
        look = cluster.look()
        _say(
            f"{look.after:7.0f} s{look.memory / MB:>7.0f} MB{look.peak / MB:>7.0f} MB"
            f"{look.processor['daemon']:>9.1f} s",
        )
        if (left := ends - time.monotonic()) <= 0:
            return
        time.sleep(min(60.0, left))


def _say(line):
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _load():
    return " ".join(f"{number:.2f}" for number in os.getloadavg())


if __name__ == "__main__":
    main()
