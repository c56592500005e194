"""What has to be true after a soak."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from dataclasses import dataclass

from boinc_gahp.localproject.states import BatchState
from tests.soak.work import HOUR, work_of

_ENDED = {BatchState.ABORTED, BatchState.RETIRED}
#: How much more a daemon may have in the last quarter of a long life than in the second: memory as
#: a part and in bytes, threads and descriptors as numbers.
_MEMORY_PART, _MEMORY_MORE = 1.25, 16 << 20
_THREADS_MORE = _DESCRIPTORS_MORE = 25
#: Fewer samples of a life say nothing.
_SAMPLES = 40


@dataclass(frozen=True)
class Workunit:
    """A workunit on the project: for which job, whether it failed, how many results succeeded."""

    name: str
    number: int
    error_mask: int
    batch: int
    successes: int

    @property
    def lives(self):
        """Whether it still waits for a result."""
        return not self.error_mask and not self.successes


def workunits_of(work):
    """Return the workunits that the project has told of."""
    return [
        Workunit(name, work_of(document).number, *known)
        for name, document, *known in work["workunits"]
    ]


def problems(users, work):
    """Yield all that is wrong, a line each."""
    for user in users:
        yield from user.problems
        yield from _logged(user)
        yield from _not_flat(user)
    yield from _doubled(users, work)
    # Last what is only late, perhaps of thousands of jobs, if the machine was busy.
    for user in users:
        yield from _not_home(user)
    yield from left_over(users, work)


def _not_home(user):
    for job in user.jobs:
        name = f"{user.name}'s job {job.work.number}"
        if not job.fate:
            yield f"{name} has not come home; the daemon calls it {job.id or 'nothing yet'}"
        elif job.fate == "home" and (wrong := job.wrong()):
            yield f"{name} was home, and now: {wrong}"


def _logged(user):
    lines = user.log.read_text("utf-8", "replace").splitlines() if user.log.exists() else []
    for place, line in enumerate(lines):
        if line.startswith("Traceback "):
            yield f"{user.name}'s log, line {place + 1}: a traceback after: {lines[place - 1]}"


def _doubled(users, work):
    # What was done of a batch before it was aborted, as it had to be, nobody gets.
    given_up = {name for user in users for name in user.given_up}
    aborted = {
        batch_id
        for batch_id, name, state, _ in work["batches"]
        if name in given_up and state in _ENDED
    }
    by_job = defaultdict(list)
    for workunit in workunits_of(work):
        if workunit.batch not in aborted:
            by_job[workunit.number].append(workunit)
    for number, found in sorted(by_job.items()):
        names = ", ".join(workunit.name for workunit in found)
        if sum(not workunit.error_mask for workunit in found) > 1:
            yield f"job {number} is on the project more than once: {names}"
        elif sum(workunit.successes for workunit in found) > 1:
            yield f"job {number} was computed more than once: {names}"


def left_over(users, work):
    """Yield what the project still has."""
    excused = {name for user in users for name in user.excused}
    living = Counter(one.batch for one in workunits_of(work) if one.lives)
    for batch_id, name, state, user in work["batches"]:
        if living[batch_id]:
            yield f"{living[batch_id]} jobs of {user}'s batch {name} still wait for a volunteer"
        elif state not in _ENDED and name not in excused:
            yield f"{user}'s batch {name} is {BatchState(state).name}, and not retired"


def longest_life(samples):
    """Return the samples of the daemon with most of them."""
    lives = defaultdict(list)
    for sample in samples:
        lives[sample.pid].append(sample)
    return max(lives.values(), key=len, default=[])


def _not_flat(user):
    life = longest_life(user.samples)
    if len(life) < _SAMPLES:
        yield f"{user.name}'s daemons lived too shortly to be measured: {len(life)} samples"
        return
    quarter = len(life) // 4
    early, late = life[quarter : 2 * quarter], life[3 * quarter :]
    for what, part, more in (
        ("memory", _MEMORY_PART, _MEMORY_MORE),
        ("threads", 1, _THREADS_MORE),
        ("descriptors", 1, _DESCRIPTORS_MORE),
    ):
        before, after = (statistics.median(getattr(s, what) for s in q) for q in (early, late))
        if after > before * part + more:
            yield f"{user.name}'s daemon: {what} grew from {before:.0f} to {after:.0f}"


def told(users):
    """Yield what is worth knowing, whether it is right or wrong."""
    for user in users:
        fates = Counter(job.fate or "missing" for job in user.jobs)
        yield f"{user.name}: {dict(fates)}, {user.deaths} daemons, {len(user.held)} errors held"
        late = sorted(job.late / HOUR for job in user.jobs if job.fate == "home")
        if late:
            yield (
                f"  home after their computation: half of them within {late[len(late) // 2]:.1f} "
                f"simulated hours, 95 % within {late[len(late) * 95 // 100]:.1f}, all within "
                f"{late[-1]:.1f}"
            )
        life = longest_life(user.samples)
        if life:
            at_most = {
                what: max(getattr(sample, what) for sample in life)
                for what in ("memory", "threads", "descriptors")
            }
            yield (
                f"  the longest life: {life[-1].at - life[0].at:.0f} s, at most "
                f"{at_most['memory'] / 1e6:.0f} MB, {at_most['threads']} threads, "
                f"{at_most['descriptors']} descriptors"
            )
