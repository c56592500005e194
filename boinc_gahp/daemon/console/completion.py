"""Completion on the console: finds the argument being typed, and the words it may be."""

from __future__ import annotations

import os
import re
import threading
import time
from bisect import bisect_left
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from prompt_toolkit.completion import Completer, Completion

from boinc_gahp.errors import BadRequest
from boinc_gahp.gahp import (
    COMMANDS,
    PREFIXES,
    AsyncRequest,
    Choice,
    Counted,
    Field,
    Optional,
    Piece,
    RequestId,
    Rest,
    Several,
    blah_commands,
    boinc_commands,
    words,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

    from prompt_toolkit.completion import CompleteEvent
    from prompt_toolkit.document import Document

#: Completions offered at once; more would help nobody.
OFFERED = 200
#: Names kept for completion, per project.
KEPT = 200_000
#: Longer lines are pasted, not typed.
TYPED = 20_000

#: From the beginning of the line: only this tells which backslashes escape.
_LAST_WORD = re.compile(r"(?:(?:[^ \\]|\\.)* )*((?:[^ \\]|\\.)*\\?)", re.DOTALL)
_PATHS = frozenset({"src_path", "dir", "stderr_filename", "dst", "proxy"})
#: The attributes of a job ad that boinc_gahp uses, and what they mean.
_ATTRIBUTES = {
    "Arguments": "the command line, quoted as in a submit file",
    "BoincAllowEnvironment": "variables to send although they look like secrets",
    "BoincApp": "the app's short name on the project",
    "BoincAppVersionNum": "the only version of the app to use",
    "BoincDelayBound": "seconds that a volunteer's computer has for it",
    "BoincFailedJobs": "complete or hold: what to do if its program fails",
    "BoincImage": "the image that its program runs in",
    "BoincInputTemplate": "path of a job template",
    "BoincNetwork": "whether its program may use the network, in a container",
    "BoincOutputTemplate": "path of a job template",
    "BoincPriority": "its priority on the project",
    "BoincProject": "the project's name in the settings, or its address",
    "BoincQuorum": "how many results have to agree, in a container",
    "BoincRemoteFiles": "url nbytes md5, ...",
    "BoincRscDiskBound": "bytes of disk that it may use",
    "BoincRscFpopsBound": "floating-point operations after which it is stopped",
    "BoincRscFpopsEst": "floating-point operations that it takes",
    "BoincRscMemoryBound": "bytes of memory that it may use",
    "Cmd": "its program, if it runs in a container; with BoincApp it is ignored",
    "ContainerImage": "the image that its program runs in",
    "Environment": "of its program, in a container; quoted as in a submit file",
    "Err": "where its standard error goes",
    "In": "an input file",
    "Iwd": "the directory of its files",
    "JobDirectory": "any text that names the job",
    "Out": "where its standard output goes",
    "RequestCpus": "processors, in a container",
    "RequestDisk": "KiB of disk that it may use, in a container",
    "TransferExecutable": "whether Cmd is a file to be sent; if not, the image has it",
    "TransferInput": "input files, with commas between them",
    "TransferOutput": "outputs, with commas between them; all, if it is left out",
    "TransferOutputRemaps": "output=path;...",
}
#: An ad, up to the attribute whose name is being typed.
_IN_AD = re.compile(r'(?:"(?:[^"\\]|\\.)*"|[^"])*[\[;]\s*(\w*)', re.DOTALL)


@dataclass
class _Kind:
    """Names of one kind; sorted only when they are looked at."""

    names: set[str] = field(default_factory=set)
    _sorted: list[str] = field(default_factory=list)

    def add(self, names: Iterable[str]) -> None:
        for name in names:
            if len(self.names) >= KEPT:
                break
            self.names.add(name)

    def starting(self, prefix: str) -> list[str]:
        if len(self._sorted) != len(self.names):  # names are never removed
            self._sorted = sorted(self.names)
        at = bisect_left(self._sorted, prefix)
        found = self._sorted[at : at + OFFERED]
        return [name for name in found if name.startswith(prefix)]


@dataclass
class _ProjectNames:
    batch: _Kind = field(default_factory=_Kind)
    job: _Kind = field(default_factory=_Kind)
    app: _Kind = field(default_factory=_Kind)
    server_time: str = "0"


class CompletionNames:
    """The names to complete: those in this conversation and in the projects; thread-safe."""

    def __init__(self, urls: Sequence[str] = ()) -> None:
        self._urls = _Kind(set(urls))
        self._job_ids = _Kind()  # of HTCondor's jobs in all projects
        self._lock = threading.Lock()
        self._projects: dict[str, _ProjectNames] = {}
        self._project = self._projects.setdefault("", _ProjectNames())
        self._last_id = 1

    def select(self, url: str) -> None:
        """Switch to the names of a project; the names of other projects are kept."""
        with self._lock:
            self._project = self._projects.setdefault(url, _ProjectNames())
            if url:
                self._urls.add([url])

    def learn(
        self,
        url: str,
        *,
        batches: Iterable[str] = (),
        jobs: Iterable[str] = (),
        apps: Iterable[str] = (),
    ) -> None:
        """Add names of a project."""
        with self._lock:
            project = self._projects.setdefault(url, _ProjectNames())
            project.batch.add(batches)
            project.job.add(jobs)
            project.app.add(apps)

    def note_request(self, url: str, request: AsyncRequest) -> None:
        """Add the names in an accepted request, and its id."""
        with self._lock:
            self._last_id = max(self._last_id, int(request.request_id))
        match request:
            case boinc_commands.Submit(batch=batch, app=app, jobs=jobs):
                self.learn(url, batches=[batch], apps=[app], jobs=(job.name for job in jobs))
            case boinc_commands.QueryBatches(batches=batches):
                self.learn(url, batches=batches)
            case boinc_commands.FetchOutput(job=job):
                self.learn(url, jobs=[job])
            case boinc_commands.AbortJobs(jobs=names):
                self.learn(url, jobs=names)
            case boinc_commands.RetireBatch(batch=batch) | boinc_commands.SetLease(batch=batch):
                self.learn(url, batches=[batch])
            case blah_commands.JobStatus(job_id=job_id) | blah_commands.JobCancel(job_id=job_id):
                self._learn_job_id(job_id)

    def note_result(self, url: str, request: AsyncRequest, line: bytes) -> None:
        """Add the names and the server_time in a result of BOINC_QUERY_BATCHES, and job ids."""
        error, values = COMMANDS[request.command].form.read(line)
        if error is not None:
            return
        if isinstance(request, blah_commands.JobSubmit):
            self._learn_job_id(values[0])
        if not isinstance(request, boinc_commands.QueryBatches):
            return
        jobs: list[str] = []
        at = 1
        while at < len(values):
            end = at + 1 + 2 * int(values[at])
            jobs += values[at + 1 : end : 2]
            at = end
        self.learn(url, jobs=jobs)
        with self._lock:
            self._projects[url].server_time = values[0]

    def _learn_job_id(self, job_id: str) -> None:
        with self._lock:
            self._job_ids.add([job_id])

    @property
    def next_id(self) -> str:
        """A request id higher than all that were used."""
        with self._lock:
            return str(self._last_id + 1)

    @property
    def server_time(self) -> str:
        """The selected project's last server_time, or 0."""
        with self._lock:
            return self._project.server_time

    def starting(self, kind: str, prefix: str) -> list[str]:
        """Return the first names of a kind (batch, job, app, url, job_id) with this beginning."""
        with self._lock:
            shared = {"url": self._urls, "job_id": self._job_ids}
            names = shared.get(kind) or getattr(self._project, kind)
            return list(names.starting(prefix))


def last_word(text: str) -> str:
    """Return the last argument of ``text``, the one being typed, still escaped."""
    found = _LAST_WORD.fullmatch(text)
    return found[1] if found else ""


def typed_words(text: str) -> list[str]:
    """Return the arguments before the last one, which is being typed."""
    done = text[: len(text) - len(last_word(text))]
    try:
        return words.split(words.encode(done))[:-1] if done else []
    except BadRequest:
        return []


def expected(given: Sequence[str]) -> Piece | None:
    """Return the argument that comes after ``given`` (the command and what follows it)."""
    command = COMMANDS.get(given[0].upper()) if given else None
    if command is None:
        return None
    walk = _walk(command.arguments)
    try:
        piece = next(walk)
        for word in given[1:]:
            piece = walk.send(word)
    except StopIteration:
        return None
    return piece


def _walk(pieces: Iterable[Piece]) -> Generator[Field | Counted, str, None]:
    """Yield what is expected; the caller sends what was typed."""
    for piece in pieces:
        match piece:
            case Counted():
                count = yield piece
                for _ in range(int(count) if count.isascii() and count.isdigit() else 0):
                    yield from _walk(piece.fields)
            case Several():
                while True:
                    yield piece.field
            case Rest():
                while True:
                    yield piece
            case Optional():
                yield from _walk(piece.fields)
            case _:
                yield piece


def hint(text: str) -> str:
    """Describe in words what is being typed at the end of ``text``; empty if there is nothing."""
    if len(text) > TYPED:
        return ""
    piece = expected(typed_words(text))
    if isinstance(piece, Counted):
        return f"{piece.count}: number of {piece.help}"
    return f"{piece.name}: {piece.help}" if piece else ""


class LineCompleter(Completer):
    """Completes commands, names, paths and words of the protocol."""

    def __init__(self, names: CompletionNames) -> None:
        self._names = names

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterator[Completion]:
        """Yield completions of the argument before the cursor."""
        del complete_event
        text = document.text_before_cursor
        if len(text) > TYPED:
            return
        last = last_word(text)
        given = typed_words(text)
        for word, meta in self._offer(given, words.unescape(last.removesuffix("\\"))):
            if _typable(word):
                yield Completion(
                    words.escape(word), start_position=-len(last), display=word, display_meta=meta
                )

    def _offer(self, given: list[str], prefix: str) -> Iterable[tuple[str, str]]:
        if not given:
            return [*_commands(prefix), *_matching([("HELP", "help on commands")], prefix)]
        if given[0].upper() == "HELP":
            return _commands(prefix) if len(given) == 1 else ()
        piece = expected(given)
        if isinstance(piece, Rest):
            return _attributes(given[_place_of_rest(given[0]) :], prefix)
        return self._values(piece, prefix) if isinstance(piece, Field) else ()

    def _values(self, wanted: Field, prefix: str) -> Iterable[tuple[str, str]]:
        if isinstance(wanted, Choice):
            return _matching([(word, "") for word in wanted.choices], prefix)
        if wanted.name in {"batch", "job", "app", "url", "job_id"}:
            return [(name, "") for name in self._names.starting(wanted.name, prefix)]
        if wanted.name in _PATHS:
            return _paths(prefix)
        if isinstance(wanted, RequestId):
            return _matching([(self._names.next_id, wanted.help)], prefix)
        ready: dict[str, Callable[[], str]] = {
            "min_mod_time": lambda: self._names.server_time,
            "unix_time": lambda: str(int(time.time()) + 86400),
        }
        make = ready.get(wanted.name)
        return _matching([(make(), wanted.help)], prefix) if make else ()


def _typable(word: str) -> bool:
    """Whether a terminal can show the word and a keyboard can type it."""
    return words.encode(word).decode("utf-8", "ignore") == word and word.isprintable()


def _matching(offers: Iterable[tuple[str, str]], prefix: str) -> list[tuple[str, str]]:
    return [offer for offer in offers if offer[0].startswith(prefix.upper())]


def _place_of_rest(command: str) -> int:
    """Return the position of the argument that takes the rest of the line."""
    pieces = COMMANDS[command.upper()].arguments
    return 1 + next(i for i, piece in enumerate(pieces) if isinstance(piece, Rest))


def _attributes(before: Sequence[str], typed: str) -> list[tuple[str, str]]:
    """Complete the attribute that is being typed in an ad; each offer is ``typed``, completed.

    Args:
        before: the part of the ad before the word that is being typed.
        typed: that word.
    """
    if not (before or typed):
        return [("[", "begins a ClassAd")]
    found = _IN_AD.fullmatch(" ".join([*before, typed]))
    if found is None:
        return []
    begun = found[1]
    return [
        (f"{typed[: len(typed) - len(begun)]}{name}=", meta)
        for name, meta in _ATTRIBUTES.items()
        if name.lower().startswith(begun.lower())
    ]


def _commands(prefix: str) -> list[tuple[str, str]]:
    # PING finds BOINC_PING and BLAH_PING.
    low = prefix.upper()
    return [
        (name, command.summary)
        for name, command in COMMANDS.items()
        if name.startswith(low)
        or (low and name.startswith(tuple(f"{before}{low}" for before in PREFIXES)))
    ]


def _paths(prefix: str) -> Iterator[tuple[str, str]]:
    """Yield the paths that begin with ``prefix``; directories end in a slash."""
    directory, begun = os.path.split(prefix)
    found = []
    try:
        with os.scandir(directory or ".") as entries:
            for entry in entries:
                if entry.name.startswith(begun) and (begun or not entry.name.startswith(".")):
                    slash = "/" if entry.is_dir() else ""
                    found.append(os.path.join(directory, entry.name) + slash)  # noqa: PTH118
    except OSError:
        return
    for path in sorted(found)[:OFFERED]:
        yield path, ""
