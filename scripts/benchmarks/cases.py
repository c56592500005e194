"""The benchmarks by name: those with a floor, and those that only measure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from boinc_gahp.config.settings import Settings
from scripts.benchmarks import blah, boinc, people
from scripts.benchmarks.batch import batch_status, batch_submit
from scripts.benchmarks.bigfile import big_file
from scripts.benchmarks.containers import container_jobs
from scripts.benchmarks.localproject import (
    local_jobs,
    local_parts,
    local_queries,
    local_submit,
    local_transitions,
    local_uploads,
)
from scripts.benchmarks.looking import people_list, people_show
from scripts.benchmarks.sending import people_submit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from scripts.benchmarks.bench import Bench
    from scripts.benchmarks.measure import Measure, Sample

_SETTINGS = Settings()


@dataclass(frozen=True)
class Case:
    """A benchmark with a floor.

    Attributes:
        title: what it measures; ``{:,}`` is the number.
        number: of jobs, requests, ... at full size.
        run: runs it once.
        connections: how many the floor uses: as many as the program may use at a time.
        floor: the floor if it is not the replay of the requests.
    """

    title: str
    number: int
    run: Callable[[Bench, int], Sample]
    connections: int = 1
    floor: Callable[[Bench, int], float] | None = None


#: Benchmarks of commands that only boinc_gahp has, by the beginnings of their names.
OURS_ALONE = ("batch-", "blah-", "container-", "people-")

#: Benchmarks that are no program's, by the beginnings of their names.
WITHOUT_PEER = ("local-",)

#: Those with a floor by name, in the order of the table.
CASES: dict[str, Case] = {
    "spawn": Case("spawn to banner, mean of {:,}", 10, boinc.spawn, floor=boinc.spawn_floor),
    "first-ping": Case(
        "banner to first BOINC_PING, mean of {:,}",
        10,
        boinc.first_ping,
        floor=boinc.first_ping_floor,
    ),
    "version": Case("{:,} VERSION in a row", 3000, boinc.version, floor=boinc.version_floor),
    "pings": Case("{:,} BOINC_PINGs in a row", 200, boinc.pings),
    "pings-at-once": Case("{:,} BOINC_PINGs at once, 50 ms", 500, boinc.pings_at_once, 64),
    "submit": Case(
        "BOINC_SUBMIT: {:,} jobs, one file",
        10_000,
        boinc.submit,
        _SETTINGS.staging.concurrent_posts,
    ),
    "new-files": Case(
        "BOINC_SUBMIT: {:,} jobs and new files, 5 ms",
        2000,
        boinc.new_files,
        _SETTINGS.staging.concurrent_posts,
    ),
    "upload": Case("BOINC_SUBMIT: a file of {:,} MB", 512, boinc.upload),
    "statuses": Case("statuses of {:,} jobs, first query", 100_000, boinc.statuses),
    "fetches": Case(
        "{:,} BOINC_FETCH_OUTPUTs of 3 files, 20 ms", 300, boinc.fetches, _SETTINGS.limits.workers
    ),
    "blah-fetches": Case(
        "{:,} BLAH jobs of 3 files fetched", 1000, blah.blah_fetches, _SETTINGS.htcondor.fetches
    ),
    "blah-cluster": Case(
        "{:,} BLAH jobs submitted and done", 10_000, blah.blah_cluster, _SETTINGS.htcondor.fetches
    ),
    "people-rows": Case(
        "batch submit: {:,} rows, 200 files",
        10_000,
        people.people_rows,
        _SETTINGS.staging.concurrent_posts,
    ),
    "people-files": Case(
        "batch submit: {:,} rows and new files",
        10_000,
        people.people_files,
        _SETTINGS.staging.concurrent_posts,
    ),
    "people-fetches": Case("batch fetch: {:,} small jobs", 1000, people.people_fetches, 4),
}

#: The others, in the order of their table.
MEASURES: dict[str, Callable[[Bench], Iterator[Measure]]] = {
    "big-file": big_file,
    "batch-submit": batch_submit,
    "batch-status": batch_status,
    "container-jobs": container_jobs,
    "local-submit": local_submit,
    "local-transitions": local_transitions,
    "local-queries": local_queries,
    "local-uploads": local_uploads,
    "local-jobs": local_jobs,
    "local-parts": local_parts,
    "people-submit": people_submit,
    "people-list": people_list,
    "people-show": people_show,
}
