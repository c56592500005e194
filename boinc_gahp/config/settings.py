"""The settings as values.

Every field of these classes is a key of ``boinc_gahp.toml`` in the section named after the class's
place in :class:`Settings`. Durations are seconds, sizes bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from boinc_gahp.secret import Authenticator


@dataclass(frozen=True, slots=True)
class ProjectSettings:
    """``[project]`` or ``[projects.NAME]``."""

    url: str
    authenticator: Authenticator | None = None
    #: CA bundle (PEM file) for this project's certificate; None: the system's.
    ca_bundle: str | None = None
    #: Proxy URL; None: the usual variables (HTTPS_PROXY, ...).
    proxy: str | None = None
    #: Send ``'`` and ``\`` in command lines by doubling them (``web-rpcs.md``, "submit_batch").
    escape_command_lines: bool = False
    #: The largest request that the project's PHP takes (post_max_size, less a margin).
    max_post_bytes: int = 7_500_000


@dataclass(frozen=True, slots=True)
class Timeouts:
    """``[timeouts]``."""

    connect: float = 10.0
    #: Longest silence while an answer is awaited.
    read: float = 120.0
    #: Total time of the retries of one RPC that may be repeated.
    retry: float = 120.0
    #: Time that a gridmanager gives a BOINC_SUBMIT, less a margin (GRIDMANAGER_GAHP_CALL_TIMEOUT
    #: is 300): an answer has to be there by then.
    submit: float = 270.0
    #: submit_batch is not started with less than this left.
    submit_margin: float = 60.0


@dataclass(frozen=True, slots=True)
class Staging:
    """``[staging]``: how input files travel."""

    #: upload_files requests at a time.
    concurrent_posts: int = 4
    #: PHP's max_file_uploads.
    files_per_post: int = 20
    #: Stay below PHP's post_max_size (8 MiB as shipped).
    bytes_per_post: int = 7_500_000
    #: delete_time of an uploaded file, from now.
    keep: float = 7 * 86400.0
    #: Remember MD5s of files between runs.
    md5_cache: bool = True


@dataclass(frozen=True, slots=True)
class Jobs:
    """``[jobs]``: what becomes of batches and their outputs."""

    #: A new batch's first lease, from now.
    lease: float = 86400.0
    #: Templates of an app are asked for again after this.
    templates_cached: float = 300.0
    #: Unpack outputs that the volunteer compressed (gzip_when_done).
    gunzip_outputs: bool = True
    #: Bounds for the contents of a zip archive that is unpacked.
    unzip_max_bytes: int = 20_000_000_000
    unzip_max_files: int = 100_000


@dataclass(frozen=True, slots=True)
class HTCondor:
    """``[htcondor]``: jobs that HTCondor 10 and later send with ``grid_resource = batch boinc``."""

    #: Jobs that wait are sent as a batch once no new one has come for this long ...
    quiet: float = 2.0
    #: ... and at the latest when the first of them has waited this long.
    longest_wait: float = 10.0
    #: The most jobs in a batch.
    batch_jobs: int = 10_000
    #: The most bytes of jobs in a submit_batch request (a project's max_post_bytes bounds it, too).
    batch_bytes: int = 6_000_000
    #: A batch's lease, from now; renewed while HTCondor asks about its jobs. A job that it has not
    #: asked about for this long is an orphan.
    lease: float = 14 * 86400.0
    #: The project is asked about its jobs this often at most and at least, as it has news ...
    poll_shortest: float = 5.0
    poll_longest: float = 300.0
    #: ... and about all of them, not only about what has changed, this often.
    poll_all: float = 600.0
    #: Jobs whose outputs are fetched at a time.
    fetches: int = 8
    #: A batch's last job waits this long for the batch's retirement before it is completed.
    retire_wait: float = 30.0
    #: Ended jobs stay in the ledger for this long.
    history: float = 30 * 86400.0
    #: Take jobs whose environment, or whose executable, will not reach the volunteers.
    ignore_environment: bool = False
    ignore_executable: bool = False


@dataclass(frozen=True, slots=True)
class Limits:
    """``[limits]``."""

    #: Unanswered requests, after which ``F Threads\ limit\ reached`` is returned.
    pending_requests: int = 1000
    #: Threads for submits and fetches.
    workers: int = 32
    #: Threads for ping, query, abort, lease and retire.
    control_workers: int = 8
    #: A longer Request Line is answered with E.
    line_bytes: int = 256_000_000


@dataclass(frozen=True, slots=True)
class Logging:
    """``[logging]``."""

    #: debug, info, warning, error or off.
    level: str = "info"
    #: None: ``boinc_gahp.log`` in the state directory.
    file: str | None = None
    max_bytes: int = 10_000_000
    keep: int = 5


@dataclass(frozen=True, slots=True)
class State:
    """``[state]``: directories; ``{user}`` and ``~`` are replaced."""

    dir: Path | None = None
    cache_dir: Path | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings, with where they came from.

    Attributes:
        project: the one used where a request names none, or None.
        projects: others, by name.
        sources: the files that were read, in order, later over earlier.
        problems: warnings for ``check`` and the log (a file that its group can read, ...).
    """

    project: ProjectSettings | None = None
    projects: Mapping[str, ProjectSettings] = field(default_factory=dict)
    timeouts: Timeouts = Timeouts()
    staging: Staging = Staging()
    jobs: Jobs = Jobs()
    htcondor: HTCondor = HTCondor()
    limits: Limits = Limits()
    logging: Logging = Logging()
    state: State = State()
    sources: tuple[Path, ...] = ()
    problems: tuple[str, ...] = ()
