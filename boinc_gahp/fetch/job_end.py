"""How a job ended: one value, with one sentence, for all who tell it; and its stderr."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from boinc_gahp import client_exits
from boinc_gahp.containers.ending import UNTOLD
from boinc_gahp.fetch.types import FetchResult
from boinc_gahp.states import CANCELLED, ERROR_MEANINGS, JobState, is_aborted
from boinc_gahp.text import quoted

if TYPE_CHECKING:
    from boinc_gahp.errors import GahpError
    from boinc_gahp.rpc.types import CompletedJob, JobInfo, ResultInfo

__all__ = ["JobEnd", "last_line", "lines_of", "unwrap"]

#: The client's own statuses; negative ones are the client's, too, or of a crash on Windows.
_OF_CLIENT = range(client_exits.EXIT_SIGNAL, client_exits.EXIT_OUT_OF_MEMORY + 1)
#: How the states of instances begin if the program ended well, so that the validator got them
#: (``html/inc/result.inc``, state_string), and if it did not.
_WELL = ("Completed", "Validate error")
_ILL = ("Error while computing", "Error while uploading", "Upload failed")
#: States that do not say why an instance brought no result.
_SILENT = ("Completed", "Unsent", "Inactive", "In progress", "Didn't need", "Unknown")
#: The project's words that only say that instances failed, not why.
_MERELY = frozenset({"too_many_error_results", "too_many_total_results"})
#: The project's words for a job whose instances ended well but did not agree.
_DISAGREED = frozenset({"too_many_success_results", "no_canonical_result"})
#: The meanings of states, by their first words.
_STATES = {
    "Upload failed": "its outputs could not be uploaded",
    "Error while uploading": "its outputs could not be uploaded",
    "Error while downloading": "its input files could not be downloaded",
    "Validate error": "the project's validator could not check its outputs",
    "Timed out": "no result came before the deadline",
    "Abandoned": "the computer left the project",
    "Couldn't send": "no volunteer could take it",
}
#: What may help if an instance ended in such a state, by its first words.
_HINTS = {
    "Upload failed": "if it happens again, ask the project's admin about uploads",
    "Error while uploading": "if it happens again, ask the project's admin about uploads",
    "Validate error": "ask the project's admin what its validator expects",
    "Timed out": "a longer deadline may help (--delay; in HTCondor BoincDelayBound)",
}
#: What to do about a status of the client, where the same would happen again.
_ADVICE = {
    client_exits.ERR_FILE_TOO_BIG: "make its outputs smaller, or ask the project's admin for a "
    "larger max_nbytes in the output template",
    client_exits.ERR_NOT_FOUND: "see that the program makes every output of the app's template",
    client_exits.EXIT_DISK_LIMIT_EXCEEDED: "ask for more disk (--disk; in HTCondor "
    "request_disk, or BoincRscDiskBound)",
    client_exits.EXIT_TIME_LIMIT_EXCEEDED: "ask for more time (--fpops-bound; in HTCondor "
    "BoincRscFpopsBound)",
    client_exits.EXIT_MEM_LIMIT_EXCEEDED: "ask for more memory (--memory; in HTCondor "
    "request_memory, or BoincRscMemoryBound)",
}
#: What to look at if a container could not be made, by how its image is named.
_IMAGES = {
    "oci-archive:": "that podman saved it with --format oci-archive",
    "rootfs:": "that it is a tar archive of all files of a system, such as podman export makes, "
    "and not a saved image",
    "": "that its name is right, that everybody may pull it",
}
#: Last lines of a stderr after which the same program fails again.
_BROKEN = re.compile(
    r"(SyntaxError|IndentationError|TabError|NameError|ImportError|ModuleNotFoundError)\b"
    r"|.*(\bsyntax error\b|command not found$|: not found$|Exec format error)",
    re.IGNORECASE,
)
#: Characters of an image's name that are told.
_LONGEST = 300
#: Exit statuses of a shell that did not find a program, or could not run it.
_NOT_RUN_BY_SHELL = (126, 127)

#: The client's text before a job's stderr: its version, the start of a CDATA section, perhaps a
#: message (wire/query_completed_job__success).
_HEAD = re.compile(
    r"\s*(?:<core_client_version>[^<]*</core_client_version>\s*)?(?:<!\[CDATA\[\s*)?"
    r"(?:<message>.*?</message>\s*)?",
    re.DOTALL,
)
_STDERR_BEGIN = "<stderr_txt>"
_STDERR_END = "</stderr_txt>"
_CDATA_END = "]]>"
#: Lines of BOINC's own library and wrappers (``api/boinc_api.cpp``, boinc_msg_prefix and
#: boinc_finish_message; ``samples/docker_wrapper``).
_OF_BOINC = re.compile(
    r"(?:\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d \(\d+\):|called boinc_finish\(|stderr end$"
    r"|build_image\(\) failed"
)
_LINE_END = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class JobEnd:
    """How a job ended, or as much of it as is known; of a job that is not over, its state.

    Attributes:
        job: the job, as query_batch describes it with details.
        image: of a job that ran a program in a container: the image, "" if it is not known; None:
            the job ran an app.
        lease_is_over: whether its batch was aborted, and its lease is over.
        failure: why the program in the container counts as failed, although the project says that
            the job is done (:attr:`boinc_gahp.containers.ending.Ending.failure`); "": it does not.
        result: exit status and times; of a program in a container it is the program's exit status,
            negative if a signal ended it. None: not known.
        instances: all instances, in their order, with the project's words for their states; empty
            if they are not known.
        stderr: what the job wrote to its stderr; None: it is not over, or the project does not
            tell. Few projects tell the stderr of failed jobs (``web-rpcs.rst``,
            "query_completed_job").
        stdout: what its program wrote to stdout; None: not over, or the job ran an app.
        trouble: why the project could not be asked about this job; None: it could.
    """

    job: JobInfo
    image: str | None = None
    lease_is_over: bool = False
    failure: str = ""
    result: FetchResult | None = None
    instances: tuple[ResultInfo, ...] = ()
    stderr: str | None = None
    stdout: str | None = None
    trouble: GahpError | None = None

    def with_completed(self, completed: CompletedJob) -> JobEnd:
        """Return it with what query_completed_job tells."""
        result = FetchResult.of(completed)
        return replace(self, result=result, stderr=unwrap(completed.stderr_out))

    @property
    def name(self) -> str:
        """The job's name."""
        return self.job.name

    @property
    def id(self) -> int:
        """The job's number on the project."""
        return self.job.id

    @property
    def state(self) -> JobState:
        """The job's state; failed also if only its program has."""
        return JobState.FAILED if self.failure else self.job.state

    @property
    def exit_statuses(self) -> tuple[int, ...]:
        """One for each instance that failed, in their order; of a job that is done, its own."""
        if self.job.exit_statuses and self.job.state is not JobState.DONE:
            return self.job.exit_statuses
        return () if self.result is None else (self.result.exit_status,)

    @property
    def cpu_time(self) -> float | None:
        """Seconds of CPU time; None: not known."""
        return self.job.cpu_time if self.result is None else self.result.cpu_time

    @property
    def exit_status(self) -> int | None:
        """The exit status that says most about a failure; None: none does.

        It is the last one of an instance that ran the program, or else the last one. A negative one
        is the BOINC client's, or a signal if a program in a container failed.
        """
        failed = [status for status in self.exit_statuses if status]
        ran = [status for status in failed if status not in client_exits.NOT_RUN]
        return next(reversed(ran or failed), None)

    @property
    def exit_code(self) -> int | None:
        """The exit status with which an app's program failed; None: the program is not to blame."""
        status = self.exit_status
        was_aborted = not CANCELLED.isdisjoint(self.job.errors)
        if status is None or was_aborted or self.image is not None or self._ended_well:
            return None
        is_clients = status < 0 or status in _OF_CLIENT or status in client_exits.NOT_RUN
        # An app that runs another program reports 195 if that program has failed.
        return None if is_clients and status != client_exits.EXIT_CHILD_FAILED else status

    @property
    def is_aborted(self) -> bool:
        """Whether the job failed only because somebody aborted it."""
        return is_aborted(self.job.errors)

    @property
    def is_told(self) -> bool:
        """Whether the instances would not tell more of why the job failed."""
        errors = self.job.errors
        return (
            self.state is not JobState.FAILED
            or bool(self.failure or self.instances or self.exit_status is not None)
            or not _MERELY.issuperset(errors)
        )

    @property
    def why(self) -> str:
        """Why the job failed, on one line; "": it has not."""
        is_over = self.job.state is JobState.FAILED or self.job.errors
        if self.job.state is JobState.DONE or not is_over:
            return self.failure
        if self.is_aborted:
            return "its batch was kept no longer, or aborted" if self.lease_is_over else "aborted"
        errors = self.job.errors
        status = self.exit_status
        if status is not None and _DISAGREED.isdisjoint(errors):
            return f"exit status {status}{self._meaning(status)}"
        states = (
            dict.fromkeys(map(_state_words, self._states)) if _MERELY.issuperset(errors) else ()
        )
        words = [ERROR_MEANINGS.get(word, word.replace("_", " ")) for word in errors]
        return ", ".join(states or words) or "the project gives no reason"

    @property
    def other_states(self) -> str:
        """The states of its instances that :attr:`why` does not tell, with their numbers; or ""."""
        counted = Counter(instance.state for instance in self.instances)
        why = self.why
        told = (f"{state} ({number})" for state, number in counted.items() if state not in why)
        return ", ".join(told)

    @property
    def failed_attempts(self) -> list[str]:
        """Why instances have failed so far, in their order, each on one line."""
        return [_state_words(state) + self._suspicion(state) for state in self._states]

    @property
    def advice(self) -> str:
        """What to do, if the same job would most likely fail again in the same way; or ""."""
        if self.is_aborted:
            return ""
        status = self.exit_status
        if status in _ADVICE and not self.failure:
            return _ADVICE[status]
        if self._has_no_container:
            kind = next(kind for kind in _IMAGES if (self.image or "").startswith(kind))
            return (
                f"check the image: {_IMAGES[kind]}, that it is built for the volunteers' "
                "processors, and that it has a shell (sh)"
            )
        if self.image is not None and "couldnt_send_result" in self.job.errors:
            return (
                "request less memory and disk, or ask the project's admin what the computers have "
                "that take jobs in containers"
            )
        return "mend the program, and submit it again" if self._is_broken else ""

    @property
    def hint(self) -> str:
        """What may help if no exit status says why the job failed; or ""."""
        states = self._states if self.exit_status is None else []
        hints = (_HINTS[word] for state in states for word in _HINTS if state.startswith(word))
        return "; ".join(dict.fromkeys(hints))

    def report(self, project: str) -> str:
        """Return lines about a failure for people: all that is known, and stderr.

        Args:
            project: its address.
        """
        lines = [f"boinc_gahp: job {self.name} failed on {project} ({self.why})"]
        if self.exit_statuses:
            lines.append(
                "exit statuses of its instances: " + ", ".join(map(str, self.exit_statuses))
            )
        lines += [f"instance {instance.name}: {instance.state}" for instance in self.instances]
        said = f"\n{self.stderr}" if self.stderr else ""
        return "\n".join(lines) + "\n" + said

    @property
    def _states(self) -> list[str]:
        """The states of the instances that say why they brought no result."""
        states = (instance.state for instance in self.instances)
        return [state for state in states if not state.startswith(_SILENT)]

    @property
    def _has_no_container(self) -> bool:
        # The script that runs a program always ends with 0 (boinc_gahp.containers.script).
        return self.image is not None and self.exit_status == 1 and not self.failure

    @property
    def _is_broken(self) -> bool:
        status = self.exit_status
        if status is None:  # the program was not run, or lacks an output
            return self.failure not in ("", UNTOLD)
        return status in _NOT_RUN_BY_SHELL or bool(_BROKEN.match(last_line(self.stderr or "")))

    @property
    def _ended_well(self) -> bool:
        """Whether the last instance that ran its program ended well, but was found wrong."""
        for instance in reversed(self.instances):
            if instance.state.startswith(_WELL):
                return True
            if instance.state.startswith(_ILL):
                return False
        return not _DISAGREED.isdisjoint(self.job.errors)

    def _suspicion(self, state: str) -> str:
        if self.image is None or not state.startswith("Error while computing"):
            return ""
        # The script that runs a program always ends with 0 (boinc_gahp.containers.script).
        return f": most likely {self._image_words} could not be pulled or built"

    @property
    def _image_words(self) -> str:
        return f"its image {quoted(self.image, _LONGEST)}" if self.image else "its image"

    def _meaning(self, status: int) -> str:
        if self._has_no_container:
            image = self._image_words
            return f", not of the program: {image} could not be pulled or built, or not be started"
        meaning = client_exits.MEANINGS.get(status)
        if meaning is None and self.image is not None:
            return ", not of the program: its container was ended"
        return f": {meaning}" if meaning else ""


def _state_words(state: str) -> str:
    meaning = next((text for word, text in _STATES.items() if state.startswith(word)), "")
    return f"{state}: {meaning}" if meaning else state


def unwrap(text: str) -> str:
    """Return what the job itself wrote to stderr.

    A text without a wrapper is returned unchanged. A wrapper without stderr gives an empty text. If
    a text lost its end (the project's database cuts at 64 kB), the rest is returned.
    """
    head = _HEAD.match(text)
    start = head.end() if head is not None else 0
    if not text.startswith(_STDERR_BEGIN, start):
        return "" if text[:start].strip() else text
    body = text[start + len(_STDERR_BEGIN) :].removeprefix("\n")
    # The job's own text may contain the tag, too: the last one is the wrapper's.
    beginning, tag, _ = body.rpartition(_STDERR_END)
    if tag:
        return beginning.removesuffix("\n")
    ended = body.rstrip()
    return ended.removesuffix(_CDATA_END).rstrip() if ended.endswith(_CDATA_END) else body


def lines_of(text: str) -> list[str]:
    """Return the lines of a stderr; what a program wrote over with a carriage return is a line."""
    lines = _LINE_END.split(text)
    return lines[:-1] if lines[-1] == "" else lines


def last_line(text: str) -> str:
    """Return the last line of a stderr that is not BOINC's own, else its last one; "": none."""
    lines = [line.strip() for line in lines_of(text) if line.strip()]
    theirs = (line for line in reversed(lines) if not _OF_BOINC.match(line))
    return next(theirs, lines[-1] if lines else "")
