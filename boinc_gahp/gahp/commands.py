"""The commands as data: names, arguments, who carries out requests, and the console's texts.

Dispatch, errors about arguments, the COMMANDS reply, the console's help and the list in the README
are all made from :data:`COMMANDS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from boinc_gahp.gahp import help_texts, requests, results
from boinc_gahp.gahp.grammar import (
    Choice,
    Counted,
    Name,
    Number,
    Optional,
    Piece,
    RequestId,
    Rest,
    Secret,
    Several,
    Text,
)
from boinc_gahp.secret import Authenticator

if TYPE_CHECKING:
    from collections.abc import Callable

#: Who carries out a request: the threads for submits and fetches, or those for quick requests.
#: HTCondor's jobs have threads of their own: a submit waits for a disk, a cancel for a submit that
#: is being recorded, and a status must not wait for either.
Pool = Literal["work", "control", "accept", "cancel", "status"]


@dataclass(frozen=True, slots=True)
class Command:
    """A command.

    Attributes:
        name: in capitals; lines may have it in small letters (``gahp.rst``, "Lines").
        arguments: the pieces of its syntax, in order.
        make: takes the pieces' values, returns the request.
        pool: None for a command that is answered at once.
        returns: what follows the request id in the Result Line, or S in the Return Line.
        summary: what it does, in a line.
        form: what its Result Lines look like.
    """

    name: str
    arguments: tuple[Piece, ...]
    make: Callable[..., requests.Request]
    pool: Pool | None
    returns: str
    summary: str
    form: results.ResultForm = results.BOINC

    @property
    def synchronous(self) -> bool:
        """Whether the Return Line is the whole answer."""
        return self.pool is None

    @property
    def help(self) -> str:
        """What a user needs to know about it, in plain text."""
        return help_texts.HELP[self.name]

    @property
    def syntax(self) -> str:
        """The command and its arguments as ``gahp.rst`` writes them."""
        return " ".join([self.name, *(piece.syntax for piece in self.arguments)])


def _submit(
    request_id: str,
    batch: str,
    app: str,
    jobs: tuple[requests.SubmitJob, ...],
    estimates: tuple[str | None, ...],
) -> requests.Submit:
    return requests.Submit(request_id, batch, app, jobs, requests.Estimates(*estimates))


def _select_project(url: str, authenticator: str) -> requests.SelectProject:
    return requests.SelectProject(url, Authenticator(authenticator))


def _blah_ping(request_id: str, given: tuple[str | None, ...]) -> requests.BlahPing:
    return requests.BlahPing(request_id, *given)


def _blah_refresh_proxy(
    request_id: str, job_id: str, given: tuple[str | None, ...]
) -> requests.BlahJobRefreshProxy:
    return requests.BlahJobRefreshProxy(request_id, job_id, *given)


_ID = RequestId("id", "your number for this request; its result begins with it")
_BATCH = Name("batch", "the batch's name")
_JOB = Name("job", "the job's name, unique on the project")
_JOB_ID = Text("job_id", "the job's id, from the result of BLAH_JOB_SUBMIT")

_SUBMIT_ARGUMENTS: tuple[Piece, ...] = (
    _ID,
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
                make=requests.SubmitInput._make,
            ),
        ),
        "jobs",
        minimum=1,
        make=requests.SubmitJob._make,
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
    _ID,
    _JOB,
    Text("dir", "the job's directory on this machine"),
    Text("stderr_filename", "file for the job's stderr; NULL or /dev/null: none"),
    Choice("mode", "fetch all outputs, or only those in the list", ("ALL", "SOME")),
    Counted(
        "nspecs",
        (
            Text("src", "an output's logical name"),
            Text("dst", "its destination, absolute or relative to dir"),
        ),
        "outputs to fetch (SOME) or to rename (ALL)",
    ),
)


_ALL: tuple[Command, ...] = (
    Command(
        "ASYNC_MODE_OFF",
        (),
        requests.AsyncModeOff,
        None,
        "",
        "do not print R when results are ready",
    ),
    Command("ASYNC_MODE_ON", (), requests.AsyncModeOn, None, "", "print R when results are ready"),
    Command(
        "BLAH_JOB_CANCEL",
        (_ID, _JOB_ID),
        requests.BlahJobCancel,
        "cancel",
        "0 NULL",
        "abort and delete a job of HTCondor",
        results.blah(),
    ),
    Command(
        "BLAH_JOB_REFRESH_PROXY",
        (_ID, _JOB_ID, Optional((Text("proxy", "path of an X.509 proxy"),), "ignored")),
        _blah_refresh_proxy,
        "status",
        "0 NULL",
        "do nothing: volunteers get no proxies",
        results.blah(),
    ),
    Command(
        "BLAH_JOB_STATUS",
        (_ID, _JOB_ID),
        requests.BlahJobStatus,
        "status",
        "0 NULL status ad",
        "get the status of a job of HTCondor",
        results.blah("0", results.NO_AD),
    ),
    Command(
        "BLAH_JOB_SUBMIT",
        (_ID, Rest("ad", 'the job as a ClassAd: [ BoincApp = "..."; Iwd = "..."; ... ]')),
        requests.BlahJobSubmit,
        "accept",
        "0 NULL job_id",
        "accept a job from HTCondor; submit it later in a batch",
        results.blah("NULL"),
    ),
    Command(
        "BLAH_PING",
        (_ID, Optional((Text("batch_type", "HTCondor's name for this batch system"),), "ignored")),
        _blah_ping,
        "status",
        "0 NULL",
        "check whether jobs from HTCondor can be accepted",
        results.blah(),
    ),
    Command(
        "BOINC_ABORT_JOBS",
        (_ID, Several(_JOB, "jobs to abort")),
        requests.AbortJobs,
        "control",
        "NULL",
        "abort unfinished jobs",
    ),
    Command(
        "BOINC_FETCH_OUTPUT",
        _FETCH_ARGUMENTS,
        requests.FetchOutput,
        "work",
        "NULL exit_status elapsed_time cpu_time",
        "fetch the outputs of a finished job",
    ),
    Command(
        "BOINC_PING", (_ID,), requests.Ping, "control", "NULL", "check whether the project answers"
    ),
    Command(
        "BOINC_QUERY_BATCHES",
        (
            _ID,
            Number("min_mod_time", "only jobs that changed since then; 0: all"),
            Counted("nbatches", (_BATCH,), "batches to ask about"),
        ),
        requests.QueryBatches,
        "control",
        "NULL server_time {njobs {job status}...}...",
        "get the status of the jobs of batches",
    ),
    Command(
        "BOINC_RETIRE_BATCH",
        (_ID, _BATCH),
        requests.RetireBatch,
        "control",
        "NULL",
        "let the project delete a batch's files",
    ),
    Command(
        "BOINC_SELECT_PROJECT",
        (
            Text("url", "the project's address, http:// or https://"),
            Secret("authenticator", "the account's key"),
        ),
        _select_project,
        None,
        "",
        "choose the project for later requests",
    ),
    Command(
        "BOINC_SET_LEASE",
        (_ID, _BATCH, Number("unix_time", "seconds since 1970, UTC")),
        requests.SetLease,
        "control",
        "NULL",
        "set when the project may delete a batch",
    ),
    Command(
        "BOINC_SUBMIT", _SUBMIT_ARGUMENTS, _submit, "work", "NULL", "send a batch of jobs to an app"
    ),
    Command("COMMANDS", (), requests.Commands, None, "command...", "list the commands"),
    Command("QUIT", (), requests.Quit, None, "", "exit at once"),
    Command(
        "RESPONSE_PREFIX",
        (Text("prefix", "the prefix, starting with the next line; NULL: none"),),
        requests.ResponsePrefix,
        None,
        "",
        "set a prefix for all printed lines",
    ),
    Command("RESULTS", (), requests.Results, None, "n, then n lines", "print the results so far"),
    Command("VERSION", (), requests.Version, None, "$GahpVersion: ... $", "print the version"),
)

#: All commands by name, in alphabetical order.
COMMANDS: dict[str, Command] = {command.name: command for command in _ALL}

#: Prefixes of names that people may leave out: HELP PING is about BOINC_PING.
PREFIXES = ("", "BOINC_", "BLAH_", "BLAH_JOB_")


def describe(piece: Piece, indent: str = "") -> list[str]:
    """Return lines that explain an argument, for help: its name, then its meaning."""
    if isinstance(piece, Counted):
        lines = [f"{indent}{piece.count:<16} number of {piece.help}; for each:"]
        if len(piece.fields) == 1 and piece.fields[0].help:
            lines = [f"{indent}{piece.count:<16} number of {piece.help}, then each"]
        inner: list[Any] = list(piece.fields)
        return lines + [line for field in inner for line in describe(field, indent + "  ")]
    if isinstance(piece, Several):
        return [f"{indent}{piece.field.name:<16} {piece.field.help}; one or more"]
    if isinstance(piece, Optional):
        lines = [f"{indent}[{piece.help}]"]
        return lines + [line for field in piece.fields for line in describe(field, indent + "  ")]
    return [f"{indent}{piece.syntax:<16} {piece.help}"]


def help_text(command: Command) -> str:
    """Return the long help of a command: syntax, arguments, explanation, result."""
    lines = [command.syntax, "", f"  {command.summary[0].upper()}{command.summary[1:]}."]
    if command.arguments:
        lines += ["", *(line for piece in command.arguments for line in describe(piece, "  "))]
    lines += ["", *(f"  {line}".rstrip() for line in command.help.splitlines())]
    if command.synchronous:
        lines += ["", f"  Answer: S {command.returns}".rstrip()]
    else:
        lines += ["", f"  Answer: S; then the result: id {command.returns}"]
    return "\n".join(lines)
