"""The settings as values.

Every field of these classes is a key of ``boinc_gahp.toml``, in the section named after the class's
place in :class:`Settings`. Durations are in seconds, sizes in bytes. The comment before each field
is its text in the reference and in ``boinc_gahp.toml(5)``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import TypeAlias

    from boinc_gahp.config.urls import ProjectUrl
    from boinc_gahp.secret import Authenticator

    # What a value has to be: boinc_gahp.config._reading has a check for each of these names.
    Seconds: TypeAlias = float  # more than 0, as all numbers without "OrZero"
    SecondsOrZero: TypeAlias = float
    BytesPerSecondOrZero: TypeAlias = float
    Bytes: TypeAlias = int
    Count: TypeAlias = int
    CountOrZero: TypeAlias = int
    PathText: TypeAlias = str
    ProxyUrl: TypeAlias = str
    AppName: TypeAlias = str
    Image: TypeAlias = str
    WebDirectory: TypeAlias = str
    Level: TypeAlias = str
    FailedJobs: TypeAlias = str
    Ignored: TypeAlias = str

#: What can be done with a job whose program failed.
FAILED_JOBS = ("complete", "hold")
#: What ``[htcondor] ignore`` and a job's ``BoincIgnore`` can name.
IGNORED = ("environment", "executable", "cpus", "gpus", "batch_project")


@dataclass(frozen=True, slots=True)
class ProjectSettings:
    """``[project]`` or ``[projects.NAME]``: the project's address, account and connection."""

    #: The project's address, as volunteers attach to it.
    url: ProjectUrl
    #: The account's key. A file that holds it must not be readable by other users.
    authenticator: Authenticator | None = None
    #: The certificates to trust for this project (a PEM file), instead of the system's.
    ca_bundle: PathText | None = None
    #: The proxy for requests, instead of that of ``HTTPS_PROXY``, ``HTTP_PROXY`` and ``NO_PROXY``.
    proxy: ProxyUrl | None = None
    #: Double each ``'`` and ``\`` in command lines, and put arguments with spaces between ``'``.
    #: Servers that do not escape command lines themselves need this. If it is false, jobs with such
    #: arguments are refused (``web-rpcs.rst``, "Command lines").
    escape_command_lines: bool = False
    #: The largest request that the project's PHP accepts: its ``post_max_size`` (8 MiB by default),
    #: less a margin.
    max_post_bytes: Bytes = 7_500_000
    #: The app that runs the users' own programs in containers: the project's admin tells its name.
    #: Without it, jobs can only run the project's other apps.
    container_app: AppName | None = None
    #: The image for container jobs that name none: ``docker://NAME``, ``oci-archive:FILE`` or
    #: ``rootfs:FILE``. Without it, such jobs are held.
    container_image: Image | None = None
    #: A directory that a web server hands out: files that are too large for the project are put
    #: there, in a directory of the user's, and volunteers fetch them from there as long as their
    #: jobs need them. Everybody who learns a file's address can read it.
    publish_directory: PathText | None = None
    #: The address of ``publish_directory``.
    publish_url: WebDirectory | None = None
    #: Larger files are published. The default is the size that PHP takes as it is shipped
    #: (``upload_max_filesize``). A file that the project refuses as too large is published, too.
    publish_above: Bytes = 2 << 20
    #: What is never published: patterns with spaces between them, such as ``*.key private/*``. An
    #: archive with such a file is not published either.
    publish_never: str = ""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """``[timeouts]``: how long to wait for a project."""

    #: To establish a connection.
    connect: Seconds = 10.0
    #: The longest silence while waiting for an answer.
    read: Seconds = 120.0
    #: The lowest speed of a reply or an output, in bytes per second over a minute of waiting; what
    #: is slower is given up, and tried again. 0: any.
    output_rate: BytesPerSecondOrZero = 1000.0
    #: For all attempts of a request that may be repeated; 0: one attempt.
    retry: SecondsOrZero = 120.0
    #: The time that HTCondor 9 gives a ``BOINC_SUBMIT``, less a margin: a later answer is lost.
    #: ``GRIDMANAGER_GAHP_CALL_TIMEOUT`` is 300 by default; change both together.
    submit: Seconds = 270.0
    #: With less than this left of ``submit``, jobs are not sent; files still are, for the next
    #: attempt.
    submit_margin: SecondsOrZero = 60.0


@dataclass(frozen=True, slots=True)
class StagingSettings:
    """``[staging]``: how input files are sent to the project."""

    #: How many uploads run at a time, for each batch.
    concurrent_posts: Count = 4
    #: The most files in one upload; PHP's ``max_file_uploads``.
    files_per_post: Count = 20
    #: The most bytes of files in one upload, less than PHP's ``post_max_size`` (8 MiB by default);
    #: a larger file is sent alone.
    bytes_per_post: Bytes = 7_500_000
    #: How long the project keeps an uploaded file; longer while a batch needs it.
    keep: Seconds = 7 * 86400.0
    #: Remember files' MD5s in the cache directory between runs.
    md5_cache: bool = True


@dataclass(frozen=True, slots=True)
class JobSettings:
    """``[jobs]``: batches and their outputs."""

    #: The project may end a batch from HTCondor 9 after this time. HTCondor renews it.
    lease: Seconds = 86400.0
    #: How long a batch of ``boinc_gahp batch`` or the Python API is kept at least; at first as long
    #: as its jobs may take with their deadlines and retries, if that is longer. Waiting for the
    #: batch and fetching from it renew this.
    batch_lease: Seconds = 14 * 86400.0
    #: How long an app's templates are remembered; 0: they are asked for each time. Jobs' requests
    #: are compared with them, and filled into copies of them.
    templates_cached: SecondsOrZero = 300.0
    #: The most bytes of an output, unpacked; a larger one is not kept. What its output template
    #: (``max_nbytes``) and the project tell of its size applies as well.
    max_output_bytes: Bytes = 20_000_000_000
    #: Unpack outputs that volunteers compressed (``gzip_when_done`` in the output template).
    gunzip_outputs: bool = True
    #: The most bytes that are unpacked from an archive of outputs: the zip archive that some apps
    #: make, or the archive in which directories of a container job come.
    unzip_max_bytes: Bytes = 20_000_000_000
    #: The most files and directories that are unpacked from such an archive.
    unzip_max_files: Count = 100_000


@dataclass(frozen=True, slots=True)
class HTCondor:
    """``[htcondor]``: jobs from HTCondor 10 and later with ``grid_resource = batch boinc``."""

    #: Waiting jobs are sent as a batch when no new one has come for this long.
    send_after: SecondsOrZero = 2.0
    #: They are sent at the latest when the first of them has waited for this long.
    longest_wait: SecondsOrZero = 10.0
    #: The most jobs in a batch.
    batch_jobs: Count = 10_000
    #: The most bytes of jobs in one request; the project's ``max_post_bytes`` applies as well. A
    #: job that asks for sizes or a deadline is counted with its own template.
    batch_bytes: Bytes = 6_000_000
    #: The project may end a batch after this time, which starts again whenever HTCondor asks about
    #: its jobs. A job that HTCondor has not asked about for this long is an orphan.
    lease: Seconds = 14 * 86400.0
    #: How often the project is asked about jobs while much is happening.
    poll_shortest: Seconds = 5.0
    #: How often it is asked while nothing is happening.
    poll_longest: Seconds = 300.0
    #: How often it is asked about all jobs, not only about those with news.
    poll_all: Seconds = 600.0
    #: How many jobs' outputs are fetched at a time.
    fetches: Count = 8
    #: The last job of a batch is completed when the project has deleted the batch, or after this
    #: time.
    retire_wait: SecondsOrZero = 30.0
    #: How long ended jobs stay in the ledger.
    history: SecondsOrZero = 30 * 86400.0
    #: Jobs whose project or account is missing from the settings are put on hold after this time.
    unknown_project_wait: SecondsOrZero = 86400.0
    #: Ended jobs whose end HTCondor did not ask for, and requests that a project does not accept,
    #: are dropped after this time.
    forget_after: Seconds = 90 * 86400.0
    #: What to do with a job whose program failed at volunteers: ``complete``, with the program's
    #: exit status as its ExitCode, or ``hold``. A job's ``BoincFailedJobs`` overrides it.
    failed_jobs: FailedJobs = "complete"
    #: What is ignored in jobs' submit files, because volunteers cannot be given it; otherwise the
    #: jobs are put on hold. Words with spaces between them: ``environment``, ``executable`` (that
    #: of a job without an app), ``cpus``, ``gpus``, ``batch_project``. A job's ``BoincIgnore``
    #: names more.
    ignore: Ignored = ""


@dataclass(frozen=True, slots=True)
class LimitSettings:
    """``[limits]``: how much is done at the same time."""

    #: With so many unanswered requests, HTCondor is told to wait (``F Threads\ limit\ reached``).
    pending_requests: Count = 1000
    #: Submits and fetches of one project at a time. A second project gets half as many more, a
    #: third half of that, and so on, each at least one, so that none waits for another that hangs.
    workers: Count = 32
    #: Pings, queries, aborts, leases and retirements of one project at a time; more projects as
    #: above.
    control_workers: Count = 64
    #: A longer Request Line is refused (``E``).
    line_bytes: Bytes = 256_000_000


@dataclass(frozen=True, slots=True)
class Logging:
    """``[logging]``: one log for each user, shared by that user's daemons."""

    #: The lowest level that is written.
    level: Level = "info"
    #: The log; the default is ``boinc_gahp.log`` in the state directory.
    file: PathText | None = None
    #: The size at which the log is renamed to ``boinc_gahp.log.1``, and a new one started.
    max_bytes: Bytes = 10_000_000
    #: How many old logs are kept.
    keep: CountOrZero = 5


@dataclass(frozen=True, slots=True)
class State:
    """``[state]``: directories; ``{user}`` and ``~`` are replaced."""

    #: The directory of the ledger, the log, and the manifests of submitted batches: on a local
    #: disk, never on NFS or the like. The default is ``boinc_gahp`` in ``XDG_STATE_HOME``, that is
    #: ``~/.local/state/boinc_gahp``. It is created if it is missing. A directory that belongs to
    #: another user, or that others can write, is refused.
    dir: Path | None = None
    #: Where files' MD5s are remembered; also for this user alone. The default is ``boinc_gahp`` in
    #: ``XDG_CACHE_HOME``, that is ``~/.cache/boinc_gahp``.
    cache_dir: Path | None = None


@dataclass(frozen=True, slots=True)
class Trust:
    """``[trust]``: settings files of other users."""

    #: The user whose settings file is used if ``--config`` or ``BOINC_GAHP_CONFIG`` names it, as
    #: with ``--trust-config``. That file itself cannot set this.
    config_of: str | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings, and the files that they come from.

    Attributes:
        project: the project for requests that name none, or None.
        projects: the other projects, by name.
        sources: the files that were read, in order; later ones override earlier ones.
        project_files: by project name: which of them have a section of it, in order; the default
            project's name is "".
        problems: warnings for ``check`` and the log (a file that its group can read, ...).
        no_authenticator: by project name: why a project has no authenticator although one is named.
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
    trust: Trust = Trust()
    sources: tuple[Path, ...] = ()
    project_files: Mapping[str, tuple[Path, ...]] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    no_authenticator: Mapping[str, str] = field(default_factory=dict)
