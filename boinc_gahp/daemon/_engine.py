"""Answers Request Lines and runs the requests; both the pipes and the console use it."""

from __future__ import annotations

import logging
import time
from collections import deque
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from boinc_gahp.config.urls import ProjectUrl
from boinc_gahp.errors import NO_BATCH_NAMED, BadRequest, GahpError
from boinc_gahp.gahp import blah_commands, boinc_commands, commands
from boinc_gahp.gahp.boinc_commands import SelectProject
from boinc_gahp.gahp.command import AsyncRequest, Request
from boinc_gahp.gahp.commands import COMMANDS, parse_request
from boinc_gahp.gahp.conversation import BUSY, Conversation
from boinc_gahp.gahp.results import fitting
from boinc_gahp.secret import mask
from boinc_gahp.threads import Workers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from boinc_gahp.daemon._projects import Projects
    from boinc_gahp.gahp.lines import TooLong

log = logging.getLogger("boinc_gahp.daemon")

#: Statuses of BLAH_JOB_STATUS that tell HTCondor that a job has ended: completed, held.
_ENDS = frozenset({"4", "5"})
#: Threads that answer BLAH_JOB_STATUS. One reads the ledger for 20,000 in a second; two would take
#: turns and half as much time again for it.
_STATUSES = 1


@dataclass(frozen=True, slots=True)
class LineAnswer:
    """The answer to a Request Line.

    Attributes:
        output: whole lines for stdout: an ``R`` line if one was due, then the Return Line.
        reason: why the line was not accepted, or a warning about an accepted one, for people; empty
            if all is well.
        accepted: whether it was carried out or queued.
        ended: HTCondor's ids of the ended jobs that ``output`` reports; for
            :meth:`Engine.lines_written`, once all of it was written.
    """

    output: bytes
    reason: str = ""
    accepted: bool = True
    ended: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FinishedRequest:
    """A finished request with its result.

    Attributes:
        request: the request.
        line: its Result Line, without prefix and end.
        values: the values in the line; none for an error.
        error: the error's text; None for success.
    """

    request: AsyncRequest
    line: bytes
    values: Sequence[str] = ()
    error: str | None = None


class Engine:
    """A conversation with its selected project, and the threads that do the work.

    One thread calls all of its methods; they wait for nothing but a lock that is held for
    microseconds. A subclass that shows results that nobody has asked for (the console) overrides
    :meth:`announce`.

    Args:
        projects: the caller closes them.
        on_result: called by a worker thread after each result; must return quickly.
    """

    def __init__(self, projects: Projects, *, on_result: Callable[[], None]) -> None:
        self.conversation = Conversation()
        self._projects = projects
        self._on_result = on_result
        self._selection: SelectProject | None = None
        self._at = ""  # the selected project's address, for the pools
        self._pools = {
            name: Workers(name, size=lambda: projects.limits.workers)
            for name in ("work", "accept", "cancel")
        } | {
            "control": Workers("control", size=lambda: projects.limits.control_workers),
            "status": Workers(
                "status", size=lambda: min(_STATUSES, projects.limits.control_workers)
            ),
        }
        self._given: list[str] = []  # in the results kept for RESULTS
        self._finished: deque[FinishedRequest] = deque()
        # Counters that only grow; each is written by one thread.
        self._accepted = 0
        self._taken = 0

    @property
    def unanswered(self) -> int:
        """Accepted requests whose results the client has not received yet."""
        return self._accepted - self._taken + self.conversation.waiting

    @property
    def max_line(self) -> int:
        """Longest Request Line in bytes."""
        return self._projects.limits.line_bytes

    def handle(self, line: bytes | TooLong) -> LineAnswer:
        """Answer a Request Line (without its end). Never raises: every line has an answer."""
        read_at = time.monotonic()
        announcement, ended = self.announce(), list[str]()
        try:
            request = parse_request(line)
            reply = self._answer(request, read_at)
            if isinstance(request, commands.Results):
                # Results that this line itself asks for need no R.
                announcement, ended, self._given = b"", self._given, []
        except BadRequest as error:
            return self._refusal(announcement, str(error))
        except Exception:  # a bug, but if the daemon fell silent, all jobs of the user would fail
            log.exception("a Request Line could not be answered")
            reason = f"internal error in boinc_gahp; the traceback is in {log_file()}"
            return self._refusal(announcement, reason)
        output = announcement + reply.output
        return LineAnswer(output, reply.reason, reply.accepted, tuple(ended))

    def announce(self) -> bytes:
        """Queue the new results for RESULTS; return the ``R`` line if it is due."""
        taken = self.take_results()
        self._given += [
            one.request.job_id
            for one in taken
            if isinstance(one.request, blah_commands.JobStatus)
            and one.error is None
            and one.values[0] in _ENDS
        ]
        return b"".join(self.conversation.add_result(one.line) for one in taken)

    def take_results(self) -> list[FinishedRequest]:
        """Return the results since the last call, in the order in which they came."""
        taken = []
        while self._finished:
            taken.append(self._finished.popleft())
        self._taken += len(taken)
        return taken

    def lines_written(self, ended: Iterable[str]) -> None:
        """Note that HTCondor was told that these jobs have ended; the ledger has it soon."""
        for job_id in ended:
            self._projects.refusals().end_reported(job_id)

    def _refusal(self, announcement: bytes, reason: str) -> LineAnswer:
        output = announcement + self.conversation.syntax_error()
        return LineAnswer(output, reason=reason, accepted=False)

    def _answer(self, request: Request, read_at: float) -> LineAnswer:
        if isinstance(request, AsyncRequest):
            return self._accept(request, read_at)
        if isinstance(request, SelectProject):
            return self._select(request)
        return LineAnswer(self.conversation.answer(request))

    def _select(self, request: SelectProject) -> LineAnswer:
        """Use this project from now on.

        Address and authenticator are the user's own words, from grid_resource and the
        authenticator's file, and the gridmanager aborts on any answer but S. So the results of the
        following requests report what is wrong with them.
        """
        self._selection, reason = request, ""
        try:
            self._at = ProjectUrl(request.url)
        except BadRequest as error:
            self._at, reason = request.url, str(error)
        return LineAnswer(self.conversation.success(), reason=reason)

    def _accept(self, request: AsyncRequest, read_at: float) -> LineAnswer:
        limit = self._projects.limits.pending_requests
        if self.unanswered >= limit:
            reason = f"{BUSY}: {limit} requests are unanswered; wait for some of their results"
            return LineAnswer(self.conversation.busy(), reason=reason, accepted=False)
        gridmanager = bool(self.conversation.prefix)
        # With the state in force when its line was read.
        do = partial(self._carry_out, request, self._selection, gridmanager, read_at)
        self._accepted += 1
        if not self._pools[COMMANDS[request.command].pool or "control"].start(
            partial(self._work, request, do), slot=self._at
        ):
            self._fail(
                request,
                "no thread could be started for this request: see ulimit -u, and try again later",
            )
        return LineAnswer(self.conversation.success())

    # -- on worker threads

    def _work(self, request: AsyncRequest, do: Callable[[], list[str]]) -> None:
        """Carry out a request with ``do``; it gets exactly one result, whatever happens."""
        try:
            values = do()
            line = COMMANDS[request.command].form.success(request.request_id, values)
        except GahpError as error:
            # For a gridmanager the name ends the line: it would take a code after it as a part of
            # it.
            read = isinstance(request, boinc_commands.QueryBatches) and NO_BATCH_NAMED in str(error)
            # A server's message may contain the authenticator.
            message = fitting(mask(str(error) if read else error.with_code()))
            log.warning("%s %s: %s", request.command, request.request_id, message)
            self._fail(request, message)
        except BaseException as error:  # without a result, the job would hang
            log.exception("%s %s: internal error", request.command, request.request_id)
            self._fail(
                request,
                f"internal error in boinc_gahp ({type(error).__name__}); the traceback is in "
                f"{log_file()}",
            )
        else:
            log.debug("%s %s: done", request.command, request.request_id)
            self._finish(FinishedRequest(request, line, values))

    def _carry_out(
        self,
        request: AsyncRequest,
        selection: SelectProject | None,
        gridmanager: bool,
        read_at: float,
    ) -> list[str]:
        from boinc_gahp.daemon._dispatch import carry_out, carry_out_blah  # noqa: PLC0415

        if isinstance(request, blah_commands.BlahRequest):
            # Show people at once what is wrong; a gridmanager would not pass it on.
            service = self._projects.refusals() if gridmanager else self._projects.service()
            return list(carry_out_blah(service, request))
        answer_by = None
        if gridmanager and isinstance(request, boinc_commands.Submit):
            answer_by = read_at + self._projects.settings().timeouts.submit
        context = self._projects.context(selection)
        return list(carry_out(context, request, gridmanager, answer_by))

    def _fail(self, request: AsyncRequest, message: str) -> None:
        last = _name_in_error(request, message)
        form = COMMANDS[request.command].form
        line = form.error(request.request_id, message.removesuffix(last), last)
        self._finish(FinishedRequest(request, line, error=message))

    def _finish(self, finished: FinishedRequest) -> None:
        self._finished.append(finished)
        self._on_result()


def _name_in_error(request: AsyncRequest, error: str) -> str:
    """Return the name of a requested batch that the error ends in, or nothing.

    A gridmanager compares it with its own name of the batch.
    """
    name = error.rpartition(NO_BATCH_NAMED)[2]
    return (
        name if isinstance(request, boinc_commands.QueryBatches) and name in request.batches else ""
    )


def log_file() -> str:
    """Return the path of the log, or words that stand for it."""
    for handler in logging.getLogger().handlers:
        path = getattr(handler, "path", None)  # our handler, which this package may not import
        if path is not None:
            return str(path)
    return "the log, but no log is written: see boinc_gahp check"
