"""What can be seen of a project after a history: for checks, and to compare two of them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]

#: What is the same in two worlds with one history.
_OF_JOB = ("error_mask", "assimilate_state", "file_delete_state", "target_nresults")
_OF_RESULT = (
    "server_state",
    "outcome",
    "validate_state",
    "hostid",
    "exit_status",
    "granted_credit",
    "file_delete_state",
)
_ALL = "SELECT * FROM {} ORDER BY id"
#: What makes an output's name one that cannot be guessed.
_RANDOM = re.compile(r"_r\d+_")


@dataclass(frozen=True, slots=True)
class State:
    """A project's jobs and results by name, its credits, and which files are there."""

    jobs: dict[str, Row]
    results: dict[str, Row]
    hosts: dict[int, float]
    users: dict[int, float]
    files: frozenset[str]

    def of(self, job):
        """Return a job's results."""
        number = self.jobs[job]["id"]
        return [row for row in self.results.values() if row["workunitid"] == number]

    def canonical(self, job):
        """Return a job's canonical result."""
        number = self.jobs[job]["canonical_resultid"]
        return next((row for row in self.of(job) if row["id"] == number), None)


def state_of(world):
    """Read a world's state."""
    facts, core = world.facts, world.core
    stores = ((core.download, set(facts.inputs.values())), (core.upload, set(facts.outputs)))
    return State(
        jobs={row["name"]: dict(row) for row in world.rows(_ALL.format("workunit"))},
        results={row["name"]: dict(row) for row in world.rows(_ALL.format("result"))},
        hosts={row["id"]: row["total_credit"] for row in world.rows("SELECT * FROM host")},
        users={row["id"]: row["total_credit"] for row in world.rows("SELECT * FROM user")},
        files=frozenset(name for store, names in stores for name in names if store.exists(name)),
    )


def summary(world):
    """Return what two worlds with one history have in common: no ids, times or random names."""
    state = state_of(world)
    jobs = {}
    for name, row in state.jobs.items():
        canonical = state.canonical(name)
        jobs[name] = (canonical and canonical["name"], *(row[column] for column in _OF_JOB))
    return {
        "jobs": jobs,
        "results": {
            name: tuple(row[column] for column in _OF_RESULT) for name, row in state.results.items()
        },
        "hosts": {host: round(credit, 6) for host, credit in state.hosts.items()},
        "batches": world.batches(),
        "files": sorted(_RANDOM.sub("_r_", name) for name in state.files),
    }
