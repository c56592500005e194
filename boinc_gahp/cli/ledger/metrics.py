"""Metrics in Prometheus' text format (prometheus.io, "Exposition formats").

node_exporter's textfile collector takes such files from many programs and users: names and their
HELP are the same in all files, and no two files may have a series with the same labels.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from boinc_gahp import __version__
from boinc_gahp.cli.ledger.monitoring import REASONS
from boinc_gahp.ledger.opening import text
from boinc_gahp.text import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    Labels = Mapping[str, str]


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


def families(status: dict[str, Any]) -> Iterator[MetricFamily]:
    """Yield all metrics of a user's jobs; ``status`` is that of ``ledger status``."""
    user = {"user": visible(text(status["user"]))}
    for name, key, meaning in _OF_USERS:
        yield _family(name, meaning, [(user, status[key])])
    version = {**user, "version": __version__}
    yield _family("build_info", "The version of boinc_gahp; always 1.", [(version, 1)])
    reasons = Counter(each.reason for each in status["problems"])
    yield _family(
        "attention",
        "How many things a person should look at, by the reason.",
        [({**user, "reason": reason}, reasons[reason]) for reason in REASONS],
    )
    owners = [
        (
            {
                **user,
                "project": visible(each["url"]),
                "section": visible(each["project_name"]),
                "account": visible(each["account"]),
            },
            each,
        )
        for each in status["projects"]
    ]
    for name, key, meaning in _OF_STATES:
        yield _family(
            name,
            meaning,
            [
                ({**labels, "state": row["state"]}, row[key])
                for labels, each in owners
                for row in each["jobs"]
            ],
        )
    yield _family(
        "owed",
        "What is owed to the project: batches to be retired, batches and jobs to be aborted.",
        [
            ({**labels, "kind": kind}, number)
            for labels, each in owners
            for kind, number in each["owed"].items()
        ],
    )
    for name, key, meaning in _OF_PROJECTS:
        yield _family(name, meaning, [(labels, each[key]) for labels, each in owners])


#: Names of metrics, their keys in the status, and their HELP.
_OF_USERS = (
    ("status_timestamp_seconds", "time", "When these metrics were written, since the epoch."),
    (
        "ledger_readable",
        "readable",
        "Whether the user's ledger could be read; also 1 where there is none yet.",
    ),
    ("ledger_size_bytes", "bytes", "The ledger's size, with its log."),
    (
        "ledger_available_bytes",
        "available_bytes",
        "Bytes that the user may still write on the ledger's disk.",
    ),
)
_OF_STATES = (
    ("jobs", "number", "Jobs in the ledger, by state."),
    (
        "oldest_job_timestamp_seconds",
        "oldest",
        "When the oldest job of a state was taken from HTCondor, since the epoch.",
    ),
)
_OF_PROJECTS = (
    (
        "orphaned_jobs",
        "orphans",
        "Jobs that HTCondor has not asked about for the length of a lease.",
    ),
    (
        "last_poll_timestamp_seconds",
        "last_poll",
        "When the project last answered a question about jobs, since the epoch.",
    ),
    (
        "last_asked_timestamp_seconds",
        "last_asked",
        "When HTCondor last asked about a job that is not over, since the epoch.",
    ),
    (
        "trouble_timestamp_seconds",
        "trouble_since",
        "When the problem with the project began, since the epoch.",
    ),
    ("daemon_running", "daemon", "Whether a process works for the project and account."),
    ("account_known", "known", "Whether the settings have the project and the account."),
)


def _family(name: str, meaning: str, values: Iterable[tuple[Labels, float | None]]) -> MetricFamily:
    """Return a family of the values that are known."""
    samples = [
        (labels, value if isinstance(value, float) else int(value))
        for labels, value in values
        if value is not None
    ]
    return MetricFamily(f"boinc_gahp_{name}", meaning, samples)
