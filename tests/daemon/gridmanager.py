"""A gridmanager as far as its conversation goes (``gridmanager-boinc.md``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boinc_gahp.gahp import words
from boinc_gahp.gahp.banner import BANNER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.daemon.process import Daemon

PREFIX = b"GAHP:"


class Gridmanager:
    """Sends requests, and asks for results when an ``R`` says that there are some.

    It fails where a real one would abort: on a line without the prefix, on a Return Line but
    ``S``, on a result that nobody asked for, on a second ``R`` before RESULTS.
    """

    def __init__(self, daemon: Daemon) -> None:
        self.daemon = daemon
        self._results: dict[str, list[str]] = {}
        self._asked: set[str] = set()
        self._last_id = 1
        self._ready = False
        assert daemon.line() + b"\n" == BANNER
        assert b"RESPONSE_PREFIX" in daemon.ask(b"COMMANDS").split(b" ")
        assert daemon.ask(b"RESPONSE_PREFIX GAHP:") == b"S"
        assert self.say(["ASYNC_MODE_ON"]) == ["S"]

    def say(self, arguments: Sequence[str]) -> list[str]:
        """Send a line; return the arguments of its Return Line."""
        self.daemon.send(words.join(arguments) + b"\r\n")
        while (answer := self._line()) == ["R"]:
            self._note_ready()
        return answer

    def begin(self, command: str, *arguments: str) -> str:
        """Make a request; return its id."""
        self._last_id += 1
        request_id = str(self._last_id)
        assert self.say([command, request_id, *arguments]) == ["S"]
        self._asked.add(request_id)
        return request_id

    def result(self, request_id: str) -> list[str]:
        """Return what follows the id in a Result Line, when it has come."""
        while request_id not in self._results:
            if not self._ready:
                assert self._line() == ["R"]
                self._note_ready()
            self._fetch_results()
        return self._results.pop(request_id)

    def do(self, command: str, *arguments: str) -> list[str]:
        """Make a request; return its result."""
        return self.result(self.begin(command, *arguments))

    def _fetch_results(self) -> None:
        self._ready = False
        status, number = self.say(["RESULTS"])
        assert status == "S"
        for _ in range(int(number)):
            request_id, *rest = self._line()
            self._asked.remove(request_id)
            self._results[request_id] = rest

    def _note_ready(self) -> None:
        assert not self._ready, "a second R before RESULTS"
        self._ready = True

    def _line(self) -> list[str]:
        line = self.daemon.line()
        assert line.startswith(PREFIX), line
        return words.split(line.removeprefix(PREFIX))


def submission(
    batch: str, app: str, jobs: Mapping[str, tuple[Sequence[str], Sequence[str]]]
) -> list[str]:
    """Return the arguments of a BOINC_SUBMIT: a job's arguments, and its (path, name) words."""
    line = [batch, app, str(len(jobs))]
    for name, (arguments, inputs) in jobs.items():
        line += [name, str(len(arguments)), *arguments, str(len(inputs) // 2), *inputs]
    return [*line, *["NULL"] * 6]
