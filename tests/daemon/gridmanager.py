"""Gridmanagers as far as their conversation goes (``gridmanager-*.rst``)."""

import re
import threading
import time
from dataclasses import dataclass

from boinc_gahp.gahp import lines

PREFIX = b"GAHP:"
#: Requests that a gridmanager has under way at most (``gridmanager-batch.rst``, "Concurrency").
IN_FLIGHT = 50
#: Numbers of words after the id, in every Result Line (``gridmanager-batch.rst``, "Result lines").
BLAH_WORDS = {
    "BLAH_PING": 2,
    "BLAH_JOB_SUBMIT": 3,
    "BLAH_JOB_STATUS": 4,
    "BLAH_JOB_CANCEL": 2,
    "BLAH_JOB_REFRESH_PROXY": 2,
}
ENDED = frozenset({3, 4, 5})


class Gridmanager:
    """Sends requests, and asks for results when an ``R`` says that there are some.

    It fails where a real one would abort: on a line without the prefix, on a Return Line but
    ``S``, on a result that nobody asked for, on a second ``R`` before RESULTS.
    """

    def __init__(self, daemon):
        self.daemon = daemon
        self._results = {}
        self._asked = {}
        self._last_id = 1
        self._ready = False
        # Of another version, if this one is being upgraded.
        self.banner = daemon.line().decode()
        assert self.banner.startswith("$GahpVersion: ")
        assert b"RESPONSE_PREFIX" in daemon.ask(b"COMMANDS").split(b" ")
        assert daemon.ask(b"RESPONSE_PREFIX GAHP:") == b"S"
        assert self.say(["ASYNC_MODE_ON"]) == ["S"]

    def say(self, arguments):
        """Send a line; return the arguments of its Return Line."""
        self.daemon.send(lines.join(arguments) + b"\r\n")
        while (answer := self._line()) == ["R"]:
            self._note_ready()
        return answer

    def begin(self, command, *arguments):
        """Make a request; return its id."""
        self._last_id += 1
        request_id = str(self._last_id)
        assert self.say([command, request_id, *arguments]) == ["S"]
        self._asked[request_id] = command
        return request_id

    def result(self, request_id):
        """Return what follows the id in a Result Line, when it has come."""
        while request_id not in self._results:
            self._take_results()
        return self._results.pop(request_id)

    def do(self, command, *arguments):
        """Make a request; return its result."""
        return self.result(self.begin(command, *arguments))

    def _fetch_results(self):
        self._ready = False
        status, number = self.say(["RESULTS"])
        assert status == "S"
        for _ in range(int(number)):
            request_id, *rest = self._line()
            command = self._asked.pop(request_id)
            assert len(rest) == BLAH_WORDS.get(command, len(rest)), (command, rest)
            self._results[request_id] = rest

    def _note_ready(self):
        assert not self._ready, "a second R before RESULTS"
        self._ready = True

    def _line(self):
        try:
            line = self.daemon.line()
        except AssertionError as error:
            raise type(error)(f"{error}; unanswered: {self._asked}") from None
        assert line.startswith(PREFIX), line
        return lines.split(line.removeprefix(PREFIX))

    def do_all(self, requests):
        """Make requests, 50 under way at a time; return their results in the same order."""
        ids = []
        for request in requests:
            while len(self._asked) >= IN_FLIGHT:
                self._take_results()
            ids.append(self.begin(*request))
        return [self.result(request_id) for request_id in ids]

    def _take_results(self):
        """Wait until results are ready, and fetch them."""
        if not self._ready:
            assert self._line() == ["R"]
            self._note_ready()
        self._fetch_results()


@dataclass(frozen=True)
class Status:
    """What a BLAH_JOB_STATUS was answered.

    Attributes:
        word: 1 idle, 2 running, 3 removed, 4 completed, 5 held.
        ad: the status ad as text.
    """

    word: int
    ad: str

    def __getitem__(self, attribute):
        """Return an attribute of the ad as HTCondor's own parser reads it, or None."""
        import classad2  # of the package htcondor: 30 ms

        return classad2.parseOne(self.ad).get(attribute)


class BatchGridmanager(Gridmanager):
    """That of ``grid_resource = batch boinc``: HTCondor 10 and later.

    What is refused is an AssertionError with the daemon's words, unless a method says otherwise.
    """

    def ping(self):
        """Have the daemon say that it takes jobs."""
        assert self.do("BLAH_PING", "boinc") == ["0", "NULL"]

    def submit(self, ad):
        """Submit a job; return its id."""
        return self.submit_all([ad])[0]

    def submit_all(self, ads):
        """Submit jobs, 50 at a time; return their ids."""
        results = self.do_all(["BLAH_JOB_SUBMIT", ad] for ad in ads)
        for code, error, job_id in results:
            assert (code, error) == ("0", "NULL"), error
            assert job_id
            assert " " not in job_id
        return [result[2] for result in results]

    def refusal(self, ad):
        """Submit a job that has to be refused; return its HoldReason."""
        code, error, job_id = self.do("BLAH_JOB_SUBMIT", ad)
        assert (code, job_id) == ("1", "NULL")
        return error

    def status(self, job_id):
        """Ask for a job's status."""
        return self.statuses([job_id])[job_id]

    def statuses(self, job_ids):
        """Ask for the statuses of jobs, 50 at a time."""
        results = self.do_all(["BLAH_JOB_STATUS", job_id] for job_id in job_ids)
        found = {}
        for job_id, (code, error, word, ad) in zip(job_ids, results, strict=True):
            assert (code, error) == ("0", "NULL"), error
            assert ad.startswith("["), ad
            found[job_id] = Status(int(word), ad)
        return found

    def cancel(self, *job_ids):
        """Cancel jobs, 50 at a time."""
        for result in self.do_all(["BLAH_JOB_CANCEL", job_id] for job_id in job_ids):
            assert result == ["0", "NULL"]

    def follow(self, job_ids, *, every=0.2, within=60.0):
        """Ask for statuses until all jobs have ended (3, 4 or 5); return the last ones."""
        found = {}
        pause = threading.Event()
        deadline = time.monotonic() + within
        while left := [one for one in job_ids if one not in found]:
            told = self.statuses(left)
            found |= {one: status for one, status in told.items() if status.word in ENDED}
            assert time.monotonic() < deadline, f"not within {within:g} s: {told}"
            if len(found) < len(job_ids):
                pause.wait(every)
        return {job_id: found[job_id] for job_id in job_ids}

    def end_of(self, job_id):
        """Ask for a job's status until it has ended; return the last one."""
        return self.follow([job_id])[job_id]


def job_ad(directory, **attributes):
    """Return a submit ad (``gridmanager-batch.rst``, "The submit ad") with what is always in one.

    Args:
        directory: the Iwd.
        **attributes: others, and others' values; JobDirectory should be among them. None: there is
            no such attribute; bytes are an expression.
    """
    always = {
        "In": "/dev/null",
        "Cmd": "/usr/bin/true",
        "Err": "/dev/null",
        "Iwd": directory,
        "Out": "/dev/null",
        "gridtype": "boinc",
        "Arguments": "",
        "Environment": "",
        "GridResource": "batch boinc",
        "JobDirectory": "home_bl_127.0.0.1_9618_vm_1.0_1795261016",
    }
    all_ = {name: value for name, value in (always | attributes).items() if value is not None}
    return f"[ {'; '.join(f'{name} = {_value(value)}' for name, value in all_.items())} ]"


def _value(value):
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, bytes):
        return lines.decode(value)
    if not isinstance(value, str):
        return repr(value)
    escaped = re.sub(r'(["\\])', r"\\\1", value).replace("\n", "\\n")
    return f'"{escaped}"'


def submission(batch, app, jobs):
    """Return the arguments of a BOINC_SUBMIT: a job's arguments, and its (path, name) words."""
    line = [batch, app, str(len(jobs))]
    for name, (arguments, inputs) in jobs.items():
        line += [name, str(len(arguments)), *arguments, str(len(inputs) // 2), *inputs]
    return [*line, *["NULL"] * 6]


def statuses(answer):
    null, _server_time, number, *rest = answer
    assert (null, len(rest)) == ("NULL", 2 * int(number))
    return dict(zip(rest[::2], rest[1::2], strict=True))
