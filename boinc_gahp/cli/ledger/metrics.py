"""Metrics in Prometheus' text format (prometheus.io, "Exposition formats").

node_exporter's textfile collector takes such files from many programs and users: names and their
HELP are the same in all files, and no two files may have a series with the same labels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from boinc_gahp import __version__
from boinc_gahp.cli.ledger.monitoring import REASONS
from boinc_gahp.ledger import STATES, text
from boinc_gahp.text import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from boinc_gahp.cli.ledger.monitoring import Status, WatchedOwner

    Labels = Mapping[str, str]

_PREFIX = "boinc_gahp_"


class MetricFamily(NamedTuple):
    """Samples of one name.

    Attributes:
        name: of the metric.
        help: its meaning; one line.
        samples: labels and values; no labels twice.
    """

    name: str
    help: str
    samples: Sequence[tuple[Labels, float]]


def exposition(families: Iterable[MetricFamily]) -> str:
    """Return gauges in Prometheus' text format; families without samples are left out."""
    return "".join(line + "\n" for each in families if each.samples for line in _lines(each))


def _lines(family: MetricFamily) -> Iterator[str]:
    yield f"# HELP {family.name} {_escaped(family.help)}"
    yield f"# TYPE {family.name} gauge"
    for labels, value in family.samples:
        inside = ",".join(f'{name}="{_quotable(words)}"' for name, words in labels.items())
        yield f"{family.name}{{{inside}}} {value!r}"


def _escaped(words: str) -> str:
    return words.replace("\\", "\\\\").replace("\n", "\\n")


def _quotable(words: str) -> str:
    return _escaped(words).replace('"', '\\"')


def families(status: Status) -> Iterator[MetricFamily]:
    """Yield all metrics of a user's jobs."""
    user = {"user": visible(text(status.user))}
    yield from (
        _family(name, meaning, [] if value is None else [(user, value)])
        for name, meaning, value in (
            (
                "status_timestamp_seconds",
                "When these metrics were written, since the epoch.",
                status.now,
            ),
            (
                "ledger_readable",
                "Whether the user's ledger could be read; also 1 where there is none yet.",
                int(status.is_readable),
            ),
            ("ledger_size_bytes", "The ledger's size, with its log.", status.nbytes),
            (
                "ledger_available_bytes",
                "Bytes that the user may still write on the ledger's disk.",
                status.available,
            ),
        )
    )
    yield _family(
        "build_info",
        "The version of boinc_gahp; always 1.",
        [({**user, "version": __version__}, 1)],
    )
    counted = dict.fromkeys(REASONS, 0)
    for each in status.findings:
        counted[each.reason] += 1
    yield _family(
        "attention",
        "How many things a person should look at, by the reason.",
        [({**user, "reason": reason}, number) for reason, number in counted.items()],
    )
    yield from _of_owners([({**user, **_labels(each)}, each) for each in status.owners])


def _labels(owner: WatchedOwner) -> Labels:
    its = owner.overview
    return {
        "project": visible(its.url),
        "section": visible(its.project_name),
        "account": visible(its.account),
    }


def _of_owners(owners: Sequence[tuple[Labels, WatchedOwner]]) -> Iterator[MetricFamily]:
    yield _family(
        "jobs",
        "Jobs in the ledger, by state.",
        [
            ({**labels, "state": state}, getattr(owner.overview.job_counts, state))
            for labels, owner in owners
            for state in STATES
        ],
    )
    yield _family(
        "oldest_job_timestamp_seconds",
        "When the oldest job of a state was taken from HTCondor, since the epoch.",
        [
            ({**labels, "state": state}, since.accepted)
            for labels, owner in owners
            for state, since in (owner.overview.oldest or {}).items()
        ],
    )
    yield _family(
        "owed",
        "What is owed to the project: batches to be retired, batches and jobs to be aborted.",
        [
            ({**labels, "kind": kind}, number)
            for labels, owner in owners
            for kind, number in pending_counts(owner).items()
        ],
    )
    yield _family(
        "orphaned_jobs",
        "Jobs that HTCondor has not asked about for the time of a lease.",
        [(labels, owner.overview.orphans) for labels, owner in owners],
    )
    for name, meaning, values in (
        (
            "last_poll_timestamp_seconds",
            "When the project last answered a question about jobs, since the epoch.",
            [owner.overview.polled for _, owner in owners],
        ),
        (
            "last_asked_timestamp_seconds",
            "When HTCondor last asked about a job that is not over, since the epoch.",
            [owner.overview.last_polled for _, owner in owners],
        ),
        (
            "trouble_timestamp_seconds",
            "When the problem with the project began, since the epoch.",
            [owner.overview.trouble and owner.overview.trouble.since for _, owner in owners],
        ),
        (
            "daemon_running",
            "Whether a process works for the project and account.",
            [owner.has_daemon for _, owner in owners],
        ),
        (
            "account_known",
            "Whether the settings have the project and the account.",
            [owner.is_known for _, owner in owners],
        ),
    ):
        yield _family(
            name,
            meaning,
            [
                (labels, float(value) if isinstance(value, float) else int(value))
                for (labels, _), value in zip(owners, values, strict=True)
                if value is not None
            ],
        )


def pending_counts(owner: WatchedOwner) -> dict[str, int]:
    """Return the number of pending requests of each kind to a project."""
    its = owner.overview
    return {
        "aborts": its.aborts,
        "retirements": its.retirements,
        "giving_up": its.batch_aborts,
        "debts": len(its.submit_aborts),
    }


def _family(name: str, meaning: str, samples: Sequence[tuple[Labels, float]]) -> MetricFamily:
    return MetricFamily(_PREFIX + name, meaning, samples)
