"""A soak: hours of a submit node in minutes, with all that goes wrong in months.

Users with HTCondor 10 and with HTCondor 9 send jobs to a project that misbehaves at random, through
daemons that are killed at random. In the end every job is home, none was made twice, nothing is
left on the project, and a daemon has no more memory, threads and descriptors than it had.
"""

import argparse
import math
import resource
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path

from tests.soak import verdict, work
from tests.soak.clock import Clock
from tests.soak.condor9 import BoincUser
from tests.soak.condor10 import BatchUser
from tests.soak.faults import NAMES
from tests.soak.node import Job, Plan
from tests.soak.serve import Wanted, running

#: One job in so many is of HTCondor 9.
_OLD = 6
#: Real seconds for jobs to come home, and to be retired, after the time that was planned.
_HEAD_TIMEOUT = 180.0
#: Problems that are shown.
_SHOWN = 40


def main(arguments=None):
    """Run a soak; return 0 if all was right."""
    options = _parser().parse_args(arguments)
    faults = [
        name
        for name in NAMES
        if name not in options.without and (not options.only or name in options.only)
    ]
    directory = Path(options.directory or tempfile.mkdtemp(prefix="soak-"))
    directory.mkdir(parents=True, exist_ok=True)
    clock = Clock(time.time(), options.hours * work.HOUR / (options.minutes * 60))
    plan = Plan(
        options.hours,
        options.minutes * 60,
        options.jobs,
        str(options.seed),
        clock,
        deaths=options.kills,
    )
    _say(
        f"{plan.hours:g} hours in {options.minutes:g} minutes, {plan.jobs} jobs, seed {plan.seed}, "
        f"faults: {', '.join(faults) or 'none'}; in {directory}"
    )
    users = _users(directory, plan)
    wanted = Wanted(
        directory=str(directory / "project"),
        users=[user.name for user in users],
        hosts=options.hosts,
        faults=faults,
        seed=plan.seed,
        read=plan.read,
        origin=clock.origin,
        speed=clock.speed,
    )
    with running(wanted, directory / "project.log") as project:
        for user in users:
            user.prepare(project)
        counts = _live(users, project, plan)
        left = project.ask("work")
    found = list(verdict.problems(users, left))
    for line in (*verdict.told(users), f"the project: {counts}"):
        _say(line)
    used = _processor_time()
    _say(f"processor time: {used:.0f} s, {1000 * used / plan.jobs:.0f} ms a job")
    for line in found[:_SHOWN]:
        _say(f"WRONG: {line}")
    _say(f"{len(found)} problems; look into {directory}" if found else "all is right")
    if missing := sum(1 for user in users for job in user.jobs if not job.fate):
        _say(
            f"{missing} jobs have not come home, for want of time or because they are lost: where "
            "other programs were at work, begin again with more --minutes"
        )
    if not (found or options.directory):
        shutil.rmtree(directory)
    return 1 if found else 0


def _parser():
    parser = argparse.ArgumentParser(prog="scripts/soak", description=__doc__)
    parser.add_argument("--hours", type=float, default=24.0, help="simulated (24)")
    parser.add_argument("--minutes", type=float, default=2.0, help="real ones for them (2)")
    parser.add_argument("--jobs", type=int, default=2000, help="how many (2000)")
    parser.add_argument("--seed", default="1", help="of all that is drawn by lot (1)")
    parser.add_argument("--kills", type=int, default=8, help="of each user's daemons, about (8)")
    parser.add_argument("--hosts", type=int, default=2, help="volunteers (2)")
    parser.add_argument(
        "--only", nargs="+", choices=NAMES, default=[], metavar="FAULT", help=", ".join(NAMES)
    )
    parser.add_argument("--without", nargs="+", choices=NAMES, default=[], metavar="FAULT")
    parser.add_argument(
        "--directory",
        help="where all is kept; otherwise a new one in /tmp, which goes if all is right",
    )
    return parser


def _users(directory, plan):
    alice = BatchUser("alice", directory / "alice", plan, [])
    bob = BoincUser("bob", directory / "bob", plan, [], behind_proxy=True)
    for number in range(plan.jobs):
        user = bob if number % _OLD == 0 else alice
        due = plan.hours * work.HOUR * plan.submitting * number / plan.jobs
        # A condor_submit makes some at once.
        due -= due % 600
        todo = work.make(number, plan.seed, plan.hours * work.HOUR - due, 1.1 * plan.lease)
        user.jobs.append(Job(todo, user.home / "jobs" / str(number), due))
    return [alice, bob]


def _live(users, project, plan):
    until = time.monotonic() + plan.seconds + _HEAD_TIMEOUT
    quiet = threading.Event()

    def live(user):
        try:
            user.live(until, quiet.is_set)
        except Exception as error:
            user.problems.append(f"{user.name}: {type(error).__name__}: {error}")
            raise

    threads = [threading.Thread(target=live, args=(user,)) for user in users]
    for thread in threads:
        thread.start()
    counts = {}
    stuck = []
    next_ = -math.inf
    while any(thread.is_alive() for thread in threads):
        threads[0].join(0.5)
        left = {job.work.number for user in users for job in user.left}
        if left <= set(stuck):
            project.ask("heal")
        counts = project.ask("counts")
        stuck = counts.pop("stuck")
        is_quiet = not left and not any(verdict.left_over(users, project.ask("work")))
        if is_quiet or not all(thread.is_alive() for thread in threads):
            quiet.set()
        if time.monotonic() > next_:
            next_ = time.monotonic() + 10
            homes = sum(1 for user in users for job in user.jobs if job.fate)
            _say(
                f"{(time.time() - plan.clock.origin):4.0f} s: {homes} of {plan.jobs} jobs over; "
                f"{counts['requests']} requests, {sum(counts['faults'].values())} faults, "
                f"{sum(user.deaths for user in users)} daemons over"
            )
    return counts


def _processor_time():
    """Return the seconds of processors that this process and those that have ended took."""
    times = [resource.getrusage(of) for of in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in times)


def _say(line):
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
