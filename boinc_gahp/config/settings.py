"""The settings as values.

Every field of these classes is a key of ``boinc_gahp.toml`` in the section named after the class's
place in :class:`Settings`. Durations are seconds, sizes bytes. The comment before each field is
what the reference and ``boinc_gahp.toml(5)`` say of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from boinc_gahp.config.urls import ProjectUrl
    from boinc_gahp.secret import Authenticator

#: What may become of a job whose program failed.
FAILED_JOBS = ("complete", "hold")


@dataclass(frozen=True, slots=True)
class ProjectSettings:
    """``[project]`` or ``[projects.NAME]``: where a project is, and how it is talked to."""

    #: The project's address, as volunteers attach to it.
    url: ProjectUrl
    #: The account's key. Nobody else may be able to read a file that holds it.
    authenticator: Authenticator | None = None
    #: The certificates to trust for this project (a PEM file), instead of the system's.
    ca_bundle: str | None = None
    #: The proxy that requests go through, instead of what ``HTTPS_PROXY``, ``HTTP_PROXY`` and
    #: ``NO_PROXY`` say.
    proxy: str | None = None
    #: Send ``'`` and ``\`` in command lines by doubling them, and arguments with spaces between
    #: ``'``, as servers need it that are not mended; without it jobs with such arguments are
    #: refused (``web-rpcs.rst``, "Command lines").
    escape_command_lines: bool = False
    #: The largest request that the project's PHP takes: its ``post_max_size`` (8 MiB as shipped),
    #: less a margin.
    max_post_bytes: int = 7_500_000


@dataclass(frozen=True, slots=True)
class Timeouts:
    """``[timeouts]``: how long is waited for a project."""

    #: To establish a connection.
    connect: float = 10.0
    #: Longest silence while an answer is awaited.
    read: float = 120.0
    #: The fewest bytes per second of an output, over a minute of waiting for them; what comes more
    #: slowly is given up, and tried again. 0: any.
    output_rate: float = 1000.0
    #: All attempts of one request together, where it may be repeated; 0: one attempt.
    retry: float = 120.0
    #: The time that HTCondor 9 gives a ``BOINC_SUBMIT``, less a margin: an answer that comes too
    #: late is lost. ``GRIDMANAGER_GAHP_CALL_TIMEOUT`` is 300 by default; change both together.
    submit: float = 270.0
    #: Jobs are not sent with less than this left of ``submit``; the files are, for the next time.
    submit_margin: float = 60.0


@dataclass(frozen=True, slots=True)
class StagingSettings:
    """``[staging]``: how input files travel to the project."""

    #: Uploads at a time, for each batch.
    concurrent_posts: int = 4
    #: The most files in one upload; PHP's ``max_file_uploads``.
    files_per_post: int = 20
    #: The most bytes of files in one upload, below PHP's ``post_max_size`` (8 MiB as shipped); a
    #: larger file goes alone.
    bytes_per_post: int = 7_500_000
    #: The project keeps an uploaded file for this long, and longer while a batch needs it.
    keep: float = 7 * 86400.0
    #: Remember files' MD5s in the cache directory, between runs.
    md5_cache: bool = True


@dataclass(frozen=True, slots=True)
class JobSettings:
    """``[jobs]``: what becomes of batches and their outputs."""

    #: The project may end a batch of HTCondor 9's this long after it was made. HTCondor renews it.
    lease: float = 86400.0
    #: A batch of ``boinc_gahp batch`` or the Python API is kept for this long at least: at first
    #: for as long as its jobs may take by their deadlines and retries, where that is longer.
    #: Waiting for it and fetching from it renew this.
    batch_lease: float = 14 * 86400.0
    #: An app's templates are asked for again after this; 0: each time. What jobs ask for is
    #: compared with them, and filled into copies of them.
    templates_cached: float = 300.0
    #: The most bytes that an output may have, unpacked; a larger one is not kept. Of a job with an
    #: output template of its own, ``max_nbytes`` there holds beside it.
    max_output_bytes: int = 20_000_000_000
    #: Unpack outputs that volunteers compressed (``gzip_when_done`` in the output template).
    gunzip_outputs: bool = True
    #: For an app whose outputs come in one zip archive: the most bytes that are unpacked from it.
    unzip_max_bytes: int = 20_000_000_000
    #: The most files and directories that are unpacked from such an archive.
    unzip_max_files: int = 100_000


@dataclass(frozen=True, slots=True)
class HTCondor:
    """``[htcondor]``: jobs that HTCondor 10 and later send with ``grid_resource = batch boinc``."""

    #: Jobs that wait are sent as a batch once no new one has come for this long.
    quiet: float = 2.0
    #: They are sent at the latest when the first of them has waited this long.
    longest_wait: float = 10.0
    #: The most jobs in a batch.
    batch_jobs: int = 10_000
    #: The most bytes of jobs in one request; the project's ``max_post_bytes`` holds beside it. A
    #: job that asks for sizes or a deadline counts as one that takes a template with it.
    batch_bytes: int = 6_000_000
    #: The project may end a batch after this time, which begins anew while HTCondor asks about its
    #: jobs. A job that HTCondor has not asked about for this long is an orphan.
    lease: float = 14 * 86400.0
    #: The project is asked about jobs this often while much is going on.
    poll_shortest: float = 5.0
    #: It is asked about jobs this often while nothing is going on.
    poll_longest: float = 300.0
    #: It is asked about all jobs, not only about those with news, this often.
    poll_all: float = 600.0
    #: Jobs whose outputs are fetched at a time.
    fetches: int = 8
    #: The last job of a batch is completed once the project has forgotten the batch, or after this
    #: time.
    retire_wait: float = 30.0
    #: Jobs that ended stay in the ledger for this long.
    history: float = 30 * 86400.0
    #: Jobs whose project or account the settings do not have any more are put on hold after this.
    stranded_wait: float = 86400.0
    #: What is over and never needed again is dropped after this time: jobs whose end HTCondor did
    #: not ask for, and what is owed to a project that does not take it.
    forget_after: float = 90 * 86400.0
    #: What becomes of a job whose program failed at volunteers: ``complete``, with the program's
    #: exit status as its ExitCode, or ``hold``. A job's ``BoincFailedJobs`` goes before it.
    failed_jobs: str = "complete"
    #: Take jobs with an environment, which does not reach the volunteers, and would put them on
    #: hold else.
    ignore_environment: bool = False
    #: Take jobs with an executable of their own and no app; volunteers run the project's app, and
    #: such jobs would be put on hold else.
    ignore_executable: bool = False


@dataclass(frozen=True, slots=True)
class LimitSettings:
    """``[limits]``: how much is done at a time."""

    #: Requests that are not answered yet, after which HTCondor is told to wait
    #: (``F Threads\ limit\ reached``).
    pending_requests: int = 1000
    #: Submits and fetches of one project at a time. A second project gets half as many beside it, a
    #: third half of that, and so on, each at least one: none waits for another that hangs.
    workers: int = 32
    #: Pings, queries, aborts, leases and retirements of one project at a time; of several as above.
    control_workers: int = 8
    #: A longer Request Line is refused (``E``).
    line_bytes: int = 256_000_000


@dataclass(frozen=True, slots=True)
class Logging:
    """``[logging]``: one log for each user, shared by that user's daemons."""

    #: What is written into it: this, and what is worse.
    level: str = "info"
    #: The log; without it ``boinc_gahp.log`` in the state directory.
    file: str | None = None
    #: The size at which the log is renamed to ``boinc_gahp.log.1``, and a new one begun.
    max_bytes: int = 10_000_000
    #: So many old logs are kept.
    keep: int = 5


@dataclass(frozen=True, slots=True)
class State:
    """``[state]``: directories; ``{user}`` and ``~`` are replaced."""

    #: Where the ledger and the log are, and what ``boinc_gahp batch`` has submitted: on a local
    #: disk, never on NFS or the like. Without it ``boinc_gahp`` in ``XDG_STATE_HOME``, that is
    #: ``~/.local/state/boinc_gahp``. It is made if it is missing; one that is another user's, or
    #: that others can write, is refused.
    dir: Path | None = None
    #: Where files' MD5s are remembered; likewise the user's alone. Without it ``boinc_gahp`` in
    #: ``XDG_CACHE_HOME``, that is ``~/.cache/boinc_gahp``.
    cache_dir: Path | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings, with where they came from.

    Attributes:
        project: the one used where a request names none, or None.
        projects: others, by name.
        sources: the files that were read, in order, later over earlier.
        problems: warnings for ``check`` and the log (a file that its group can read, ...).
        no_authenticator: why a project has none although one is named, by the project's name; ""
            is the default one's.
    """

    project: ProjectSettings | None = None
    projects: Mapping[str, ProjectSettings] = field(default_factory=dict)
    timeouts: Timeouts = Timeouts()
    staging: StagingSettings = StagingSettings()
    jobs: JobSettings = JobSettings()
    htcondor: HTCondor = HTCondor()
    limits: LimitSettings = LimitSettings()
    logging: Logging = Logging()
    state: State = State()
    sources: tuple[Path, ...] = ()
    problems: tuple[str, ...] = ()
    no_authenticator: Mapping[str, str] = field(default_factory=dict)
