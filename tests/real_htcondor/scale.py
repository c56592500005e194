"""One cluster of many jobs, from condor_submit until HTCondor has seen all of them end."""

from __future__ import annotations

import argparse
import math
import os
import re
import signal
import sys
import time
from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from scripts.benchmarks.bench import Bench, standin
from scripts.benchmarks.measure import MB
from scripts.benchmarks.project import ENDLESS
from tests.real_htcondor.node import write_private
from tests.real_htcondor.pool import Pool
from tests.real_htcondor.submit import grid

USER = "alice"
APP = "uppercase"
#: Seconds between looks.
PAUSE = 0.5
#: Seconds without any change after which it has failed.
STUCK = 300

#: Processes whose processor time is told, by what their command lines have in them.
PROCESSES = {
    "schedd": r"^condor_schedd",
    "gridmanager": r"^condor_gridmanager",
    "daemon": r"^\S*python\S* /opt/boinc_gahp/bin/boinc_gahp\s*$",
}
#: Events of a user log (HTCondor's manual, "Job Event Log Codes").
_ACCEPTED, _RUNNING, _DONE, _HELD = b"027", b"001", b"005", b"012"

_SETTINGS = """
[project]
url = "{url}"
authenticator_file = "~/.config/boinc_gahp/authenticator"
"""


@dataclass(frozen=True)
class Look:
    """What there was at a moment.

    Attributes:
        after: seconds since condor_submit began.
        counts: how many jobs have come how far.
        processor: seconds of processor time so far, by program.
        memory: the largest daemon's so far, in bytes.
    """

    after: float
    counts: dict[str, int]
    processor: dict[str, float]
    memory: int


class Cluster:
    """The jobs, as one who looks on from outside sees them."""

    def __init__(self, pool, project, room):
        self.pool = pool
        self.project = project
        self.room = room
        self.began = time.time()
        self._read = 0
        self._events = Counter()
        self._used = {name: {} for name in PROCESSES}
        self._memory = 0
        self._idle = self._processor()

    def look(self):
        """Look how far the jobs are."""
        self._read_log()
        if self._events[_HELD]:
            raise RuntimeError(f"jobs are held: {self.pool.log(f'GridmanagerLog.{USER}')}")
        names = os.listdir(self.room.directory / "out")  # noqa: PTH208  (100,000 of them)
        counts = {
            "accepted by boinc_gahp": self._events[_ACCEPTED],
            "on the project": self.project.control("jobs", app=APP),
            "outputs home": sum(not name.startswith(".") for name in names),
            "seen to run by HTCondor": self._events[_RUNNING],
            "done for HTCondor": self._events[_DONE],
        }
        used = self._processor()
        processor = {name: used[name] - self._idle[name] for name in used}
        return Look(time.time() - self.began, counts, processor, self._memory)

    def _processor(self):
        """Return the seconds of each program; what has ended counts with what was seen last."""
        for name, pattern in PROCESSES.items():
            for number in self.pool.processes(pattern):
                with suppress(psutil.NoSuchProcess):
                    process = psutil.Process(number)
                    self._used[name][number] = sum(process.cpu_times()[:2])
                    if name == "daemon":
                        self._memory = max(self._memory, process.memory_info().rss)
        return {name: sum(used.values()) for name, used in self._used.items()}

    def _read_log(self):
        with suppress(FileNotFoundError), (self.room.directory / "job.log").open("rb") as log:
            log.seek(self._read)
            whole = log.read().rpartition(b"\n")[0]
            self._read += len(whole)
            self._events.update(re.findall(rb"^(\d{3}) \(", whole, re.M))


def main():
    """Measure, and print a table."""
    arguments = _parser().parse_args()
    directory = os.environ.get("HTCONDOR_CHROOT")
    if not directory:
        sys.exit("HTCONDOR_CHROOT does not name a chroot; run scripts/scale-htcondor")
    pool = Pool(Path(directory).resolve())
    with standin() as url, _at_work(pool, url, arguments):
        project = Bench((), url, pool.root, 1.0, "")
        _say(f"{arguments.jobs:,} jobs; load average: {_load()}")
        cluster = _submit(pool, project, arguments.jobs, arguments.materialize)
        _say(_table(list(_follow(cluster, arguments.jobs, arguments.kill)), arguments.jobs))
        _say(f"load average: {_load()}; RPCs: {project.control('stats')}")
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
    for name, of, metavar in (
        ("--condor", "HTCondor, instead of the one in conf/", "NAME=VALUE"),
        ("--ours", "boinc_gahp, instead of its default", "SECTION.NAME=VALUE"),
    ):
        parser.add_argument(
            name, action="append", default=[], metavar=metavar, help=f"a setting of {of}"
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
    own = config_d / "95-scale.conf"
    own.write_text("".join(f"{each}\n" for each in arguments.condor), "utf-8")
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
    cluster = Cluster(pool, project, room)
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
    names = "".join(f"{name:>13}" for name in PROCESSES)
    rows = [f"{'':26}{'seconds':>9}{names}{'memory':>10}"]
    for name in looks[-1].counts:
        look = next(each for each in looks if each.counts[name] >= jobs)
        used = "".join(f"{look.processor[each]:>11.1f} s" for each in PROCESSES)
        rows.append(f"{name:26}{look.after:>7.1f} s{used}{look.memory / MB:>7.0f} MB")
    return "\n".join(rows)


def _say(line):
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _load():
    return " ".join(f"{number:.2f}" for number in os.getloadavg())


if __name__ == "__main__":
    main()
