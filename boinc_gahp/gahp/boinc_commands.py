"""The BOINC_* commands, for gridmanagers with the grid type "boinc" and for people.

Each command has its request, and its row in :data:`TABLE`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from boinc_gahp.gahp.command import REQUEST_ID, AsyncRequest, Command, Request
from boinc_gahp.gahp.grammar import (
    Counted,
    Name,
    Number,
    Optional,
    Piece,
    Several,
    Text,
)
from boinc_gahp.secret import Authenticator


@dataclass(frozen=True, slots=True)
class SelectProject(Request):
    """BOINC_SELECT_PROJECT: the project of the requests that come after it."""

    command = "BOINC_SELECT_PROJECT"
    url: str
    authenticator: Authenticator


class Ping(AsyncRequest):
    """BOINC_PING."""

    command = "BOINC_PING"


class SubmitJob(NamedTuple):
    """A job of a BOINC_SUBMIT; a named tuple: one line can make hundreds of thousands of them.

    Attributes:
        inputs: of each input file its path on this machine, and the app's name for it.
    """

    name: str
    args: tuple[str, ...]
    inputs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Submit(AsyncRequest):
    """BOINC_SUBMIT.

    Attributes:
        estimates: the six trailing arguments by their names, as they were written; None: NULL or
            left out. They are the user's own words (``+rsc_fpops_est = "..."`` in a submit file),
            so one that is not a number must not be a syntax error (``gahp.rst``, "Aborts", 1).
    """

    command = "BOINC_SUBMIT"
    batch: str
    app: str
    jobs: tuple[SubmitJob, ...]
    estimates: dict[str, str | None]


@dataclass(frozen=True, slots=True)
class QueryBatches(AsyncRequest):
    """BOINC_QUERY_BATCHES; ``min_mod_time`` as it was written."""

    command = "BOINC_QUERY_BATCHES"
    min_mod_time: str
    batches: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FetchOutput(AsyncRequest):
    """BOINC_FETCH_OUTPUT; ``specs`` are (source, destination) pairs."""

    command = "BOINC_FETCH_OUTPUT"
    job: str
    directory: str
    stderr: str
    mode: Literal["ALL", "SOME"]
    specs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class AbortJobs(AsyncRequest):
    """BOINC_ABORT_JOBS."""

    command = "BOINC_ABORT_JOBS"
    jobs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RetireBatch(AsyncRequest):
    """BOINC_RETIRE_BATCH."""

    command = "BOINC_RETIRE_BATCH"
    batch: str


@dataclass(frozen=True, slots=True)
class SetLease(AsyncRequest):
    """BOINC_SET_LEASE; ``unix_time`` in seconds since the epoch, as it was written."""

    command = "BOINC_SET_LEASE"
    batch: str
    unix_time: str


_BATCH = Name("batch", "the batch's name")
_JOB = Name("job", "the job's name, unique on the project")

_SUBMIT_ARGUMENTS: tuple[Piece, ...] = (
    REQUEST_ID,
    _BATCH,
    Name("app", "the app's short name on the project"),
    Counted(
        "njobs",
        (
            _JOB,
            Counted("nargs", (Text("arg", "a command line argument of the job"),), "arguments"),
            Counted(
                "nfiles",
                (
                    Text("src_path", "path of an input file on this machine"),
                    Text("logical_name", "the app's name for it (open_name in its template)"),
                ),
                "input files",
            ),
        ),
        "jobs",
        minimum=1,
        make=SubmitJob._make,
    ),
    Optional(
        (
            Number("rsc_fpops_est", "estimated floating-point operations of a job"),
            Number("rsc_fpops_bound", "floating-point operations after which a job is aborted"),
            Number("rsc_memory_bound", "bytes of memory that a job may use"),
            Number("rsc_disk_bound", "bytes of disk that a job may use"),
            Number("delay_bound", "seconds that a volunteer's computer has for a job"),
            Number("app_version_num", "use only this version of the app"),
        ),
        "estimates; the app's template has the values of those that are NULL or missing",
    ),
)

_FETCH_ARGUMENTS: tuple[Piece, ...] = (
    REQUEST_ID,
    _JOB,
    Text("dir", "the job's directory on this machine"),
    Text("stderr_filename", "file for the job's stderr; NULL or /dev/null: none"),
    Text(
        "ALL|SOME",
        "fetch all outputs, or only those in the list",
        "ALL or SOME",
        lambda word: word.upper() in {"ALL", "SOME"},
        str.upper,
    ),
    Counted(
        "nspecs",
        (
            Text("src", "an output's logical name"),
            Text("dst", "its destination, absolute or relative to dir"),
        ),
        "outputs to fetch (SOME) or to rename (ALL)",
    ),
)

TABLE: tuple[Command, ...] = (
    Command(
        AbortJobs,
        (REQUEST_ID, Several(_JOB, "jobs to abort")),
        pool="control",
        returns="NULL",
        summary="abort unfinished jobs",
        help="""\
Running jobs stop when the volunteers' computers next contact the project. If the project does not
know some of the names, the other jobs are still aborted; the error lists those that were not.
Example: BOINC_ABORT_JOBS 7 sweep.1 sweep.2""",
    ),
    Command(
        FetchOutput,
        _FETCH_ARGUMENTS,
        pool="work",
        returns="NULL exit_status elapsed_time cpu_time",
        summary="fetch the outputs of a finished job",
        help="""\
ALL 0 fetches all outputs under their logical names; pairs after ALL rename them. SOME fetches only
the outputs in the pairs. The pair for stdout is the last one, or the one before the pair for
stderr; if the app has no output of that name, an empty file is written. Standard error is written
to stderr_filename, which is overwritten.
The result has the job's exit status, and its elapsed and CPU time in seconds. For an unfinished
job it is an error. You can fetch the same outputs again.
If the app's only output is named *.zip, it is unpacked into dir. Files whose name begins with a
dot are written only if a pair names them.
Example: BOINC_FETCH_OUTPUT 9 sweep.1 /home/me/sweep err.1 SOME 1 out out.1""",
    ),
    Command(
        Ping,
        (REQUEST_ID,),
        pool="control",
        returns="NULL",
        summary="check whether the project answers",
        help="""\
The result is NULL if the project answers. Otherwise it says what is wrong.
Example: BOINC_PING 2""",
    ),
    Command(
        QueryBatches,
        (
            REQUEST_ID,
            Number("min_mod_time", "only jobs that changed since then; 0: all"),
            Counted("nbatches", (_BATCH,), "batches to ask about"),
        ),
        pool="control",
        returns="NULL server_time {njobs {job status}...}...",
        summary="get the status of the jobs of batches",
        help="""\
The status of a job is UNSENT, IN_PROGRESS, DONE or ERROR. With min_mod_time 0 all jobs are listed.
With the server_time of an earlier answer, only jobs that changed since then, or up to five minutes
before, are listed.
Example: BOINC_QUERY_BATCHES 5 0 1 sweep""",
    ),
    Command(
        RetireBatch,
        (REQUEST_ID, _BATCH),
        pool="control",
        returns="NULL",
        summary="let the project delete a batch's files",
        help="""\
Use it when you have fetched all the outputs that you need. The project then deletes the outputs,
and aborts unfinished jobs.
Example: BOINC_RETIRE_BATCH 12 sweep""",
    ),
    Command(
        SelectProject,
        (
            Text("url", "the project's address, http:// or https://"),
            Text("authenticator", "the account's key", make=Authenticator),
        ),
        summary="choose the project for later requests",
        help="""\
Earlier requests stay with their project. Without this command, requests go to the project in the
[project] section of the settings.
Example: BOINC_SELECT_PROJECT https://boinc.example.edu/test/ 0123456789abcdef""",
    ),
    Command(
        SetLease,
        (REQUEST_ID, _BATCH, Number("unix_time", "seconds since 1970, UTC")),
        pool="control",
        returns="NULL",
        summary="set when the project may delete a batch",
        help="""\
After this time the project may abort and retire the batch. To extend the lease, give the command
again before it ends.
Example: BOINC_SET_LEASE 4 sweep 1795261323""",
    ),
    Command(
        Submit,
        _SUBMIT_ARGUMENTS,
        pool="work",
        returns="NULL",
        summary="send a batch of jobs to an app",
        help="""\
The result is NULL when all jobs of the batch are on the project. If you repeat the same line, no
job is created twice. An error says what was refused, and that nothing was left on the project.
Write a backslash before spaces, backslashes and line ends within an argument.
Example, two jobs with one input file each, the second with two arguments as well:
BOINC_SUBMIT 3 sweep uppercase 2 sweep.1 0 1 /tmp/a.txt in sweep.2 2 -n 5 1 /tmp/b.txt in""",
    ),
)
